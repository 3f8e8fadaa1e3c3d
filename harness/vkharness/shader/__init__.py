"""Memory accesses of a shader, read from its SPIR-V; and the project's own shaders by name.

| read in this order | what it holds |
|---|---|
| `opcodes`, `spirv` | numbers and instructions of a module, without meaning |
| `types`, `constants`, `variables` | its declarations |
| `guards`, `values` | under which conditions a block runs; integers as expressions of what a dispatch decides |
| `pointers`, `flow`, `accesses` | what an entry point reaches, followed instruction by instruction |
| `affine`, `reach`, `narrowing` | which bytes that is in one dispatch |
| `lanes` | the same where that is not affine, and texels: what decides it, executed for all invocations at once |
| `reflect` | `reflect()`: the resources that an entry point uses, and how |
| `execution` | what a dispatch leaves in memory, computed on the host without a driver |
| `library` | the project's own shaders |
"""
