"""The Khronos validation layer as a witness, and an account of where it and we differ.

| module | what it holds |
|---|---|
| `manifest`, `enable`, `listen` | where a layer is, what turns it on, what it said |
| `parse` | its messages as data |
| `compare`, `subject` | our findings beside its messages; one disagreement |
| `known_differences` | the list in `known_differences.toml`, and which entry explains a disagreement |
| `conditions`, `event_conditions`, `rendering_conditions`, `submit_conditions` | what the entries ask of the stream |
| `order_conditions` | what the second judge says of it by the rules that layers have |
| `silence`, `stream` | what no version records; the stream as the conditions look at it |
"""
