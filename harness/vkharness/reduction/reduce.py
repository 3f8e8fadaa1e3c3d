"""The loop: slice, then leave out piece after piece as long as the judge still finds what was found.

    >>> from vkharness.reduction.reduce import reduce
    >>> small = reduce(load(Path("trace.jsonl")), finding)  # doctest: +SKIP

Blocks and objects keep their numbers, so that call 2002 of the whole trace is call 2002 of the small one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from vkharness.agreement import ask_model
from vkharness.check import Analysis
from vkharness.findings import Finding, Place, UserError
from vkharness.reduction.history import PastCommand, accessed, executed
from vkharness.reduction.levels import LEVELS, Piece, descriptors, left_out
from vkharness.reduction.oracle import Answer, Identity, Oracle, brings_others, by_model_alone, identity, others_of
from vkharness.reduction.parting import with_barriers, with_narrow_barriers, with_subpass_dependencies
from vkharness.reduction.removal import remove
from vkharness.reduction.sizes import SIZES
from vkharness.reduction.slicing import slices
from vkharness.reduction.structure import Structure
from vkharness.spec.command_classes import is_debug, is_recorded
from vkharness.trace.calls import Block, Call
from vkharness.trace.work_budget import OverBudget

Shows = Callable[[list[Block], Finding], bool]
"""Says whether a stream shows a finding that the judge has in it."""
MOST_STEPS = 5_000
"""Streams that one reduction judges at most."""


@dataclass
class Reduction:
    """A small stream and what is known of it."""

    blocks: list[Block]
    finding: Finding
    """The finding as the judge words it in this stream."""
    others: frozenset[Identity]
    """Other findings that count and could not be parted from it."""
    alike: frozenset[Identity] = frozenset()
    """Those of the others that are between the same two commands or render pass instances, in either order, or go with
    one dependency that mends the finding."""
    asked: int = 0
    """How many streams were judged."""
    complete: bool = True
    """Whether nothing was left to try; False when the limit of time or steps came first."""

    @property
    def commands(self) -> int:
        """How many vkCmd* calls are left."""
        return count_commands(self.blocks)


def count_commands(blocks: Sequence[Block]) -> int:
    """The vkCmd* calls of a stream without debug labels."""
    return sum(isinstance(block, Call) and is_recorded(block.name) and not is_debug(block.name) for block in blocks)


def left_text(what: str, calls: int, commands: int) -> str:
    """Progress for who watches: the part that is tried, and the size so far."""
    return f"{calls} calls, {commands} commands left; trying {what}"


def _known_as(findings: Iterable[Finding], wanted: Finding, old: Sequence[int]) -> Finding:
    """The finding, among those of a stream with other numbers, that is `wanted` by the numbers that the blocks had.
    Raises `UserError` where there is none."""
    for each in findings:
        hazard, access, prior_access, call, prior, resource = identity(each)
        named = (hazard, access, prior_access, _old(old, call), _old(old, prior), resource)
        if (named, each.ranges, each.boxes) == (identity(wanted), wanted.ranges, wanted.boxes):
            return each
    raise UserError("the stream does not have the finding that is to be kept")


def _old(old: Sequence[int], index: int) -> int:
    """The number that a block had. A barrier that was added gets that of a call that was left out, or a new one."""
    return old[index] if index < len(old) else max(old) + index - len(old) + 1


def _judged(blocks: Sequence[Block], by_model: bool) -> Analysis:
    """Returns syncval's analysis of a stream, with the answer of the model where that is to be asked."""
    analysis = Analysis(keep_events=True).follow(blocks)
    if by_model:
        ask_model(analysis)
    return analysis


def _restored(blocks: Sequence[Block], old: Sequence[int]) -> list[Block]:
    """Blocks with the numbers that they had."""
    return [replace(block, index=_old(old, block.index)) for block in blocks]


def _restored_finding(finding: Finding, old: Sequence[int]) -> Finding:
    """The same with the numbers of calls that its blocks had. It is not judged again: judges order calls by number."""

    def place(known: Place) -> Place:
        by = known.executed_by
        return replace(
            known,
            call=_old(old, known.call),
            submit=None if known.submit is None else _old(old, known.submit),
            executed_by=None if by is None else (_old(old, by[0]), by[1]),
        )

    near = finding.nearest
    return replace(
        finding,
        place=place(finding.place),
        prior=place(finding.prior),
        nearest=None if near is None else near._replace(call=_old(old, near.call)),
        period=_old(old, finding.period),
    )


def _with_old_numbers(small: Reduction, old: Sequence[int]) -> Reduction:
    """A reduction of a trace whose blocks had numbers in another order, with the numbers of the trace."""
    small.finding = _restored_finding(small.finding, old)
    small.blocks = _restored(small.blocks, old)
    for name in ("others", "alike"):
        known = getattr(small, name)
        setattr(small, name, frozenset((*e[:3], _old(old, e[3]), _old(old, e[4]), e[5]) for e in known))
    return small


class _OutOfTimeError(Exception):
    """The limit of time or steps is reached; the best stream so far is the result."""


def reduce(
    blocks: Sequence[Block],
    finding: Finding,
    *,
    seconds: float = float("inf"),
    steps: int = MOST_STEPS,
    progress: Callable[[str, int, int], object] = lambda what, calls, commands: None,
    keep: Callable[[list[Block]], object] = lambda blocks: None,
    shows: Shows = lambda blocks, finding: True,
) -> Reduction:
    """The smallest stream found that still has the finding, which must be one of `Analysis(...).findings` of `blocks`.

    `progress` is called with what is tried, and the calls and commands that are left. `keep` gets each stream that is
    the best so far, once a round of pieces is done. `shows` is asked about each stream that has the finding: one that a
    driver does not show is not taken. Raises `UserError` when the stream does not have the finding.
    """
    deadline = time.monotonic() + seconds
    old = [block.index for block in blocks]
    if all(one < following for one, following in pairwise(old)):
        analysis = _judged(blocks, by_model_alone(finding))
        return _Loop(blocks, finding, analysis, deadline, steps, progress, keep, shows).run()
    old = [0, *old]  # a finding may name no call: 0
    fresh = [replace(block, index=number) for number, block in enumerate(blocks, 1)]
    analysis = _judged(fresh, by_model_alone(finding))
    wanted = _known_as(analysis.findings, finding, old)

    def keep_restored(left: list[Block]) -> None:
        keep(_restored(left, old))

    small = _Loop(fresh, wanted, analysis, deadline, steps, progress, keep_restored, shows).run()
    return _with_old_numbers(small, old)


class _Loop:
    """One reduction of a stream that was judged. `best` only ever gets smaller."""

    def __init__(
        self,
        blocks: Sequence[Block],
        finding: Finding,
        analysis: Analysis,
        deadline: float,
        steps: int,
        progress: Callable[[str, int, int], object],
        keep: Callable[[list[Block]], object],
        shows: Shows,
    ) -> None:
        self.objects = frozenset({finding.resource, *([finding.through] if finding.through else [])})
        self.deadline, self.steps = deadline, steps
        self.progress, self.keep, self.shows = progress, keep, shows
        self.accesses: frozenset[tuple[int, int]] | None = None
        """(call, resource) pairs that commands must still access while descriptors are tried; None before that."""
        structure = Structure(blocks)
        history = executed(analysis.events)
        self.oracle = Oracle(finding, analysis, history)
        wanted = identity(finding)
        found = next((each for each in analysis.findings if identity(each) == wanted), None)
        if found is None:
            raise UserError("the stream does not have the finding that is to be kept")
        self.best = Reduction(list(blocks), found, others_of(analysis.findings, wanted))
        self._kept = self.best.blocks
        self._first_slice(structure, history)

    def _first_slice(self, structure: Structure, history: list[PastCommand]) -> None:
        """Takes the smallest slice that shows the finding alone, or else the one with the fewest others."""
        offered: list[tuple[int, int, list[Block], Answer]] = []
        for number, dropped in enumerate(slices(structure, self.best.finding, history)):
            left = remove(structure, dropped, self.objects)
            if left is None:
                continue
            try:
                answer = self.oracle.ask(left)
            except OverBudget:
                break
            if answer.finding is not None and self.shows(left, answer.finding):
                offered.append((len(answer.others), number, left, answer))
                if not answer.others:
                    break
        if offered:
            _, _, left, answer = min(offered, key=lambda each: each[:2])
            self._take("slice", left, answer)
            self._finish_round()

    def run(self) -> Reduction:
        """Rounds of all levels until one of them changes nothing."""
        try:
            before = -1
            while before != self._size():
                before = self._size()
                for what, pieces in LEVELS:
                    self._level(what, pieces)
                self.accesses = None
                for what, edits in SIZES:
                    self._edit(what, edits)
            self._part()
        except (_OutOfTimeError, OverBudget):
            self.best.complete = False
        self._finish_round()
        with suppress(OverBudget):
            self._tell_alike()
        self.best.asked = self.oracle.asked
        return self.best

    def _size(self) -> int:
        return len(self.best.blocks)

    def _level(self, what: str, pieces: Callable[[Structure], list[Piece]]) -> None:
        """Leaves out as many pieces of one kind as it can: many at once first, then fewer."""
        structure = Structure(self.best.blocks)
        self.accesses = self._accesses() if pieces is descriptors else None
        if left_out(pieces(structure), lambda tried: self._holds(what, structure, tried)):
            self._finish_round()

    def _accesses(self) -> frozenset[tuple[int, int]]:
        """Returns the accesses of the commands. They stay the same without a descriptor that no shader uses."""
        return accessed(executed(Analysis(keep_events=True).follow(self.best.blocks).events))

    def _holds(self, what: str, structure: Structure, dropped: Piece) -> bool:
        left = remove(structure, dropped, self.objects)
        return left is not None and self._try(what, left)

    def _try(self, what: str, left: list[Block]) -> bool:
        """Takes a stream if it still has the finding, no more others and none of another hazard."""
        answer = self._ask(left)
        self.progress(what, len(self.best.blocks), self.best.commands)
        if answer.finding is None or brings_others(answer.others, self.best.others):
            return False
        if not self.shows(left, answer.finding):
            return False
        self._take(what, left, answer)
        return True

    def _ask(self, blocks: list[Block], *, both: bool = False) -> Answer:
        if self.oracle.asked >= self.steps or time.monotonic() > self.deadline:
            raise _OutOfTimeError
        return self.oracle.ask(blocks, both=both, accesses=self.accesses)

    def _edit(self, what: str, edits: Callable[[Sequence[Block]], Iterator[list[Block]]]) -> None:
        """Takes smaller sizes as long as one is accepted."""
        accepted = True
        while accepted:
            accepted = any(self._try(what, left) for left in map(self._pruned, edits(self.best.blocks)) if left)
        self._finish_round()

    def _pruned(self, edited: list[Block]) -> list[Block] | None:
        """An edited stream without the objects that nothing needs any more; None where it cannot be executed."""
        return remove(Structure(edited), (), self.objects)

    def _part(self) -> None:
        """Puts right what else is wrong, as far as barriers and subpass dependencies can."""
        self.best.others = self.oracle.ask(self.best.blocks, both=True).others
        while self.best.others:
            calls = sorted({each[3] for each in self.best.others} - {self.best.finding.place.call})
            fewer = len(self.best.others)
            blocks = self.best.blocks
            barriers = with_barriers(blocks, [*calls, self.best.finding.place.call])
            narrow = with_narrow_barriers(blocks, self.best.others)
            for parted in chain(barriers, with_subpass_dependencies(blocks), narrow):
                answer = self._ask(parted, both=True)
                if answer.finding is None or len(answer.others) >= fewer:
                    continue
                if self.shows(parted, answer.finding):
                    self._take("other findings", parted, answer)
                    break
            else:
                return

    def _tell_alike(self) -> None:
        """Finds out which other findings are between the same two commands or render pass instances, or go when one
        dependency mends the wanted one."""
        if not self.best.others:
            return
        structure, finding = Structure(self.best.blocks), self.best.finding
        wanted = [structure.instance_of(each) for each in (finding.prior.call, finding.place.call)]
        pairs = {each: [structure.instance_of(each[4]), structure.instance_of(each[3])] for each in self.best.others}
        alike = {each for each, pair in pairs.items() if pair in (wanted, wanted[::-1])}
        blocks = self.best.blocks
        for mended in chain(with_barriers(blocks, [finding.place.call]), with_subpass_dependencies(blocks)):
            answer = self.oracle.ask(mended, both=True)
            if answer.finding is None:
                alike |= self.best.others - answer.others
        self.best.alike = frozenset(alike)

    def _take(self, what: str, left: list[Block], answer: Answer) -> None:
        assert answer.finding is not None
        self.best.blocks, self.best.finding, self.best.others = left, answer.finding, answer.others
        self.progress(what, len(left), self.best.commands)

    def _finish_round(self) -> None:
        if self._kept is not self.best.blocks:
            self._kept = self.best.blocks
            self.keep(self.best.blocks)
