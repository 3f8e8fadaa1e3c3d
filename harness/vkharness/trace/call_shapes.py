"""Whether a call has the shape that C gives it: what the reader checks once, so that nobody after it must.

The codecs know the type of each single value. Here is what holds between values: a pointer that may not be null leads
somewhere, an array of fixed size has its elements, a union the member that its selector names, and a call that made
something says what. The source of each check follows from the registry's tables alone; it is compiled when the struct
or command is first met. Of a call that only asks (`only_asks`) nothing is judged, so it may lack anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.spec.command_classes import ANSWERED
from vkharness.spec.shapes import main_name
from vkharness.trace.lines import Corrupt
from vkharness.trace.unread_calls import only_asks

Check = Callable[[dict[str, Any]], None]

MOST_LINKS = 64
"""Structs of one pNext chain. Vulkan has fewer that extend any one struct."""
_NORMAL = ("VkClearColorValue", "VkClearValue")
"""Unions that the codecs give one form."""


def check_call(name: str, args: dict[str, Any], result: int | None) -> None:
    """Raises Corrupt, with the path to it, where the arguments of a call lack what its command needs."""
    if only_asks(name):
        return
    checks = _command_checks(name)
    if checks is None:
        return
    for_arguments, for_outputs = checks
    if for_arguments is not None:
        for_arguments(args)
    if for_outputs and (result is None or 0 <= result < 1 << 31):
        for key in for_outputs:
            if args[key] is None:
                raise Corrupt("the call does not say what it gave").inside("." + key)


def command_check(name: str) -> Check | None:
    """The check of a command's arguments, which raises Corrupt; None if they need none."""
    checks = None if only_asks(name) else _command_checks(name)
    return None if checks is None else checks[0]


@cache
def _command_checks(name: str) -> tuple[Check | None, tuple[str, ...]] | None:
    """The check of a command's arguments, None if they need none, and the parameters that it gives a value."""
    command = tables.COMMANDS.get(name) or tables.COMMANDS.get(tables.COMMAND_ALIASES.get(name, name))
    if command is None:
        return None
    needed = _needed(name) or _needed(tables.COMMAND_ALIASES.get(name, name))
    inputs = tuple(member for member in command[1] if member[3] or not member[2])
    outputs = (member for member in command[1] if member[2] and not member[3])
    is_answer = main_name(name) in ANSWERED
    given = tuple(
        member[0]
        for member in outputs
        if member[0] in needed
        and (member[1] in tables.HANDLES or (is_answer and _leads_to_values(member[1], member[4])))
    )
    return _compiled(name, inputs, needed), given


class _Checks(dict[str, "Check | None"]):
    """Struct or union to its check. Structs may hold themselves, so that a check is looked up when it runs."""

    def __missing__(self, name: str) -> Check | None:
        made = self[name] = _compiled(name, tables.STRUCTS[name], _needed(name))
        return made


_CHECKS = _Checks()


def _check_chain(link: Any) -> None:
    for _ in range(MOST_LINKS):
        if link is None:
            return
        name = tables.STYPES.get(link["sType"])
        check = None if name is None else _CHECKS[name]
        if check is not None:
            check({**link, "pNext": None})
        link = link["pNext"]
    raise Corrupt(f"a pNext chain of more than {MOST_LINKS} structs").inside(".pNext")


def _needed(name: str) -> frozenset[str]:
    return frozenset(tables.NEEDED.get(name, ()))


@cache
def _has_check(name: str) -> bool:
    """Whether anything can be wrong about a struct beyond its single values."""
    return any(_lines_of(member, _needed(name)) for member in tables.STRUCTS[name])


def _compiled(name: str, members: tuple[tables.Member, ...], needed: frozenset[str]) -> Check | None:
    lines: list[str] = []
    for member in members:
        held = _lines_of(member, needed)
        if held and name in tables.UNIONS:  # which has some of its members
            lines += [f"if {member[0]!r} in a:", *(f"    {line}" for line in held)]
        else:
            lines += held
    if not lines:
        return None
    body = "".join(f"    {line}\n" for line in lines)
    namespace: dict[str, Any] = {
        "Corrupt": Corrupt, "checks": _CHECKS, "chain": _check_chain, "each": _check_each, "union": _check_union,
        "array": _check_array,
    }  # fmt: skip
    exec(compile(f"def check(a):\n{body}", f"<shape of {name}>", "exec"), namespace)
    check: Check = namespace["check"]
    return check


def _lines_of(member: tables.Member, needed: frozenset[str]) -> list[str]:
    """Python lines that hold one member against the tables; `a` is the struct or the arguments."""
    name, base, stars, _const, length, dims, _terminated, _bits, selector, unchecked = member
    base = tables.TYPE_ALIASES.get(base, base)
    held = f"a[{name!r}]"
    if name == "pNext":
        return [f"if {held} is not None: chain({held})"]
    lines = []
    if name in needed and _leads_to_values(base, length):
        counted = _count(length)
        lines.append(f"if {held} is None{f' and {counted}' if counted else ''}: ")
        lines[-1] += f"raise Corrupt('a null pointer').inside('.{name}')"
    if dims and base not in ("char", "uint8_t"):
        return [*lines, f"array({held}, {dims}, {name!r})"]
    if base in tables.UNIONS and base not in _NORMAL and selector is not None and not stars and not unchecked:
        lines.append(f"union({base!r}, a[{selector!r}], {held}, {name!r})")
    if base in tables.STRUCTS and base not in _NORMAL and not _recursive(base) and _has_check(base):
        lines.append(f"if {held} is not None: each(checks[{base!r}], {held}, {name!r})")
    return lines


def _leads_to_values(base: str, length: tables.Length) -> bool:
    """Whether the codecs give a pointer to this type a value: not to bytes, which may lie elsewhere, nor to types of
    window systems."""
    if isinstance(length, tuple) and length[0] == "bytes":
        return False
    tabled = (tables.STRUCTS, tables.HANDLES, tables.ENUMS, tables.FLAG_WIDTH, tables.BASETYPES)
    numbers = ("float", "double", "uint32_t", "int32_t", "uint64_t", "int64_t", "uint8_t", "uint16_t", "size_t")
    return (base in numbers or any(base in table for table in tabled)) and base != "VkAllocationCallbacks"


def _count(length: tables.Length) -> str:
    """How many elements there are, as Python; empty where there is always one."""
    if isinstance(length, str):
        return f"a[{length!r}]"
    if not isinstance(length, tuple):
        return ""
    if length[0] == "path" and len(length) == 3:
        return f"a[{length[1]!r}] is not None and a[{length[1]!r}][{length[2]!r}]"
    return f"a[{length[1]!r}]"


def _recursive(base: str) -> bool:
    """Whether a struct may hold itself: none of the registry does but through pNext, or by pointers to pointers."""
    return any(member[1] == base for member in tables.STRUCTS[base])


def _check_each(check: Check, value: Any, name: str) -> None:
    """Checks a struct, or each of a list of them, at any depth of lists."""
    where = "." + name
    try:
        if type(value) is dict:
            check(value)
            return
        for at, one in enumerate(value):
            where = f".{name}[{at}]"
            if type(one) is dict:
                check(one)
            elif one is not None:
                where = ""
                _check_each(check, one, f"{name}[{at}]")
    except Corrupt as error:
        raise error.inside(where) from None


def _check_array(value: Any, dims: tuple[int, ...], name: str) -> None:
    """Whether an array of fixed bounds has all its elements."""
    if len(value) != dims[0]:
        raise Corrupt(f"{len(value)} elements in an array of {dims[0]}").inside("." + name)
    for at, row in enumerate(value if len(dims) > 1 else ()):
        _check_array(row, dims[1:], f"{name}[{at}]")


def _check_union(union: str, selected: int, value: Any, name: str) -> None:
    """Whether a union has the member that its selector names."""
    choices = tables.SELECTIONS.get(union, {})
    wanted = next((member for member, values in choices.items() if selected in values), None)
    if wanted is not None and (value is None or wanted not in value):
        raise Corrupt(f"the member {wanted!r} is missing").inside("." + name)
