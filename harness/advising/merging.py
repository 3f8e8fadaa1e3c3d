"""Barrier commands with nothing between them, as one command."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from harness.advising.written import Written
from harness.mending.recordings import Recordings
from harness.trace.barrier_calls import BarrierCommand, ImagePart, Masks, is_barrier
from harness.trace.calls import Call
from harness.trace.edits import EditedTrace


def neighbours(trace: EditedTrace, barriers: Sequence[Written]) -> Iterator[tuple[Written, Written]]:
    """Dependencies of which each second call directly follows a first one in its command buffer. A dependency is in
    one pair at most."""
    recordings = Recordings(trace.blocks)
    by_origin = {origin: each for each in barriers for origin in each.origins}
    taken: set[Written] = set()
    for second in barriers:
        firsts = {by_origin.get(_before(trace, recordings, origin)) for origin in second.origins}
        first = firsts.pop()
        if firsts or first is None or first in taken or second in taken or first is second:
            continue
        if len(first.origins) == len(second.origins):
            taken |= {first, second}
            yield first, second


def _before(trace: EditedTrace, recordings: Recordings, origin: int) -> int:
    """The origin of the command before one in its recording; 0 for none."""
    position = trace.origins.index(origin)
    recording = recordings.at(position)
    if recording is None:
        return 0
    at = recording.positions.index(position)
    return trace.origins[recording.positions[at - 1]] if at else 0


def merged(trace: EditedTrace, first: Written, second: Written) -> EditedTrace | None:
    """The trace in which each second barrier does what the first one did, too. None where one command would order
    more than the two, or where both are about one image."""
    recordings = Recordings(trace.blocks)
    calls: dict[int, Call | None] = {}
    for origin in second.origins:
        before = _before(trace, recordings, origin)
        one, other = (trace.call(trace.origins.index(each)) for each in (before, origin))
        made = _joined(one, other)
        if made is None:
            return None
        calls |= {before: None, origin: made}
    return trace.with_calls(calls)


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
