"""The first small stream: the two commands of a finding, and what they cannot do without.

Several slices are offered, the smallest first. Which of them shows the finding is for the judge to say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from vkharness.findings import Finding, Place
from vkharness.reduction.history import PastCommand, needed_transitions
from vkharness.reduction.paths import Path
from vkharness.reduction.structure import RecordedBuffer, Structure, command_buffers, is_work
from vkharness.replay.schedule.steps import StepKind, kind_of
from vkharness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING, NEXT_SUBPASS, is_recorded, is_submit
from vkharness.trace.calls import Block, Call

_AROUND = (BEGINS_RENDERING, NEXT_SUBPASS, ENDS_RENDERING)


def slices(structure: Structure, finding: Finding, history: Sequence[PastCommand]) -> Iterator[set[Path]]:
    """Yields the paths that each slice leaves out, the smallest slice first; the last one leaves out nothing."""
    slicer = _Slicer(structure, history)
    for place in (finding.prior, finding.place):
        slicer.keep_place(place)
    calls = [finding.prior.call, finding.place.call]
    transitions = needed_transitions(history, calls)
    for each in transitions:
        slicer.keep_executed(each)
    yield slicer.left_out()
    slicer.keep_order()
    yield slicer.left_out()
    slicer.keep_synchronization()
    yield slicer.left_out()
    yield slicer.after_the_last()
    yield set()


class _Slicer:
    """Grows a set of blocks that stay."""

    def __init__(self, structure: Structure, history: Sequence[PastCommand]) -> None:
        self.structure = structure
        self.kept: set[int] = set()
        self.places: set[Path] = set()
        """The executions of command buffers that stay."""
        self._runs: dict[int, list[Path]] = defaultdict(list)
        for path, begin in structure.executed.items():
            self._runs[begin].append(path)
        self._first = {each.call: each for each in reversed(history)}

    def keep_place(self, place: Place) -> None:
        """Keeps a command with an execution of it, or a call of the host."""
        self._keep_call(place.call)
        if place.submit is not None:
            through = (place.executed_by,) if place.executed_by is not None else ()
            self._keep_run(place.submit, place.batch, place.position, through)
        elif place.call in self._first:
            self.keep_executed(self._first[place.call])

    def keep_executed(self, each: PastCommand) -> None:
        """Keeps a command in one execution."""
        self._keep_call(each.call)
        self._keep_run(each.submit, each.batch, each.position, each.executed_by)

    def _keep_call(self, index: int) -> None:
        self.kept.add(index)
        begin = self.structure.recording_of.get(index)
        if begin is None:
            return
        recording = self.structure.recordings[begin]
        self.kept |= {begin, *([recording.end] if recording.end is not None else [])}
        self._keep_queries(index, recording.commands)
        around = self._around(index, recording)
        self.kept.update(around)
        for open_at, close in recording.closes.items():
            if open_at in around:
                self.kept.update(
                    each
                    for each in recording.commands
                    if open_at <= each <= close and self.structure.call(each).name.startswith(_AROUND)
                )

    def _around(self, index: int, recording: RecordedBuffer) -> set[int]:
        """The begins and ends of what is open around a command, with the parts of the instance if it was suspended."""
        around = set(self.structure.enclosing(index))
        for resuming, suspended in sorted(self.structure.resumed(recording).items(), reverse=True):
            around |= {suspended, recording.closes[suspended]} if resuming in around else set()
        for resuming, suspended in sorted(self.structure.resumed(recording).items()):
            around |= {resuming, recording.closes[resuming]} if suspended in around else set()
        return around

    def _keep_queries(self, index: int, commands: Iterable[int]) -> None:
        """Keeps what begins, ends, writes and resets the queries of a command."""
        pool = self.structure.call(index).args.get("queryPool")
        if pool:
            self.kept.update(each for each in commands if self.structure.call(each).args.get("queryPool") == pool)

    def _keep_run(self, submit: int, batch: int, position: int, through: Iterable[tuple[int, int]]) -> None:
        self.kept.add(submit)
        block = self.structure.call(submit)
        paths = [path for path, _ in command_buffers(block) if path[2] == batch]
        if position < len(paths):
            self.places.add(paths[position])
        for call, at in through:
            self._keep_call(call)
            self.places.add((call, "pCommandBuffers", at))

    def keep_order(self) -> None:
        """Keeps all queue work and calls of the host up to the last submit, and the synchronization commands of the
        recordings so far. Other command buffers stay out."""
        last = max(self.kept, default=0)
        for index in self.structure.order:
            block = self.structure.blocks[index]
            if index <= last and is_work(block) and not _is_recorded(block):
                self.kept.add(index)
        for begin, recording in self.structure.recordings.items():
            if begin in self.kept:
                self._keep_sync(recording.commands)

    def keep_synchronization(self) -> None:
        """Keeps the synchronization commands of all recordings up to the last submit."""
        last = max(self.kept, default=0)
        for recording in self.structure.recordings.values():
            if recording.begin <= last:
                self.kept |= {recording.begin, *([recording.end] if recording.end is not None else [])}
                self._keep_sync(recording.commands)
                self.places.update(self._runs[recording.begin])

    def _keep_sync(self, commands: Iterable[int]) -> None:
        calls = [self.structure.call(each) for each in commands]
        self.kept.update(each.index for each in calls if kind_of(each.name) is StepKind.SYNC)

    def left_out(self) -> set[Path]:
        """Returns the paths that are not kept. State commands and calls that only serve others follow what is kept."""
        found: set[Path] = set()
        for index, block in self.structure.blocks.items():
            if is_work(block) and index not in self.kept and not _follows(block):
                found.add((index,))
            elif isinstance(block, Call) and is_submit(block.name):
                paths = [path for path, _ in command_buffers(block)]
                found.update(path for path in paths if path not in self.places)
            elif isinstance(block, Call) and block.name == "vkCmdExecuteCommands":
                held = range(len(block.args["pCommandBuffers"] or ()))
                found.update(
                    (index, "pCommandBuffers", at) for at in held if (index, "pCommandBuffers", at) not in self.places
                )
            elif isinstance(block, Call) and block.name.startswith(("vkDestroy", "vkFree")):
                found.add((index,))
        return found

    def after_the_last(self) -> set[Path]:
        """Everything behind the last block that stays."""
        last = max(self.kept, default=0)
        return {(index,) for index, block in self.structure.blocks.items() if index > last and is_work(block)}


def _is_recorded(block: Block) -> bool:
    return isinstance(block, Call) and (
        is_recorded(block.name) or block.name in ("vkBeginCommandBuffer", "vkEndCommandBuffer")
    )


def _follows(block: Block) -> bool:
    """Whether a command is state, which stays as long as something sees it."""
    return isinstance(block, Call) and is_recorded(block.name) and kind_of(block.name) is StepKind.STATE
