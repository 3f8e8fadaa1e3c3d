"""Copies, fills and updates of buffers (rules.md#transfer-commands-and-their-ranges), and their flat plans.

Programs that stream record these with other numbers in each frame, so that nobody has said before what they say. What
such a command does differs from what others of its kind do in these numbers only. So the native core keeps nothing but
the numbers where it can (harness/vkharness/native/flat_plans.hpp), with what the table `FLAT` says of the command; it
calls `FlatCommand.unfold` when somebody asks what the command does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from vkharness.commands.contents.content_steps import Copied, Filled, Updated
from vkharness.commands.drawing.numbered_draws import NUMBERED, SEVERAL
from vkharness.commands.flat_reaches import fixed_parts, moved_plan
from vkharness.commands.handlers import command, folded
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.open_numbers import OPEN, Sets
from vkharness.commands.synchronization.barrier import BARRIERS, RANGE, learn_barrier
from vkharness.commands.transfer import CLEAR_WRITE, COPY_READ, COPY_WRITE, buffer_access
from vkharness.native import core
from vkharness.spans import Span
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access, Effect, EffectPlan
from vkharness.trace.resources import Buffer

MOST_COMPARED = 256
"""Bytes of an update that are held against those of earlier ones."""
Place = tuple[int, int, int, int]
"""Where a buffer is: its id, space, first address and size."""
Region = tuple[int, int, int]
"""The members of VkBufferCopy."""
Done = tuple[tuple[Effect, ...], Copied | Filled | Updated]
"""The effects of a command, and the step by which it changes the contents of memory."""


class FlatAccess(NamedTuple):
    """An access of one range of each region."""

    access_kind: int
    buffer: int
    """Which one of `FlatCommand.buffers`."""
    offset: int
    """Which one of `FlatCommand.numbers` says where the range begins in the buffer."""
    size: int
    """Which one of them says how many bytes it has."""


class FlatCommand(NamedTuple):
    """The common part of the commands of one kind, and the members of their arguments that hold the rest."""

    unfold: Callable[[tuple[Place, ...], tuple[int, ...], bytes], Done]
    """Says what a command does, by the places of its buffers, the numbers of all its regions, and its data."""
    buffers: tuple[str, ...]
    numbers: tuple[str, ...]
    accesses: tuple[FlatAccess, ...]
    regions: str = ""
    """The list of structs with the numbers. Without one there is one region, which has them beside the buffers."""
    data: str = ""
    """Bytes; the last number says how many."""
    unit: int = 1
    """Sizes are multiples of it."""


def _buffer(place: Place) -> Buffer:
    id, space, offset, size = place
    return Buffer(id, size, space, offset)


def _copied(places: tuple[Place, ...], numbers: tuple[int, ...], _: bytes) -> Done:
    source, target = places
    regions = tuple(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))
    return _copy_effects(_buffer(source), _buffer(target), regions), Copied(*source, *target, regions)


def _filled(places: tuple[Place, ...], numbers: tuple[int, ...], _: bytes) -> Done:
    (buffer,), (offset, size, word) = map(_buffer, places), numbers
    span = buffer.span(offset, size)
    return buffer_access(CLEAR_WRITE, buffer, [span]), Filled(buffer.space, span, word)


def _updated(places: tuple[Place, ...], numbers: tuple[int, ...], data: bytes) -> Done:
    (buffer,), (offset, size) = map(_buffer, places), numbers
    span = buffer.span(offset, size)
    return buffer_access(CLEAR_WRITE, buffer, [span]), Updated(buffer.space, span[0], data)


class NumberRow(NamedTuple):
    """A command that differs from others in numbers, as the native core has it."""

    name: str
    kind: Any
    """The `FlatKind`; None where what others do is learned of one."""
    info: str
    """The member of the arguments that has the rest, if one has."""
    buffers: tuple[str, ...]
    regions: str
    numbers: tuple[str, ...]
    data: str = ""
    apart: tuple[int, ...] = ()
    """See `OpenCommand`."""
    sets: Sets = Sets.NOTHING
    by_state: bool = False
    """Whether the state of the command buffer decides the rest of what it does."""


COPY = FlatCommand(
    _copied, ("srcBuffer", "dstBuffer"), ("srcOffset", "dstOffset", "size"),
    (FlatAccess(COPY_READ, 0, 0, 2), FlatAccess(COPY_WRITE, 1, 1, 2)), regions="pRegions",
)  # fmt: skip
FILL = FlatCommand(_filled, ("dstBuffer",), ("dstOffset", "size", "data"), (FlatAccess(CLEAR_WRITE, 0, 0, 1),), unit=4)
UPDATE = FlatCommand(
    _updated, ("dstBuffer",), ("dstOffset", "dataSize"), (FlatAccess(CLEAR_WRITE, 0, 0, 1),), data="pData"
)
FLAT = {
    "vkCmdCopyBuffer": (COPY, ""),
    "vkCmdCopyBuffer2": (COPY, "pCopyBufferInfo"),
    "vkCmdCopyBuffer2KHR": (COPY, "pCopyBufferInfo"),
    "vkCmdFillBuffer": (FILL, ""),
    "vkCmdUpdateBuffer": (UPDATE, ""),
}
"""The commands that may have a flat plan, with the member of their arguments that has the rest, if one has."""


MOVED = {
    "vkCmdCopyBufferToImage": ("srcBuffer", ""),
    "vkCmdCopyBufferToImage2": ("srcBuffer", "pCopyBufferToImageInfo"),
    "vkCmdCopyBufferToImage2KHR": ("srcBuffer", "pCopyBufferToImageInfo"),
    "vkCmdCopyImageToBuffer": ("dstBuffer", ""),
    "vkCmdCopyImageToBuffer2": ("dstBuffer", "pCopyImageToBufferInfo"),
    "vkCmdCopyImageToBuffer2KHR": ("dstBuffer", "pCopyImageToBufferInfo"),
}
"""The commands of which the `bufferOffset` of the only region moves what they access of a buffer, and nothing else,
with the buffer and the member of their arguments that has the rest, if one has. What one does is learned of the first
that says the same beside that number (`learn_moved`)."""


@cache
def kind_of(what: FlatCommand) -> Any:
    """The native core's `FlatKind` of such commands."""
    accesses = [(Access(each.access_kind, 0, (), 0), *each[1:], ACCESS_KINDS[each.access_kind].write)
                for each in what.accesses]  # fmt: skip
    assert core is not None
    return core.FlatKind(what.unfold, len(what.numbers), what.unit, bool(what.data), tuple(accesses))


COPIES, FILLS, UPDATES = [None if core is None else kind_of(what) for what in (COPY, FILL, UPDATE)]
"""The kinds of these commands; None without the native core."""


def new_flat_plans(objects: ObjectState, repeated: type[tuple[Any, ...]]) -> Any:
    """Lets commands have flat plans, and gives what finds natively which one a command has: it knows buffers that such
    commands named before, and gives `repeated` of `ObjectState.changes`, a command buffer and a plan. None without the
    native core."""
    if core is None:
        return None
    rows = [NumberRow(name, kind_of(what), info, what.buffers, what.regions, what.numbers, what.data)
            for name, (what, info) in FLAT.items()]  # fmt: skip
    rows += [
        NumberRow(name, None, info, (buffer,), "pRegions", ("bufferOffset",)) for name, (buffer, info) in MOVED.items()
    ]
    rows += [NumberRow(name, None, info, (), "pBufferMemoryBarriers", RANGE) for name, info in BARRIERS.items()]
    rows += [NumberRow(name, None, "", (), SEVERAL.get(name, ""), numbers, by_state=True)
             for name, numbers in NUMBERED.items()]  # fmt: skip
    rows += [NumberRow(name, None, "", (each.buffers,) * bool(each.buffers), each.several, each.numbers, each.data,
                       each.apart, each.sets, by_state=True) for name, each in OPEN.items()]  # fmt: skip
    objects.plans.flat = core.FlatPlans(objects.plans.places, objects.said, repeated, tuple(rows))
    return objects.plans.flat


def learn_moved(objects: ObjectState, said: Any, plan: EffectPlan) -> bool:
    """Lets the native core know what commands do that say the same as `said`, which has this plan, but for their
    `bufferOffset`. Whether it knows that now: not where the end of the buffer may have cut what the command accesses.
    """
    buffer_name, info = MOVED[said.name]
    given = said.args[info] if info else said.args
    buffer = objects.buffer(given[buffer_name])
    if buffer is None or objects.plans.flat is None or len(plan.effects) != 2:
        return False
    limit = buffer.offset + buffer.size
    for effect in plan.effects:
        if not isinstance(effect, Access) or effect.aliases:
            return False
        if effect.space != effect.resource and (effect.resource != buffer.id or effect.spans[-1][1] >= limit):
            return False
    places: list[Any] = []
    parts = fixed_parts(plan.effects, places)
    moving = [at for at, place in enumerate(places) if place[0] == buffer.id]
    offset = given["pRegions"][0]["bufferOffset"]
    if len(moving) != 1 or offset > limit:
        return False
    memory, words = moving[0], tuple([(*place, 0) for place in places])
    moved = moved_plan(parts, words, ((offset, 0, limit),), ((memory, 0, 1, 1),), ((memory, limit),))
    learned: bool = moved is not None and objects.plans.flat.learn(said, objects.changes, moved)
    return learned


LEARNED: dict[str, Callable[[ObjectState, Any, EffectPlan], bool]] = {
    **dict.fromkeys(MOVED, learn_moved),
    **dict.fromkeys(BARRIERS, learn_barrier),
}
"""The commands of which the native core gets to know what others do that differ in numbers alone."""


def _flat(
    objects: ObjectState, kind: Any, places: tuple[Place, ...], numbers: tuple[int, ...], data: bytes = b""
) -> EffectPlan | None:
    """The flat plan of a command; None where it has none."""
    plans = objects.plans.flat
    found: EffectPlan | None = None if plans is None else plans.plan(kind, places, numbers, data)
    return found


def _place(objects: ObjectState, buffer: Buffer) -> Place:
    """Where a buffer is; kept for `new_flat_plans`."""
    place = objects.plans.places[buffer.id] = (buffer.id, buffer.space, buffer.offset, buffer.size)
    return place


@command("vkCmdFillBuffer", by_arguments=True)
def fill_buffer(objects: ObjectState, commands: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes in the CLEAR stage; VK_WHOLE_SIZE is rounded down to a multiple of 4."""
    buffer = objects.buffer(args["dstBuffer"])
    if buffer is None:
        return ()
    begin, end = buffer.span(args["dstOffset"], args["size"])
    end -= (end - begin) % 4
    if "data" not in args:
        return _writes_words(objects, buffer, (begin, end), None)
    plan = _flat(objects, FILLS, (_place(objects, buffer),), (begin - buffer.offset, end - begin, args["data"]))
    return plan or _writes_words(objects, buffer, (begin, end), Filled(buffer.space, (begin, end), args["data"]))


@command("vkCmdUpdateBuffer", by_arguments=True)
def update_buffer(objects: ObjectState, commands: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes in the CLEAR stage."""
    buffer = objects.buffer(args["dstBuffer"])
    if buffer is None:
        return ()
    begin, end = buffer.span(args["dstOffset"], args["dataSize"])
    data = bytes(args["pData"] or b"")[: end - begin]
    if len(data) != end - begin:
        return _writes_words(objects, buffer, (begin, end), None)
    plan = _flat(objects, UPDATES, (_place(objects, buffer),), (begin - buffer.offset, end - begin), data)
    return plan or _writes_words(objects, buffer, (begin, end), Updated(buffer.space, begin, data))


def _writes_words(objects: ObjectState, buffer: Buffer, span: Span, writes: Filled | Updated | None) -> EffectPlan:
    """The plan of a command that writes these addresses of a buffer."""
    if isinstance(writes, Updated) and len(writes.data) > MOST_COMPARED:
        return EffectPlan(buffer_access(CLEAR_WRITE, buffer, [span]), writes)
    key = ("words", buffer.id, buffer.space, span, writes)
    plan = objects.plans.get(key)
    return objects.plans.keep(key, buffer_access(CLEAR_WRITE, buffer, [span]), writes) if plan is None else plan


@command("vkCmdCopyBuffer", "vkCmdCopyBuffer2", by_arguments=True)
def copy_buffer(objects: ObjectState, commands: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads and writes exactly the regions."""
    info = folded(args, "pCopyBufferInfo")
    several = info["pRegions"] or ()
    source, target = objects.buffer(info["srcBuffer"]), objects.buffer(info["dstBuffer"])
    if source is None or target is None:
        reads = [] if source is None else [source.span(each["srcOffset"], each["size"]) for each in several]
        writes = [] if target is None else [target.span(each["dstOffset"], each["size"]) for each in several]
        return buffer_access(COPY_READ, source, reads) + buffer_access(COPY_WRITE, target, writes)
    regions = tuple([(each["srcOffset"], each["dstOffset"], each["size"]) for each in several])
    places = _place(objects, source), _place(objects, target)
    plan = _flat(objects, COPIES, places, tuple([number for region in regions for number in region]))
    if plan is None:
        key = Copied(*places[0], *places[1], regions)
        plan = objects.plans.get(key) or objects.plans.keep(key, _copy_effects(source, target, regions), key)
    return plan


def _copy_effects(source: Buffer, target: Buffer, regions: tuple[Region, ...]) -> tuple[Effect, ...]:
    effects = buffer_access(COPY_READ, source, [source.span(begin, size) for begin, _, size in regions])
    return effects + buffer_access(COPY_WRITE, target, [target.span(to, size) for _, to, size in regions])
