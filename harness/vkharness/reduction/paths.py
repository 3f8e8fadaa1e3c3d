"""The droppable pieces of a trace, and the removal of elements from arrays in the arguments of a call.

A `Path` is the index of a block, followed by the way to an element of an array in its arguments: member names, and
positions in arrays. `(12,)` is block 12, `(12, "pSubmits", 0, "pWaitSemaphores", 1)` one wait of a submit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkStructureType
from vkharness.spec.shapes import Member, members, signature
from vkharness.trace.calls import Call
from vkharness.trace.chain import rebuilt

Path = tuple[int | str, ...]

NULLED = frozenset({"fence"})
"""Parameters that become VK_NULL_HANDLE when their path is dropped."""

DESCRIPTORS = ("pDescriptorWrites", "pDescriptorCopies")
"""Arrays of vkUpdateDescriptorSets."""

_VALUES_OF = {"pWaitSemaphores": "pWaitSemaphoreValues", "pSignalSemaphores": "pSignalSemaphoreValues"}
"""Semaphores of VkSubmitInfo to their values in VkTimelineSemaphoreSubmitInfo, which are counted apart."""


def without_elements(call: Call, paths: Iterable[Path]) -> Call:
    """The call without the elements at these paths, of which each begins with the index of the call's block.

    Counts follow, and so do arrays that are counted by the same member.
    """
    listed = signature(call.name)
    inner = [path[1:] for path in paths]
    if not inner or listed is None:
        return call
    return replace(call, args=_without(call.args, listed.params, inner))


def _without(values: Mapping[str, Any], rows: Sequence[Member], paths: Sequence[Path]) -> dict[str, Any]:
    """A struct, or the arguments of a call, without the elements at `paths`."""
    made = dict(values)
    types = {row.name: row for row in rows}
    for name in dict.fromkeys(path[0] for path in paths):
        assert isinstance(name, str)
        below = [path[1:] for path in paths if path[0] == name]
        value, row = values[name], types[name]
        if isinstance(value, list):
            removed = {path[0] for path in below if len(path) == 1}
            nested = [path for path in below if len(path) > 1]
            elements = [
                _inside(each, row, [path[1:] for path in nested if path[0] == at]) for at, each in enumerate(value)
            ]
            _set_elements(made, rows, row, elements, removed)
        elif not below[0]:
            made[name] = 0
        else:
            made[name] = _inside(value, row, below)
    return made


def _inside(value: Any, row: Member, paths: Sequence[Path]) -> Any:
    if not paths:
        return value
    rows = members(tables.TYPE_ALIASES.get(row.type, row.type))
    assert rows is not None and isinstance(value, dict)
    return _without(value, rows, paths)


def _set_elements(
    made: dict[str, Any], rows: Sequence[Member], row: Member, elements: list[Any], removed: set[Any]
) -> None:
    """Puts an array in its place without what is removed; the arrays that share its count lose the same elements."""
    made[row.name] = [each for at, each in enumerate(elements) if at not in removed]
    if not removed:
        return
    if isinstance(row.length, str) and row.length in made:
        made[row.length] = len(made[row.name])
    for other in rows:
        held = made.get(other.name)
        if other.name != row.name and other.length == row.length and row.length and isinstance(held, list):
            made[other.name] = [each for at, each in enumerate(held) if at not in removed]
    values = _VALUES_OF.get(row.name)
    if values and made.get("pNext"):
        made["pNext"] = rebuilt(made, lambda link: _with_fewer_values(link, values, removed))


def _with_fewer_values(link: dict[str, Any], name: str, removed: set[Any]) -> dict[str, Any]:
    if link.get("sType") != VkStructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO or not link.get(name):
        return link
    kept = [each for at, each in enumerate(link[name]) if at not in removed]
    return {**link, name: kept, name[1].lower() + name[2:-1] + "Count": len(kept)}


def element(call: Call, path: Path) -> Any:
    """Returns the value at a path of a call's arguments."""
    value: Any = call.args
    for step in path[1:]:
        value = value[step]
    return value
