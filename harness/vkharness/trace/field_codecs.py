"""The forms of structs, arrays and pNext chains in a trace, composed from the generated tables.

`struct_form` and `command_forms` are the entry points. Single values are in `vkharness.trace.scalars`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.spec.command_classes import EXPORTS, IMPORTS
from vkharness.trace.binaries import BinaryWriter
from vkharness.trace.calls import FOUND_WRITES, PAYLOAD, SEPARATE_ASPECTS, UNSEEN_WRITES
from vkharness.trace.lines import Corrupt
from vkharness.trace.scalars import (
    HEX,
    NOT_A_VALUE,
    Blob,
    Boolean,
    Enumeration,
    FieldCodec,
    Flags,
    Handle,
    Integer,
    Opaque,
    Reading,
    Real,
    Text,
    unexpected,
)
from vkharness.trace.templates import BIND_POINT, WRITES, own_keys

Members = tuple[tuple[str, FieldCodec], ...]

_C_INTEGERS = {
    "uint8_t": (8, False),
    "uint16_t": (16, False),
    "uint32_t": (32, False),
    "uint64_t": (64, False),
    "size_t": (64, False),
    "unsigned long": (64, False),
    "int32_t": (32, True),
    "int": (32, True),
    "int64_t": (64, True),
}


class Array(FieldCodec):
    """A list of values of one form. Pointers with a count (`counted`) may be null; fixed-size arrays (`bound` elements)
    may not."""

    def __init__(self, element: FieldCodec, bound: int | None) -> None:
        self.element = element
        self.bound = bound

    def read(self, value: Any, reading: Reading) -> list[Any] | None:
        """Normal form: list, None for a null pointer."""
        if value is None and self.bound is None:
            return None
        if type(value) is not list:
            raise unexpected("a list", value)
        if self.bound is not None and len(value) > self.bound:
            raise Corrupt(f"{len(value)} elements in an array of {self.bound}")
        result = []
        for item in value:
            try:
                result.append(self.element.read(item, reading))
            except Corrupt as error:
                raise error.inside(f"[{len(result)}]") from None
        return result

    def write(self, value: list[Any] | None, binaries: BinaryWriter) -> Any:
        """JSON: list or null."""
        return None if value is None else [self.element.write(item, binaries) for item in value]

    def absent(self) -> list[Any] | None:
        """A null pointer, or zeroes."""
        return None if self.bound is None else [self.element.absent() for _ in range(self.bound)]


class Uuid(Array):
    """A fixed-size array of bytes: hex text in upstream's dialect, `118-97-…` in that of 0.9.18, a list in ours."""

    def __init__(self, size: int) -> None:
        super().__init__(Integer(8, False), size)
        self.size = size

    def read(self, value: Any, reading: Reading) -> list[int] | None:
        """Normal form: list of int. Upstream drops leading zeroes, so that some texts say nothing: zeroes then."""
        if type(value) is not str:
            return super().read(value, reading)
        parts = value.split("-")
        if len(parts) == self.size and all(re.fullmatch(r"\d{1,3}", part) and int(part) < 256 for part in parts):
            return [int(part) for part in parts]
        if not re.fullmatch(r"[0-9a-fA-F]{0,64}", value):
            raise unexpected("a UUID", value)
        return list(bytes.fromhex(value)) if len(value) == 2 * self.size else [0] * self.size


class Nullable(FieldCodec):
    """A pointer to one value that is not an array."""

    def __init__(self, target: FieldCodec) -> None:
        self.target = target

    def read(self, value: Any, reading: Reading) -> Any:
        """Normal form: the value, None for a null pointer."""
        return None if value is None else self.target.read(value, reading)

    def write(self, value: Any, binaries: BinaryWriter) -> Any:
        """JSON: the value or null."""
        return None if value is None else self.target.write(value, binaries)

    def absent(self) -> None:
        """A null pointer."""


class Rows(FieldCodec):
    """A pointer to pointers: each element is one value or a list of them, as deep as the call had it."""

    def __init__(self, element: FieldCodec) -> None:
        self.element = element

    def read(self, value: Any, reading: Reading) -> Any:
        """Normal form: list of values or of lists, None for null pointers."""
        if value is None:
            return None
        return [self.read(v, reading) for v in value] if type(value) is list else self.element.read(value, reading)

    def write(self, value: Any, binaries: BinaryWriter) -> Any:
        """JSON: lists as deep as the value's."""
        if value is None:
            return None
        return [self.write(v, binaries) for v in value] if type(value) is list else self.element.write(value, binaries)

    def absent(self) -> None:
        """A null pointer."""


class Struct(FieldCodec):
    """A struct: an object with every member. Members are looked up when first used, since structs nest themselves."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._members: Members | None = None

    @property
    def members(self) -> Members:
        """The members' names and forms in declaration order."""
        if self._members is None:
            self._members = tuple((m[0], member_form(m)) for m in tables.STRUCTS[self.name])
        return self._members

    def read(self, value: Any, reading: Reading) -> dict[str, Any]:
        """Normal form: dict with every member; a converter may leave some out, ours may not."""
        if type(value) is not dict:
            raise unexpected(f"an object ({self.name})", value)
        result = {}
        for name, form in self.members:
            try:
                if name in value:
                    result[name] = form.read(value[name], reading)
                elif reading.ours:
                    raise Corrupt(f"missing in {self.name}")
                else:
                    result[name] = form.absent()
            except Corrupt as error:
                raise error.inside("." + name) from None
        check_lengths(struct_counts(self.name), result)
        return result

    def write(self, value: dict[str, Any], binaries: BinaryWriter) -> Any:
        """JSON: an object."""
        return {name: form.write(value[name], binaries) for name, form in self.members}

    def absent(self) -> dict[str, Any]:
        """Every member absent."""
        return {name: form.absent() for name, form in self.members}


class Union(Struct):
    """A union: an object with the members that the call made valid, or all that hold no pointers."""

    def read(self, value: Any, reading: Reading) -> dict[str, Any]:
        """Normal form: dict of the members that are there."""
        if type(value) is not dict:
            raise unexpected(f"an object ({self.name})", value)
        return {name: form.read(value[name], reading) for name, form in self.members if name in value}

    def write(self, value: dict[str, Any], binaries: BinaryWriter) -> Any:
        """JSON: an object of the members that are there."""
        return {name: form.write(value[name], binaries) for name, form in self.members if name in value}

    def absent(self) -> dict[str, Any]:
        """No member."""
        return {}


class ClearColor(FieldCodec):
    """VkClearColorValue: normal form is the raw bits, `{"uint32": [4 ints]}`; other members serve too."""

    def read(self, value: Any, reading: Reading) -> dict[str, list[int]]:
        """Normal form from `uint32`, else `int32`, else `float32`."""
        if type(value) is not dict:
            raise unexpected("an object (VkClearColorValue)", value)
        for name, code, element in (("uint32", "I", Integer(32, False)), ("int32", "i", Integer(32, True)),
                                    ("float32", "f", Real(True))):  # fmt: skip
            if name in value:
                words = Array(element, 4).read(value[name], reading)
                if words is None or len(words) != 4:
                    raise Corrupt(f"VkClearColorValue.{name} needs 4 elements")
                return {"uint32": list(struct.unpack("<4I", struct.pack(f"<4{code}", *words)))}
        raise Corrupt("VkClearColorValue without uint32, int32 or float32")

    def absent(self) -> dict[str, list[int]]:
        """Zero bits."""
        return {"uint32": [0, 0, 0, 0]}


class ClearValue(FieldCodec):
    """VkClearValue: normal form is `{"color": {"uint32": [4 ints]}}`, the 16 bytes of the union."""

    def read(self, value: Any, reading: Reading) -> dict[str, Any]:
        """Normal form from `color`, else from `depthStencil`."""
        if type(value) is not dict:
            raise unexpected("an object (VkClearValue)", value)
        if "color" in value:
            return {"color": ClearColor().read(value["color"], reading)}
        parts = Struct("VkClearDepthStencilValue").read(value.get("depthStencil"), reading)
        return {"color": {"uint32": [*struct.unpack("<2I", struct.pack("<fI", *parts.values())), 0, 0]}}

    def absent(self) -> dict[str, Any]:
        """Zero bits."""
        return {"color": ClearColor().absent()}


class Chain(FieldCodec):
    """A pNext chain: nested objects, each known by its sType. A struct that is not in the tables keeps only its sType,
    and one of which a converter has the address alone is of no type."""

    def read(self, value: Any, reading: Reading) -> dict[str, Any] | None:
        """Normal form: dict or None."""
        if value is None or value == "0x0":
            return None
        if type(value) is str and HEX.match(value):
            reading.newer_names.add("a pNext chain by its address")
            return {"sType": NOT_A_VALUE, "pNext": None}
        if type(value) is not dict:
            raise unexpected("a pNext chain", value)
        stype = stype_form().read(value.get("sType"), reading)
        if stype in tables.STYPES:
            return struct_form(tables.STYPES[stype]).read(value, reading)  # type: ignore[no-any-return]
        return {"sType": stype, "pNext": self.read(value.get("pNext"), reading)}

    def write(self, value: dict[str, Any] | None, binaries: BinaryWriter) -> Any:
        """JSON: an object or null."""
        if value is None:
            return None
        stype = value["sType"]
        if stype in tables.STYPES:
            return struct_form(tables.STYPES[stype]).write(value, binaries)
        return {"sType": stype_form().write(stype, binaries), "pNext": self.write(value["pNext"], binaries)}

    def absent(self) -> None:
        """A null pointer."""


@cache
def stype_form() -> Enumeration:
    """The form of `sType`."""
    return Enumeration(tables.ENUMS["VkStructureType"])


@cache
def struct_form(name: str) -> FieldCodec:
    """The form of a struct or union by its C name. Each name has a single form."""
    special: dict[str, Callable[[], FieldCodec]] = {"VkClearColorValue": ClearColor, "VkClearValue": ClearValue}
    if name in special:
        return special[name]()
    return Union(name) if name in tables.UNIONS else Struct(name)


@cache
def _base_form(base: str) -> FieldCodec:
    """The form of a value of C type `base` with no pointer and no array."""
    base = tables.TYPE_ALIASES.get(base, base)
    if base in tables.STRUCTS and base != "VkAllocationCallbacks":
        return struct_form(base)
    if base in tables.HANDLES:
        return Handle()
    if base in tables.ENUMS:
        return Enumeration(tables.ENUMS[base])
    if base in tables.FLAG_WIDTH:
        return Flags(tables.BITMASKS.get(base, {}), tables.FLAG_WIDTH[base], "FlagBits" in base)
    if base == "VkBool32":
        return Boolean()
    if base.startswith("StdVideo") and base.endswith("Idc"):  # enums of the video headers, which the tables leave out
        return Enumeration({})
    base = tables.BASETYPES.get(base, base)
    if base in ("float", "double"):
        return Real(base == "float")
    return Integer(*_C_INTEGERS[base]) if base in _C_INTEGERS else Opaque()


def member_form(member: tables.Member) -> FieldCodec:
    """The form of a member or parameter, from its tuple in the generated tables."""
    name, base, stars, _const, length, dims, terminated, bits, _selector, _unchecked = member
    if name == "pNext":
        return Chain()
    if terminated:
        return Array(Text(), None) if stars == 2 or (length is not None and stars) else Text()
    if base == "void":
        return _untyped(stars, length is not None)
    if isinstance(length, tuple) and length[0] == "bytes":
        return Blob()
    element = _base_form(base)
    if isinstance(element, Opaque):
        return element
    if dims:
        return _fixed_array(element, base, dims)
    if stars == 2:
        return Rows(element)
    if stars:
        return Array(element, None) if length is not None else Nullable(element)
    return Integer(bits, False) if bits and isinstance(element, (Integer, Flags)) else element


def _untyped(stars: int, counted: bool) -> FieldCodec:
    """A pointer to void: `counted` bytes, or an address that nobody follows."""
    if stars == 2 and not counted:  # ppData: an address that the call returned
        return Nullable(Integer(64, False))
    return Blob() if stars == 1 and counted else Opaque()


def _fixed_array(element: FieldCodec, base: str, dims: tuple[int, ...]) -> FieldCodec:
    if base == "uint8_t" and len(dims) == 1:
        return Uuid(dims[0])
    for bound in reversed(dims):
        element = Array(element, bound)
    return element


@cache
def command_forms(name: str) -> Members | None:
    """The parameters' names and forms of a C function, None if the tables do not have it."""
    command = tables.COMMANDS.get(name)
    return None if command is None else tuple((p[0], member_form(p)) for p in command[1])


@cache
def own_forms(name: str) -> Members:
    """Names and forms of additions to a call's parameters that only vkharness writes."""
    every: dict[str, FieldCodec] = {
        WRITES: Array(struct_form("VkWriteDescriptorSet"), None),
        BIND_POINT: Enumeration(tables.ENUMS["VkPipelineBindPoint"]),
    }
    if name == "vkCreateDevice":
        return tuple((key, _base_form("VkBool32")) for key in (SEPARATE_ASPECTS, FOUND_WRITES))
    unseen = ((UNSEEN_WRITES, _base_form("VkBool32")),)
    if name.startswith("vkMapMemory"):
        return unseen
    if name == "vkAllocateMemory" or name in EXPORTS or name in IMPORTS:
        return ((PAYLOAD, Text()), *(unseen if name == "vkAllocateMemory" else ()))
    return tuple((key, every[key]) for key in own_keys(name))


@cache
def outputs(name: str) -> frozenset[str]:
    """The parameters through which a C function returns values."""
    return frozenset(p[0] for p in tables.COMMANDS[name][1] if p[2] and not p[3])


Counts = tuple[tuple[str, str], ...]
"""The arrays and bytes among members, each with the member that says how many there are."""


@cache
def struct_counts(name: str) -> Counts:
    """The counted members of a struct."""
    return _counts(tables.STRUCTS[name])


@cache
def command_counts(name: str) -> Counts:
    """The counted parameters of a C function."""
    return _counts(tables.COMMANDS[name][1])


def _counts(members: tuple[tables.Member, ...]) -> Counts:
    counted = []
    for member in members:
        length = member[4]
        if isinstance(length, tuple) and length[0] == "bytes":
            length = length[1]
        # Arrays that are not const are outputs: the call may have filled a part of them.
        if isinstance(length, str) and member[3]:
            counted.append((member[0], length))
    return tuple(counted)


def check_lengths(counts: Counts, values: dict[str, Any]) -> None:
    """Refuses an array whose length is not its count, and bytes whose number is not the stated size."""
    for name, length in counts:
        value, said = values[name], values.get(length)
        if isinstance(value, (list, bytes)) and type(said) is int and len(value) != said:
            what = "bytes" if isinstance(value, bytes) else "elements"
            raise Corrupt(f"{len(value)} {what} where {length} says {said}").inside("." + name)
