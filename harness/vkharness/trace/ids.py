"""Ids of the objects of a trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.spec.shapes import signature
from vkharness.trace.calls import Block, Call

MAKES = ("vkCreate", "vkAllocate", "vkGetDevice", "vkEnumeratePhysicalDevices", "vkGetSwapchainImages")


def fresh_id(blocks: Iterable[Block]) -> int:
    """An id that no object of a trace has: one above the highest that a call gave back."""
    highest = 0
    for block in blocks:
        if isinstance(block, Call) and block.name.startswith(MAKES):
            found = signature(block.name)
            for member in found.params if found is not None else ():
                if member.pointer and not member.const:
                    highest = max(highest, *_numbers(block.args.get(member.name)), 0)
    return highest + 1


def _numbers(value: Any) -> list[int]:
    several = value if isinstance(value, list) else [value]
    return [each for each in several if type(each) is int]
