"""Some frames of a trace, to be looked at: what is before them is missed by every judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from vkharness.spec.command_classes import PRESENT
from vkharness.trace.calls import Block, Call
from vkharness.trace.packed_chunks import PackedGroup, read_index

LEFT_OUT = "frames_before_these"
"""The name of the call, which nobody can read, that stands for what is left out before the first frame."""


def group_before(path: Path, frame: int) -> PackedGroup | None:
    """The last group of a packed trace that begins before a frame, from 1; None where one reads from the beginning on.
    Raises UserError."""
    if frame == 1:
        return None
    return next((each for each in reversed(read_index(path)) if each.frames < frame - 1), None)


def chosen_frames(blocks: Iterable[Block], frame: int, first: int, last: int) -> Iterator[Block]:
    """The blocks of the frames from `first` to `last`, of a stream that begins in `frame`. A frame ends with a
    present."""
    says = first > 1
    for block in blocks:
        if frame >= first:
            if says:
                yield Call(max(0, block.index - 1), LEFT_OUT, {}, unread=f"the frames before {first} are left out")
                says = False
            yield block
        frame += isinstance(block, Call) and block.name == PRESENT
        if frame > last:
            return
