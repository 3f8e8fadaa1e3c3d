"""Lines of Python that make C structs with the `vulkan` package; names of objects."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, reduce
from importlib.util import find_spec
from operator import or_
from pathlib import Path
from typing import Any, NamedTuple

from vkharness.findings import UserError
from vkharness.generated_text import python_string
from vkharness.spec import _generated as tables
from vkharness.spec.followed import STRIDES
from vkharness.spec.names import enum_value, flags_names
from vkharness.spec.shapes import Member, main_name, members, signature
from vkharness.trace.calls import Call

RIG_TYPES = ("VkBuffer", "VkImage", "VkCommandBuffer")
"""Objects of the rig's own classes, whose handle is their member `handle`."""
NAMED_FLAGS = frozenset(
    {"VkImageUsageFlags", "VkShaderStageFlags", "VkShaderStageFlagBits", "VkSampleCountFlagBits", "VkAccessFlags"}
    | {"VkPipelineStageFlags", "VkPipelineStageFlagBits", "VkColorComponentFlags", "VkCullModeFlags"}
    | {"VkResolveModeFlagBits", "VkStencilFaceFlags"}
)
"""Flags that are written by their names. Others are written as numbers."""
WIDTH = 110
"""Columns of a line."""
ADDRESS, ALIGNMENT = 8, 4
"""Bytes of a device address, and the least alignment with which data may have one."""
EXTERNAL = 0xFFFFFFFD
"""The first of the queue families that stand for something else: FOREIGN, EXTERNAL, IGNORED."""
_EXTENSION = re.compile(r"(KHR|EXT|NV|AMD|ARM|QCOM|HUAWEI|INTEL|GOOGLE)$")
_SHORT = {"VkDeviceMemory": "memory", "VkImageView": "view", "VkCommandBuffer": "commands", "VkBufferView": "view"}


class DeviceAddress(NamedTuple):
    """The device address of a buffer of `size` bytes, or of an acceleration structure, inside which none lies."""

    begin: int
    size: int
    number: int
    """That of the object in the trace."""
    of_structure: bool = False


class _Names(dict[int, str]):
    """The variables of objects by the numbers that the trace gives them."""

    def __missing__(self, identity: int) -> str:
        """Raises `UserError`: nothing in the scenario makes such an object."""
        raise UserError(f"no scenario can be written: it would need object {identity}")


class Script:
    """A function's lines in order, and what its variables are called."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[int, str] = _Names()
        self.given: dict[int, str] = {}
        """Expressions for handles that are parts of the rig's own objects."""
        self.families: dict[int, str] = {}
        """Expressions for the queue families of the queues that are used."""
        self.addresses: list[DeviceAddress] = []
        """Those that the program asked for."""
        self.uses_addresses = False
        """Whether a device address is written."""
        self._variables = 0

    def line(self, text: str) -> None:
        """Adds a line at the current depth, or several where it is too long."""
        self.lines += wrapped("    " * self.depth + text)

    def name(self, identity: int, kind: str) -> str:
        """The variable of an object, named after its type and the number that the trace gives it."""
        if identity not in self.names:
            short = _SHORT.get(kind) or short_name(kind)
            self.names[identity] = f"{short}_{identity}"
        return self.names[identity]

    def handle(self, identity: int, kind: str) -> str:
        """An expression for a handle. Raises `UserError` for an object that nothing in the scenario makes."""
        if identity in self.given:
            return self.given[identity]
        if not identity:
            return "None"
        if kind == "VkDevice":
            return "rig.device"
        if kind == "VkPipelineCache":
            return "None"
        if identity not in self.names:
            raise UserError(f"no scenario can be written: it would need {kind} {identity}")
        return f"{self.names[identity]}.handle" if kind in RIG_TYPES else self.names[identity]

    def variable(self, expression: str, what: str) -> str:
        """A new variable for a value that must live until the end of the function."""
        self._variables += 1
        name = f"{what}_{self._variables}"
        self.line(f"{name} = {expression}")
        return name

    def struct(self, kind: str, value: dict[str, Any]) -> str:
        """An expression for a struct. What holds pointers becomes a variable, since the package does not keep it."""
        rows = members(kind)
        if rows is None:
            raise UserError(f"no scenario can be written: {kind} is not known")
        given = []
        for row in rows:
            if row.name == "sType" or _is_counted(row, rows, value):
                continue
            held = value.get(row.name)
            if row.name == "pNext":
                if held:
                    given.append(f"pNext={self.struct(tables.STYPES[held['sType']], held)}")
            elif not is_zero(held):
                given.append(f"{row.name}={self.value(row, held)}")
        expression = f"vk.{kind}({', '.join(given)})"
        if not _holds_pointers(kind):
            return expression
        return self.variable(expression, short_name(kind))

    def value(self, row: Member, value: Any) -> str:
        """An expression for a member or parameter."""
        base = tables.TYPE_ALIASES.get(row.type, row.type)
        if value is None:
            return "None"
        if isinstance(value, list):
            return "[" + ", ".join(self.value(row, each) for each in value) + "]"
        if isinstance(value, bytes):
            return self.variable(f'vk.ffi.new("char[]", {self.data(value)})', "data")
        if row.type == "VkDeviceAddress" and value:
            return self.address(value)
        if base in tables.HANDLES:
            return self.handle(value, base)
        if isinstance(value, dict):
            return self.struct(base, value)
        if isinstance(value, int) and base != "VkBool32":
            return named(base, value)
        if isinstance(value, str):
            return python_string(value)
        return repr(bool(value)) if base == "VkBool32" else repr(value)

    def address(self, value: int) -> str:
        """An expression for a device address as a number. Raises `UserError` for one of nothing that is made here."""
        if not self._addressed(value):
            raise UserError(f"no scenario can be written: it would need what is at device address {value:#x}")
        return f'int.from_bytes({self.data(value.to_bytes(ADDRESS, "little"))}, "little")'

    def data(self, value: bytes) -> str:
        """An expression for bytes, in which device addresses are those of the rig's buffers."""
        parts, begin, at = list[str](), 0, 0
        while at + ADDRESS <= len(value):
            found = self._addressed(int.from_bytes(value[at : at + ADDRESS], "little"))
            if not found:
                at += ALIGNMENT
                continue
            parts += [repr(value[begin:at])] if at > begin else []
            parts.append(found)
            begin = at = at + ADDRESS
        rest = [repr(value[begin:])] if begin < len(value) or not parts else []
        return " + ".join([*parts, *rest])

    def _addressed(self, value: int) -> str:
        """An expression for a device address as bytes; empty for a value that is none."""
        for each in reversed(self.addresses):
            if each.begin <= value < each.begin + each.size:
                self.uses_addresses = True
                if each.of_structure:
                    return f"structure_address(rig, {self.names[each.number]})"
                offset = f", {value - each.begin}" if value > each.begin else ""
                return f"rig.address_bytes({self.names[each.number]}{offset})"
        return ""

    def family(self, index: int) -> str:
        """An expression for a queue family. Raises `UserError` for one of no queue that the scenario has."""
        if index >= EXTERNAL:
            return hex(index)
        if index not in self.families:
            raise UserError(f"no scenario can be written: it would need a queue of family {index}")
        return self.families[index]

    def arguments(self, call: Call, given: Iterable[str] = ()) -> list[str]:
        """Expressions for the parameters of a call after those that are `given`. Raises `UserError` for a function that
        nobody knows."""
        listed = signature(call.name)
        if listed is None:
            raise UserError(f"no scenario can be written: {call.name} is not known")
        found = [*given, *(self.value(row, call.args[row.name]) for row in listed.params[len(list(given)) :])]
        if call.name in STRIDES:
            places = {row.name: (at, row.type) for at, row in enumerate(listed.params)}
            of, stride = STRIDES[call.name]
            found[places[stride][0]] = f'vk.ffi.sizeof("{places[of][1]}")'
        return found


def short_name(kind: str) -> str:
    """What a variable of a type is called: 'image_view' of VkImageView."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", _EXTENSION.sub("", kind)[2:]).lower()


def docstring(words: str) -> str:
    """A docstring that says `words`, whatever is in them: names of files and commands come from outside."""
    return f'""{python_string(words)}""'


def wrapped(line: str) -> list[str]:
    """A line as it is, or with one argument of the call at its end a line where it is longer than `WIDTH`."""
    if len(line) <= WIDTH or not line.endswith(")"):
        return [line]
    commas: list[list[int]] = []
    opened: list[int] = []
    quoted, place, at, parts = "", 0, 0, list[int]()
    while place < len(line):
        sign = line[place]
        if quoted:
            place += sign == "\\"
            quoted = "" if sign == quoted else quoted
        elif sign in "\"'":
            quoted = sign
        elif sign in "([{":
            opened.append(place)
            commas.append([])
        elif sign in ")]}":
            if not opened:
                return [line]
            at, parts = opened.pop(), commas.pop()
        elif sign == "," and opened:
            commas[-1].append(place)
        place += 1
    if opened or quoted or not line[at + 1 : -1].strip():
        return [line]
    inner = " " * (len(line) - len(line.lstrip()) + 4)
    begins, ends = [at, *parts], [*parts, len(line) - 1]
    every = [line[begin + 1 : end].strip() for begin, end in zip(begins, ends, strict=True)]
    return [line[: at + 1], *(f"{inner}{each}," for each in every if each), inner[4:] + ")"]


def function(name: str) -> str:
    """An expression for a C function: the package has those of the core, the device has the others."""
    written = written_name(name)
    is_core = written in _package_names() and not _EXTENSION.search(written)
    return f"vk.{written}" if is_core else f'rig.function("{name}")'


def written_name(name: str) -> str:
    """The name under which a scenario calls a function: that of the core, where the package has it."""
    main = main_name(name)
    return main if main in _package_names() and not _EXTENSION.search(main) else name


def named(kind: str, value: int) -> str:
    """A number, by the names that its type gives it in the `vulkan` package, with which the program runs."""
    main = tables.TYPE_ALIASES.get(kind, kind)
    if main in tables.ENUMS:
        found = _in_package(tables.ENUMS[main], value)
        return f"vk.{found}" if found else str(value)
    if main in NAMED_FLAGS and value:
        known = tables.BITMASKS[main]
        bits = [known[name] for name in flags_names(main, value).split("|") if name in known]
        names = [_in_package(known, each) for each in bits]
        whole = reduce(or_, bits, 0) == value and all(names)
        return " | ".join(f"vk.{name}" for name in names) if whole else hex(value)
    return hex(value) if main in tables.BITMASKS or value >= 1 << 31 else str(value)


def _in_package(names: Mapping[str, int], value: int) -> str | None:
    """The first of the names of a number that has this value in the `vulkan` package; None where none has. The package
    takes some numbers of extensions for those of others."""
    held = _package_values()
    return next((name for name, number in names.items() if number == value == held.get(name)), None)


@cache
def _package_names() -> frozenset[str]:
    """Every identifier of the header of the `vulkan` package."""
    return frozenset(re.findall(r"\b(?:VK_|vk[A-Z])\w+", _package_text("vulkan.cdef.h")))


@cache
def _package_values() -> dict[str, int]:
    """The numbers that the `vulkan` package gives to names."""
    given = re.findall(r"^(VK_\w+) = (-?(?:0x)?[0-9a-fA-F]+)$", _package_text("_vulkan.py"), re.MULTILINE)
    return {name: int(number, 0) for name, number in given}


def _package_text(file: str) -> str:
    """A file of the `vulkan` package: to import the package needs a loader. Empty where there is none."""
    found = find_spec("vulkan")
    if found is None or found.origin is None:
        return ""
    return Path(found.origin).with_name(file).read_text(encoding="utf-8")


def word(kind: str, value: int, prefix: str) -> str:
    """The name of an enumerant without its prefix, as the rig takes it."""
    found = next((name for name, number in tables.ENUMS[kind].items() if number == value), None)
    if found is None or enum_value(kind, found) != value:
        raise UserError(f"no scenario can be written: {kind} has no name for {value}")
    return found.removeprefix(prefix)


def scope_text(stages: int, accesses: int) -> str:
    """A scope as the rig takes it: 'COPY|CLEAR/TRANSFER_WRITE'."""

    def short(mask: int, table: dict[str, int], prefix: str) -> str:
        names = [name for name, bit in table.items() if bit and mask & bit == bit and bit & (bit - 1) == 0]
        return "|".join(re.sub(r"_BIT(_[A-Z]+)?$", "", name.removeprefix(prefix)) for name in names)

    first = short(stages, tables.STAGES, "VK_PIPELINE_STAGE_2_") or "NONE"
    second = short(accesses, tables.ACCESSES, "VK_ACCESS_2_")
    return f"{first}/{second}" if second else first


def call_text(name: str, arguments: Sequence[str]) -> str:
    """A call as text."""
    return f"{name}({', '.join(arguments)})"


def _is_counted(row: Member, rows: Sequence[Member], value: dict[str, Any]) -> bool:
    """Whether a member is the length of an array that is given, which the package fills in."""
    return any(other.length == row.name and isinstance(value.get(other.name), list | bytes) for other in rows)


def is_zero(value: Any) -> bool:
    """Whether a value is what a struct has anyway."""
    if isinstance(value, dict):
        return all(map(is_zero, value.values()))
    return value is None or value == [] or (value == 0 and not isinstance(value, list | bytes))


@cache
def _holds_pointers(kind: str) -> bool:
    kind = tables.TYPE_ALIASES.get(kind, kind)
    rows = members(kind) or ()
    return any(row.pointer or (row.type in tables.STRUCTS and _holds_pointers(row.type)) for row in rows)
