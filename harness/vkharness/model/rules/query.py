"""Queries: in which order the operations on one query are, and what each of them finds (specification: "Queries").

The order is one of operations on queries among themselves. What else a command accesses is not in it.
"""

from __future__ import annotations

from collections.abc import Iterator

from vkharness.findings import Place
from vkharness.model.command_buffer_run import CommandBufferRun
from vkharness.model.opinion import Conflict, ConflictKind, ModelAccess
from vkharness.model.order import IN_ALL_COMMANDS, NOTHING, QUERY, Node, NodeSet
from vkharness.model.program import Program
from vkharness.model.query_history import QueryOperation, QueryPoolHistory
from vkharness.model.stages import SYNCHRONIZATION, first_scope
from vkharness.spec.enums import VkPipelineStage2
from vkharness.trace.query_effects import HostQueries, QueryUse, UseQueries

ENDS = (QueryUse.END, QueryUse.TIMESTAMP)
"""The operations that make a query available."""
WITH_SECOND_SCOPE = (QueryUse.RESET, QueryUse.BEGIN, QueryUse.COPY)
"""The operations that all later ones on the same query come after. END has only itself in its second scope, and a
timestamp the write of the timestamp."""
WITH_FIRST_SCOPE = (QueryUse.RESET, QueryUse.BEGIN, QueryUse.END, QueryUse.COPY)
"""The operations that come after all earlier ones on the same query. A timestamp comes after work of its stage."""


def use_queries(run: CommandBufferRun, effect: UseQueries) -> None:
    """An operation on queries comes after those operations on the same queries, of its own queue, that its first scope
    or their second scope includes.

    A timestamp also comes after earlier work of its stage. No stage performs the operation itself, but for a copy of
    results. Specification: "vkCmdResetQueryPool", "vkCmdBeginQuery", "vkCmdEndQuery", "vkCmdCopyQueryPoolResults",
    "vkCmdWriteTimestamp2".
    Rules: rules.md#operations-on-a-query-are-in-order, rules.md#a-timestamp-comes-after-its-stage.
    """
    pool, order = run.program.query_pools.get(effect.pool), run.program.order
    if pool is None:
        return
    spans = [(effect.first, effect.first + effect.count)]
    earlier = NOTHING
    for each in pool.on(spans):
        if each.use.queue == run.submitted.queue and _in_scope(effect, each.kind):
            earlier |= order.set_of(each.node)
    own_stage = VkPipelineStage2.COPY if effect.use is QueryUse.COPY else 0
    node = order.add(
        Node(QUERY, f"{run.command.name} ({run.command.call})", run.place, SYNCHRONIZATION),
        (earlier, "operations on a query are in order"),
        (_before_timestamp(run, effect), "first scope of a timestamp"),
        (run.stream.before(SYNCHRONIZATION | own_stage), IN_ALL_COMMANDS),
    )
    run.stream.issue(SYNCHRONIZATION, order.set_of(node))
    use = ModelAccess(run.place, "", effect.use is not QueryUse.COPY, node)
    made = QueryOperation(effect.use, use, spans, shared=effect.waits or effect.tells)
    made.earlier = pool.started(order, made)
    _report(run.program, effect.pool, _faults(run.program, pool, made), made)
    pool.add(made)


def _in_scope(effect: UseQueries, prior: QueryUse) -> bool:
    """Whether an earlier operation of the queue comes before this one."""
    if effect.use is QueryUse.COPY and not effect.waits and prior in ENDS:
        return False
    return effect.use in WITH_FIRST_SCOPE or prior in WITH_SECOND_SCOPE


def _before_timestamp(run: CommandBufferRun, effect: UseQueries) -> NodeSet:
    if effect.use is not QueryUse.TIMESTAMP:
        return NOTHING
    return run.stream.holds(first_scope(effect.stages, run.queue_flags))


Fault = tuple[ConflictKind, QueryOperation]


def _faults(program: Program, pool: QueryPoolHistory, made: QueryOperation) -> Iterator[Fault]:
    """Yields the conflicts of an operation with the earlier ones on the same queries.

    Rules: rules.md#operations-on-a-query-are-in-order, rules.md#a-query-is-reset-before-each-use,
    rules.md#a-copy-of-results-waits-for-them, rules.md#a-copy-needs-results.
    """
    for each in pool.on(made.spans):
        if not program.order.precedes(each.node, made.node) and not pool.is_awaited(each):
            if made.kind is not QueryUse.COPY:
                yield ConflictKind.QUERY_UNORDERED, each
            elif each.kind in ENDS:
                if not made.shared:
                    yield ConflictKind.QUERY_NOT_AWAITED, each
            elif each.kind is not QueryUse.COPY:
                yield ConflictKind.QUERY_UNORDERED, each
        if made.kind in (QueryUse.BEGIN, QueryUse.TIMESTAMP) and each.kind not in (QueryUse.RESET, QueryUse.COPY):
            yield ConflictKind.QUERY_NOT_RESET, each
        if made.kind is QueryUse.COPY and each.kind not in (*ENDS, QueryUse.COPY):
            yield ConflictKind.QUERY_WITHOUT_RESULT, each


def _report(program: Program, pool: int, faults: Iterator[Fault], made: QueryOperation) -> None:
    """Each pair of operations is reported once, however many queries they share."""
    for kind, prior in dict.fromkeys((kind, prior.use) for kind, prior in faults):
        program.conflict(Conflict(kind, prior, made.use, pool, order=program.order))


def host_queries(program: Program, effect: HostQueries) -> None:
    """The host makes a pool, resets queries, or gets their results.

    A reset comes after all that the host waited for; commands on the queries must be among that. Results that the host
    got are of queries that were ended. Specification: "vkResetQueryPool", "vkGetQueryPoolResults",
    VUID-vkResetQueryPool-firstQuery-02741, VUID-vkGetQueryPoolResults-None-09401.
    Rules: rules.md#the-host-resets-queries-that-are-not-in-use, rules.md#a-copy-needs-results.
    """
    span = (effect.first, effect.first + effect.count)
    if effect.use is QueryUse.DESTROY:
        program.query_pools.pop(effect.pool, None)
        return
    if effect.use is QueryUse.CREATE:
        program.query_pools[effect.pool] = QueryPoolHistory()
    pool = program.query_pools.get(effect.pool)
    if pool is None:
        return
    place = Place(effect.call, effect.name, effect.site)
    made = QueryOperation(effect.use, ModelAccess(place, "", True, program.host_node(effect.name, place)), [span])
    if effect.use is QueryUse.GET:
        new = (each for each in pool.on([span]) if each.kind is QueryUse.CREATE)
        _report(program, effect.pool, ((ConflictKind.QUERY_WITHOUT_RESULT, each) for each in new), made)
        if effect.known:
            pool.await_all([each for each in pool.on([span]) if each.kind in ENDS])
        return
    _report(program, effect.pool, _faults(program, pool, made), made)
    pool.add(made)
