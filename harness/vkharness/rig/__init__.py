"""The device layer that scenarios record through: thin and explicit, with every dependency named.

Read in this order; each module imports only those above it.

| module | what it holds |
|---|---|
| `requirements` | what a scenario asks of a device: queues, extensions |
| `core` | `RigDevice`, which owns what is made; `RigCommandBuffer`, a command buffer; the live objects (`RigBuffer`,
...) |
| `buffers_images`, `host_copies` | memory, buffers, images, views; what the host copies |
| `ray_structures` | acceleration structures of triangles and of instances |
| `non_coherent_memory` | memory that is not coherent: flushes and invalidates |
| `pipeline_layouts`, `descriptor_sets`, `compute_pipelines` | layouts by reflection, descriptors, shaders, dispatches |
| `render_passes`, `graphics_pipelines`, `rendering_attachments` | render pass objects, pipelines that draw, draws |
| `barriers`, `transfers`, `events`, `queries` | the commands that their names say |
| `command_buffers` | `Commands`: all commands in one class; primary and secondary command buffers |
| `queues`, `swapchains`, `sparse` | submits, semaphores, fences; presentation; sparse memory |
| `shared_objects` | what two programs have in common |
| `rig` | `Rig`: everything above in one class |

Parts of a small renderer on top of that. Each keeps objects and hands them out again, and none records a barrier:

| module | what it holds |
|---|---|
| `suballocators`, `memory_allocator` | linear and buddy allocators; resources in shared or dedicated memory |
| `frame_contexts` | frames in flight: fences, scratch memory, what is deleted later |
| `descriptor_cache`, `lazy_pipelines` | descriptor sets by content; pipelines made when first needed |
| `automatic_passes` | render passes and framebuffers from images |
| `turns` | threads that record in the same order in every run |
"""
