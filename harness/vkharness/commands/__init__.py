"""The effects of each Vulkan call, as data: turns calls into stream events and effects.

| module | what it holds |
|---|---|
| `interpret` | `Interpreter`: calls go in, stream events come out |
| `handlers` | which function says what a call does; a new command is one decorated function |
| `object_state` | the live objects, and what each command buffer holds |
| `recording`, `synchronization` | command buffers; barriers, events, semaphores, submits |
| `resources` | buffers, images, acceleration structures, queries, swapchains |
| `transfer`, `host_copy` | copies and clears, by the device and by the host |
| `compute`, `drawing`, `rendering` | dispatches; draws; render pass instances and their attachments |
| `device_writes` | what executing a command buffer may write |
| `coverage` | which commands are not modelled, and why |
"""
