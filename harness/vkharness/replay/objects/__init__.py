"""Makes the objects of a recorded stream again on the device of the replay.

!| module, in reading order | contents |
|---|---|
!| `target` | a driver and its device, at the C boundary |
| `encode` | values of a trace to C memory |
!| `recorder` | the command buffer through which the replay issues everything |
| `allocations`, `creation` | memory, buffers and images, made before anything runs |
!| `recreation` | all other objects, made when the trace makes them |
"""
