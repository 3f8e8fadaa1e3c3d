"""Drivers, and processes bound to them.

| module | what it holds |
|---|---|
| `manifests`, `drivers` | where drivers are, what they are called here |
| `origins` | which packages setup took drivers, layers and tools from, with hashes |
| `survey`, `inventory` | what a driver says of itself, in its process; asking each for that |
| `headless`, `windowless` | a device with no window; programs with windows where there is no display |
| `process`, `worker`, `pool` | a job in a child process, its side of that, and several side by side |
| `queue_emulation` | several queue families on a device that has one queue |
"""
