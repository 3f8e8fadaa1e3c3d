"""Calls that make several objects, without those that nothing needs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from vkharness.reduction.paths import without_elements
from vkharness.spec._generated import HANDLES
from vkharness.spec.shapes import Member, members, signature
from vkharness.trace.calls import Block, Call

_MAKES = ("vkCreate", "vkAllocate")
"""Calls of which one object more or less changes nothing for the others. What a query returns stays whole."""


def narrowed(block: Block, needed: Collection[int]) -> Block:
    """A call that makes objects, without the objects that are not needed and what they are made of."""
    listed = signature(block.name) if isinstance(block, Call) and block.name.startswith(_MAKES) else None
    if listed is None or not isinstance(block, Call):
        return block
    for row in listed.params:
        made = block.args.get(row.name)
        if row.type in HANDLES and row.pointer and not row.const and isinstance(made, list):
            unneeded = [at for at, each in enumerate(made) if each not in needed]
            if unneeded and isinstance(row.length, str):
                return without_elements(block, [(block.index, row.name, at) for at in unneeded])
            if unneeded and isinstance(row.length, tuple) and len(row.length) == 3 and row.length[0] == "path":
                return _fewer(block, listed.params, row, str(row.length[1]), str(row.length[2]), unneeded)
    return block


def _fewer(
    call: Call, rows: Sequence[Member], row: Member, parameter: str, count: str, unneeded: Sequence[int]
) -> Call:
    """The call whose number of objects is the member `count` of the struct `parameter`."""
    info: dict[str, Any] = dict(call.args[parameter])
    kind = next(each.type for each in rows if each.name == parameter)
    for each in members(kind) or ():
        held = info.get(each.name)
        if each.length == count and isinstance(held, list):
            info[each.name] = _kept(held, unneeded)
    info[count] -= len(unneeded)
    return replace(call, args={**call.args, parameter: info, row.name: _kept(call.args[row.name], unneeded)})


def _kept(held: list[Any], unneeded: Sequence[int]) -> list[Any]:
    return [each for at, each in enumerate(held) if at not in unneeded]
