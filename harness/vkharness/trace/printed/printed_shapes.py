"""Printed values in the shape of a converted trace, by the registry's tables. Handles become ids.

The codecs of `vkharness.trace.field_codecs` read what is made here, and check it. So nothing here knows a command, and
a value that the tables do not foresee is handed on as the text that it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.spec.command_classes import DESTROYERS
from vkharness.spec.shapes import Member, members, signature
from vkharness.trace.handles import CREATORS, PARENTS, HandleRegistry
from vkharness.trace.lines import Corrupt
from vkharness.trace.named_objects import OBJECT_TYPES, object_finder
from vkharness.trace.printed.printed_values import HIDDEN, UNUSED, PrintedCall, PrintedValue

_NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F,]+|\d[\d,.'\u00a0\u202f]*)")
"""A number, perhaps with the separators of a locale."""
_SEPARATORS = re.compile(r"[,.'\u00a0\u202f]")
_IN_BRACKETS = re.compile(r"\((-?\d[\d,]*)\)\s*$")
_REAL = re.compile(r"-?(?:\d[\d,]*\.?\d*(?:e[+-]?\d+)?|inf|nan)", re.IGNORECASE)
_REALS = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN", "-nan": "NaN"}
_SHADER_WORD = re.compile(r"0x([0-9a-fA-F]{8})\b")
_BOOLEANS = {"VK_TRUE": 1, "VK_FALSE": 0, "true": 1, "false": 0}
_UNSIGNED = {"uint32_t": 0xFFFFFFFF, "uint64_t": 0xFFFFFFFFFFFFFFFF}
"""Types of which some tools print ~0 as -1: an ignored queue family."""
ADDRESS = "0x1"
"""What the codecs take for an address alone, behind which nothing is known."""
WIDE = 16
"""Digits of a handle that is printed without 0x."""


class HiddenHandle(Corrupt):
    """A handle in place of which the layer printed that there is one."""


class PrintedShapes:
    """Gives the values of one file's calls their shape, and its handles their ids."""

    def __init__(self, handles: HandleRegistry | None = None) -> None:
        self.handles = handles or HandleRegistry()
        self._object = object_finder(self.handles)

    def arguments(self, call: PrintedCall) -> dict[str, Any]:
        """The arguments of a call, which its outputs are among. Raises Corrupt."""
        shape = signature(call.name)
        if shape is None:
            return {value.name: value.text for value in call.values}
        given = _by_name(call.values)
        foreign = given.keys() - {member.name for member in shape.params}
        if foreign:
            raise Corrupt(f"{min(foreign)[:60]!r} is no parameter of it: other output is mixed with them")
        failed = call.result.startswith("VK_ERROR") or "(-" in call.result
        args: dict[str, Any] = {}
        for member in shape.params:
            if not _is_output(member):
                args[member.name] = self._argument(member, given)
        self._retire(call.name, shape.params, args)
        owner = self._owner(call.name, shape.params, args)
        for member in shape.params:
            if _is_output(member) and not failed and member.name in given:
                args[member.name] = self._output(call.name, member, given[member.name], owner)
        return args

    def result(self, call: PrintedCall) -> Any:
        """The returned value: a number, or a name that the codecs look up."""
        return self._single("VkResult", PrintedValue("", call.result))

    def command_buffer(self, call: PrintedCall) -> int | None:
        """The id of the command buffer that a call is about; None where none is named."""
        for value in call.values:
            if value.name == "commandBuffer":
                with suppress(Corrupt):
                    return self._single("VkCommandBuffer", value)  # type: ignore[no-any-return]  # an id
        return None

    def _argument(self, member: Member, given: dict[str, PrintedValue]) -> Any:
        if member.name not in given:
            raise Corrupt(f"the argument {member.name!r} is missing")
        return self._inside("." + member.name, member, given[member.name])

    def _inside(self, where: str, member: Member, value: PrintedValue) -> Any:
        try:
            return self._shaped(member, value)
        except Corrupt as error:
            raise error.inside(where) from None

    def _output(self, name: str, member: Member, value: PrintedValue, owner: int) -> Any:
        kind = _type(member)
        if kind not in tables.HANDLES:
            return self._shaped(member, value)
        make = self.handles.create if name.startswith(CREATORS) else self.handles.see
        made = [make(kind, self._raw(each), owner) for each in (value.parts if member.length else [value])]
        if not member.length:
            return made[0] if not value.is_null else None
        return made if not value.is_null else None

    def _retire(self, name: str, params: Sequence[Member], args: dict[str, Any]) -> None:
        """Ends the ids of what a call destroys."""
        if name == "vkResetDescriptorPool":
            self.handles.retire_children(args["descriptorPool"])
        named = [each.name for each in params if _type(each) in tables.HANDLES] if name.startswith(DESTROYERS) else []
        for gone in named[-1:]:
            ids = args[gone] if isinstance(args[gone], list) else [args[gone]]
            for each in ids:
                self.handles.retire(each or 0)

    def _owner(self, name: str, params: Sequence[Member], args: dict[str, Any]) -> int:
        """The id of what a new object is freed with."""
        first = params[0]
        is_handle = _type(first) in tables.HANDLES and not first.pointer
        value: Any = args
        for step in PARENTS.get(name, (first.name,) if is_handle else ()):
            value = (value or {}).get(step)
        return value if type(value) is int else 0

    def _shaped(self, member: Member, value: PrintedValue) -> Any:
        """What the codec of a member reads."""
        if member.name == "pNext":
            return self._chain(value)
        if member.type == "char":
            return (
                self._text(value)
                if not (member.pointer > 1 or (member.pointer and value.parts))
                else (None if value.is_null else [self._text(each) for each in value.parts])
            )
        if member.type == "void" or (isinstance(member.length, tuple) and member.length[0] == "bytes"):
            return self._bytes(member, value)
        if value.is_null and member.pointer:
            return None
        if member.pointer > 1 or member.length is not None or member.dims:
            return self._array(member, value)
        return self._single(_type(member), value)

    def _array(self, member: Member, value: PrintedValue) -> Any:
        kind = _type(member)
        if value.text == UNUSED:
            return None
        if not member.dims or len(member.dims) == 1:
            return [self._element(kind, at, each) for at, each in enumerate(value.parts)]
        rows = [self._element(kind, at, each) for at, each in enumerate(value.parts)]
        columns = member.dims[-1]
        return [rows[at : at + columns] for at in range(0, len(rows), columns)]

    def _element(self, kind: str, at: int, value: PrintedValue) -> Any:
        try:
            return self._single(kind, value)
        except Corrupt as error:
            raise error.inside(f"[{at}]") from None

    def _single(self, kind: str, value: PrintedValue) -> Any:
        """One value of a type."""
        if kind in tables.STRUCTS:
            return self._struct(kind, value.parts)
        if value.parts:
            raise Corrupt(f"{value.parts[0].name[:60]!r} stands below it, and it has no members")
        if kind in tables.HANDLES:
            return self.handles.table(kind)[self._raw(value)]
        if kind in tables.ENUMS:
            number = _IN_BRACKETS.search(value.text)
            return _whole(number.group(1)) if number else _number(value.text)
        if kind in ("float", "double"):
            return _real(value.text)
        number = _number(value.text)
        return number & _UNSIGNED[kind] if kind in _UNSIGNED and type(number) is int and number < 0 else number

    def _struct(self, kind: str, parts: Iterable[PrintedValue]) -> dict[str, Any]:
        """The members of a struct. All of them are needed, but for what Vulkan ignores."""
        given = _by_name(parts)
        made: dict[str, Any] = {}
        for member in members(kind) or ():
            value = given.get(member.name)
            if value is None:
                if kind in tables.UNIONS or member.name == "pNext":
                    continue
                raise Corrupt(f"missing in {kind}").inside("." + member.name)
            if value.text == UNUSED and not value.parts:
                continue
            made[member.name] = self._inside("." + member.name, member, value)
        for (owner, name), enumeration in OBJECT_TYPES.items():
            if owner == kind and type(made.get(name)) is int and type(made.get("objectType")) is int:
                made[name] = self._object(enumeration, made["objectType"], made[name])
        return made

    def _chain(self, value: PrintedValue) -> Any:
        if value.is_null:
            return None
        kind = next((each for each in value.parts if each.name == "sType"), None)
        if kind is None:
            return ADDRESS
        number = self._single("VkStructureType", kind)
        if type(number) is str:
            number = tables.ENUMS["VkStructureType"].get(number, number)
        name = tables.STYPES.get(number) if type(number) is int else None
        if name is None:
            return {"sType": number, "pNext": None}
        return self._struct(name, value.parts)

    def _text(self, value: PrintedValue) -> str | None:
        text = value.text
        if text[:1] == '"':
            return text[1:].removesuffix('"')
        return None if value.is_null else text

    def _bytes(self, member: Member, value: PrintedValue) -> Any:
        """Bytes behind a pointer where the file has them, else that there are some."""
        if value.data is not None:
            return value.data
        if value.is_null or value.text == UNUSED:
            return None
        if member.pointer > 1:
            return [1 for _ in value.parts] if member.length else 1
        words = [*_SHADER_WORD.findall(value.text), *(each.text[2:] for each in value.parts if not each.name)]
        if words and (value.parts or value.text[:1] == "["):
            return [byte for word in words for byte in int(word, 16).to_bytes(4, "little")]
        return ADDRESS

    def _raw(self, value: PrintedValue) -> int:
        """The number that stands for a handle. What it is does not matter, only which others are the same."""
        text = value.text.partition(" ")[0].replace(",", "")
        if text == HIDDEN:
            raise HiddenHandle("a handle that was left out")
        if value.is_null or text in ("VK_NULL_HANDLE", "NULL"):
            return 0
        try:
            is_hex = text[:2] == "0x" or len(text) == WIDE or not text.isdecimal()
            return int(text, 16 if is_hex else 10)
        except ValueError:
            raise Corrupt(f"{value.text[:60]!r} is no handle") from None


def _by_name(values: Iterable[PrintedValue]) -> dict[str, PrintedValue]:
    """Parameters or members by their names. Raises Corrupt for one that comes twice: one of the two is of other output.

    The text names the struct of a chain first, and prints it last.
    """
    given: dict[str, PrintedValue] = {}
    for value in values:
        held = given.get(value.name)
        if held is not None and (value.name != "pNext" or held.parts):
            raise Corrupt("it comes twice").inside(f".{value.name[:60]}")
        given[value.name] = value
    return given


def _type(member: Member) -> str:
    return tables.TYPE_ALIASES.get(member.type, member.type)


def _is_output(member: Member) -> bool:
    return bool(member.pointer) and not member.const


def _whole(text: str) -> int:
    return int(_SEPARATORS.sub("", text))


def _number(text: str) -> Any:
    """The whole number that a text begins with; a text that begins with none as it is."""
    found = _NUMBER.match(text)
    if found is None:
        return _BOOLEANS.get(text, text.strip())
    digits = found.group()
    return int(digits.replace(",", ""), 16) if "0x" in digits else _whole(digits)


def _real(text: str) -> Any:
    found = _REAL.match(text)
    if found is None:
        return text
    word = found.group().lower().replace(",", "")
    return _REALS[word] if word in _REALS else float(word)
