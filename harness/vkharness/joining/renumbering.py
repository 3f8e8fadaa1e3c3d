"""A trace with other ids, so that it can stand beside another trace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from vkharness.findings import UserError
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call
from vkharness.trace.references import references
from vkharness.trace.rewriting import with_handles

LAST_ID = 1 << 47
"""Ids that vkharness makes up begin above."""
NAMES = {
    "vkSetDebugUtilsObjectNameEXT": ("pNameInfo", "objectHandle"),
    "vkSetDebugUtilsObjectTagEXT": ("pTagInfo", "objectHandle"),
    "vkDebugMarkerSetObjectNameEXT": ("pNameInfo", "object"),
    "vkDebugMarkerSetObjectTagEXT": ("pTagInfo", "object"),
}
"""Calls that name an object by a number of no type: the parameter, and the member in it."""


def last_id(blocks: Iterable[Block]) -> int:
    """The highest id of an object that a trace names."""
    highest = 0
    for block in blocks:
        if isinstance(block, Call):
            highest = max([highest, *(each.id for each in references(block))])
            highest = max(highest, _named(block))
        else:
            highest = max(highest, block.memory)
    return highest


def renumbered(blocks: Iterable[Block], ids: int, threads: int) -> list[Block]:
    """The blocks with `ids` added to the id of each object, and `threads` to the number of each thread.

    Raises `UserError` when ids would not be numbers of objects any more.
    """
    several = list(blocks)
    if last_id(several) + ids > LAST_ID:
        raise UserError("the two traces name objects by numbers that are too high to be joined")
    return [_renumbered(block, ids, threads) for block in several]


def _renumbered(block: Block, ids: int, threads: int) -> Block:
    if not isinstance(block, Call):
        return replace(block, memory=block.memory + ids)
    made = with_handles(block, lambda id, _made: id + ids)
    name = main_name(made.name)
    args = made.args
    if name in NAMES:
        key, member = NAMES[name]
        info: Any = args[key]
        if info and info.get(member):
            args = {**args, key: {**info, member: info[member] + ids}}
    return replace(made, args=args, thread=made.thread + threads)


def _named(call: Call) -> int:
    key, member = NAMES.get(main_name(call.name), ("", ""))
    info: Any = call.args.get(key)
    return int(info.get(member) or 0) if info else 0
