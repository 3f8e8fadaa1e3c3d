"""The writes that are available and visible to one access, given the order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vkharness.model.memory import HOST_READ, HOST_WRITE, MemoryOperation, MemoryOperations, Nodes, pieces
from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.order import ExecutionOrder
from vkharness.model.past_access import HOST_STREAM, NOWHERE, PastAccess, written
from vkharness.spans import Span, merge, overlap


class VisibilityQuery:
    """The writes that are available and visible to one access, `current`."""

    def __init__(
        self, order: ExecutionOrder, operations: MemoryOperations, current: PastAccess, by_region: bool
    ) -> None:
        self._operations = operations
        self._before = order.closure(by_region)
        self._current = current
        node = current.use.node
        self._access_kinds = visible_to(current)
        self._earlier = self._before[node]
        self._scopes = self._earlier if current.stream == HOST_STREAM else order.direct[node]
        """The second scopes that hold the access. An access of the host is in those of all that the host waited for."""
        if current.seen_at is not None:
            self._scopes = EMPTY if current.seen_at == NOWHERE else self._before[current.seen_at]
        self._seen: Nodes = (
            operations.seen(self._scopes, self._access_kinds, by_region) if not current.automatic else self._earlier
        )
        """The nodes before an invalidate, for all memory, that covers this access. Automatic accesses see all that is
        available."""

    def after(self, node: int) -> bool:
        """Whether a node is before the access."""
        return node in self._earlier

    def hidden(self, prior: PastAccess, shared: list[Span]) -> list[Span]:
        """The addresses at which a write is not visible to the access.

        Rules: rules.md#a-ranged-barrier-covers-its-range, rules.md#availability-and-visibility-may-be-apart.
        """
        if self._covers(prior, self._seen):
            return []
        ranged = self._operations.ranged(prior.space, prior.use.node)
        operations = [each for each in ranged if overlap(each.spans, shared)]
        hidden: list[Span] = []
        for part, covering in pieces(shared, operations):
            more = EMPTY
            for operation in covering:
                if operation.invalidates & self._access_kinds and operation.node in self._scopes:
                    more |= self._before[operation.node] | NodeNumbers.one(operation.node)
            seen = _Either(self._seen, more)
            if not self._flushed(prior, seen, covering) and not self._covers(prior, seen):
                hidden += part
        return merge(hidden)

    def is_available(self, prior: PastAccess, spans: list[Span]) -> bool:
        """Whether a write was made available, at each of these addresses, before the access."""
        if self._covers(prior, self._earlier):
            return True
        ranged = self._operations.ranged(prior.space, prior.use.node)
        operations = [each for each in ranged if overlap(each.spans, spans)]
        return all(self._flushed(prior, self._earlier, covering) for _, covering in pieces(spans, operations))

    def _flushed(self, prior: PastAccess, seen: Nodes, covering: Sequence[MemoryOperation]) -> bool:
        """Whether one of several operations makes a write available to the device, at some node of the set."""
        return any(
            self._taken_on(each, seen, covering) if each.by_host else each.node in seen
            for each in covering
            if each.makes_available(prior.use.node, written(prior))
        )

    def _taken_on(self, flush: MemoryOperation, seen: Nodes, covering: Sequence[MemoryOperation]) -> bool:
        """Whether something after a flush of the host takes what is available to the host on to the device: a submit,
        or a dependency from HOST_WRITE.

        Specification: "Host Write Ordering Guarantees"; appendix "Availability, Visibility, and Domain Operations".
        Rule: rules.md#a-late-host-write-needs-a-dependency-from-the-host.
        """
        return self._operations.flushed(flush.node, HOST_WRITE, seen) or any(
            each.node in seen for each in covering if each.takes_on(flush)
        )

    def _covers(self, prior: PastAccess, seen: Nodes) -> bool:
        """Whether the write is available, for all memory, at some node of the set.

        Rule: rules.md#available-writes-are-visible-to-a-transition.
        """
        if prior.automatic:
            return prior.use.node in seen
        return self._operations.flushed(prior.use.node, written(prior), seen)


def visible_to(current: PastAccess) -> int:
    """The access set of which a second access scope needs one kind, to make writes visible to an access."""
    kinds = 1 << current.access.access_kind
    if current.access.access_kind == HOST_WRITE:
        # Before a write it need only be available to the host domain ("Location-Ordered"), to which a dependency with
        # either access in its second scope brings it ("Availability, Visibility, and Domain Operations").
        kinds |= 1 << HOST_READ
    return kinds


@dataclass(frozen=True, slots=True)
class _Either:
    """What is in one of two sets."""

    one: Nodes
    other: NodeNumbers

    def __contains__(self, node: int) -> bool:
        return node in self.other or node in self.one
