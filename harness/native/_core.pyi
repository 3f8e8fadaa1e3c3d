from typing import Any

SOURCES: int
"""`checksum()` of the sources that it was built of."""
SpanMap: Any
"""As `harness.spans.PythonSpanMap`."""
RangeStore: Any
"""As `harness.syncval.range_store.RangeStore` says."""
Automaton: Any
"""What range stores remember of states: `harness.syncval.range_store.automaton`."""

# The front end: what `harness.record.native_front` makes functions of.
Shape: Any
"""A struct or the arguments of a command: `Shape(name, rows)`; a row is a `harness.record.native_shapes.ShapeField`."""
Sites: Any
"""As `harness.record.sites.Sites`, for frames of Python that are running: `Sites(explain)`."""
Command: Any
Function: Any
Target: Any
CallLog: Any
"""Calls that wait: `CallLog(numbers, full, most calls, most sayings, most bytes)`. A saying has `name`, `args`, `kept`,
which is the judge's. It is one object for all calls that say the same, as long as it is remembered."""

BufferCopies: Any
"""What copies do: `BufferCopies(places, said, plan_of, read, write, type of what a copy is, type of what is kept)`
(`harness.commands.transfer.new_copies`). `record(command buffer, its id, changes, name, args)` gives what is kept of a
copy into that command buffer, (changes, command buffer, plan), or None where Python must find what the command does."""

BoundSets: Any
"""Descriptor sets that commands bind: `BoundSets(objects, objects by id, dynamic offsets of a layout, contents_of,
KnownBind, BoundSet, DescriptorSet, PlansBySets, an access, a plan, most plans of one table)`
(`harness.commands.drawing.state_parts.new_bound_sets`).
`bind(command buffer, its id, kept, name, args)` binds and gives what is kept of the command; None where Python must
find what it does. `plan(plans, command buffer)` gives what `PlansBySets` has for the sets that are bound, or what it
reaches of their memory; False where it has neither."""

def front_ready(api: object, cdata: type, samples: list[tuple[Any, Any, int]]) -> bool:
    """Whether cffi is as the core knows it; `samples` are values, their types and addresses."""

def handles_changed() -> None:
    """Any handle means another object from here on, or none: ids that are remembered hold no more."""

def direct_calls(on: bool) -> None:
    """Whether function pointers of cffi that have a `Target` lead to it."""

def arm(target: Any, command: Any) -> None:
    """Gives a `Function` or a `Target` its `Command`; None takes it away."""
