"""Vulkan's own tables and names, generated from the registry, and views of them.

| module | what it holds |
|---|---|
| `enums` | the enumerations (generated) |
| `_generated`, `table_files` | structs, commands, formats, stages and accesses (generated); the large ones as files |
| `shapes` | members of structs and parameters of commands by name |
| `names` | values to names and back |
| `formats` | bytes and extents of texel blocks |
| `scopes`, `masks` | stage and access masks as sets; scopes as text |
"""
