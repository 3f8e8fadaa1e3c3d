"""How C lays out the structs of the registry's tables, computed from the tables alone: the build has no cffi.

The rules are those of the 64-bit systems that Vulkan runs on: a number is aligned to its size, a struct to its most
demanding member, and bit-fields fill the unit of their type. A test holds all of it against the declarations that
`vkharness.record.struct_layout` asks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from vkharness.spec._generated import BASETYPES, ENUMS, HANDLES, STRUCTS, UNIONS
from vkharness.spec.shapes import is_callback, members, resolve

NUMBERS = {
    "uint8_t": 1, "int8_t": 1, "char": 1, "uint16_t": 2, "int16_t": 2, "uint32_t": 4, "int32_t": 4, "int": 4,
    "float": 4, "uint64_t": 8, "int64_t": 8, "size_t": 8, "unsigned long": 8, "double": 8,
}  # fmt: skip
"""Bytes of the numbers of C."""
FOREIGN = {"zx_handle_t": 4}
"""Bytes of the types of window systems that are no pointers. `StdVideo` types that a struct holds are enums."""
POINTER = 8


@dataclass(frozen=True, slots=True)
class MemberPlace:
    """Where a member lies: its offset and its bytes; of a bit-field those of its unit."""

    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Bytes and alignment of a struct or union, and the places of its members by name."""

    size: int
    alignment: int
    places: dict[str, MemberPlace]


def is_number(name: str) -> bool:
    """Whether a type is a number that the readers of structs unpack: of C, an enum, flags."""
    name = resolve(name)
    if name in HANDLES or name in STRUCTS or is_callback(name):
        return False
    return name in ENUMS or BASETYPES.get(name, name) in NUMBERS or _is_std_enum(name)


def _is_std_enum(name: str) -> bool:
    return name.startswith("StdVideo") and name.endswith(("Level", "LevelIdc", "Profile", "ProfileIdc"))


@cache
def size_and_alignment(name: str) -> tuple[int, int]:
    """Bytes and alignment of a type that a struct holds by value."""
    name = resolve(name)
    if name in STRUCTS:
        found = layout_of(name)
        return found.size, found.alignment
    if (name in ENUMS and name not in BASETYPES) or _is_std_enum(name):
        return 4, 4
    size = NUMBERS.get(BASETYPES.get(name, name)) or FOREIGN.get(name, POINTER)
    return size, size


@cache
def layout_of(struct: str) -> Layout:
    """The layout of a struct or union under any of its names."""
    name = resolve(struct)
    at = bits = unit = size = 0
    alignment = 1
    places = {}
    for member in members(name) or ():
        of_one, aligned = (POINTER, POINTER) if member.pointer else size_and_alignment(member.type)
        alignment = max(alignment, aligned)
        if name in UNIONS:
            at = 0
        if member.bits and unit == of_one and bits + member.bits <= 8 * unit:
            places[member.name] = MemberPlace(at - unit, unit)
            bits += member.bits
            continue
        at = _up(at, aligned)
        whole = of_one * math.prod(member.dims)
        places[member.name] = MemberPlace(at, whole)
        bits, unit = (member.bits, of_one) if member.bits else (0, 0)
        at += whole
        size = max(size, at)
    return Layout(_up(size, alignment), alignment, places)


def _up(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment
