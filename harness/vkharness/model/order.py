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

Sets of nodes
-------------
Nodes are added in an order in which every edge
leads forward. What is before a new node is therefore known at once: the union of what is before the nodes that its
edges come from. Nothing has to be recomputed, and "is A before B?" is one look into a set. Sets share what they have in
common (`node_numbers`), so that a node costs about the same late as early.

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

from collections.abc import Iterator
from dataclasses import dataclass

from vkharness.findings import Place
from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.trace.work_budget import spend

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
MEETING = "a transition is after the first scopes"
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

    direct: NodeNumbers = EMPTY
    closed: NodeNumbers = EMPTY
    by_region: NodeNumbers = EMPTY
    across: NodeNumbers = EMPTY
    """Those before them by some dependency that holds everywhere."""

    def __or__(self, other: NodeSet) -> NodeSet:
        if self is NOTHING or other is NOTHING:
            return other if self is NOTHING else self
        closed = self.closed | other.closed
        alike = self.is_everywhere and other.is_everywhere
        by_region = closed if alike else self.by_region | other.by_region
        return NodeSet(self.direct | other.direct, closed, by_region, self.across | other.across)

    @property
    def is_everywhere(self) -> bool:
        """Whether one set says what is before them everywhere and by region, as most often."""
        return self.closed is self.by_region

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


A_NODE = 80
"""Units of the work budget that a node costs."""


class ExecutionOrder:
    """A partial order that grows. `add` costs as many unions of sets as node sets are given to it.

    `add` raises `OverBudget` when the units of work are used up.
    """

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.before: list[NodeNumbers] = []
        """For each node, the set of all nodes that are before it."""
        self.by_region: list[NodeNumbers] = []
        """For each node, the set of all nodes that are before it in the same region of the framebuffer."""
        self.direct: list[NodeNumbers] = []
        """For each node, the set of nodes from which an edge leads to it. For an operation they are the second scopes
        that hold it."""
        self.across: list[NodeNumbers] = []
        """For each node, the set of nodes before it by some dependency that holds everywhere."""
        self._incoming: list[tuple[tuple[NodeNumbers, str], ...]] = []

    def add(self, node: Node, *after: tuple[NodeSet, str]) -> int:
        """Adds a node after all nodes of the given sets, each with the rule that says so. Returns the node's index."""
        spend(A_NODE, "steps of the second judge")
        direct = closed = by_region = across = EMPTY
        for nodes, rule in after:
            direct |= nodes.direct
            in_scope = node.kind in IN_SCOPES and rule != BY_REGION
            everywhere = nodes.across if rule == BY_REGION else nodes.closed if in_scope else nodes.by_region
            alike = everywhere is nodes.by_region and closed is by_region
            by_region |= nodes.by_region
            closed = by_region if alike else closed | everywhere
            across |= nodes.across if in_scope else everywhere
        self.nodes.append(node)
        self.before.append(closed)
        self.by_region.append(by_region)
        self.across.append(across)
        self.direct.append(direct)
        self._incoming.append(tuple((nodes.direct, rule) for nodes, rule in after if nodes.direct))
        return len(self.nodes) - 1

    def set_of(self, node: int) -> NodeSet:
        """The set of one node, with all that is before it."""
        here = NodeNumbers.one(node)
        before, by_region = self.before[node], self.by_region[node]
        closed = before | here
        return NodeSet(here, closed, closed if by_region is before else by_region | here, self.across[node])

    def closure(self, by_region: bool) -> list[NodeNumbers]:
        """For each node, the set of nodes before it: in the same region of the framebuffer, or everywhere."""
        return self.by_region if by_region else self.before

    def precedes(self, first: int, second: int, by_region: bool = False) -> bool:
        """Whether `first` must be complete before `second` begins: everywhere, or within each region of the
        framebuffer."""
        return first in self.closure(by_region)[second]

    def into(self, node: int, among: NodeNumbers | None = None) -> Iterator[Edge]:
        """The edges that lead into a node, from all nodes or from these alone."""
        for direct, rule in self._incoming[node]:
            for first in direct if among is None else direct & among:
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
        unseen, row = self.closure(True)[second], [second]
        while row:
            following: list[int] = []
            for node in row:
                for direct, _ in self._incoming[node]:
                    fresh = direct & unseen  # each node is looked at once, however many edges lead from it
                    unseen = unseen - fresh if fresh else unseen
                    for at in fresh:
                        if at != first and not self.precedes(first, at, True):
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
