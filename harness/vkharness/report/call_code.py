"""Calls and structs in normal form as code of a program, in C and in Python (the `vulkan` package).

Members that are zero are left out. A handle is named after its type and its id: `buffer6`. Texts and bytes that a trace
has stay data, and so does a value that is none of its member's type.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import isfinite
from typing import Any

from vkharness.generated_text import c_string, python_string
from vkharness.spec import _generated as tables
from vkharness.spec import names
from vkharness.spec.enums import (
    VK_QUEUE_FAMILY_EXTERNAL,
    VK_QUEUE_FAMILY_FOREIGN_EXT,
    VK_QUEUE_FAMILY_IGNORED,
    VK_REMAINING_ARRAY_LAYERS,
    VK_REMAINING_MIP_LEVELS,
    VK_SUBPASS_EXTERNAL,
    VK_WHOLE_SIZE,
)
from vkharness.spec.shapes import Member, members, signature

INDENT = "    "
UNKNOWN = "VkBaseInStructure"
"""Stands for a struct of a chain that is newer than the tables."""
_KEPT = {"sType", "oldLayout", "newLayout", "offset", "srcSubpass", "dstSubpass"}
_KEPT |= {"srcQueueFamilyIndex", "dstQueueFamilyIndex"}
"""Members that are written when they are zero, too: there it means something."""
_FAMILIES = {
    VK_QUEUE_FAMILY_IGNORED: "VK_QUEUE_FAMILY_IGNORED",
    VK_QUEUE_FAMILY_EXTERNAL: "VK_QUEUE_FAMILY_EXTERNAL",
    VK_QUEUE_FAMILY_FOREIGN_EXT: "VK_QUEUE_FAMILY_FOREIGN_EXT",
}
_SPECIAL = {
    "srcQueueFamilyIndex": _FAMILIES,
    "dstQueueFamilyIndex": _FAMILIES,
    "srcSubpass": {VK_SUBPASS_EXTERNAL: "VK_SUBPASS_EXTERNAL"},
    "dstSubpass": {VK_SUBPASS_EXTERNAL: "VK_SUBPASS_EXTERNAL"},
    "size": {VK_WHOLE_SIZE: "VK_WHOLE_SIZE"},
    "levelCount": {VK_REMAINING_MIP_LEVELS: "VK_REMAINING_MIP_LEVELS"},
    "layerCount": {VK_REMAINING_ARRAY_LAYERS: "VK_REMAINING_ARRAY_LAYERS"},
    "timeout": {(1 << 64) - 1: "UINT64_MAX"},
}
"""Members of numbers that have names, with these names."""


def short(type: str, mask: int) -> str:
    """A mask or value in short: `TOP_OF_PIPE|COPY`."""
    if main_type(type) not in tables.ENUMS and main_type(type) not in tables.BITMASKS:
        return hex(mask)  # of a structure that is newer than the tables, or that a broken trace has in its place
    text = names.flags_names(type, mask)
    prefixes = ("VK_PIPELINE_STAGE_2_", "VK_PIPELINE_STAGE_", "VK_ACCESS_2_", "VK_ACCESS_", "VK_DEPENDENCY_")
    for prefix in prefixes:
        text = re.sub(rf"\b{prefix}", "", text)
    return re.sub(r"_BIT(?=_|\||$)", "", text)


def type_of(struct: str, member: str) -> str:
    """The type of a member of a struct or of a parameter of a command; empty for one that the tables lack."""
    known = members(struct)
    if known is None:
        found = signature(struct)
        known = found.params if found is not None else ()
    return next((each.type for each in known if each.name == member), "")


def handle_name(type: str, id: int) -> str:
    """`commandBuffer16`; `VK_NULL_HANDLE` for 0."""
    bare = re.sub(r"(KHR|EXT|NV)$", "", type.removeprefix("Vk"))
    return f"{bare[0].lower()}{bare[1:]}{id}" if id else "VK_NULL_HANDLE"


def main_type(name: str) -> str:
    """The type for which a name stands."""
    return tables.TYPE_ALIASES.get(name, name)


class Language(ABC):
    """Writes calls and structs in one language. `lines` is what stands before the call."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._taken: set[str] = set()

    def call(self, name: str, args: dict[str, Any]) -> list[str]:
        """The lines that make a call."""
        found = signature(name)
        assert found is not None
        values = [self.parameter(each, args.get(each.name)) for each in found.params]
        self.lines.append(self.made_call(name, values, args))
        return self.lines

    def struct(self, type: str, value: dict[str, Any], variable: str) -> list[str]:
        """The lines that make one struct."""
        self.declare(type, [value], self.fresh(variable), many=False)
        return self.lines

    def fresh(self, wanted: str) -> str:
        """A name of a variable that is not taken."""
        bare = re.sub(r"^p+(?=[A-Z])", "", wanted)
        bare = f"{bare[0].lower()}{bare[1:]}"
        name, number = bare, 1
        while name in self._taken:
            number += 1
            name = f"{bare}{number}"
        self._taken.add(name)
        return name

    def scalar(self, member: Member, value: Any) -> str:
        """A number, a name of an enumeration, a mask, a handle, or a text."""
        if value is None:
            return self.null
        if isinstance(value, float):
            return str(value) if isfinite(value) else self.not_finite(value)
        if not isinstance(value, int):
            return self.data(value if isinstance(value, str | bytes) else str(value))
        if value in _SPECIAL.get(member.name, {}):
            return self.constant(_SPECIAL[member.name][value])
        type = main_type(member.type)
        if type in tables.HANDLES:
            return handle_name(type, value) if value else self.null_handle
        if type in tables.ENUMS:
            return self.constant(names.value_name(type, value))
        if type in tables.BITMASKS and value:
            return " | ".join(self.constant(each) for each in names.flags_names(type, value).split("|"))
        return str(value)

    null: str
    null_handle: str

    @abstractmethod
    def data(self, value: str | bytes) -> str:
        """A text, or bytes."""

    @abstractmethod
    def not_finite(self, value: float) -> str:
        """An infinite number, or none."""

    @abstractmethod
    def constant(self, name: str) -> str:
        """A constant of Vulkan."""

    @abstractmethod
    def parameter(self, member: Member, value: Any) -> str:
        """A parameter of a call."""

    @abstractmethod
    def declare(self, type: str, values: Sequence[dict[str, Any]], name: str, many: bool) -> None:
        """Declares a variable that holds a struct, or several."""

    @abstractmethod
    def made_call(self, name: str, values: Sequence[str], args: dict[str, Any]) -> str:
        """The call itself."""


class C(Language):
    """C99, and C++20 as well: structs are variables of their own."""

    null, null_handle = "NULL", "VK_NULL_HANDLE"

    def constant(self, name: str) -> str:
        """As it is."""
        return name

    def data(self, value: str | bytes) -> str:
        """A string."""
        return c_string(value if isinstance(value, str) else value.decode("utf-8", "surrogateescape"))

    def not_finite(self, value: float) -> str:
        """Of <math.h>."""
        return "NAN" if value != value else "INFINITY" if value > 0 else "-INFINITY"

    def parameter(self, member: Member, value: Any) -> str:
        """A value, the address of a variable, or what initializes an array."""
        if isinstance(value, list) and not member.pointer:
            return f"{{{', '.join(self._element(member, each) for each in value)}}}"
        if not member.pointer or value is None or isinstance(value, str | bytes):
            return self.scalar(member, value)
        if main_type(member.type) in tables.STRUCTS:
            return self._structs(member, value if isinstance(value, list) else [value], isinstance(value, list))
        if self._is_handle(member):  # what the call gives back, or a single one
            if not isinstance(value, list):
                return f"&{self.scalar(member, value)}"
            if len(value) == 1:
                return f"&{self.scalar(member, value[0])}"
        if isinstance(value, list):
            return self._array(member, value)
        return f"(void *){self.scalar(member, value)}" if member.type == "void" else self._array(member, [value])

    def _structs(self, member: Member, values: list[dict[str, Any]], is_array: bool) -> str:
        many = is_array and len(values) != 1
        name = self.fresh(member.name.removesuffix("s") if is_array and not many else member.name)
        self.declare(member.type, values, name, many)
        return name if many else f"&{name}"

    def _element(self, member: Member, value: Any) -> str:
        """One of an array that stands in a struct."""
        if isinstance(value, dict):
            return f"{{{' '.join(self._body(member.type, value))}}}"
        return self.parameter(member, value)

    @staticmethod
    def _is_handle(member: Member) -> bool:
        return main_type(member.type) in tables.HANDLES

    def _array(self, member: Member, values: list[Any]) -> str:
        name = self.fresh(member.name)
        inner = ", ".join(self.scalar(member, each) for each in values)
        several = "*const " if member.pointer > 1 else ""
        self.lines.append(f"const {member.type} {several}{name}[] = {{{inner}}};")
        return name

    def declare(self, type: str, values: Sequence[dict[str, Any]], name: str, many: bool) -> None:
        """`VkX name = {...};` or an array."""
        bodies = [self._body(type, each) for each in values]
        if not many:
            self.lines += [f"const {type} {name} = {{", *(INDENT + line for line in bodies[0]), "};"]
            return
        self.lines.append(f"const {type} {name}[] = {{")
        for body in bodies:
            self.lines += [f"{INDENT}{{", *(2 * INDENT + line for line in body), f"{INDENT}}},"]
        self.lines.append("};")

    def _body(self, type: str, value: dict[str, Any]) -> list[str]:
        lines = []
        for member in members(type) or ():
            given = value.get(member.name)
            if given in (0, None, []) and member.name not in _KEPT:
                continue
            if member.name == "pNext" and isinstance(given, dict):
                struct = tables.STYPES.get(given.get("sType", 0), UNKNOWN)
                variable = self.fresh(struct.removeprefix("Vk"))
                self.declare(struct, [given], variable, many=False)
                lines.append(f".pNext = &{variable},")
            elif isinstance(given, dict) and not member.pointer:
                lines += [f".{member.name} = {{", *(INDENT + line for line in self._body(member.type, given)), "},"]
            else:
                lines.append(f".{member.name} = {self.parameter(member, given)},")
        return lines

    def made_call(self, name: str, values: Sequence[str], args: dict[str, Any]) -> str:
        """`vkX(a, b);`"""
        return f"{name}({', '.join(values)});"


class Python(Language):
    """Python with the `vulkan` package, imported as vk."""

    null, null_handle = "None", "None"

    def data(self, value: str | bytes) -> str:
        """A string, or bytes."""
        return python_string(value) if isinstance(value, str) else repr(value)

    def not_finite(self, value: float) -> str:
        """As Python reads it."""
        return f'float("{value}")'

    def constant(self, name: str) -> str:
        """A member of the package."""
        return f"vk.{name}" if name.startswith("VK_") else "2**64 - 1" if name == "UINT64_MAX" else name

    def parameter(self, member: Member, value: Any) -> str:
        """A value; structs stand where they are used."""
        if value is None or (not member.pointer and not isinstance(value, dict)):
            return self.scalar(member, value)
        if isinstance(value, list):
            return f"[{', '.join(self.parameter(member, each) for each in value)}]"
        if isinstance(value, dict):
            return self._made(member.type, value)
        return self.scalar(member, value)

    def _made(self, type: str, value: dict[str, Any]) -> str:
        if "sType" in value:
            type = tables.STYPES.get(value["sType"], type)
        parts = []
        for member in members(type) or ():
            given = value.get(member.name)
            counts = member.name.endswith("Count") and not member.pointer and member.type == "uint32_t"
            if (member.name == "sType" and type != UNKNOWN) or given in (None, []):
                continue
            if given == 0 and member.name not in _KEPT:
                continue
            if counts and member.name not in ("levelCount", "layerCount"):
                continue
            text = self._made(UNKNOWN, given) if member.name == "pNext" else self.parameter(member, given)
            parts.append(f"{member.name}={text}")
        return f"vk.{type}({', '.join(parts)})"

    def declare(self, type: str, values: Sequence[dict[str, Any]], name: str, many: bool) -> None:
        """`name = vk.VkX(...)`"""
        self.lines.append(f"{name} = {self._made(type, values[0])}")

    def made_call(self, name: str, values: Sequence[str], args: dict[str, Any]) -> str:
        """`vk.vkX(a, b)`; what vkCreate* makes is what the function returns."""
        if name.startswith("vkCreate"):
            *given, _ = values
            found = signature(name)
            assert found is not None
            made = found.params[-1]
            return f"{handle_name(made.type, args[made.name])} = vk.{name}({', '.join(given)})"
        return f"vk.{name}({', '.join(values)})"
