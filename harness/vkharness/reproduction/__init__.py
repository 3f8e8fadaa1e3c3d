"""A reduced trace as a scenario: Python that records the same stream through the rig, with the missing dependency.

| module | what it holds |
|---|---|
| `script` | lines of Python; C structs and values as expressions; names of objects |
| `rig_objects` | buffers, images and everything else that is made before it is used |
| `rig_swapchains` | swapchains, acquires and presents |
| `rig_barriers` | barriers, and the dependency that was missing under its name |
| `rig_commands` | the commands of a command buffer |
| `scenario_file` | the whole file: what is claimed, objects, command buffers, submits, calls of the host |
"""
