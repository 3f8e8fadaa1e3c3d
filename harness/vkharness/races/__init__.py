"""Races between the invocations of one dispatch: two accesses of one place of memory that nothing orders.

The invocations of a dispatch run at once. What orders two of them is inside of the shader: a control barrier between
invocations of one work group, or an atomic that reads what another one wrote. "Memory Model" in the specification says
when two accesses are ordered; where they are not, and one of them writes, there is a data race.

The shader is executed on the host, with the bytes that the trace leaves it. Each access of shared memory, storage
buffers and storage images is noted with its instruction and invocation, and each barrier, fence and atomic with what it
orders. Whether two accesses are ordered follows from these alone and not from the order in which the invocations were
run, so that one run finds the races of all, unless a value that was raced for decides what is accessed. Two runs are
made, first to last and last to first: bytes that they leave different are what a race costs.

| read in this order | what it holds |
|---|---|
| `knowledge` | what each invocation knows to be over: barriers, fences and atomics as relations |
| `shared_words` | accesses, places of memory, and the pairs among them that nothing orders |
| `noted_dispatch` | the interpreter of `vkharness.shader.execution`, with each access noted |
| `shader_names` | variables and lines of a shader, from its debug information |
| `dispatch_races` | `find_races()`: every dispatch of a trace |
"""
