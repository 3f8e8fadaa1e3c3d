#!/usr/bin/env python3
"""Who waits for whom in a loop over frames, as a table that is read out of a recorded stream.

ci/frame_table.py TRACE ...

A frame is what a program does up to a present. Its frame in flight is known by the fence of its submit, so that frames
whose submit has no fence are left out. What is complete when the host writes, and what may overlap, is asked of the
model's order of the whole stream.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from vkharness.commands.interpret import Interpreter
from vkharness.model.order import ACTION, ExecutionOrder
from vkharness.model.program import Program
from vkharness.model.rules import RULES
from vkharness.trace.calls import Block, Call, HostWrite
from vkharness.trace.codec import load

COLUMNS = (
    "frame",
    "frame in flight",
    "swapchain image",
    "complete when the host writes",
    "may overlap",
    "image drawn in",
)
NONE = "-"


@dataclass
class Frame:
    """One frame of a stream: the fence of its last submit, the image that it presents, and its calls by block index."""

    image: int = -1
    fence: int = 0
    submits: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)
    work: list[int] = field(default_factory=list)
    """The nodes of its commands."""
    written: list[int] = field(default_factory=list)
    """The nodes of the writes of the host."""


def frames_of(blocks: Sequence[Block]) -> list[Frame]:
    """The frames of a stream whose submit has a fence, with their nodes in the order that is returned by `order_of`."""
    return [each for each in _cut(blocks) if each.fence]


def _cut(blocks: Sequence[Block]) -> Iterator[Frame]:
    frame = Frame()
    for block in blocks:
        if isinstance(block, HostWrite):
            frame.writes.add(block.index)
        elif isinstance(block, Call) and block.name.startswith("vkQueueSubmit"):
            frame.submits.add(block.index)
            frame.fence = block.args["fence"] or 0
        elif isinstance(block, Call) and block.name == "vkQueuePresentKHR":
            (frame.image,) = block.args["pPresentInfo"]["pImageIndices"]
            yield frame
            frame = Frame()


def order_of(blocks: Sequence[Block], frames: Sequence[Frame]) -> ExecutionOrder:
    """The model's order of the stream. Gives each frame the nodes of its commands and of the writes of the host."""
    interpreter, program = Interpreter(), Program(RULES)
    program.follow(each for block in blocks for each in interpreter.step(block))
    for number, node in enumerate(program.order.nodes):
        for frame in frames:
            if node.kind == ACTION and node.place.submit in frame.submits:
                frame.work.append(number)
            if node.label == "host write" and node.place.call in frame.writes:
                frame.written.append(number)
    return program.order


def table(blocks: Sequence[Block]) -> str:
    """The table, in Markdown. Frames, frames in flight and images count from 0."""
    frames = frames_of(blocks)
    order = order_of(blocks, frames)
    fences = list(dict.fromkeys(each.fence for each in frames))
    lines = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for number, frame in enumerate(frames):
        earlier = range(number)
        complete = [at for at in earlier if _before(order, frames[at].work, frame.written)]
        open_ = [at for at in earlier if not _before(order, frames[at].work, frame.work)]
        image = [at for at in earlier if frames[at].image == frame.image]
        cells = [number, fences.index(frame.fence), frame.image, _range(complete), _range(open_), _range(image[-1:])]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def _before(order: ExecutionOrder, firsts: Sequence[int], seconds: Sequence[int]) -> bool:
    """Whether each of the nodes comes before each of the others."""
    return all(order.precedes(first, second) for first in firsts for second in seconds)


def _range(numbers: Sequence[int]) -> str:
    if not numbers:
        return NONE
    assert list(numbers) == list(range(numbers[0], numbers[-1] + 1)), numbers
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def main(paths: Sequence[str]) -> int:
    """Prints the table of each trace."""
    for path in paths:
        print(table(load(Path(path))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
