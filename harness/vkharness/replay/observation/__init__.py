"""Observation: what each command of a trace really reads and writes on a driver, found by experiment.

| module, in reading order | contents |
|---|---|
| `declared` | what `vkharness.commands` says that each execution of a command accesses |
| `snapshots` | the contents of all resources: read, filled, put back, compared |
| `experiments` | runs a command again with other contents around it, and notes which bytes it writes and reads |
| `observing`, `in_worker` | observing a trace, in this process or in one that may die |
"""
