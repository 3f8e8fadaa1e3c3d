"""The writes that are available and visible to one access, given the order."""

from __future__ import annotations

from vkharness.model.memory import HOST_READ, HOST_WRITE, MemoryOperations, Nodes
from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.order import ExecutionOrder
from vkharness.model.past_access import HOST_STREAM, NOWHERE, PastAccess, written
from vkharness.spans import Span, overlap, subtract


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
        left = self._unavailable(prior, shared, self._seen)
        if not left:
            return []
        wanted = self._access_kinds, self._scopes
        for operation in self._operations.ranged_invalidates(prior.space, prior.use.node, *wanted):
            here = overlap(left, operation.spans)
            if here:
                seen = self._before[operation.node] | NodeNumbers.one(operation.node)
                hidden = [] if self._covers(prior, seen) else self._unavailable(prior, here, seen)
                left = subtract(left, subtract(here, hidden))
            if not left:
                break
        return left

    def is_available(self, prior: PastAccess, spans: list[Span]) -> bool:
        """Whether a write was made available, at each of these addresses, before the access."""
        return self._covers(prior, self._earlier) or not self._unavailable(prior, spans, self._earlier)

    def _unavailable(self, prior: PastAccess, spans: list[Span], nodes: Nodes) -> list[Span]:
        """The addresses at which no operation over a range, among some nodes, makes a write available to the device."""
        for flush in self._operations.ranged_flushes(prior.space, prior.use.node, written(prior)):
            here = overlap(spans, flush.spans)
            if here and flush.by_host:
                spans = subtract(spans, self._operations.takes_on(prior.space, flush, nodes, here))
            elif here and flush.node in nodes:
                spans = subtract(spans, here)
            if not spans:
                break
        return spans

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
