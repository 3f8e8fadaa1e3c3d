"""The operations on queries of one pool, as far as none has taken their place (specification: "Query Operation")."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.opinion import ModelAccess
from vkharness.model.order import ExecutionOrder
from vkharness.spans import Span, overlap, subtract
from vkharness.trace.query_effects import QueryUse


@dataclass(slots=True)
class QueryOperation:
    """An operation on queries, with those of them that no later one has changed."""

    kind: QueryUse
    use: ModelAccess
    spans: list[Span]
    """The numbers of the queries."""
    shared: bool = False
    """For a copy of results, whether it may come before the end of the queries: it waits for them, or tells which are
    available."""

    earlier: NodeNumbers = EMPTY
    """Operations that are complete when it is, as a set of nodes: the begin of a query before its end, the reset before
    that."""

    @property
    def node(self) -> int:
        """The node of the operation."""
        return self.use.node


@dataclass(slots=True)
class QueryPoolHistory:
    """The operations on a pool that can still matter, in the order of execution."""

    operations: list[QueryOperation] = field(default_factory=list)
    awaited: NodeNumbers = EMPTY
    """The operations that the host knows to be complete by the results that it got, as a set of nodes."""

    def on(self, spans: list[Span]) -> list[QueryOperation]:
        """The operations on any of these queries."""
        return [each for each in self.operations if overlap(each.spans, spans)]

    def add(self, made: QueryOperation) -> None:
        """Adds an operation. All but a copy take the place of what was there: later ones are held against them."""
        if made.kind is not QueryUse.COPY:
            for each in self.operations:
                each.spans = subtract(each.spans, made.spans)
        self.operations = [*(each for each in self.operations if each.spans), made]

    def started(self, order: ExecutionOrder, made: QueryOperation) -> NodeNumbers:
        """The begin before an end, and the reset before a begin or a timestamp, as a set of nodes."""
        found = EMPTY
        for each in self.on(made.spans):
            if made.kind is QueryUse.END and each.kind is QueryUse.BEGIN:
                found |= each.earlier | NodeNumbers.one(each.node)
            starts = made.kind in (QueryUse.BEGIN, QueryUse.TIMESTAMP) and each.kind is QueryUse.RESET
            if starts and order.precedes(each.node, made.node):
                found |= NodeNumbers.one(each.node)
        return found

    def await_all(self, ended: Iterable[QueryOperation]) -> None:
        """The host has the results of queries that these operations ended."""
        for each in ended:
            self.awaited |= each.earlier | NodeNumbers.one(each.node)

    def is_awaited(self, operation: QueryOperation) -> bool:
        """Whether the host knows by results that an operation is complete."""
        return operation.node in self.awaited
