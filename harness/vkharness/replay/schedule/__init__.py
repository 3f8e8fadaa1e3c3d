"""The steps of a recorded stream, and the orders in which they may run. Nothing here needs a device.

| module | what it holds |
|---|---|
| `steps` | the stream as steps: command buffers laid out at each submit |
| `batch_scheduler` | the order in which one queue can run what several were given |
| `screens` | presents as copies, since a replay has no swapchain |
| `layouts`, `render_pass_layouts`, `render_pass_effects` | image layouts through the steps; what render passes do |
| `cut_instances`, `part_objects` | a render pass instance as several, and what these are made of |
| `units`, `legal_orders` | what changes places as a whole; in which orders |
"""
