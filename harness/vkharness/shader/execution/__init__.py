"""Contents of memory after a dispatch, computed on the host from its SPIR-V, without asking any driver.

| read in this order | what it holds |
|---|---|
| `outside` | what the interpreter is given, and how it refuses |
| `float_bits`, `scalar_operations` | exact results of operations on scalars |
| `stored_values` | values of each type in memory; constants |
| `access_chains`, `function_code` | pointers and functions as Python closures, and how these run |
| `value_reader`, `function_reader` | make them from the instructions of a module |
| `work_groups` | `execute_dispatch()`: runs them, one work group after the other |

Behaviour that the specifications leave open is refused with one line (`NotInterpreted`), never guessed.
"""
