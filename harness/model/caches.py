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
    order: ExecutionOrder, operations: Sequence[MemoryOperation], writes: Sequence[tuple[PastAccess, list[Span]]]
) -> Iterator[Conflict]:
    """Every write that a barrier's, event's or subpass dependency's invalidate of its memory is not ordered with, or
    that is dirty when it happens."""
    for operation in operations:
        if not operation.invalidates or order.nodes[operation.node].kind != DST:
            continue
        current = ModelAccess(order.nodes[operation.node].place, "", False, operation.node)
        for past, spans in writes:
            shared = _shared(operation, past.space, spans)
            kind = _gap(order, operations, operation, past) if shared else ""
            if kind:
                yield Conflict(kind, past.use, current, past.resource, tuple(shared), order=order)


def _shared(operation: MemoryOperation, space: int, spans: list[Span]) -> list[Span]:
    if operation.space is None:
        return spans
    return overlap(spans, operation.spans) if operation.space == space else []


def _gap(
    order: ExecutionOrder, operations: Sequence[MemoryOperation], invalidate: MemoryOperation, past: PastAccess
) -> str:
    """A write is before the invalidate, and flushed before it, or after it."""
    writer = past.use.node
    if order.precedes(invalidate.node, writer):
        return ""
    if not order.precedes(writer, invalidate.node):
        return RACING
    flushed = past.automatic or any(
        flush.first >> writer & 1
        and flush.flushes >> written(past) & 1
        and (flush.node == invalidate.node or order.precedes(flush.node, invalidate.node))
        and flush.space in (None, past.space)
        for flush in operations
    )
    return "" if flushed else DIRTY
