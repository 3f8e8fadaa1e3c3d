"""The execution dependency order: what must be complete before what, and the rule that says so.

Theory of operation
===================

syncval keeps what the most recent accesses left behind. The model keeps everything. It is written to be checked
against the specification's text, and it shares no rule with syncval, so that their agreement is evidence.

The order is a graph. Its **nodes** are

* an operation of a command in some pipeline stages (`ACTION`),
* the two sides of each dependency, its first scope (`SRC`) and its second scope (`DST`),
* a layout transition between two such sides (`TRANSITION`),
* what happens to events, semaphores and fences, each submit, each step of the host, each present.

An **edge** says that one node must be complete before another begins. Each rule of the specification is a function
that adds edges and names itself, so that a path through the graph reads as an argument. "A copies, then a barrier,
then B" becomes: the operation of A is in the barrier's first scope; the first scope is before the second; the
operation of B is in the second scope.

Chains need no rule of their own. When the second scope of one barrier and the first scope of the next one have a
stage in common, the rule for first scopes adds an edge from the one to the other: earlier second scopes are part of
what a stage has been through.

Why an integer is a set of nodes
--------------------------------
Nodes are added in an order in which every edge
leads forward. What is before a new node is therefore known at once: the union of what is before the nodes that its
edges come from. A set of nodes is a Python integer with one bit a node, and the union is one `|`. Nothing has to be
recomputed, and "is A before B?" is one shift. The cost is quadratic in bits, with a very small constant.

Edges that hold by region
-------------------------
A framebuffer-local dependency orders two operations in the same
region of the framebuffer and nowhere else. These edges are in a second order, `by_region`, that contains the first.
A dependency before it or after it that holds everywhere is about all regions, so that the chain of the two holds
everywhere. Only a chain of nothing but framebuffer-local dependencies holds by region. `across` has what is before a
node by a dependency that holds everywhere; that something is in a scope is no such dependency.

A worked example
----------------
A copy A, a barrier from copies to dispatches, a dispatch B; and a blit C that the barrier does not name.

>>> order, here = ExecutionOrder(), Place(1, "an example", None)
>>> a = order.add(Node(ACTION, "A", here))
>>> source = order.add(Node(SRC, "first scope", here), (order.set_of(a), "A is in the first scope"))
>>> destination = order.add(Node(DST, "second scope", here), (order.set_of(source), "first before second"))
>>> b = order.add(Node(ACTION, "B", here), (order.set_of(destination), "B is in the second scope"))
>>> c = order.add(Node(ACTION, "C", here))
>>> order.precedes(a, b), order.precedes(a, c)
(True, False)
>>> [order.nodes[each].label for each in order.path(a, b)]
['A', 'first scope', 'second scope', 'B']
>>> [edge.rule for edge in order.into(b)]
['B is in the second scope']
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from harness.findings import Place
from harness.model.stages import indices
from harness.trace.work_budget import spend

ACTION, TRANSITION, SRC, DST, EVENT, QUERY, SIGNAL, WAIT, FENCE, SUBMIT, HOST, PRESENT = (
    "action",
    "transition",
    "source",
    "destination",
    "event",
    "query",
    "signal",
    "wait",
    "fence",
    "submit",
    "host",
    "present",
)
"""The kinds of nodes."""

IN_SCOPES = (ACTION, SRC, TRANSITION)
"""The kinds of nodes to which edges lead because something is in a scope. Other edges are dependencies."""
BY_REGION = "from the first scope to the second, by region"
"""The rule of framebuffer-local dependencies: its edges hold inside each region of the framebuffer."""
IN_ORDER = "signals are in order"
THROUGH = "what is before an automatic transition is before all second scopes around it"
IN_ALL_COMMANDS = "ALL_COMMANDS has what no stage performs"


@dataclass(frozen=True, slots=True)
class Node:
    """One element of the order: an operation of a command in some stages, or one side of a dependency."""

    kind: str
    label: str
    place: Place
    stages: int = 0
    """The stages of an operation; for one side of a dependency, its synchronization scope."""


@dataclass(frozen=True, slots=True)
class NodeSet:
    """A set of nodes, and with it all that is before them: everywhere, and by region of the framebuffer."""

    direct: int = 0
    closed: int = 0
    by_region: int = 0
    across: int = 0
    """Those before them by some dependency that holds everywhere."""

    def __or__(self, other: NodeSet) -> NodeSet:
        return NodeSet(
            self.direct | other.direct,
            self.closed | other.closed,
            self.by_region | other.by_region,
            self.across | other.across,
        )

    def __and__(self, other: NodeSet) -> NodeSet:
        return NodeSet(
            self.direct & other.direct,
            self.closed & other.closed,
            self.by_region & other.by_region,
            self.across & other.across,
        )

    def __bool__(self) -> bool:
        return bool(self.closed)


NOTHING = NodeSet()


@dataclass(frozen=True, slots=True)
class Edge:
    """States by which rule the node `first` must be complete before the node `second` begins."""

    first: int
    second: int
    rule: str


NODES_A_UNIT = 80
"""Of the nodes before a new one, whose sets grow by a bit for each: how many cost a unit of the work budget."""


class OrderTooLargeError(Exception):
    """The order has reached the number of nodes that its maker allows."""


class ExecutionOrder:
    """A partial order that grows. `add` costs as many big-integer operations as node sets are given to it.

    `add` raises `OrderTooLargeError` for more than `limit` nodes.
    """

    def __init__(self, limit: int = sys.maxsize) -> None:
        self._limit = limit
        self.nodes: list[Node] = []
        self.before: list[int] = []
        """For each node, the set of all nodes that are before it."""
        self.by_region: list[int] = []
        """For each node, the set of all nodes that are before it in the same region of the framebuffer."""
        self.direct: list[int] = []
        """For each node, the set of nodes from which an edge leads to it. For an operation they are the second scopes
        that hold it."""
        self.across: list[int] = []
        """For each node, the set of nodes before it by some dependency that holds everywhere."""
        self._incoming: list[tuple[tuple[int, str], ...]] = []

    def add(self, node: Node, *after: tuple[NodeSet, str]) -> int:
        """Adds a node after all nodes of the given sets, each with the rule that says so. Returns the node's index."""
        if len(self.nodes) >= self._limit:
            raise OrderTooLargeError
        spend(len(self.nodes) // NODES_A_UNIT, "steps of the model")
        direct = closed = by_region = across = 0
        for nodes, rule in after:
            direct |= nodes.direct
            by_region |= nodes.by_region
            if rule == BY_REGION:
                closed |= nodes.across
                across |= nodes.across
            elif node.kind in IN_SCOPES:
                closed |= nodes.closed
                across |= nodes.across
            else:
                closed |= nodes.by_region
                across |= nodes.by_region
        self.nodes.append(node)
        self.before.append(closed)
        self.by_region.append(by_region)
        self.across.append(across)
        self.direct.append(direct)
        self._incoming.append(tuple((nodes.direct, rule) for nodes, rule in after if nodes.direct))
        return len(self.nodes) - 1

    def set_of(self, node: int) -> NodeSet:
        """The set of one node, with all that is before it."""
        here = 1 << node
        return NodeSet(here, self.before[node] | here, self.by_region[node] | here, self.across[node])

    def closure(self, by_region: bool) -> list[int]:
        """For each node, the set of nodes before it: in the same region of the framebuffer, or everywhere."""
        return self.by_region if by_region else self.before

    def precedes(self, first: int, second: int, by_region: bool = False) -> bool:
        """Whether `first` must be complete before `second` begins: everywhere, or within each region of the
        framebuffer."""
        return bool(self.closure(by_region)[second] >> first & 1)

    def into(self, node: int, among: int = -1) -> Iterator[Edge]:
        """The edges that lead into a node from those of a set: bit i is node i, and -1 is all."""
        for direct, rule in self._incoming[node]:
            for first in indices(direct & among):
                yield Edge(first, node, rule)

    def edges(self) -> Iterator[Edge]:
        """Every edge. There may be quadratically many."""
        for node in range(len(self.nodes)):
            yield from self.into(node)

    def path(self, first: int, second: int, by_region: bool = True) -> list[int]:
        """A shortest chain of nodes from the first to the second, both included; empty when there is none.

        With `by_region` false there is one only if the order holds everywhere.
        """
        if not self.precedes(first, second, by_region):
            return []
        known: dict[int, int] = {second: second}
        row = [second]
        while row:
            following: list[int] = []
            for node in row:
                for edge in self.into(node):
                    at = edge.first
                    if at in known or not (at == first or self.precedes(first, at, True)):
                        continue
                    known[at] = node
                    if at == first:
                        return list(_follow(known, first, second))
                    following.append(at)
            row = following
        return []

    def chain(self, first: int, second: int) -> list[int]:
        """The path from the first to the second node. Without one, the path to the last node before the second that is
        after the first; only the first when nothing is."""
        whole = self.path(first, second)
        if whole:
            return whole
        after = [node for node in range(first + 1, second) if self.precedes(first, node)]
        return self.path(first, after[-1]) if after else [first]


def _follow(known: dict[int, int], first: int, second: int) -> Iterator[int]:
    at = first
    while at != second:
        yield at
        at = known[at]
    yield second
