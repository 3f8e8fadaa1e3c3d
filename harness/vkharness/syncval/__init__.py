"""The judge: which access conflicts with which, worked out range by range as the stream goes on.

| read in this order | what it holds |
|---|---|
| `state` | what is known of one range of addresses: the automaton |
| `barrier`, `cross_dependency` | dependencies within one viewer, expanded for its queue; from another viewer |
| `access`, `layout_transition` | what an access or a transition meets, and what the state becomes |
| `race` | accesses that nothing orders at all |
| `entries`, `tracked_ranges`, `journal` | the states of all ranges; where each queue accessed memory lately |
| `context` | all of that, as one viewer sees it |
| `tokens`, `event`, `query` | marks on accesses; events; queries |
| `execution`, `pass_execution` | the effects of commands, run over a context; a render pass instance |
| `queue` | queues, batches and semaphores: when which batch is judged |
| `host`, `present`, `ownership` | the host, the presentation engine, queue family ownership |
| `evidence`, `messages` | from hazards to findings, and their words |
| `validator` | `Validator`: the stream goes in, findings come out |
"""
