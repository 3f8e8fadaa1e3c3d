"""Mending of a trace: group after group, the first change that both judges accept, then without what needs not be.

A change is accepted when the group is gone and nothing new is found. What was hidden behind it may come to light:
syncval compares an access with the latest ones only. The model had it before, or it is at the same command; it is
mended in its turn.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from vkharness.agreement import key_of
from vkharness.findings import Finding, HostStep, Place
from vkharness.groups import groups_of
from vkharness.mending.alternatives import Alternative, alternatives
from vkharness.mending.in_windows import TraceWindows
from vkharness.mending.insertion import in_own_form
from vkharness.mending.minimality import minimal
from vkharness.mending.proof import JudgedTrace, Pair, judge
from vkharness.report.mends import MendOutcome
from vkharness.trace.barrier_calls import FIRST, form_of
from vkharness.trace.calls import Block
from vkharness.trace.edits import EditedTrace
from vkharness.trace.work_budget import A_FINDING, OverBudget, spend

MOST_CHANGES = 4
"""How many changes are made at most for each finding: one can bring others to light, which have to be mended, too."""
MANY = 8
"""How many groups of one kind are mended at once."""
MOST_ROUNDS = 6
"""How often one change is asked about what it left over."""


@dataclass(slots=True)
class Mended:
    """One group of findings and what became of it."""

    findings: list[Finding]
    """They are about the trace as it was read."""
    how: str = ""
    """The name of the alternative; empty where none was accepted."""
    origins: tuple[int, ...] = ()
    """The calls that the change touched."""
    reason: str = ""
    """Why it is not mended."""
    number: int = 0
    """The number that `check` gives the group; 0 for what came to light only when others were mended."""


@dataclass(slots=True)
class Mending:
    """A mended trace, and the groups."""

    trace: EditedTrace
    """The mended trace, its inserted barriers in the second form: their stages and accesses are exact."""
    applied: EditedTrace
    """The same in the form that the program uses."""
    groups: list[Mended] = field(default_factory=list)
    unmodelled: dict[str, int] = field(default_factory=dict)
    by_model: bool = True
    stopped: bool = False
    """Whether the units of work were used up before everything was tried."""
    uncounted: int = 0
    """Findings that count with `strict` alone, and stay."""

    @property
    def outcomes(self) -> list[MendOutcome]:
        """The outcomes of the groups, as reports need them."""
        return [MendOutcome(each.findings, each.origins, each.reason, each.number) for each in self.groups]

    @property
    def complete(self) -> bool:
        """Whether every group is mended, and everything was tried."""
        return not self.stopped and all(each.how for each in self.groups)


def mend(
    blocks: Iterable[Block],
    wanted: Sequence[Finding] | None = None,
    tell: Callable[[str], object] = lambda _: None,
    strict: bool = True,
) -> Mending:
    """Mends a trace, or only the findings that are `wanted`, which are about the blocks as they are.

    `tell` is told what is being done. Without `strict`, hazards by the letter of the specification alone stay."""
    return mend_judged(judge(EditedTrace.of(blocks), strict), wanted, tell)


def mend_judged(
    judged: JudgedTrace, wanted: Sequence[Finding] | None = None, tell: Callable[[str], object] = lambda _: None
) -> Mending:
    """As `mend`, for a trace that nobody has edited and that was judged already."""
    trace = judged.trace
    asked = None if wanted is None else {key_of(each) for each in wanted}
    mending = Mending(trace, trace, unmodelled=judged.unmodelled, by_model=judged.by_model)
    mending.uncounted = sum(1 for each in judged.everything if each.uncounted)
    work = _Work(judged, mending, asked, tell)
    with stopping(mending):
        work.mend()
    left = {work.judged.pair(each) for each in work.judged.everything if each.counts or each.uncounted}
    mending.trace = work.judged.trace
    with stopping(mending):
        tell("trying what can be left out")
        mending.trace = minimal(mending.trace, left, judged.by_model)
    mending.applied = in_own_form(mending.trace)
    with stopping(mending):
        if form_of(trace.source) == FIRST:
            mending.applied = minimal(mending.applied, left, judged.by_model)
    return mending


@contextmanager
def stopping(mending: Mending) -> Iterator[None]:
    """Ends the code inside early when the units of work are used up, and notes that in the mending."""
    try:
        yield
    except OverBudget:
        mending.stopped = True


class _Work:
    """A trace that is being mended, and what was tried."""

    def __init__(
        self, judged: JudgedTrace, mending: Mending, asked: set[Pair] | None, tell: Callable[[str], object]
    ) -> None:
        self.judged, self.mending, self._asked, self._tell = judged, mending, asked, tell
        self._numbers = _numbers_of(judged)
        self._given_up, self._mended = set[Pair](), set[Pair]()

    def mend(self) -> None:
        """Mends group after group."""
        groups = self.mending.groups
        most = MOST_CHANGES * (len(self.judged.findings) + 1)
        while len(groups) < most and (group := next(iter(self._open()), None)):
            self._tell(f"{len(self.judged.findings)} findings left, {len(groups)} groups mended or given up")
            self._mend(group)

    def _open(self) -> list[list[Finding]]:
        return _open_groups(self.judged, self._given_up, self._asked)

    def _mend(self, group: list[Finding]) -> None:
        judged, several = self.judged, group
        found = _mend_group(judged, several)
        if found is None and (several := _of_first_pair(group)) != group:
            found = _mend_group(judged, several)
        pairs = {judged.pair(each) for each in several}
        if found is None or pairs <= self._mended:
            self._given_up |= pairs
            self._note(several, reason=_reason(_as_read(judged.trace, several)[0]))
            return
        alternative, after = found
        self._note(several, alternative.name, _touched(judged.trace, after.trace))
        self._mended |= pairs
        self.judged = judged = after
        alike = [each for each in self._open() if each[0].key == group[0].key]
        if len(alike) >= MANY and (together := _mend_alike(judged, alternative, alike)) is not None:
            for several, origins in zip(alike, _touched_by_each(judged, together, alike), strict=True):
                self._note(several, alternative.name, origins)
                self._mended |= {judged.pair(each) for each in several}
            self.judged = together

    def _note(self, several: list[Finding], how: str = "", origins: tuple[int, ...] = (), reason: str = "") -> None:
        read, number = _as_read(self.judged.trace, several), self._numbers.get(self.judged.pair(several[0]), 0)
        self.mending.groups.append(Mended(read, how, origins, reason, number))


def _numbers_of(judged: JudgedTrace) -> dict[Pair, int]:
    """The number of the group of each pair, as the trace was read: the place in its frame tells which are the same."""
    read = _as_read(judged.trace, judged.everything)
    pairs = {id(each): judged.pair(made) for each, made in zip(read, judged.everything, strict=True)}
    return {pairs[id(each)]: group.number for group in reversed(groups_of(read)) for each in group.findings}


def _reason(finding: Finding) -> str:
    """Why a finding is not mended."""
    if finding.gap is HostStep.EARLIER_SUBMIT:
        return f"no dependency can order it; it needs {finding.missing}"
    return f"no change that was tried orders it; it lacks {finding.missing}"


def _open_groups(judged: JudgedTrace, given_up: set[Pair], asked: set[Pair] | None) -> list[list[Finding]]:
    """The groups of findings that are neither given up nor unwanted."""
    spend(A_FINDING * len(judged.findings), "findings")
    open_findings = [
        each
        for each in judged.findings
        if judged.pair(each) not in given_up and (asked is None or judged.pair(each) in asked)
    ]
    return [each.findings for each in groups_of(open_findings)]


def _mend_alike(judged: JudgedTrace, alternative: Alternative, groups: Sequence[list[Finding]]) -> JudgedTrace | None:
    """The trace with groups mended at once in the way that mended one of their kind; None where that leaves something.

    A long trace is judged once for all of them then, and not once for each."""
    findings = [each for several in groups for each in several]
    after, left = _asked(alternative, judged, findings, {judged.pair(each) for each in findings})
    return None if left else after


def _touched_by_each(
    before: JudgedTrace, after: JudgedTrace, groups: Sequence[list[Finding]]
) -> Iterator[tuple[int, ...]]:
    """For each group the call that was touched for it: the nearest one before its later command, else the first one."""
    touched = set(_touched(before.trace, after.trace))
    position = {origin: at for at, origin in enumerate(after.trace.origins)}
    places = [at for at, origin in enumerate(after.trace.origins) if origin in touched]
    for several in groups:
        last = position[before.trace.origin(several[0].place.call)]
        at = places[max(bisect_right(places, last) - 1, 0)]
        yield (after.trace.origins[at],)


def _of_first_pair(group: Sequence[Finding]) -> list[Finding]:
    """Those of a group that are about the two commands of the first one."""
    first = group[0]
    return [each for each in group if (each.prior.call, each.place.call) == (first.prior.call, first.place.call)]


def _mend_group(judged: JudgedTrace, group: Sequence[Finding]) -> tuple[Alternative, JudgedTrace] | None:
    """The first alternative that orders the group and leaves nothing new; else the first that orders the group."""
    pairs = {judged.pair(each) for each in group}
    partly: tuple[Alternative, JudgedTrace] | None = None
    for alternative in _promising(judged, group, pairs):
        after, left = _asked(alternative, judged, group, pairs)
        if after is not None and not left:
            return alternative, after
        if after is not None and partly is None and not any(after.pair(each) in pairs for each in left):
            partly = alternative, after
    return partly


def _promising(judged: JudgedTrace, group: Sequence[Finding], pairs: set[Pair]) -> Iterator[Alternative]:
    """The alternatives for a group. Of a long trace those come first that mend it in a window around its first
    finding; all are tried when no window shows the group, or none of these mends the whole trace."""
    windows = TraceWindows(judged.trace)
    window = windows.of_finding(group[0]) if windows.is_long else None
    if window is not None:
        small = judge(window, judged.strict)
        shown = [each for each in small.findings if small.pair(each) in pairs]
        for alternative in alternatives(window, shown) if shown else ():
            after, left = _asked(alternative, small, shown, pairs)
            if after is not None and not left:
                yield alternative
    yield from alternatives(judged.trace, group)


def _asked(
    alternative: Alternative, judged: JudgedTrace, group: Sequence[Finding], pairs: set[Pair]
) -> tuple[JudgedTrace | None, list[Finding]]:
    """The trace with a change, judged, and what is left of the group or new; None where it can do nothing."""
    trace, left, after = judged.trace, list(group), None
    for _ in range(MOST_ROUNDS):
        changed = alternative.change(trace, left)
        if changed is None:
            break
        after = judge(changed, judged.strict)
        left = [each for each in after.findings if after.pair(each) in pairs or after.pair(each) not in judged.pairs]
        if not left:
            break
        trace = changed
    return after, left


def _as_read(trace: EditedTrace, findings: Sequence[Finding]) -> list[Finding]:
    """Findings with the indices of the trace that was read."""
    return [
        replace(each, place=_place_as_read(trace, each.place), prior=_place_as_read(trace, each.prior))
        for each in findings
    ]


def _place_as_read(trace: EditedTrace, place: Place) -> Place:
    call = trace.origin(place.call) if place.call else place.call
    submit = None if place.submit is None else trace.origin(place.submit)
    executed_by = place.executed_by and (trace.origin(place.executed_by[0]), place.executed_by[1])
    return replace(place, call=call, submit=submit, executed_by=executed_by)


def _touched(before: EditedTrace, after: EditedTrace) -> tuple[int, ...]:
    old = dict(zip(before.origins, before.blocks, strict=True))
    return tuple(
        origin
        for origin, block in zip(after.origins, after.blocks, strict=True)
        if origin not in old or getattr(old[origin], "args", None) != getattr(block, "args", None)
    )
