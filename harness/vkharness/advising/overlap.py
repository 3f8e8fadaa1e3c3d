"""Commands that a dependency serializes: they could overlap without it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from vkharness.model.node_numbers import NodeNumbers
from vkharness.model.order import ACTION, ExecutionOrder
from vkharness.report.advice import Serialized
from vkharness.trace.edits import EditedTrace

MOST_LOOKED_AT = 64
"""Of how many later operations the earlier ones are told by name."""


def serialized(trace: EditedTrace, before: ExecutionOrder, after: ExecutionOrder) -> Serialized | None:
    """The pairs of operations that are in order before a change of a trace, and in none after it; `trace` is the one
    before. None where the two orders have different operations."""
    old, new = _actions(before), _actions(after)
    told = [
        [(order.nodes[each].place.command, order.nodes[each].stages) for each in actions]
        for order, actions in ((before, old), (after, new))
    ]
    if told[0] != told[1]:
        return None
    old_set, new_set = NodeNumbers.of(old), NodeNumbers.of(new)
    lost: list[tuple[int, int]] = []
    pairs = 0
    for number, (one, other) in enumerate(zip(old, new, strict=True)):
        many = len(before.before[one] & old_set) - len(after.before[other] & new_set)
        if many > 0:
            pairs += many
            lost.append((number, many))
    old_at = {node: number for number, node in enumerate(old)}
    new_at = {node: number for number, node in enumerate(new)}
    earlier: set[int] = set()
    for number, _ in islice(lost, MOST_LOOKED_AT):
        was = {old_at[each] for each in before.before[old[number]] & old_set}
        earlier |= was - {new_at[each] for each in after.before[new[number]] & new_set}
    return Serialized(
        pairs, _places(trace, before, old, sorted(earlier)), _places(trace, before, old, [at for at, _ in lost])
    )


def _actions(order: ExecutionOrder) -> list[int]:
    return [number for number, node in enumerate(order.nodes) if node.kind == ACTION]


def _places(
    trace: EditedTrace, order: ExecutionOrder, actions: Sequence[int], numbers: Sequence[int]
) -> tuple[tuple[str, int], ...]:
    """(command, call) of operations, each command once."""
    places = [order.nodes[actions[number]].place for number in numbers]
    return tuple(
        dict.fromkeys((each.command, trace.origin(each.call)) for each in places if 0 < each.call <= len(trace.origins))
    )
