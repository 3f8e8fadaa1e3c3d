"""Who uses the memory bindings of sparse resources, and who changes them.

A use and a change of one address must be in order, and so must two changes. Nothing has to be available or visible: no
binding operation accesses memory. Specification: "Binding Resource Memory", "vkQueueBindSparse".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vkharness.model.opinion import Conflict, ConflictKind, ModelAccess
from vkharness.model.order import ExecutionOrder
from vkharness.spans import Span, merge, overlap, subtract


@dataclass(slots=True)
class PastUse:
    """An access through bindings, or a change of them, with the addresses that no later change has replaced."""

    use: ModelAccess
    spans: list[Span]
    changes: bool


class BindingHistory:
    """Every use of the bindings of each sparse resource."""

    def __init__(self, order: ExecutionOrder) -> None:
        self._order = order
        self._uses: dict[int, list[PastUse]] = {}

    def forget(self, resource: int) -> None:
        """A resource is gone."""
        self._uses.pop(resource, None)

    def add(self, resource: int, spans: Sequence[Span], use: ModelAccess, changes: bool) -> Iterator[Conflict]:
        """Judges a use against all earlier ones, then keeps it. A change replaces what it is ordered after.

        Rule: rules.md#a-binding-is-in-order-with-accesses-through-it.
        """
        current = PastUse(use, merge(list(spans)), changes)
        history = self._uses.setdefault(resource, [])
        for prior in history:
            shared = overlap(prior.spans, current.spans)
            if not shared or not (prior.changes or changes):
                continue
            if not self._order.precedes(prior.use.node, use.node):
                yield Conflict(ConflictKind.BINDING, prior.use, use, resource, tuple(shared), self._order)
            elif changes:
                prior.spans = subtract(prior.spans, current.spans)
        self._uses[resource] = [*(past for past in history if past.spans), current]
