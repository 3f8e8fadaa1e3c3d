"""Runs a recorded stream on a device, under an outcome that the specification allows.

| package | what it holds |
|---|---|
| `schedule` | the steps of a stream, and the orders in which they may run |
| `objects` | the stream's objects, made anew on the device of the replay |
| `contents` | bytes of buffers and images: read back, put back, compared |
| `outcomes` | what is executed: `serial`, `inside`, `reorder`, `witness` |
| `strategies` | how `reorder` picks the next unit, one module a strategy |
"""

MODES = ("native", "serial", "reorder", "witness")
"""Values of `vkharness replay --mode`."""
