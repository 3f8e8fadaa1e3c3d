"""Values of a call that today's registry does not have: structs in pNext chains, enumerants and bits of flags. Structs
that nobody here follows are among them.

Nobody can say what such a value changes, so that a verdict about its call is `unknown`. The check of a command follows
from the registry's tables; it is compiled when the command is first met. Members that may hold anything, since others
say whether they are used, are passed over.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.spec.enums import VkStructureType
from vkharness.trace.chain import links
from vkharness.trace.unfollowed_structs import UNFOLLOWED

Note = Callable[[str], None]
"""Hears of a value in words."""
Check = Callable[[dict[str, Any], Note], None]

OF_LOADER = (VkStructureType.LOADER_INSTANCE_CREATE_INFO, VkStructureType.LOADER_DEVICE_CREATE_INFO)
"""Structs between the loader and its layers. The registry reserves their numbers."""
_NORMAL = ("VkClearColorValue", "VkClearValue", "VkAllocationCallbacks")
"""Types that have a form of their own, or none."""
_INCOMPLETE = (AttributeError, KeyError, TypeError)
"""Exceptions that a check raises where members are missing. The handlers of the call meet the same fault."""


def unknown_values(name: str, args: dict[str, Any]) -> str:
    """The first value that the registry does not have, or struct that is not followed; empty where there is none."""
    check = _command_check(name)
    if check is None:
        return ""
    found: list[str] = []
    with suppress(*_INCOMPLETE):
        check(args, found.append)
    return found[0] if found else ""


def _unknown(member: str, value: int, kind: str) -> str:
    shown = hex(value) if kind in tables.FLAG_WIDTH else str(value)
    return f"{member}: {shown} is no {kind} of today's registry"


@cache
def _command_check(name: str) -> Check | None:
    command = tables.COMMANDS.get(name)
    if command is None:
        return None
    return _compiled(name, tuple(member for member in command[1] if member[3] or not member[2]))


class _Checks(dict[str, "Check | None"]):
    """Struct or union to its check. Structs may hold themselves, so that a check is looked up when it runs."""

    def __missing__(self, name: str) -> Check | None:
        made = self[name] = _compiled(name, tables.STRUCTS[name])
        return made


_CHECKS = _Checks()


def _check_chain(info: dict[str, Any], note: Note) -> None:
    for link in links(info):
        kind = link["sType"]
        name = tables.STYPES.get(kind)
        check = None if name is None else _CHECKS[name]
        if name in UNFOLLOWED:
            note(f"{name} is not followed: {UNFOLLOWED[name]}")
        elif check is not None:
            check({**link, "pNext": None}, note)
        elif name is None and kind not in OF_LOADER:
            note(_unknown("pNext", kind, "VkStructureType"))


def _check_each(check: Check | None, value: Any, note: Note) -> None:
    if check is None:
        return
    if type(value) is list:
        for one in value:
            _check_each(check, one, note)
    elif value is not None:
        check(value, note)


def _check_numbers(known: frozenset[int], value: Any, note: Note, member: str, kind: str) -> None:
    for one in value if type(value) is list else () if value is None else (value,):
        if type(one) is list:
            _check_numbers(known, one, note, member, kind)
        elif one not in known:
            note(_unknown(member, one, kind))


def _check_masks(unknown: int, value: Any, note: Note, member: str, kind: str) -> None:
    for one in value if type(value) is list else () if value is None else (value,):
        if one & unknown:
            note(_unknown(member, one & unknown, kind))


def _compiled(name: str, members: tuple[tables.Member, ...]) -> Check | None:
    space: dict[str, Any] = {"checks": _CHECKS, "chain": _check_chain, "each": _check_each}
    space |= {"numbers": _check_numbers, "masks": _check_masks, "said": _unknown}
    lines: list[str] = []
    for member in members:
        held = _lines_of(member, space)
        if held and name in tables.UNIONS:  # which has some of its members
            lines += [f"if {member[0]!r} in a:", *(f"    {line}" for line in held)]
        else:
            lines += held
    if not lines:
        return None
    body = "".join(f"    {line}\n" for line in lines)
    exec(compile(f"def check(a, n):\n{body}", f"<known values of {name}>", "exec"), space)
    check: Check = space["check"]
    return check


def _lines_of(member: tables.Member, space: dict[str, Any]) -> list[str]:
    """Python lines that look at one member; `a` is the struct or the arguments, `n` hears of what is unknown."""
    name, base, stars, _const, _length, dims, _terminated, bits, _selector, unchecked = member
    held = f"a[{name!r}]"
    if name == "pNext":
        return [f"if {held} is not None: chain(a, n)"]
    if base in tables.STRUCTS and base not in _NORMAL:
        return [f"if {held} is not None: each(checks[{base!r}], {held}, n)"]
    if base in tables.FLAG_WIDTH and not bits:
        unknown = ~_known_bits(base) & (1 << tables.FLAG_WIDTH[base]) - 1
        if stars or dims:
            return [f"masks({unknown}, {held}, n, {name!r}, {base!r})"]
        return [f"if {held} & {unknown}: n(said({name!r}, {held} & {unknown}, {base!r}))"]
    if base in tables.ENUMS and base not in tables.BASETYPES and not unchecked and name != "sType":
        known = f"known_{base}"
        space[known] = _known_numbers(base)
        if stars or dims:
            return [f"numbers({known}, {held}, n, {name!r}, {base!r})"]
        return [f"if {held} not in {known}: n(said({name!r}, {held}, {base!r}))"]
    return []


@cache
def _known_numbers(base: str) -> frozenset[int]:
    return frozenset(tables.ENUMS[base].values())


@cache
def _known_bits(base: str) -> int:
    known = 0
    for value in tables.BITMASKS.get(base, {}).values():
        known |= value & (1 << tables.FLAG_WIDTH[base]) - 1
    return known
