from typing import Any

SOURCES: int
"""`checksum()` of the sources that it was built of."""
SpanMap: Any
"""As `vkharness.spans.PythonSpanMap`."""
RangeStore: Any
"""As `vkharness.syncval.range_store.RangeStore` says."""
Automaton: Any
"""States and their transitions, as range stores remember them: `vkharness.syncval.range_store.automaton`."""

# The front end: what `vkharness.record.native_front` makes functions of.
Shape: Any
"""Struct or the arguments of a command: `Shape(name, rows, missing)`. A row is a
`vkharness.record.native_shapes.ShapeField`. `missing` is told of members that lead to no memory;
without it that raises `BufferError`."""
Sites: Any
"""As `vkharness.record.sites.Sites`, for frames of Python that are running: `Sites(explain, none)`, by its members."""
Command: Any
Function: Any
Target: Any
CallLog: Any
"""Calls that wait: `CallLog(number of the next block, full, most calls, most sayings, most bytes)`. A saying has
`name`, `args`, `kept`, which is the judge's. It is one object for all calls that say the same, as long as it is
remembered."""

# Plans of numbers: `vkharness.commands.buffer_transfers`.
FlatKind: Any
"""Accesses that all commands of a kind make: `FlatKind(unfold, numbers of a region, unit of sizes, whether there are
data, ((access, buffer, offset, size, whether it writes), ...))`, as `buffer_transfers.FlatCommand` says."""
FlatReach: Any
"""Accesses of shaders to memory at any place: `FlatReach(unfold, number of memories, ((access, which memory, what it
writes, bytes from the begin of that memory), ...))`, as `ReachedAnywhere.flat` of
`vkharness.commands.drawing.shader_memory` has it. `unfold` says the effects and what they write, by the resource, the
space and the first address of each memory, and how many bytes more the last range has of each access of it.
Accesses of one memory may touch one address: then a standpoint says their steps (`Standpoint.beside`). So it does of a
barrier, of which each part has one range."""
FlatPlan: Any
"""As `vkharness.trace.effects.EffectPlan`, of which it makes all but `owners` when somebody asks."""
FlatPlans: Any
"""Makes flat plans: `FlatPlans(places, said, type of what is kept, ((name, kind, member with the rest, buffers,
regions, numbers, data), ...))`. `plan(kind, places, numbers, data)` gives the plan of a command, or None where it has
no flat one. `record(command buffer, its id, changes, name, args)` gives what is kept of a command into that command
buffer, (changes, command buffer, plan), or None where Python must find what the command does. `forget(id)`: a
buffer goes, or lies elsewhere from now on. A row without a kind is of commands that are learned:
`learn(said, changes, MovedPlan)`, and whether it is. What a row without regions does depends on the state of its
command buffer: `like(said)` gives what stands in states for all calls that differ in their numbers alone, and these.
One that has data too, which follow the numbers, pushes: calls differ in the data alone, which go into `pushed` of the
command buffer, by what their state has for them."""
MovedPlan: Any
"""Plans of commands that differ in numbers alone, some of which may be ids of buffers:
`vkharness.commands.flat_reaches.moved_plan`. `plan(numbers)` gives that of one, or None where Python must find it."""

IndexedDraws: Any
"""Vertices of indexed draws that differ in numbers alone: `IndexedDraws(behind, (space, first address, end, size of an
index, whether the largest one restarts), ((resource, space, first address, end, stride, first byte, end) of each vertex
buffer, ...))`. `hull(numbers)`: the addresses of their indices. `plans(plans, first place, numbers, pieces)`: the plans
of those that have flat ones, where memory has these pieces of `KnownMemory`; None for those that Python must find.
`behind(plan, number of reads)` says the `FlatReach` of a draw that makes so many reads of vertices beside its plan."""

def flat_writes(plans: list[Any]) -> tuple[list[Any], dict[int, list[tuple[int, int]]]]:
    """Those plans that are not flat, with one for each image that flat ones write; and by space the ranges
    that the flat ones write, sorted and joined."""

def flat_spaces(plans: list[Any]) -> tuple[list[Any], set[int]]:
    """Those plans that are not flat, and the spaces of what the flat ones access."""

def content_steps(plans: list[Any], begin: int, end: int, written: object, nothing: object) -> list[Any]:
    """Changes of contents by plans from one place to another: `writes`, or what `written` says first, but for
    `nothing`. Flat plans stand for themselves, and have `apply` and `held_bytes`."""

MovedContents: Any
"""As `vkharness.commands.drawing.set_contents.SetContents`, of which it makes `memories` when somebody asks."""
NumberedContents: Any
"""As `vkharness.commands.drawing.set_contents.contents_of`, which it asks: `NumberedContents(KnownShaders, objects by
id, contents_of, Descriptor, a buffer, most descriptors of a set, most contents)`."""
SetWrites: Any
"""Writes of descriptor sets: `SetWrites(objects by id, infos, DescriptorSet, Descriptor)`. `infos` has, by
VkDescriptorType, the member of a VkWriteDescriptorSet that says what is written, and the members of its elements that
say so, in the order of `Descriptor`; none where an element says it itself."""
BoundSets: Any
"""Descriptor sets that commands bind: `BoundSets(objects, objects by id, dynamic offsets of a layout, contents_of,
SetWrites, KnownBind, BoundSet, DescriptorSet, PlansBySets, an access, a plan, most plans of one table)`
(`vkharness.commands.drawing.state_parts.new_bound_sets`).
`bind(command buffer, its id, kept, name, args)` binds and gives what is kept of the command; None where Python must
find what it does. `write(name, args)` does the writes of a vkUpdateDescriptorSets; False where Python must do all of
them.
`plan(plans, command buffer)` gives what `PlansBySets` has for the sets that are bound, or what it
reaches of their memory; False where it has neither."""

def front_ready(api: object, cdata: type, samples: list[tuple[Any, Any, int]]) -> bool:
    """Whether cffi is as the core knows it; `samples` are values, their types and addresses."""

def is_readable(address: int, size: int) -> bool:
    """As `vkharness.record.struct_layout.is_readable`."""

def handles_changed() -> None:
    """Any handle means another object from here on, or none: ids that are remembered hold no more."""

def direct_calls(on: bool) -> None:
    """Whether function pointers of cffi that have a `Target` lead to it."""

def arm(target: Any, command: Any) -> None:
    """Gives a `Function` or a `Target` its `Command`; None takes it away."""

Critical: Any
"""A function whose call is a critical section: `Critical(function, "", "callback" or "completed")`."""

def put_off_signals(main_thread: int, numbers: tuple[int, ...]) -> None:
    """Signals of these numbers, which have handlers of Python, wait while the main thread is in a critical section."""

def let_signals_through() -> None:
    """No signal waits any more: all handlers of C are what they were."""

def forked(main_thread: int) -> None:
    """In a forked child: what other threads were in the middle of is over."""

def raise_later(error: BaseException) -> None:
    """Raises an error on the main thread, outside of critical sections."""

RecordCalls: Any
"""Calls of another process to a `CallLog`: `RecordCalls(log, site_of)`. `know(number, name, shape or None, count of
arguments)` names a command, `take(buffer, place, most)` takes the calls from a place on that have a native form: the
place behind them, how many, the serial number of the last one. `vkharness.live.record_session`."""

def uncritical(function: Any, *arguments: Any) -> Any:
    """Calls the driver, or code of the program, in the middle of a critical section."""

# Written pages: `vkharness.record.written_pages`.

def follow_pages(address: int, size: int, fresh: bool) -> tuple[int, bool, list[tuple[int, int]]]:
    """Follows the writes to a range of memory from now on: its number, whether the kernel protects its pages, and the
    bytes of it outside of which all is zero. Of a `fresh` one, which nobody wrote before, those outside of which nobody
    has looked. Without protection all of it counts as written at each look."""

def forget_pages(number: int) -> None:
    """Ends that."""

def pages_hold(number: int) -> bool:
    """Whether a range that is followed is still the memory that it was: nobody has unmapped it."""

def written_pages() -> list[int]:
    """Looks what was written since the last look, and says in which ranges there is something to take, in order."""

def take_pages(number: int) -> list[tuple[int, int]]:
    """Written pages of a range, with what lies between close ones: in bytes from its start, in order. They count as
    unwritten from then on."""

def pages_refused() -> str | None:
    """Why no pages are protected in this process; None where they are."""

def changed_words(address: int, copy: int, parts: list[tuple[int, int]]) -> bytes:
    """Runs of words that differ between memory and its copy, in parts that start with words: pairs of int64, in bytes
    from where both begin. The last word of a part may be cut short."""
