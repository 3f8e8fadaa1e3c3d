"""Hostile files for every command that reads one: no traceback, no endless run, no unbounded memory.

| module | what it has |
|---|---|
| `samples` | what an input is: the files of a trace, a capture, a list of known findings; where they come from |
| `call_streams` | traces made of the registry alone: any command, any value of its type |
| `call_orders`, `shader_orders` | traces of calls that fit one another, in orders that no program has |
| `fitting_calls` | what writes these, and the numbers of their objects |
| `json_changes` | changes of a trace that keep it JSON, and most of its calls calls |
| `binary_changes` | changes of captures block by block, of SPIR-V word by word, of any text |
| `commands` | which commands of vkharness are given an input; what each path of each command is |
| `trial` | one command on one input, in a process with limits |
| `line_counter` | which lines of this package ran |
| `smaller` | the smallest input with the same fault |
| `hunt` | the inputs of a hunt, batch by batch |
| `job_processes` | a hunt in several processes |
| `tally` | what a hunt came to, the file that it goes on from, and the sums over several hunts |
"""
