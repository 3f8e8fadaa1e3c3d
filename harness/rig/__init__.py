"""The device layer that scenarios record through: thin and explicit, with every dependency named.

Read in this order; each module imports only those above it.

| module | what it holds |
|---|---|
| `requirements` | what a scenario asks of a device: queues, extensions |
| `core` | `RigDevice`, which owns what is made; `RigCommandBuffer`, a command buffer; the live objects (`RigBuffer`,
...) |
| `buffers_images`, `host_copies` | memory, buffers, images, views; what the host copies |
| `pipeline_layouts`, `descriptor_sets`, `compute_pipelines` | layouts by reflection, descriptors, shaders, dispatches |
| `render_passes`, `graphics_pipelines`, `rendering_attachments` | render pass objects, pipelines that draw, draws |
| `barriers`, `transfers`, `events`, `queries` | the commands that their names say |
| `command_buffers` | `Commands`: all commands in one class; primary and secondary command buffers |
| `queues`, `swapchains` | submits, semaphores, fences; presentation |
| `rig` | `Rig`: everything above in one class |
"""
