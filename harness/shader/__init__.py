"""What a pipeline stage touches, read from its SPIR-V; and the project's own shaders by name.

| read in this order | what it holds |
|---|---|
| `opcodes`, `spirv` | numbers and instructions of a module, without meaning |
| `types`, `constants`, `variables` | its declarations |
| `pointers`, `flow`, `accesses` | what an entry point reaches, followed instruction by instruction |
| `reflect` | `reflect()`: the resources that an entry point uses, and how |
| `library` | the project's own shaders |
"""
