"""Chooses the part of a partial order to draw: all of a short order, and the surroundings of a conflict in
a long one."""

from __future__ import annotations

from collections.abc import Iterator
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


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The part to draw: groups in stream order with their nodes, edges that others do not imply, and the number of
    groups left out."""

    groups: dict[Group, list[int]]
    edges: list[Edge]
    left_out: int


def group_of(order: ExecutionOrder, node: int) -> Group:
    """The box of a node."""
    place = order.nodes[node].place
    alone = 0 if order.nodes[node].kind in OF_COMMANDS and place.call else node + 1
    return (place.queue or 0, place.submit or 0, place.batch or 0, place.position or 0, place.call, alone)


def part_of(opinion: Opinion, conflict: Conflict | PairExplanation | None, limit: int) -> Neighbourhood:
    """At most about `limit` groups, nearest in the stream to the two ends of the conflict, or of the pair that is in
    order. These are always among them. Without a pair these are the groups nearest to the beginning.
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
        ends = [names.index(group_of(order, use.node)) for use in uses] or [0]
        nearest = sorted(range(len(names)), key=lambda at: (min(abs(at - end) for end in ends), at))
        chosen = [names[at] for at in sorted(nearest[:limit])]
    kept = {name: groups[name] for name in chosen}
    return Neighbourhood(
        kept, list(_reduced(order, [node for nodes in kept.values() for node in nodes])), len(names) - len(kept)
    )


def _reduced(order: ExecutionOrder, nodes: list[int]) -> Iterator[Edge]:
    """Edges between these nodes, without those that a chain of others implies."""
    inside = NodeNumbers.of(nodes)
    for node in nodes:
        implied = EMPTY
        for last in reversed(order.before[node] & inside):
            if last not in implied:  # what is before another one implies nothing that this one does not
                implied |= order.before[last]
        shown = inside - implied
        yield from sorted(order.into(node, shown), key=lambda each: -each.first)
