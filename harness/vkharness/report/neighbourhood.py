"""Chooses the part of a partial order to draw: all of a short order, and the surroundings of a conflict in
a long one."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from vkharness.model import Conflict, Opinion
from vkharness.model.explanation import PairExplanation
from vkharness.model.node_numbers import EMPTY, NodeNumbers
from vkharness.model.order import ACTION, DST, EVENT, QUERY, SRC, TRANSITION, Edge, ExecutionOrder

Group = tuple[int, int, int, int, int, int]
"""The key of one box, an execution of a command: queue, submit, batch, position, call, node.

A node that belongs to no recorded command has a box of its own, and its number is the last part. Otherwise that is 0.
"""
OF_COMMANDS = (ACTION, SRC, DST, TRANSITION, EVENT, QUERY)
"""Kinds of nodes of which one command may have several."""
MOST_NODES = 64
"""Nodes of one box. A barrier with more parts is no picture, and edges may be as many as the pairs of nodes."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The part to draw: groups in stream order with their nodes, edges that others do not imply, and the numbers of
    groups, and of nodes in the groups drawn, that are left out."""

    groups: dict[Group, list[int]]
    edges: list[Edge]
    left_out: int
    nodes_left_out: int


def group_of(order: ExecutionOrder, node: int) -> Group:
    """The box of a node."""
    place = order.nodes[node].place
    alone = 0 if order.nodes[node].kind in OF_COMMANDS and place.call else node + 1
    return (place.queue or 0, place.submit or 0, place.batch or 0, place.position or 0, place.call, alone)


def part_of(
    opinion: Opinion, conflict: Conflict | PairExplanation | None, limit: int, calls: Container[int] = ()
) -> Neighbourhood:
    """At most about `limit` groups: the two ends of the conflict, or of the pair that is in order, then those of
    `calls`, then the nearest in the stream to the ends. Without a pair these are the groups nearest to the beginning.
    """
    order = opinion.order
    groups: dict[Group, list[int]] = {}
    for node in range(len(order.nodes)):
        groups.setdefault(group_of(order, node), []).append(node)
    names = list(groups)
    if len(names) <= limit:
        chosen = names
    else:
        uses = () if conflict is None else (conflict.prior, conflict.current)
        places = [names.index(group_of(order, use.node)) for use in uses] or [0]
        away = [min(abs(at - place) for place in places) for at in range(len(names))]
        nearest = sorted(range(len(names)), key=lambda at: (away[at] > 0, names[at][4] not in calls, away[at], at))
        chosen = [names[at] for at in sorted(nearest[:limit])]
    ends = set() if conflict is None else {conflict.prior.node, conflict.current.node}
    kept = {name: _few(groups[name], ends) for name in chosen}
    drawn = [node for nodes in kept.values() for node in nodes]
    hidden = sum(len(groups[name]) for name in chosen) - len(drawn)
    return Neighbourhood(kept, list(_reduced(order, drawn)), len(names) - len(kept), hidden)


def _few(nodes: list[int], ends: set[int]) -> list[int]:
    """The nodes of a box that are drawn: the first ones, and the ends of a pair."""
    if len(nodes) <= MOST_NODES:
        return nodes
    return sorted({*nodes[:MOST_NODES], *ends.intersection(nodes)})


def _reduced(order: ExecutionOrder, nodes: list[int]) -> Iterator[Edge]:
    """Edges between these nodes, without those that a chain of others implies."""
    inside = NodeNumbers.of(nodes)
    for node in nodes:
        implied = EMPTY
        left = order.before[node] & inside
        while left:  # what is before another one implies nothing that this one does not
            last = next(reversed(left))
            implied |= order.before[last]
            left = left - order.before[last] - NodeNumbers.one(last)
        shown = inside - implied
        yield from sorted(order.into(node, shown), key=lambda each: -each.first)
