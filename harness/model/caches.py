"""Two rules of older specifications about caches, reported as remarks and not as conflicts.

The older rules take writes for dirty cache lines. A dependency must not invalidate memory that holds an unflushed
write, and must not do so while a write may happen. Today's specification asks for neither: a visibility operation makes
visible what is available, and leaves alone what is not ("Availability and Visibility"). On the host they are rules
still (`rules/host.py`): memory that is written, not flushed and then invalidated is undefined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.model.memory import MemoryOperation
from harness.model.opinion import Conflict, ConflictKind, ModelAccess
from harness.model.order import DST, ExecutionOrder
from harness.model.past_access import PastAccess, written
from harness.spans import Span, overlap


def remarks(
    order: ExecutionOrder, operations: Sequence[MemoryOperation], writes: Sequence[tuple[PastAccess, list[Span]]]
) -> Iterator[Conflict]:
    """Every write that is dirty when a dependency invalidates its memory, or that is not ordered with that invalidate.

    Barriers, events and subpass dependencies count; semaphores, fences and submits do not.
    """
    for operation in operations:
        if not operation.invalidates or order.nodes[operation.node].kind != DST:
            continue
        current = ModelAccess(order.nodes[operation.node].place, "", False, operation.node)
        for past, spans in writes:
            shared = _shared(operation, past.space, spans)
            kind = _gap(order, operations, operation, past) if shared else None
            if kind:
                yield Conflict(kind, past.use, current, past.resource, tuple(shared), order=order)


def _shared(operation: MemoryOperation, space: int, spans: list[Span]) -> list[Span]:
    if operation.space is None:
        return spans
    return overlap(spans, operation.spans) if operation.space == space else []


def _gap(
    order: ExecutionOrder, operations: Sequence[MemoryOperation], invalidate: MemoryOperation, past: PastAccess
) -> ConflictKind | None:
    """RACING for a write that is unordered with the invalidate, DIRTY for an unflushed earlier one."""
    writer = past.use.node
    if order.precedes(invalidate.node, writer):
        return None
    if not order.precedes(writer, invalidate.node):
        return ConflictKind.RACING
    flushed = past.automatic or any(
        flush.first >> writer & 1
        and flush.flushes >> written(past) & 1
        and (flush.node == invalidate.node or order.precedes(flush.node, invalidate.node))
        and flush.space in (None, past.space)
        for flush in operations
    )
    return None if flushed else ConflictKind.DIRTY
