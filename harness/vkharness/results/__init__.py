"""The results of one run of the suite, as a file that loses nothing: `results.jsonl`.

| module | what it holds |
|---|---|
| `states` | what a row came to, in the words of deqp-runner |
| `result_lines` | the lines of the file as data, and what makes one of them malformed |
| `result_file` | the file as it is written: a line a row, by several processes |
| `read_results` | the file as it is read, also one that was cut off |
| `join_runs` | several runs as one: shards, and other drivers, builds or layers |
| `baseline` | lists of known results, and a row held against them |
| `stories` | rows that need a look, by their cause |
| `compare_runs` | what changed from one run to another |

`docs/results.md` is the written schema.
"""
