"""The device layer that scenarios record through: thin and explicit, with every dependency named.

| module | what it holds |
|---|---|
| `rig` | `Rig`: the device of one scenario, what it makes and what it submits |
| `command_buffers` | `Commands`: recording, barriers |
| `render_passes`, `rendering_attachments` | render pass objects and dynamic rendering |
| `graphics_pipelines` | pipelines that draw |
| `queues`, `swapchains` | submits to several queues, presentation |
| `events`, `queries`, `secondaries`, `host_copies` | the commands that their names say |
"""
