"""Captures of RenderDoc, as `renderdoccmd convert -c zip.xml` writes them: chunks as XML, bytes in a zip beside it.

| module | contents |
|---|---|
| `chunks` | the XML: named chunks with their values, one at a time |
| `byte_archive` | the zip: the bytes that a value refers to by a number |
| `chunk_calls` | a chunk as the call that it stands for, in the names of Vulkan |
| `frame_start` | what descriptor sets, memory and images hold where the captured frame begins |
| `unkept_calls` | what a capture does not keep: states of fences and semaphores, acquires of images |
| `conversion` | a capture as it is, converted by RenderDoc's tool |
| `renderdoc_reader` | a capture as the blocks of `vkharness.trace.calls` |

A capture is of one frame: the calls that made its objects, what these held when the frame began, the frame's calls. The
queues are idle where it begins. RenderDoc names some parameters by words of its own, but keeps their order, so that
they are known by their place.
"""
