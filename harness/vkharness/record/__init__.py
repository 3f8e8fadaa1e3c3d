"""Mirrors the calls that this process makes through the `vulkan` package into a stream of blocks.

| module | what it holds |
|---|---|
| `proxy` | puts itself between the package and C, and takes itself away again |
| `forward` | one function a command: decode, forward, decode what came back, record |
| `separate_aspects` | a property of the device that few programs ask for |
| `struct_layout`, `decode`, `template_data` | C memory to normal form, by the generated tables |
| `handles` | handles to ids that are never reused |
| `written_pages`, `mapped_memory`, `unmapped_memory` | what may have been written in mapped memory; what changed |
| `mappings`, `work`, `host` | what is mapped; unfinished submits; host writes in their place in the stream |
| `sites`, `lifetime` | the Python line that made a call; what the package lets die too early |
| `call_recorder` | takes the calls of one program, keeps and judges them |
| `session` | the stream, its order, and what the judge found |
| `program_runner` | runs a program as `__main__` under a session |
"""
