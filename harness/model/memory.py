"""Availability and visibility: which writes an access may rely on, given the execution dependency order.

Theory of operation
===================

(Specification: "Execution and Memory Dependencies", "Availability, Visibility, and Domain Operations".)

Order alone is not enough after a write. A memory dependency does two things, which the model keeps apart:

* it makes the writes of its first access scope **available**: here, it *flushes* them;
* it makes all that is available **visible** to the accesses of its second access scope: it *invalidates* for them.

The two may belong to different dependencies, when the one that flushes happens before the one that invalidates. That
is what lets a program split a memory barrier.

So a write W is visible to an access A when there are dependencies F and V (possibly one and the same) such that

1. W is in the first synchronization scope of F, and its kind of access is in the first access scope of F;
2. F is V, or F happens before V;
3. A is in the second synchronization scope of V, and its kind of access is in the second access scope of V.

What is kept
------------
One `MemoryOperation` for each side of each dependency: its node in the order, the nodes in
its first scope, the access scopes, and the addresses when the dependency is limited to a range. Dependencies over all
memory are grouped by access scope, so that "is W flushed by any of these nodes" is a few operations on integers.
Dependencies over ranges are kept by address space and cut to the pieces that matter (`pieces`).

A worked example
----------------
W is flushed by one dependency (node 1) and invalidated for by a second one (node 2); the access is node 3. Kinds of
access are bits; here the write is kind 5 and the read kind 6.

>>> from harness.findings import Place
>>> from harness.model.order import ACTION, DST, Node
>>> order, here = ExecutionOrder(), Place(1, "an example", None)
>>> write = order.add(Node(ACTION, "write", here))
>>> flush = order.add(Node(DST, "flush", here), (order.set_of(write), "in the first scope"))
>>> invalidate = order.add(Node(DST, "invalidate", here), (order.set_of(flush), "chained"))
>>> memory = MemoryOperations(order)
>>> memory.add(MemoryOperation(flush, first=1 << write, flushes=1 << 5))
>>> memory.add(MemoryOperation(invalidate, invalidates=1 << 6))
>>> seen = memory.seen(1 << invalidate, 1 << 6, by_region=False)
>>> memory.flushed(write, 5, by=seen)
True
>>> memory.flushed(write, 5, by=memory.seen(1 << invalidate, 1 << 7, by_region=False))
False
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.model.order import ExecutionOrder
from harness.model.stages import indices
from harness.spans import Span, overlap, subtract


@dataclass(frozen=True, slots=True)
class MemoryOperation:
    """The memory operation of one node of the order: what it makes available, and what it makes visible (a submit does
    both)."""

    node: int
    first: int = 0
    """The operations in the first synchronization scope of an availability operation, as a set of nodes."""
    flushes: int = 0
    """The first access scope, an access set. It is empty when nothing is made available."""
    invalidates: int = 0
    """The second access scope, an access set. It is empty when nothing is made visible."""
    space: int | None = None
    """The address space of `spans`, to which the operation is limited. None stands for all memory."""
    spans: tuple[Span, ...] = ()


class MemoryOperations:
    """Every memory operation so far. It answers whether a write is available, and whether it is visible."""

    def __init__(self, order: ExecutionOrder) -> None:
        self._order = order
        self.everything: list[MemoryOperation] = []
        """All memory operations, in the order in which they were added."""
        self._flushers: dict[int, int] = {}
        self._invalidators: dict[int, int] = {}
        """The nodes that have a second access scope, by that scope. (`_flushers`: the same by first access scope.)"""
        self._first: dict[int, int] = {}
        self._ranged: dict[int, list[MemoryOperation]] = {}
        self._known: dict[tuple[str, int], int] = {}

    def add(self, operation: MemoryOperation) -> None:
        """Adds the memory operation of a node."""
        if operation.flushes or operation.invalidates:
            self.everything.append(operation)
        if operation.space is not None:
            if operation.flushes or operation.invalidates:
                self._ranged.setdefault(operation.space, []).append(operation)
            return
        self._first[operation.node] = operation.first
        for table, scope in ((self._flushers, operation.flushes), (self._invalidators, operation.invalidates)):
            if scope:
                table[scope] = table.get(scope, 0) | 1 << operation.node

    def flushed(self, writer: int, index: int, by: int) -> bool:
        """Whether a write of kind `index` at node `writer` is flushed, for all memory, by a node of the set `by`."""
        flushers = by & _with(self._flushers, 1 << index)
        return bool(self._union(self._first, "flushed", flushers) >> writer & 1)

    def seen(self, scopes: int, accesses: int, by_region: bool) -> int:
        """All nodes before, or at, some invalidate for all memory, of one of these kinds, that is in `scopes`."""
        invalidators = scopes & _with(self._invalidators, accesses)
        before = self._order.closure(by_region)
        return self._union(before, "by region" if by_region else "seen", invalidators) | invalidators

    def _union(self, table: Mapping[int, int] | Sequence[int], what: str, nodes: int) -> int:
        """The union of the table's sets for each of the nodes. Results are kept by `what`, which names the table."""
        if not nodes:
            return 0
        found = self._known.get((what, nodes))
        if found is None:
            found = 0
            for node in indices(nodes):
                found |= table[node]
            self._known[what, nodes] = found
        return found

    def ranged(self, space: int) -> list[MemoryOperation]:
        """The memory operations that are limited to addresses of this space."""
        return self._ranged.get(space, [])


def _with(table: dict[int, int], accesses: int) -> int:
    """The nodes whose access scope has one of these kinds of access."""
    found = 0
    for scope, nodes in table.items():
        if scope & accesses:
            found |= nodes
    return found


def pieces(
    spans: Sequence[Span], operations: Sequence[MemoryOperation]
) -> Iterator[tuple[list[Span], list[MemoryOperation]]]:
    """Parts of `spans`, each with the operations that cover all of it. No operation covers a part by half."""
    parts: list[tuple[list[Span], list[MemoryOperation]]] = [(list(spans), [])]
    for operation in operations:
        cut: list[tuple[list[Span], list[MemoryOperation]]] = []
        for part, covering in parts:
            inside = overlap(part, operation.spans)
            outside = subtract(part, operation.spans) if inside else part
            if inside:
                cut.append((inside, [*covering, operation]))
            if outside:
                cut.append((outside, covering))
        parts = cut
    yield from parts
