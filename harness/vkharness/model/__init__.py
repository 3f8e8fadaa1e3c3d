"""The second opinion: the execution and memory dependency order of a trace, written from the specification to be read.

It shares nothing with `syncval` but the trace and the tables of Vulkan. `judge(blocks)` gives an `Opinion`.

| read in this order | what it holds |
|---|---|
| `opinion` | the answer: `Conflict`, `Opinion` |
| `stages` | stage and access masks of a dependency as sets |
| `node_numbers` | sets of nodes that share their parts |
| `order` | what happens before what: nodes, edges, paths |
| `memory` | what is available and visible where: flushes and invalidates |
| `command_streams` | where a sequence of commands (a queue's, a subpass's) is in that order |
| `past_access`, `pairs`, `visibility` | an access; two of them side by side; what one of them sees |
| `access_history` | all accesses, and the rules for two of the same memory |
| `event_history`, `query_history` | what was done to an event, to the queries of a pool |
| `ownership` | which queue family has the contents of what |
| `binding_history` | which memory sparse resources have, and who uses or changes that |
| `program`, `command_buffer_run` | the state that the rules change, as the stream goes on |
| `rules/` | the rules, a family a file; `RULES` says which is the rule for what |
| `caches` | remarks on barriers that do nothing for a write |
| `judge` | the way in |
| `explanation` | the argument for each pair of accesses, in order or not |
"""

from vkharness.model.judge import judge, judge_stream_events
from vkharness.model.opinion import Conflict, ConflictKind, ModelAccess, Opinion

__all__ = ["Conflict", "ConflictKind", "ModelAccess", "Opinion", "judge", "judge_stream_events"]
