"""Some frames of a trace, to be looked at: what is before them is missed by every judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from vkharness.findings import UserError
from vkharness.spec.command_classes import PRESENT
from vkharness.trace.calls import Block, Call, unread_call
from vkharness.trace.packed_chunks import PackedGroup, read_index

LEFT_OUT = "frames_before_these"
"""The name of the call, which nobody can read, that stands for what is left out before the first frame."""


def group_before(path: Path, frame: int) -> PackedGroup | None:
    """The last group of a packed trace that begins before a frame, from 1; None where one reads from the beginning on.
    Raises UserError."""
    if frame == 1:
        return None
    groups = reversed(read_index(path))
    return next((each for each in groups if each.frames < frame - 1 and each.line > 1), None)  # line 1 is the header


def chosen_frames(blocks: Iterable[Block], frame: int, first: int, last: int, source: Path) -> Iterator[Block]:
    """The blocks of the frames from `first` to `last`, of a stream of `source` that begins in `frame`. A frame ends
    with a present. Raises UserError where there are not as many."""
    says, there = first > 1, frame - 1
    for block in blocks:
        there = frame
        if frame >= first:
            if says:
                yield unread_call(max(0, block.index - 1), LEFT_OUT, f"the frames before {first} are left out")
                says = False
            yield block
        frame += isinstance(block, Call) and block.name == PRESENT
        if frame > last:
            return
    if there < first:
        raise UserError(f"{source}: no frame {first}: it has only {there} frame{'s' * (there != 1)}")
