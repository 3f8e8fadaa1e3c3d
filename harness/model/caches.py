"""Two older rules about caches, which are no rules any more.

They take writes for dirty cache lines: a dependency must not make memory visible (invalidate)
that holds a write which was not made available (flushed), and must not do so while a write may happen. Today's
specification asks for neither: a visibility operation makes visible what is available, and leaves alone what is not
("Availability and Visibility"). So these are remarks and no conflicts. On the host they are rules still
(`rules/host.py`): memory that is written, not flushed and invalidated is undefined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.explain import DIRTY, RACING
from harness.model.memory import MemoryOperation
from harness.model.opinion import Conflict, ModelAccess
from harness.model.order import DST, ExecutionOrder
from harness.model.past_access import PastAccess, written
from harness.spans import Span, overlap


def remarks(
    order: ExecutionOrder, guards: Sequence[MemoryOperation], writes: Sequence[tuple[PastAccess, list[Span]]]
) -> Iterator[Conflict]:
    """Every write that a barrier's, event's or subpass dependency's invalidate of its memory is not ordered with, or
    that is dirty when it happens."""
    for guard in guards:
        if not guard.invalidates or order.nodes[guard.node].kind != DST:
            continue
        current = ModelAccess(order.nodes[guard.node].place, "", False, guard.node)
        for held, spans in writes:
            shared = _shared(guard, held.space, spans)
            kind = _breach(order, guards, guard, held) if shared else ""
            if kind:
                yield Conflict(kind, held.use, current, held.resource, tuple(shared), order=order)


def _shared(guard: MemoryOperation, space: int, spans: list[Span]) -> list[Span]:
    if guard.space is None:
        return spans
    return overlap(spans, guard.spans) if guard.space == space else []


def _breach(
    order: ExecutionOrder, guards: Sequence[MemoryOperation], invalidate: MemoryOperation, held: PastAccess
) -> str:
    """A write is before the invalidate, and flushed before it, or after it."""
    writer = held.use.node
    if order.precedes(invalidate.node, writer):
        return ""
    if not order.precedes(writer, invalidate.node):
        return RACING
    flushed = held.automatic or any(
        flush.first >> writer & 1
        and flush.flushes >> written(held) & 1
        and (flush.node == invalidate.node or order.precedes(flush.node, invalidate.node))
        and flush.space in (None, held.space)
        for flush in guards
    )
    return "" if flushed else DIRTY
