"""A case: the folder about one group of findings that a maintainer can be sent, and the steps that make it.

| module | what it has |
|---|---|
| `group_replays` | what a driver shows of a group of findings |
| `shown_reduction` | a driver that is asked about each smaller trace |
| `scenarios` | the scenario of a reduced trace, written where it passes |
| `case_steps` | the steps, in their order: each fails by itself |
| `case_page` | the page, and the text that says what each file is |
| `case_folder` | the folder that appears whole, and its archive |
"""
