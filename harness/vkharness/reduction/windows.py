"""Windows of a long trace: the work of a few frames, with everything that it needs, as a stream of its own.

A window forgets what came before it. So it may lack a hazard that the whole trace has, and what is decided in windows
has to be proved in the whole trace.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from vkharness.reduction.removal import remove
from vkharness.reduction.structure import Structure, is_work
from vkharness.replay.schedule.steps import StepKind, kind_of
from vkharness.spec.command_classes import BEGINS_RENDERING, PRESENT, QUEUE_WORK, is_recorded
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call
from vkharness.trace.edits import EditedTrace

LEAST_PRESENTS = 8
"""How many presents make frames of a trace. With fewer of them each submit ends a frame."""
AROUND = 1
"""How many frames a window has before and after the one that it is about, at least."""
MOST_FRAMES = 12
"""How many frames a window has at most."""

LONG = 2 * MOST_FRAMES
"""A trace of more frames is judged in windows."""
ENDS_FRAME = {PRESENT, *QUEUE_WORK}
"""Calls that can be the last of a frame."""
LATEST_WRITES = 256
"""How many writes of the host before a window it keeps: contents decide what some draws read."""


def at_most(blocks: Iterable[Block]) -> int:
    """How many frames a trace has at most, found without a look at what its calls do."""
    return sum(isinstance(block, Call) and main_name(block.name) in ENDS_FRAME for block in blocks)


class Windows:
    """The frames of a trace whose blocks are numbered from 1."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.structure = Structure(blocks)
        calls = [block for block in self.structure.blocks.values() if isinstance(block, Call)]
        presents = [call.index for call in calls if main_name(call.name) == PRESENT]
        submits = [call.index for call in calls if main_name(call.name) in QUEUE_WORK]
        self._ends = presents if len(presents) >= LEAST_PRESENTS else submits
        self._writes = [block.index for block in blocks if not isinstance(block, Call)]
        self._runs: dict[int, list[int]] = defaultdict(list)
        for path, begin in self.structure.executed.items():
            self._runs[begin].append(int(path[0]))
        self._begins: dict[int, list[int]] = defaultdict(list)
        for call in calls:
            if call.name.startswith(BEGINS_RENDERING) and call.args.get("pRenderPassBegin"):
                self._begins[call.args["pRenderPassBegin"]["renderPass"]].append(call.index)

    @property
    def count(self) -> int:
        """How many frames there are."""
        return len(self._ends)

    def frame_of(self, index: int) -> int:
        """The frame, from 0, to which a block belongs by its place in the trace."""
        return min(bisect_left(self._ends, index), max(self.count - 1, 0))

    def frames_of(self, index: int) -> list[int]:
        """The frames in which a command is executed, or of a render pass the frames that begin it; else the frame of
        the call."""
        call = self.structure.blocks.get(index)
        made = call.args.get("pRenderPass") if isinstance(call, Call) else None
        users = self._begins[made] if isinstance(made, int) else [index]
        return sorted({self.frame_of(run) for user in users for run in self._executions(user)})

    def _executions(self, index: int) -> Iterator[int]:
        """The calls outside of recordings by which a command is executed, each once."""
        pending, seen = [index], {index}
        while pending:
            each = pending.pop()
            begin = self.structure.recording_of.get(each)
            if begin is None:
                yield each
                continue
            more = set(self._runs[begin]) - seen  # command buffers of a broken trace may execute each other
            seen |= more
            pending += more

    def first_around(self, frame: int) -> int:
        """Where the window begins that has a frame and those beside it. Neighbouring frames share one."""
        return (frame - AROUND) // (2 * AROUND) * 2 * AROUND

    def around(self, first: int) -> list[Block] | None:
        """The window that begins with a frame, or before it where that cannot be executed; None where none can."""
        last = first + 4 * AROUND - 1
        while last - first < MOST_FRAMES:
            found = self.cut(max(first, 0), min(last, self.count - 1))
            if found is not None:
                return found
            first, last = first - 1, last + 1
        return None

    def cut(self, first: int, last: int) -> list[Block] | None:
        """The work of the frames from `first` to `last`, and what it needs; None where that cannot be executed."""
        kept = self._work(self._ends[first - 1] if first else 0, self._ends[last])
        dropped = {(index,) for index, block in self.structure.blocks.items() if index not in kept and _passes(block)}
        written = [index for index in self._writes if index not in kept]
        before = sum(index < self._ends[last] for index in written)
        dropped.update((index,) for index in (*written[: max(before - LATEST_WRITES, 0)], *written[before:]))
        barriers = (index for index in kept if self._is_barrier(index))
        named = {each.id for index in barriers for each in self.structure.references[index]}
        return remove(self.structure, dropped, frozenset(named))

    def _is_barrier(self, index: int) -> bool:
        block = self.structure.blocks[index]
        return isinstance(block, Call) and is_recorded(block.name) and kind_of(block.name) is StepKind.SYNC

    def _work(self, begin: int, end: int) -> set[int]:
        """The blocks after `begin` up to `end`, and the recordings that they execute."""
        kept = {index for index in self.structure.order if begin < index <= end}
        left = [run for run in self.structure.executed.items() if int(run[0][0]) in kept]
        while left:
            held = self.structure.recordings[left.pop()[1]]
            if held.begin not in kept or not kept.issuperset(held.commands):
                mine = {held.begin, *held.commands, *([held.end] if held.end is not None else [])}
                kept |= mine
                left += [run for run in self.structure.executed.items() if int(run[0][0]) in mine]
        return kept


def _passes(block: Block) -> bool:
    """Whether a block is of what happens in time, not of the objects with which it happens."""
    return is_work(block) or (isinstance(block, Call) and block.name.startswith(("vkReset", "vkDestroy", "vkFree")))


def part_of(trace: EditedTrace, blocks: Sequence[Block]) -> EditedTrace:
    """Some blocks of a trace, numbered as its `blocks` are, as a stream of its own with the origins that they have."""
    made = EditedTrace.of(blocks)
    return replace(made, source=trace.source, origins=tuple(trace.origin(index) for index in made.origins))
