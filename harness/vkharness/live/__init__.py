"""Judges programs by the stream that the mirror layer writes, while they run or afterwards.

| module | what it holds |
|---|---|
| `records` | how a process's folder is laid out, and its records one after the other, while they come |
| `control` | the page that the layer and the judge share |
| `record_memory` | a record as memory in which the generated readers read |
| `copied_memory` | mapped memory of another process, as far as the stream tells it |
| `record_session` | records to calls: handles, threads, calls that wait for their result |
| `record_commands` | the function of each command that a stream names |
| `native_sites`, `line_tables` | call stacks of native code to files and lines |
| `process_judge` | one process: its records in order to one verdict |
| `program_folder` | all processes of one program |

The stream is written by the program that is judged, so nothing in it is trusted: each length is held against what is
there, each count costs units of work (`vkharness.trace.work_budget`), and what cannot be read costs its call alone.
"""
