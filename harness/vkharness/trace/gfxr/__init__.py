"""Captures of GFXReconstruct (`.gfxr`), read without any tool of it.

| module | what it has |
|---|---|
| `blocks` | the file: header, blocks, compression |
| `call_ids` | the numbers by which a capture names commands |
| `encoded_values` | numbers, texts, arrays and pointers as a capture encodes them |
| `decoders` | structs and parameters, by the registry's tables |
| `special_structs` | the structs that a capture encodes otherwise |
| `template_values` | the data of descriptor update templates |
| `parameters` | the parameters of each command |
| `reader` | a capture as the blocks of `vkharness.trace.calls` |

A capture is little-endian. A parameter or member follows the one before it without padding. A pointer is 32 bits that
say what follows: nothing (null), the address in the process that was captured, the number of elements, the elements.
"""
