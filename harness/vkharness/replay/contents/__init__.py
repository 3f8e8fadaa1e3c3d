"""Contents of buffers and images on the device of the replay: read back, put back, observed and compared.

!| module, in reading order | contents |
|---|---|
!| `contents` | reads and writes a buffer, or a box of an image |
| `fetch`, `aspects` | multisampled images: read by shaders, written one aspect at a time |
!| `fill` | the first contents of every resource |
| `regions` | the part of a resource that a finding is about |
!| `observe` | everything that a run left, and how two runs differ |
"""
