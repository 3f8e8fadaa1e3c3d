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
memory are asked for one by one: those that flush a write in order from the write on, since the first of them is before
most of what comes later; those that invalidate for an access from the last one back, since the last one has most before
it. Dependencies over ranges are kept by address space, and are asked for in the same two ways.

A worked example
----------------
W is flushed by one dependency (node 1) and invalidated for by a second one (node 2); the access is node 3. Kinds of
access are bits; here the write is kind 5 and the read kind 6.

>>> from vkharness.findings import Place
>>> from vkharness.model.node_numbers import NodeNumbers
>>> from vkharness.model.order import ACTION, DST, Node
>>> order, here = ExecutionOrder(), Place(1, "an example", None)
>>> write = order.add(Node(ACTION, "write", here))
>>> flush = order.add(Node(DST, "flush", here), (order.set_of(write), "in the first scope"))
>>> invalidate = order.add(Node(DST, "invalidate", here), (order.set_of(flush), "chained"))
>>> memory = MemoryOperations(order)
>>> memory.add(MemoryOperation(flush, first=NodeNumbers.one(write), flushes=1 << 5))
>>> memory.add(MemoryOperation(invalidate, invalidates=1 << 6))
>>> scopes = NodeNumbers.one(invalidate)
>>> seen = memory.seen(scopes, 1 << 6, by_region=False)
>>> memory.flushed(write, 5, by=seen)
True
>>> memory.flushed(write, 5, by=memory.seen(scopes, 1 << 7, by_region=False))
False
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.order import ExecutionOrder
from vkharness.model.stages import ACCESS_KIND
from vkharness.spans import Span, subtract

HOST_READ, HOST_WRITE = (ACCESS_KIND[f"SYNC_HOST_HOST_{each}"].index for each in ("READ", "WRITE"))
HOST_ACCESSES = 1 << HOST_READ | 1 << HOST_WRITE


@dataclass(frozen=True, slots=True)
class MemoryOperation:
    """The memory operation of one node of the order: what it makes available, and what it makes visible (a submit does
    both)."""

    node: int
    first: NodeNumbers = EMPTY
    """The operations in the first synchronization scope of an availability operation, as a set of nodes."""
    flushes: int = 0
    """The first access scope, an access set. It is empty when nothing is made available."""
    invalidates: int = 0
    """The second access scope, an access set. It is empty when nothing is made visible."""
    space: int | None = None
    """The address space of `spans`, to which the operation is limited. None stands for all memory."""
    spans: tuple[Span, ...] = ()
    by_host: bool = False
    """Whether what it makes available is so to the host alone. An operation with it and its kind of access in its first
    scopes takes it on to the device."""

    def makes_available(self, node: int, access_kind: int) -> bool:
        """Whether the first scopes hold a node of this kind of access."""
        return bool(self.flushes >> access_kind & 1) and node in self.first

    def takes_on(self, flush: MemoryOperation) -> bool:
        """Whether this takes on to the device what a flush of the host made available to the host.

        Rule: rules.md#a-late-host-write-needs-a-dependency-from-the-host.
        """
        return not self.by_host and self.makes_available(flush.node, HOST_WRITE)


@dataclass(slots=True)
class _Flushes:
    """The dependencies over all memory that make one write available: those found so far. What another one of them is
    before is left out, since whatever comes after the one comes after the other."""

    found: list[int]
    """Their nodes."""
    at: int
    """How many of all flushes were looked at, or come before the write."""


@dataclass(slots=True)
class _RangedFlushes:
    """The dependencies over ranges of one space that make one write available: those found so far. What another one of
    at least its range is before is left out."""

    found: list[MemoryOperation]
    at: int
    """How many of all operations of the space were looked at, or come before the write."""


class Nodes(Protocol):
    """Something that tells whether a node is in it."""

    def __contains__(self, node: int, /) -> bool: ...


class Seen:
    """All nodes before, or at, some invalidate for all memory, of given kinds, in whose scope an access is."""

    def __init__(self, invalidates: Sequence[int], scopes: NodeNumbers, before: Sequence[NodeNumbers]) -> None:
        self._invalidates = invalidates
        self._scopes = scopes
        self._before = before

    def __contains__(self, node: int) -> bool:
        for each in reversed(self._invalidates):
            if each < node:
                return False
            if each in self._scopes and (each == node or node in self._before[each]):
                return True
        return False


class MemoryOperations:
    """Every memory operation so far. It answers whether a write is available, and whether it is visible."""

    def __init__(self, order: ExecutionOrder) -> None:
        self._order = order
        self.everything: list[MemoryOperation] = []
        """All memory operations, in the order in which they were added."""
        self._flushers: list[MemoryOperation] = []
        """Those over all memory that make something available, by their nodes."""
        self._invalidators: list[tuple[int, int]] = []
        """Those over all memory that make something visible: node and second access scope."""
        self._by_accesses: dict[int, list[int]] = {}
        """The nodes of these for some kinds of access, as far as anybody asked."""
        self._flushes: dict[tuple[int, int], _Flushes] = {}
        """For a write, by node and kind."""
        self._ranged: dict[int, list[MemoryOperation]] = {}
        self._ranged_flushes: dict[int, dict[tuple[int, int], _RangedFlushes]] = {}
        """By space, for a write by node and kind."""

    def add(self, operation: MemoryOperation) -> None:
        """Adds a memory operation."""
        self.everything.append(operation)
        if operation.space is None:
            if operation.flushes:
                insort(self._flushers, operation, key=_node)
            self._invalidate(operation.node, operation.invalidates)
            return
        if operation.flushes or operation.invalidates:
            held = self._ranged.setdefault(operation.space, [])
            if held and held[-1].node > operation.node:
                self._ranged_flushes.pop(operation.space, None)  # their places in the list are others
            insort(held, operation, key=_node)
        self._invalidate(operation.node, operation.invalidates & HOST_ACCESSES)

    def _invalidate(self, node: int, accesses: int) -> None:
        """Makes all that is available visible to these accesses, for all memory. A dependency to the host does so also
        where it is limited to a range: rules.md#a-dependency-to-the-host-is-about-all-memory."""
        if accesses:
            self._invalidators.append((node, accesses))
            for kinds, nodes in self._by_accesses.items():
                if kinds & accesses:
                    nodes.append(node)

    def flushed(self, writer: int, index: int, by: Nodes) -> bool:
        """Whether a write of kind `index` at node `writer` is flushed, for all memory, by a node of the set `by`."""
        known = self._flushes.get((writer, index))
        if known is None:
            known = _Flushes([], bisect_right(self._flushers, writer, key=_node))
            self._flushes[writer, index] = known
        if any(node in by for node in known.found):
            return True
        while known.at < len(self._flushers):
            each = self._flushers[known.at]
            known.at += 1
            if each.flushes >> index & 1 and writer in each.first:
                if not any(self._order.precedes(earlier, each.node) for earlier in known.found):
                    known.found.append(each.node)
                if each.node in by:
                    return True
        return False

    def seen(self, scopes: NodeNumbers, accesses: int, by_region: bool) -> Seen:
        """All nodes before, or at, some invalidate for all memory, of one of these kinds, that is in `scopes`."""
        nodes = self._by_accesses.get(accesses)
        if nodes is None:
            nodes = [node for node, invalidates in self._invalidators if invalidates & accesses]
            self._by_accesses[accesses] = nodes
        return Seen(nodes, scopes, self._order.closure(by_region))

    def ranged_flushes(self, space: int, writer: int, index: int) -> Iterator[MemoryOperation]:
        """The operations over ranges of this space that make a write of kind `index` at node `writer` available. Those
        are left out before which there is another one that does so for as many addresses."""
        known = self._ranged_flushes.setdefault(space, {}).get((writer, index))
        held = self._ranged.get(space, [])
        if known is None:
            known = _RangedFlushes([], bisect_right(held, writer, key=_node))
            self._ranged_flushes[space][writer, index] = known
        yield from tuple(known.found)
        while known.at < len(held):
            each = held[known.at]
            known.at += 1
            if each.makes_available(writer, index) and not any(self._is_before(one, each) for one in known.found):
                known.found.append(each)
                yield each

    def _is_before(self, one: MemoryOperation, other: MemoryOperation) -> bool:
        """Whether one operation over a range is before another one, and over at least as many addresses."""
        wider = one.spans == other.spans or not subtract(other.spans, one.spans)
        return wider and one.by_host == other.by_host and self._order.precedes(one.node, other.node)

    def ranged_invalidates(self, space: int, after: int, accesses: int, scopes: Nodes) -> Iterator[MemoryOperation]:
        """The operations over ranges of this space, of nodes after one, that make something visible to some kinds of
        access and are in some scopes: the last one first."""
        for each in reversed(self._ranged.get(space, [])):
            if each.node <= after:
                return
            if each.invalidates & accesses and each.node in scopes:
                yield each

    def takes_on(self, space: int, flush: MemoryOperation, nodes: Nodes, spans: Sequence[Span]) -> list[Span]:
        """The addresses at which something among some nodes takes on to the device what a flush of the host made
        available to the host: a submit, or a dependency from HOST_WRITE.

        Specification: "Host Write Ordering Guarantees"; appendix "Availability, Visibility, and Domain Operations".
        Rule: rules.md#a-late-host-write-needs-a-dependency-from-the-host.
        """
        if self.flushed(flush.node, HOST_WRITE, nodes):
            return list(spans)
        left = list(spans)
        for each in reversed(self._ranged.get(space, [])):
            if each.node <= flush.node or not left:
                break
            if each.node in nodes and each.takes_on(flush):
                left = subtract(left, each.spans)
        return subtract(spans, left)


def _node(operation: MemoryOperation) -> int:
    return operation.node
