"""Which memory each invocation of a dispatch or draw reaches, found by executing what decides it.

`reach` knows affine indices. What it cannot tell, as the texels that a shader stores to, loops and nested conditions,
follows here from running the instructions that addresses and branches depend on, for all invocations at once: a value
is a number for all, an array with one for each, or None where it is not known. A branch on what is not known goes both
ways. Nothing else is executed, and no memory is read but what the dispatch is known to load.

| read in this order | what it holds |
|---|---|
| `lane_values` | values of many invocations, split where they part and joined where they meet |
| `integer_operations` | operations on such values |
| `needed_code` | the instructions that addresses and branches depend on |
| `pointed_places` | pointers and images as values |
| `reached_places` | what an instruction reached, gathered |
| `walk` | the execution |
"""
