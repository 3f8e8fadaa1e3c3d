"""Barrier commands with nothing between them, as one command."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from vkharness.advising.written import Written
from vkharness.mending.recordings import Recordings
from vkharness.trace.barrier_calls import BarrierCommand, ImagePart, Masks, is_barrier
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace


def neighbours(trace: EditedTrace, barriers: Sequence[Written]) -> Iterator[tuple[Written, Written]]:
    """Dependencies of which each second call directly follows a first one in its command buffer. A dependency is in
    one pair at most."""
    before = _Before(trace)
    by_origin = {origin: each for each in barriers for origin in each.origins}
    taken: set[Written] = set()
    for second in barriers:
        firsts = {by_origin.get(before(origin)) for origin in second.origins}
        first = firsts.pop()
        if firsts or first is None or first in taken or second in taken or first is second:
            continue
        if len(first.origins) == len(second.origins):
            taken |= {first, second}
            yield first, second


class _Before:
    """The command before one in its recording, by their origins; 0 for none."""

    def __init__(self, trace: EditedTrace) -> None:
        self._trace = trace
        self._recordings = Recordings(trace.blocks)
        self.positions = {origin: at for at, origin in enumerate(trace.origins)}

    def __call__(self, origin: int) -> int:
        position = self.positions[origin]
        recording = self._recordings.at(position)
        if recording is None:
            return 0
        at = bisect_left(recording.positions, position)
        return self._trace.origins[recording.positions[at - 1]] if at else 0


def merged(trace: EditedTrace, first: Written, second: Written) -> dict[int, Call | None] | None:
    """The edits after which each second barrier does what the first one did, too. None where one command would order
    more than the two, or where both are about one image."""
    before = _Before(trace)
    calls: dict[int, Call | None] = {}
    for origin in second.origins:
        earlier = before(origin)
        made = _joined(*(trace.call(before.positions[each]) for each in (earlier, origin)))
        if made is None:
            return None
        calls |= {origin: made, earlier: None}
    return calls


def _joined(one: Call, other: Call) -> Call | None:
    if one.name != other.name or not is_barrier(one) or "'pNext': {" in f"{one.args}{other.args}":
        return None
    early, late = BarrierCommand.of(one), BarrierCommand.of(other)
    images = [[each.part.image for each in held.entries if isinstance(each.part, ImagePart)] for held in (early, late)]
    if early.flags != late.flags or set(images[0]) & set(images[1]):
        return None
    if "2" not in one.name and not _as_wide(early, late):
        return None
    both = BarrierCommand(early.command_buffer, (*early.entries, *late.entries), early.flags)
    return replace(other, args=both.call(other.name).args)


def _as_wide(early: BarrierCommand, late: BarrierCommand) -> bool:
    """Whether the stages of two commands of the first form can be joined and order no more: one side is the same."""
    one, other = Masks(), Masks()
    for each in early.entries:
        one |= each.masks
    for each in late.entries:
        other |= each.masks
    return one.src_stages == other.src_stages or one.dst_stages == other.dst_stages
