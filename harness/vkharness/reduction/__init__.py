"""A trace made smaller while it still shows one finding.

| module | what it holds |
|---|---|
| `paths` | the droppable pieces of a trace: blocks, and elements of arrays in their arguments |
| `structure` | what belongs together in a stream: recordings and what executes them, waits and signals, passes |
| `visible_state` | which state commands an action sees |
| `fences` | which signals, waits and resets of fences stay |
| `removal`, `serving`, `fewer_objects` | a stream without some pieces, and without everything that only served them |
| `history` | the commands as they were executed, and the layouts in which they met images |
| `oracle` | whether a stream still shows the finding, and how many others |
| `slicing` | the first small stream: the two commands of the finding and what they cannot do without |
| `levels`, `sizes` | what is tried, from frames to regions; smaller dispatches, draws, images and buffers |
| `render_pass_parts`, `rendering_parts` | render passes and dynamic rendering with fewer parts |
| `parting` | dependencies that put other findings right |
| `reduce` | the loop |
"""
