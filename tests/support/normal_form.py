"""Random calls in normal form, straight from the generated tables: what tests of reading and writing start from.

It knows nothing of how a trace spells values, and shares no code with what it tests.
"""

from __future__ import annotations

import random
import struct
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.trace.calls import Call

INTEGERS = {
    "uint8_t": (0, 255),
    "uint16_t": (0, 0xFFFF),
    "uint32_t": (0, 0xFFFFFFFF),
    "uint64_t": (0, (1 << 64) - 1),
    "size_t": (0, (1 << 64) - 1),
    "unsigned long": (0, (1 << 64) - 1),
    "int32_t": (-(1 << 31), (1 << 31) - 1),
    "int": (-(1 << 31), (1 << 31) - 1),
    "int64_t": (-(1 << 63), (1 << 63) - 1),
}
TEXTS = ("", "main", "VK_KHR_push_descriptor", 'a "quoted"\nline', "∑ über", "0x12", "no UTF-8: \udcff")
DEPTH = 3


class Generator:
    """Makes values of C types; the same seed gives the same values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def call(self, name: str, index: int = 1) -> Call:
        """A call of `name`, succeeding or failing, with every parameter."""
        kind, parameters, _ = tables.COMMANDS[name]
        needed = tables.NEEDED.get(name) or tables.NEEDED.get(tables.COMMAND_ALIASES.get(name, name), ())
        args = self.members(parameters, 0, needed)
        result = self.random.choice(list(tables.ENUMS["VkResult"].values())) if kind == "VkResult" else None
        if result is not None and result < 0:
            args.update({p[0]: None for p in parameters if p[2] and not p[3]})
        site = self.random.choice((None, "program.py:12"))
        return Call(index, name, args, result, site, self.random.choice((0, 1, 140737)))

    def members(self, members: tuple[tables.Member, ...], depth: int, needed: tuple[str, ...] = ()) -> dict[str, Any]:
        """A value of each member; arrays that share a count have its length, pointers that are `needed` lead there."""
        counts = {self._counter(m): m for m in members if self._counter(m)}
        values: dict[str, Any] = {}
        for member in members:
            if member[0] in counts and member[1] in INTEGERS | tables.BASETYPES:
                longest = 100 if counts[member[0]][1] in ("void", "uint32_t") else 2
                values[member[0]] = self.random.randint(0, longest)
        for member in members:
            if member[0] not in values:
                count = values.get(self._counter(member) or "")
                selections = tables.SELECTIONS.get(self.canonical(member[1]), {})
                chosen = [each for each, choices in selections.items() if values.get(member[8] or "") in choices]
                rows = {row[0]: row for row in tables.STRUCTS[self.canonical(member[1])]} if chosen else {}
                if chosen and self._points(rows[chosen[0]]):
                    leads = chosen[0] in tables.NEEDED.get(self.canonical(member[1]), ())
                    values[member[0]] = {chosen[0]: self.member(rows[chosen[0]], None, depth + 1, leads)}
                else:
                    values[member[0]] = self.member(member, count, depth, member[0] in needed)
        return values

    @staticmethod
    def _counter(member: tables.Member) -> str | None:
        length = member[4]
        if isinstance(length, tuple) and length[0] == "bytes":
            return length[1]
        return length if isinstance(length, str) else None

    def member(self, member: tables.Member, count: int | None, depth: int, needed: bool = False) -> Any:
        """A value of one member or parameter; `count` elements if it is an array that something counts."""
        name, base, stars, _, length, dims, terminated, bits, _, _ = member
        count = self.random.randint(0, 2) if count is None else count
        if name == "pNext":
            return self.chain(depth)
        if stars and not needed and self.random.random() < 0.2:
            return None
        if terminated:
            return [self.text() for _ in range(count)] if stars == 2 or (stars and length) else self.text()
        if base == "void" and stars == 2 and length is None:
            return self.random.randrange(1 << 48)
        if (isinstance(length, tuple) and length[0] == "bytes") or (
            base == "void" and stars == 1 and length is not None
        ):
            return self.random.randbytes(count)
        is_struct = self.canonical(base) in tables.STRUCTS
        if not self.known(base) or (stars and depth >= DEPTH and is_struct and not needed):
            return None
        if bits:
            return self.random.randrange(1 << bits)
        if dims:
            return self.array(base, dims, depth)
        if stars == 2 or (stars and length is not None):
            return [self.value(base, depth) for _ in range(count)]
        return self.value(base, depth)

    def array(self, base: str, dims: tuple[int, ...], depth: int) -> list[Any]:
        """A fixed-size array, nested as its bounds are."""
        if not dims[1:]:
            return [self.value(base, depth) for _ in range(dims[0])]
        return [self.array(base, dims[1:], depth) for _ in range(dims[0])]

    @staticmethod
    def canonical(base: str) -> str:
        """The type without alias."""
        return tables.TYPE_ALIASES.get(base, base)

    def known(self, base: str) -> bool:
        """Whether the normal form has a value for the type; None stands for others."""
        base = self.canonical(base)
        tables_of_types = (tables.HANDLES, tables.ENUMS, tables.FLAG_WIDTH, tables.BASETYPES, INTEGERS)
        if base in tables.STRUCTS:
            return base != "VkAllocationCallbacks"
        if base.startswith("StdVideo"):  # of the video headers' types, only the enums of levels and profiles
            return base.endswith("Idc")
        return base in ("float", "double") or any(base in table for table in tables_of_types)

    def value(self, base: str, depth: int) -> Any:
        """A value of a C type with no pointer and no array."""
        base = self.canonical(base)
        pick = self.random
        if base in tables.STRUCTS:
            return self.struct(base, depth + 1)
        if base in tables.HANDLES:
            return pick.choice((0, 1, 17, (1 << 63) + 5))
        if base in tables.ENUMS:
            return pick.choice([*tables.ENUMS[base].values(), 999])
        if base in tables.FLAG_WIDTH:
            bits = [*tables.BITMASKS.get(base, {}).values(), 0]
            several = pick.choice(bits) | pick.choice(bits)
            return several & ((1 << tables.FLAG_WIDTH[base]) - 1)
        if base == "VkBool32":
            return pick.choice((0, 1, 1, 7))
        if base.startswith("StdVideo"):
            return pick.choice((0, 3, 15))
        base = tables.BASETYPES.get(base, base)
        if base == "double":
            return pick.choice((0.0, -1.5, 1e300, pick.random()))
        if base == "float":
            return struct.unpack("<f", struct.pack("<f", pick.choice((0.0, float("inf"), 1000.0, pick.random()))))[0]
        return pick.choice((*INTEGERS[base], 1))

    def struct(self, name: str, depth: int) -> dict[str, Any]:
        """A struct or union; sType is the one that belongs to it."""
        if name == "VkClearColorValue":
            return {"uint32": [self.random.randrange(1 << 32) for _ in range(4)]}
        if name == "VkClearValue":
            return {"color": self.struct("VkClearColorValue", depth)}
        if name in tables.UNIONS:
            return {m[0]: self.member(m, None, depth) for m in tables.STRUCTS[name] if not self._points(m)}
        values = self.members(tables.STRUCTS[name], depth, tables.NEEDED.get(name, ()))
        own = [stype for stype, struct_name in tables.STYPES.items() if struct_name == name]
        return values | {"sType": own[0]} if own else values

    def _points(self, member: tables.Member) -> bool:
        inner = tables.STRUCTS.get(self.canonical(member[1]), ())
        return bool(member[2]) or any(self._points(m) for m in inner)

    def text(self) -> str:
        """A text as programs pass them, and some that need escaping."""
        return self.random.choice(TEXTS)

    def chain(self, depth: int) -> dict[str, Any] | None:
        """A pNext chain of any structs, one in ten of a type that no table has."""
        if depth >= DEPTH or self.random.random() < 0.6:
            return None
        if self.random.random() < 0.1:
            return {"sType": 1999999999, "pNext": self.chain(depth + 1)}
        return self.struct(self.random.choice(list(tables.STYPES.values())), depth + 1)
