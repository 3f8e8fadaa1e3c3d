"""Queries: which operation on each query came last, and whether the next one is ordered after it (rules.md#queries).

On one queue the commands on a query are in order by themselves, but for a copy of results that does not wait. Between
queues, and for that copy, barriers and semaphores order them as they order operations on events. Commands on queries
that follow one another on a queue with no barrier between them stand together: they are one operation to that order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

from vkharness.findings import Finding, Hazard, Place
from vkharness.spans import SpanMap
from vkharness.spec.enums import VkPipelineStage2
from vkharness.spec.scopes import TOP, execution_scope_src
from vkharness.syncval.event_order import OperationOrder
from vkharness.syncval.event_state import ExecutedOperation, OperationKind
from vkharness.trace.query_effects import HostQueries, QueryUse, UseQueries
from vkharness.trace.work_budget import spend

ENDED = (QueryUse.END, QueryUse.TIMESTAMP)
KEPT = 16
"""Runs of commands on queries whose order is followed. Older ones count as ordered before whatever comes."""


@dataclass(eq=False, slots=True)
class Used:
    """An operation on queries."""

    use: QueryUse
    place: Place
    run: ExecutedOperation
    """The operation that stands for it in the order of operations: one for a run of commands on queries."""
    number: int
    waits: bool = False
    """Of a copy, whether it waits for results."""
    stages: int = 0
    """Stages of its queue that it comes after, by its own first scope."""
    awaited: bool = False
    """Whether the host knows by results that it is complete."""
    earlier: tuple[Used, ...] = ()
    """Operations that are complete when it is: the begin of a query before its end, and the reset before that."""
    runs: frozenset[int] = frozenset()
    """The numbers of runs that come before it by dependencies."""
    after: tuple[Used, ...] = ()
    """Operations on the same queries that come before it, and all that comes before these."""


class QueryState(NamedTuple):
    """The latest operations on one query."""

    last: Used
    """The last operation that changed it."""
    copies: tuple[Used, ...] = ()
    """The last copy of its results since then, of each queue."""


class QueryOperations:
    """The queries of a device."""

    def __init__(self, order: OperationOrder) -> None:
        self._order = order
        self._pools: dict[int, SpanMap[QueryState]] = {}
        self._runs: dict[int, ExecutedOperation] = {}
        """By number, the oldest first."""
        self._open: dict[int, ExecutedOperation] = {}
        """By queue, the run that its next command on a query belongs to."""
        self._linked: deque[Used] = deque()
        """Those that may lead to a run that is followed, the oldest first."""
        self._numbers = count(-1, -1)
        self._asked: Used | None = None
        """The operation of which `_reached` has what comes before it."""
        self._reached: set[int] = set()

    def follows(self, queue: int) -> bool:
        """Whether commands on a queue are anything to it: there is a pool, or a run goes on there."""
        return bool(self._pools) or queue in self._open

    def close(self, queue: int) -> None:
        """Something on a queue orders what came before it: later commands on queries are another run."""
        self._open.pop(queue, None)

    def use(self, effect: UseQueries, place: Place, queue_flags: int) -> list[Finding]:
        """A command uses queries.

        Rules: rules.md#operations-on-a-query-are-in-order, rules.md#a-query-is-reset-before-each-use,
        rules.md#a-copy-of-results-waits-for-them, rules.md#a-copy-needs-results.
        """
        pool = self._pools.get(effect.pool)
        if pool is None:
            return []
        stages = _first_scope(effect, queue_flags)
        made = Used(effect.use, place, self._run(place), next(self._numbers), effect.waits, stages)
        begin, end = effect.first, effect.first + effect.count
        held = pool.pieces(begin, end)
        made.runs = self._order.before(place.queue or 0, stages).intersection(self._runs)
        met = dict.fromkeys(each for *_, state in held for each in (state.last, *state.copies))
        made.after = tuple([each for each in met if self._is_before(each, made)])
        self._asked = None
        self._linked.append(made)
        faults = [fault for *_, state in held for fault in self._faults(effect, made, state)]
        if effect.use is not QueryUse.COPY:
            made.earlier = tuple(dict.fromkeys(each for *_, state in held for each in self._earlier(state, made)))
            pool.assign(begin, end, QueryState(made))
        for first, last, state in held if effect.use is QueryUse.COPY else ():
            others = tuple(each for each in state.copies if each.place.queue != place.queue)
            pool.assign(first, last, QueryState(state.last, (*others, made)))
        return _findings(faults, effect.pool, place)

    def _faults(self, effect: UseQueries, made: Used, state: QueryState) -> Iterator[tuple[Hazard, Used]]:
        last, use = state.last, effect.use
        if use is QueryUse.COPY:
            if last.use in ENDED:
                if not (effect.waits or effect.tells or self._is_before(last, made)):
                    yield Hazard.QUERY_NOT_AWAITED, last
                return
            if not self._is_before(last, made):
                yield Hazard.QUERY_UNORDERED, last
            yield Hazard.QUERY_WITHOUT_RESULT, last
            return
        for each in (last, *state.copies):
            if not self._is_before(each, made):
                yield Hazard.QUERY_UNORDERED, each
        if use in (QueryUse.BEGIN, QueryUse.TIMESTAMP) and last.use is not QueryUse.RESET:
            yield Hazard.QUERY_NOT_RESET, last

    def _is_before(self, prior: Used, made: Used) -> bool:
        """Whether an operation is ordered before a command on the same query."""
        place, queue, run = made.place, made.place.queue or 0, prior.run
        if prior.awaited or run.is_complete or self._order.is_before(run, place):
            return True
        overtakes = made.use is QueryUse.COPY and not made.waits and prior.use in ENDED
        if prior.place.queue == queue and not overtakes:
            return True
        return self._leads_to(made, prior)

    def _leads_to(self, made: Used, prior: Used) -> bool:
        """Whether an operation comes before another one by dependencies, perhaps through those that this one met on the
        same queries: a command that uses several queries is one operation on all of them."""
        if self._asked is not made:
            self._asked, self._reached = made, _reached(made)
        return prior.number in self._reached or prior.run.number in self._reached

    def _earlier(self, state: QueryState, made: Used) -> tuple[Used, ...]:
        last = state.last
        if made.use is QueryUse.END and last.use is QueryUse.BEGIN:
            return (*last.earlier, last)
        starts = made.use in (QueryUse.BEGIN, QueryUse.TIMESTAMP) and last.use is QueryUse.RESET
        return (last,) if starts and self._is_before(last, made) else ()

    def _run(self, place: Place) -> ExecutedOperation:
        queue, batch = place.queue or 0, (place.submit, place.batch)
        held = self._open.get(queue)
        if held is None or (held.place.submit, held.place.batch) != batch:
            held = self._open[queue] = self._begin_run(place)
        return held

    def _begin_run(self, place: Place) -> ExecutedOperation:
        made = ExecutedOperation(next(self._numbers), 0, OperationKind.QUERIES, place)
        self._order.add(made)
        self._runs[made.number] = made
        if len(self._runs) > KEPT:
            oldest = self._runs.pop(next(iter(self._runs)))
            oldest.is_complete = True
            self._order.drop(oldest)
            first = next(iter(self._runs))
            while self._linked and self._linked[0].number > first:  # no run is left that these could lead to
                self._linked.popleft().after = ()
        return made

    # -- the host ------------------------------------------------------------------------------------------------------

    def host(self, effect: HostQueries) -> list[Finding]:
        """The host makes or ends a pool, resets queries, or gets their results.

        Rules: rules.md#the-host-resets-queries-that-are-not-in-use, rules.md#a-copy-needs-results.
        """
        place = Place(effect.call, effect.name, effect.site)
        begin, end = effect.first, effect.first + effect.count
        if effect.use is QueryUse.DESTROY:
            self._pools.pop(effect.pool, None)
            return []
        if effect.use is QueryUse.CREATE:
            self._pools[effect.pool] = SpanMap()
        pool = self._pools.get(effect.pool)
        if pool is None:
            return []
        held = pool.pieces(begin, end)
        if effect.use is QueryUse.GET:
            for *_, state in held if effect.known else ():
                for each in (state.last, *state.last.earlier) if state.last.use in ENDED else ():
                    each.awaited = True
            new = [(Hazard.QUERY_WITHOUT_RESULT, each.last) for *_, each in held if each.last.use is QueryUse.CREATE]
            return _findings(new, effect.pool, place)
        pool.assign(begin, end, QueryState(Used(effect.use, place, self._begin_run(place), next(self._numbers))))
        used = (each for *_, state in held for each in (state.last, *state.copies))
        in_use = [(Hazard.QUERY_UNORDERED, each) for each in used if not self._is_complete(each)]
        return _findings(in_use, effect.pool, place)

    def _is_complete(self, prior: Used) -> bool:
        return prior.run.on_host or prior.awaited or self._order.is_complete(prior.run)


def _reached(made: Used) -> set[int]:
    """Numbers of the operations and runs that come before an operation by links. One walk serves all its queries."""
    found, looked, left = set[int](), {made}, [made]
    while left:
        each = left.pop()
        found.update(each.runs)
        found.update([one.number for one in each.after])
        new = [one for one in each.after if one not in looked]
        spend(len(each.after), "operations on queries that come before others")
        looked.update(new)
        left += new
    return found


def _first_scope(effect: UseQueries, queue_flags: int) -> int:
    """The stages of which second scopes reach an operation. TOP_OF_PIPE stands for those that reach everything."""
    if effect.use is QueryUse.TIMESTAMP:
        return execution_scope_src(effect.stages, queue_flags) | TOP
    return TOP | VkPipelineStage2.COPY if effect.use is QueryUse.COPY else TOP


def _findings(faults: Iterable[tuple[Hazard, Used]], pool: int, place: Place) -> list[Finding]:
    """Each pair of commands once, however many queries they share."""
    once = {(hazard, prior.place.call): prior.place for hazard, prior in faults}
    return [
        Finding(hazard, "", "", place, prior, resource=pool, resource_type="VkQueryPool")
        for (hazard, _), prior in once.items()
    ]
