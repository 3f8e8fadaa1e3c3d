"""Calls as other tools print them: each parameter and member by its name, its value as text.

| module | contents |
|---|---|
| `printed_values` | a call and its values as they stand in a file, whichever tool wrote it |
| `api_dump_text`, `api_dump_json`, `api_dump_html` | the three forms of VK_LAYER_LUNARG_api_dump |
| `call_pieces` | a file cut where its calls begin |
| `printed_shapes` | printed values in the shape of a converted trace, by the registry's tables; handles as ids |
| `printed_reader` | which form a file has; its calls as blocks; what it lacks, in words |

A dump says what a program passed and what it got back. It does not say what memory held, what the host wrote there, and
what stood behind a pointer to bytes. So each call that gives memory to the host is marked (`UNSEEN_WRITES`), and what
follows from such bytes is unknown.
"""
