"""Those accesses of an entry point that a dispatch can narrow, with the expressions that this needs and no others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vkharness.shader.accesses import ShaderAccesses, Site
from vkharness.shader.reach import LoadedPlace, ShaderTouch, loaded_place
from vkharness.shader.values import CONSTANT, LOADED, PUSH, ValueNode, arguments

MOST_NODES = 1024
"""The most expressions that are evaluated for a dispatch. An entry point that needs more is not narrowed."""


class Narrowing(NamedTuple):
    """The accesses of an entry point, one by one."""

    touches: dict[int, tuple[ShaderTouch, ...]]
    """By id of the variable. A variable that is not here is known by its ranges alone."""
    addressed: tuple[ShaderTouch, ...] = ()
    nodes: tuple[ValueNode, ...] = ()
    varies: bool = False
    pushed: tuple[tuple[int, int], ...] = ()
    loaded: tuple[LoadedPlace, ...] = ()


def narrowing(accesses: ShaderAccesses, nodes: Sequence[ValueNode]) -> Narrowing:
    """The touches of each variable. Where they are too many, accesses through addresses are not modelled."""
    every = [touch for touches in accesses.touches.values() for touch in touches]
    needed = _needed(every, nodes)
    if accesses.too_many or len(needed) > MOST_NODES:
        if any(touch.base is not None for touch in every):
            accesses.unmodelled["PhysicalStorageBuffer"] = None
        return Narrowing({})
    numbers = {old: new for new, old in enumerate(needed)}
    kept = tuple(
        nodes[old]._replace(args=tuple(numbers[each] for each in nodes[old].args))
        if arguments(nodes[old])
        else nodes[old]
        for old in needed
    )
    renamed = {
        variable: tuple(_renamed(touch, numbers, variable, sites) for touch, sites in touches.items())
        for variable, touches in accesses.touches.items()
    }
    pushed = sorted({(node.args[0], node.width // 8) for node in kept if node.op == PUSH})
    loaded = sorted({loaded_place(node) for node in kept if node.op == LOADED})
    return Narrowing(
        {variable: touches for variable, touches in renamed.items() if variable >= 0},
        tuple(touch for variable, touches in renamed.items() if variable < 0 for touch in touches),
        kept,
        any(node.op != CONSTANT for node in kept) or any(touch.varies for touch in every),
        tuple(pushed),
        tuple(loaded),
    )


def _needed(touches: Iterable[ShaderTouch], nodes: Sequence[ValueNode]) -> list[int]:
    """The numbers of all nodes that touches depend on, in order."""
    waiting = {each for touch in touches for each in _named(touch)}
    found: set[int] = set()
    while waiting:
        node = waiting.pop()
        found.add(node)
        waiting.update(each for each in arguments(nodes[node]) if each not in found)
    return sorted(found)


def _named(touch: ShaderTouch) -> set[int]:
    named = {touch.chosen, touch.base, *(node for node, _, _ in touch.terms), *(node for node, _ in touch.conditions)}
    return {node for node in named if node is not None}


def _renamed(touch: ShaderTouch, numbers: dict[int, int], variable: int, sites: set[Site]) -> ShaderTouch:
    return touch._replace(
        sites=tuple((*site, variable) for site in sorted(sites)),
        chosen=None if touch.chosen is None else numbers[touch.chosen],
        base=None if touch.base is None else numbers[touch.base],
        terms=tuple((None if node is None else numbers[node], stride, count) for node, stride, count in touch.terms),
        conditions=tuple((numbers[node], wanted) for node, wanted in touch.conditions),
    )
