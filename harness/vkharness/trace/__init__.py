"""The recorded stream as data, in memory and on disk. All other packages read it.

!| module, in reading order | contents |
|---|---|
!| `calls` | `Call`, `HostWrite`, `HostRead`: the blocks of a stream |
| `chain`, `submits`, `templates` | `pNext` chains, submissions and update templates of calls, each read in one place |
!| `effects` | what commands do (effects), and what happens outside command buffers (stream events) |
| `resources`, `render_passes`, `graphics_state`, `rendering_state` | objects and states as plain data |
!| `codec`, `lines`, `dialects` | traces on disk: files, lines, blocks |
| `field_codecs`, `scalars`, `binaries` | structs and arrays, single values, and bytes in files beside the trace |
| `packed`, `packed_chunks`, `plain_lines` | traces in one file, and as text with a folder beside it |
| `gfxr` | captures of GFXReconstruct as they are |
| `file_kinds`, `printed` | which kind of stream a file is; calls as api_dump prints them |
| `handles`, `named_objects` | handles to ids that are never used again |
| `found_writes`, `unread_calls` | what a capture holds of mapped memory as writes; its calls that cannot be read |
| `pending_batches` | in which order batches run that wait for later signals |
"""
