"""Advice on a trace: each dependency is left out, else made narrower, and both judges are asked.

A change is kept when nothing is found that was not there before, and the next one is tried on top of it: all advice
together holds. The same dependency of every frame is one, and changes in all frames at once. A long trace is asked
about in windows of a few frames. All advice together is proved in the whole trace then: what that refutes is withdrawn,
and asked about again in a window that shows why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from vkharness.advising.host_waits import HostWaits, host_may_read, host_waits
from vkharness.advising.merging import merged, neighbours
from vkharness.advising.narrowed_dependency import NarrowedDependency, path_text
from vkharness.advising.overlap import serialized
from vkharness.advising.ranges import resource_sizes
from vkharness.advising.round_trips import joined, round_trips, told
from vkharness.advising.semaphore_waits import SemaphoreWaits
from vkharness.advising.smaller_forms import may_be_left_out
from vkharness.advising.views import Edits, JudgedPart, JudgedParts
from vkharness.advising.written import BARRIER, Written, dependencies
from vkharness.model.order import ACTION, SRC
from vkharness.report.advice import Advice, AdviceKind
from vkharness.trace.calls import Block, Call
from vkharness.trace.edits import EditedTrace
from vkharness.trace.work_budget import OverBudget

MOST_ROUNDS = 3
"""How often advice is withdrawn after the time is over, before all of it is."""


@dataclass(slots=True)
class Advising:
    """All advice on a trace, what serializes most first, and how far it got."""

    advice: list[Advice] = field(default_factory=list)
    dependencies: int = 0
    """How many different ones the trace has."""
    done: int = 0
    """How many of them were looked at before the time was over."""
    stopped: bool = False
    """Whether the time was over before everything was tried."""
    in_windows: bool = False
    """Whether the trace was too long to ask both judges about all of it."""
    withdrawn: int = 0
    """How many changes the whole trace refuted, and nothing less than them was found in their place."""
    by_model: bool = True
    unmodelled: tuple[str, ...] = ()
    trace: EditedTrace | None = None
    """The trace with all that is advised."""

    @property
    def notes(self) -> list[str]:
        """Returns remarks on the advice, a line each: its subject, and what it leaves out."""
        notes = [f"{self.done} of {self.dependencies} dependencies looked at, {len(self.advice)} advised"]
        if self.stopped:
            notes.append("the time or the work was over before the rest (--seconds, --work)")
        if self.in_windows:
            whole = "both judges" if self.by_model else "syncval"
            notes.append(
                f"both judges judged each change in windows of some frames, {whole} all of them in the whole trace"
            )
        if self.withdrawn:
            notes.append(f"{self.withdrawn} changes were withdrawn: windows allow them, and the whole trace does not")
        if not self.by_model:
            notes.append(
                f"the {'whole ' if self.in_windows else ''}trace is too long for the model: syncval alone judged it"
            )
        if self.unmodelled:
            notes.append(f"not judged, so a dependency that only these need is not known: {', '.join(self.unmodelled)}")
        return [*notes, "advice is about this trace only: other frames, or other data, may need the dependency"]


@dataclass(slots=True)
class _Kept:
    """One change that is advised."""

    written: Written
    edits: dict[int, Call | None]
    advice: Advice


class _OutOfTimeError(Exception):
    pass


def advise(blocks: Iterable[Block], seconds: float = 60, tell: Callable[[str], object] = lambda _: None) -> Advising:
    """Asks about every dependency of a trace for at most so many seconds, and what is being asked then."""
    return _Adviser(EditedTrace.of(blocks), seconds, tell).run()


class _Adviser:
    """A trace and all that has been advised so far."""

    def __init__(self, trace: EditedTrace, seconds: float, tell: Callable[[str], object]) -> None:
        begin = time.monotonic()
        tell("judging the trace")
        self._trace = trace
        self._source = {block.index: block for block in trace.source if isinstance(block, Call)}
        self._tell = tell
        self._views = JudgedParts(trace)
        self._more: dict[Written, list[JudgedPart]] = {}
        """Windows that showed why the whole trace needs what was taken."""
        self._kept: list[_Kept] = []
        self._sizes = resource_sizes(trace.source)
        index = {origin: at for at, origin in enumerate(trace.origins, 1)}
        self._waits = SemaphoreWaits(self._views.structure, trace.origin, index.__getitem__)
        whole, took = self._views.whole, time.monotonic() - begin
        self._until = begin + seconds - (2 * took if self._views.in_windows else 0)
        self._found = Advising(
            in_windows=self._views.in_windows, by_model=whole.order is not None, unmodelled=whole.unmodelled
        )

    def run(self) -> Advising:
        """Every dependency, what is after most commands first."""
        found = self._found
        several = dependencies(self._trace.source)
        found.dependencies = len(several)
        waits = host_waits(self._trace.source)
        found.advice += waits.certain
        try:
            self._without_host_waits(waits)
            self._join_transitions(several)
            for each in sorted(several, key=self._weight, reverse=True):
                self._tell(f"{found.done} of {len(several)} dependencies, {len(self._kept)} advised")
                self._ask(each)
                found.done += 1
            self._prove(again=True)
            self._merge(self._left(several))
        except (_OutOfTimeError, OverBudget):
            found.stopped = True
        try:
            self._prove(again=False)
        except OverBudget:
            found.withdrawn += len(self._kept)
            self._kept.clear()
        found.advice += [each.advice for each in self._kept]
        found.advice.sort(key=lambda each: -(each.serializes.pairs if each.serializes else 0))
        found.trace = self._trace.with_calls(self._edits())
        return found

    def _edits(self) -> dict[int, Call | None]:
        return {origin: call for each in self._kept for origin, call in each.edits.items()}

    def _now(self, origin: int) -> Call | None:
        """A call as it is with what is advised."""
        return self._edits().get(origin, self._source[origin])

    def _left(self, several: Iterable[Written]) -> list[Written]:
        """The barriers of which all calls are still there."""
        gone = {origin for origin, call in self._edits().items() if call is None}
        return [each for each in several if each.kind == BARRIER and not gone.intersection(each.origins)]

    def _views_of(self, written: Written) -> list[JudgedPart]:
        return [*self._more.get(written, ()), *self._views.of(written)]

    def _weight(self, written: Written) -> int:
        """How many operations are before its first scopes, in the part of the trace that has most of them."""
        origins = set(written.origins)
        return max(_before(view, origins) for view in self._views_of(written))

    def _allowed(self, written: Written, edits: Edits) -> bool:
        """Whether neither judge finds anything that is not there in the trace that was read."""
        if time.monotonic() > self._until:
            raise _OutOfTimeError
        every = {**self._edits(), **edits}
        return all(view.allows(every) for view in self._views_of(written))

    def _ask(self, written: Written) -> None:
        """Leaves a dependency out, else narrows it."""
        self._without_waits(written)
        calls = {origin: self._now(origin) for origin in (*written.origins, *written.sets)}
        here = {origin: call for origin, call in calls.items() if call is not None}
        if len(here) < len(calls):
            return
        edits: dict[int, Call | None] = dict.fromkeys(written.origins)
        if may_be_left_out(written.kind, here[written.origins[0]].args) and self._allowed(written, edits):
            self._keep(AdviceKind.ORDERS_NOTHING, written, edits, ())
            return
        narrowing = NarrowedDependency(written, here, self._sizes)
        try:
            narrowing.narrow(_used(self._views_of(written)), lambda calls: self._allowed(written, calls))
        finally:
            if lines := narrowing.lines():
                self._keep(AdviceKind.WIDER, written, narrowing.edits, lines)

    def _without_host_waits(self, waits: HostWaits) -> None:
        """Leaves out waits of the host after which it touches nothing of the work before it waits again."""
        asked = [origin for each in waits.likely for origin in each.origins]
        read = host_may_read(self._trace.source, asked) if asked else set()
        for each in waits.likely:
            edits: dict[int, Call | None] = dict.fromkeys(each.origins)
            if read.isdisjoint(each.origins) and self._allowed(each, edits):
                until = waits.until[each.origins[0]]
                told = f"the host touches nothing of that work before call {until}, which waits for it, too"
                self._keep(AdviceKind.NEEDLESS_WAIT, each, edits, [told])

    def _without_waits(self, written: Written) -> None:
        """Leaves out the waits for semaphores of a submit that order nothing."""
        for place in self._waits.of(written):
            edits = self._waits.without(written, place, self._now)
            if edits is None or not self._allowed(written, edits):
                continue
            signals = self._waits.signals(written, place)
            told = f"; the signal in call {signals[0]} can go, too" if signals else ""
            self._waits.note(written, place)
            self._keep(AdviceKind.WIDER, written, edits, [f"{path_text(place)} orders nothing{told}"])

    def _join_transitions(self, several: list[Written]) -> None:
        """Makes one transition of two where nothing meets the image between them."""
        touched: set[int] = set()
        for trip in round_trips(self._trace.source, several):
            edits = joined(trip, self._source)
            if edits is None or touched & edits.keys() or not self._allowed(trip.second, edits):
                continue
            if self._allowed(trip.first, edits):
                touched |= edits.keys()
                self._keep(AdviceKind.THROUGH_A_LAYOUT, trip.second, edits, told(trip, self._source))

    def _keep(self, kind: AdviceKind, written: Written, edits: Edits, lines: Iterable[str]) -> None:
        view = next(iter(self._views_of(written)))
        before = self._edits()
        orders = view.order_after(before), view.order_after({**before, **edits})
        overlap = None
        if orders[0] is not None and orders[1] is not None:
            overlap = serialized(view.with_edits(before), orders[0], orders[1])
        held = edits[written.origins[0]]
        narrow = None if held is None else replace(held, index=written.call.index)
        sets = tuple(each for each in written.sets if each in edits and edits[each] != self._now(each))
        advice = Advice(kind, written.call, written.origins, tuple(lines), narrow, overlap, sets)
        self._kept.append(_Kept(written, dict(edits), advice))

    def _merge(self, barriers: list[Written]) -> None:
        """Makes two adjacent barriers one where that orders no less and no more."""
        trace = self._trace.with_calls(self._edits())
        for first, second in neighbours(trace, barriers):
            edits = merged(trace, first, second)
            if edits is not None and self._allowed(second, edits):
                self._keep(AdviceKind.COULD_BE_ONE, second, edits, (f"the other is call {first.call.index}",))

    # -- the whole trace -----------------------------------------------------------------------------------------------

    def _prove(self, again: bool) -> None:
        """Withdraws what the whole trace refutes; with `again` it is asked about once more, with what refutes it."""
        rounds = 0
        while self._found.in_windows and self._kept:
            self._tell(f"proving {len(self._kept)} changes in the whole trace")
            new = self._views.whole.new_findings(self._edits())
            if not new:
                return
            rounds += 1
            if rounds > MOST_ROUNDS and time.monotonic() > self._until:
                self._found.withdrawn += len(self._kept)
                self._kept.clear()
                return
            view = self._views.between(new[0]) or self._views.whole
            guilty = self._guilty(view if not view.allows(self._edits()) else self._views.whole)
            self._withdraw(guilty)
            seen = self._more.setdefault(guilty.written, [])
            if again and view is not self._views.whole and view not in seen:
                seen.insert(0, view)
                self._ask(guilty.written)
            else:
                self._found.withdrawn += 1

    def _guilty(self, view: JudgedPart) -> _Kept:
        """The first change with which, on top of those before it, something is found in a part of the trace."""
        low, high = 0, len(self._kept) - 1
        while low < high:
            middle = (low + high) // 2
            edits = {origin: call for each in self._kept[: middle + 1] for origin, call in each.edits.items()}
            low, high = (middle + 1, high) if view.allows(edits) else (low, middle)
        return self._kept[low]

    def _withdraw(self, guilty: _Kept) -> None:
        """Takes back a change, and those after it of the same calls."""
        at = self._kept.index(guilty)
        later = [each for each in self._kept[at + 1 :] if not each.edits.keys() & guilty.edits.keys()]
        self._kept[at:] = later


def _before(view: JudgedPart, origins: set[int]) -> int:
    order = view.order
    if order is None:
        return 0
    sources = [
        at for at, node in enumerate(order.nodes) if node.kind == SRC and view.origin(node.place.call) in origins
    ]
    return sum(len(order.before[at]) for at in sources)


def _used(views: Iterable[JudgedPart]) -> int:
    """The stages in which commands do something; all where the model does not know them."""
    used = 0
    for order in (view.order for view in views):
        if order is None:
            return -1
        for node in order.nodes:
            used |= node.stages if node.kind == ACTION else 0
    return used or -1
