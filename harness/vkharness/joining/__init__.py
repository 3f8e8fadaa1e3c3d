"""Two traces of two processes that share payloads, as one trace.

| module | what it holds |
|---|---|
| `pairing` | which import of one trace belongs to which export of the other one |
| `renumbering` | the second trace with ids of its own |
| `interleaving` | in which order the calls of both are put |
| `join` | all of it |
"""
