"""Structs and parameters as a capture encodes them, by the registry's tables.

For each struct and command one decoder is written as Python source, once, and compiled when it is first needed: it
unpacks neighbouring numbers in one go, calls the decoders of what is not a number, and builds the dictionary. The
source depends on the tables alone, never on a capture. The values are those that `vkharness.trace.field_codecs` gives
for the same call in a converted capture.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.trace.gfxr import encoded_values as wire
from vkharness.trace.gfxr.encoded_values import Decoder
from vkharness.trace.lines import Corrupt

CODES = {
    "int8_t": "b",
    "uint8_t": "B",
    "int16_t": "h",
    "uint16_t": "H",
    "int": "i",
    "int32_t": "i",
    "uint32_t": "I",
    "int64_t": "q",
    "uint64_t": "Q",
    "size_t": "Q",
    "unsigned long": "Q",
    "float": "f",
    "double": "d",
    "DWORD": "I",
    "GgpFrameToken": "Q",
    "GgpStreamDescriptor": "Q",
    "RROutput": "Q",
    "zx_handle_t": "I",
}
"""C type to the `struct` code of its encoding, for types that are no flags, enums or handles."""

ADDRESSES = ("HANDLE", "HINSTANCE", "HWND", "HMONITOR", "VkRemoteAddressNV")
"""Pointers to things of a window or operating system that have a name of their own."""

SPECIAL: dict[str, Callable[[], Decoder]] = {}
"""Structs that a capture does not encode member by member. `special_structs` registers them when it is imported."""

Namespace = dict[str, Any]


def special(*names: str) -> Callable[[Callable[[], Decoder]], Callable[[], Decoder]]:
    """Registers the function that makes the decoder of these structs."""

    def register(make: Callable[[], Decoder]) -> Callable[[], Decoder]:
        SPECIAL.update(dict.fromkeys(names, make))
        return make

    return register


def members_of(name: str) -> tuple[tables.Member, ...] | None:
    """The members of a struct or union; None for an unknown one."""
    return tables.STRUCTS.get(name)


def code_of(base: str) -> str | None:
    """The `struct` code of a number, a handle or an enum value; None for any other type."""
    base = tables.TYPE_ALIASES.get(base, base)
    if base in CODES:
        return CODES[base]
    if base in tables.HANDLES:
        return "Q"
    if base in tables.ENUMS:
        return "i"
    if base.startswith("StdVideo") and not base.endswith(("Header", "Info", "Set")):
        return "i"
    c_type = tables.BASETYPES.get(base)
    return None if c_type is None else CODES[c_type]


class _Source:
    """Writes one decoder: `values` for what reads into variables, `items` for the dictionary that is made of them."""

    def __init__(self, name: str, members: tuple[tables.Member, ...], in_struct: bool) -> None:
        self.name = name
        self.lines: list[str] = []
        self.checks: list[str] = []
        """Behind the lines: a count may stand behind what it counts."""
        self.items: list[str] = []
        self.namespace: Namespace = {"Corrupt": Corrupt}
        self._run: list[tuple[str, str]] = []
        self._counts = {member[0]: f"v{i}" for i, member in enumerate(members) if not member[2]}
        for i, member in enumerate(members):
            self._add(f"v{i}", member, in_struct)
        self._flush()

    def _add(self, var: str, member: tables.Member, in_struct: bool) -> None:
        code = scalar(member)
        if code == "":
            self._run.append(("", "8x"))
            self.items.append(f"{member[0]!r}: None")
            return
        self.items.append(f"{member[0]!r}: {var}")
        if code is not None:
            self._run.append((var, code))
            return
        self._flush()
        self.namespace["D" + var] = member_decoder(member, in_struct)
        self.lines.append(f"{var}, a = D{var}(b, a)")
        self._check_length(var, member)

    def _check_length(self, var: str, member: tables.Member) -> None:
        """Refuses an array whose length is not its count, as readers of the other forms do."""
        length = member[4]
        if isinstance(length, tuple) and length[0] == "bytes":
            length = length[1]
        if member[3] and isinstance(length, str) and length in self._counts:
            count = self._counts[length]
            self.checks.append(f"if {var} is not None and len({var}) != {count}: ")
            self.checks[-1] += f"raise Corrupt(f'{member[0]}: {{len({var})}} elements where {length} says {{{count}}}')"

    def _flush(self) -> None:
        run, self._run = self._run, []
        if not run:
            return
        unpacker = struct.Struct("<" + "".join(code for _, code in run))
        name = f"U{len(self.lines)}"
        self.namespace[name] = unpacker.unpack_from
        targets = "".join(f"{var}, " for var, _ in run if var)
        self.lines.append(f"{targets}= {name}(b, a)" if targets else f"{name}(b, a)")
        self.lines.append(f"a += {unpacker.size}")

    def compiled(self) -> Decoder:
        """The decoder."""
        body = "".join(f"    {line}\n" for line in (*self.lines, *self.checks))
        source = f"def decode(b, a):\n{body}    return {{{', '.join(self.items)}}}, a\n"
        exec(compile(source, f"<decoder of {self.name}>", "exec"), self.namespace)
        decoder: Decoder = self.namespace["decode"]
        return decoder


def scalar(member: tables.Member) -> str | None:
    """The code of a member that is a plain number, "" for an address that nobody follows, None for anything else."""
    name, base, stars, _const, length, dims, terminated, bits, _selector, _unchecked = member
    if name == "pNext" or dims or terminated:
        return None
    if bits:
        return "I"
    if base == "void":
        return "" if stars == 1 and length is None else None
    if base in tables.FUNCPOINTERS or base.startswith("PFN_") or base in ADDRESSES:
        return "" if not stars else None
    if stars:
        return "" if stars == 1 and _foreign(base) else None
    return code_of(base)


def _foreign(base: str) -> bool:
    """Whether a pointer leads to a type of a window or operating system."""
    known = base in ("char", "VkAllocationCallbacks", "SECURITY_ATTRIBUTES") or base.startswith("StdVideo")
    return not known and code_of(base) is None and members_of(tables.TYPE_ALIASES.get(base, base)) is None


def member_decoder(member: tables.Member, in_struct: bool) -> Decoder:
    """The decoder of a member or parameter that is not a plain number."""
    name, base, stars, _const, length, dims, terminated, _bits, _selector, _unchecked = member
    base = tables.TYPE_ALIASES.get(base, base)
    if name == "pNext":
        return chain
    if terminated or base == "char":
        return wire.array(wire.text) if stars == 2 or (length is not None and stars) else wire.text
    if base == "LPCWSTR":
        return wire.wide_text
    if base == "void":
        return wire.one_of(wire.numbers("Q")) if stars == 2 and length is None else wire.blob(1)
    if base == "VkAllocationCallbacks":
        return wire.discarded(wire.array(wire_struct(base)))
    if base in ADDRESSES or (stars == 2 and _foreign(base)):
        return wire.discarded(wire.numbers("Q"))
    code = code_of(base)
    if code is None and members_of(base) is None:
        return wire.only_null
    if isinstance(length, tuple) and length[0] == "bytes" and code is not None:
        return wire.blob(struct.calcsize("<" + code))
    elements = wire.numbers(code) if code is not None else wire.array(wire_struct(base))
    if dims:
        return wire.grid(elements, dims)
    if stars == 2:
        return wire.array(wire.one_of(elements) if in_struct else elements)
    if not stars:
        return wire_struct(base)
    return elements if length is not None else wire.one_of(elements)


def wire_struct(name: str) -> Decoder:
    """The decoder of a struct or union. It is made when it is first called, since structs nest themselves."""

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        return _made(name)(data, at)

    return _MADE.get(name, decode)


_MADE: dict[str, Decoder] = {}


def _made(name: str) -> Decoder:
    found = _MADE.get(name)
    if found is None:
        found = _MADE[name] = SPECIAL[name]() if name in SPECIAL else _in_order(name)
    return found


def _in_order(name: str) -> Decoder:
    members = members_of(name)
    if members is None or name in tables.UNIONS:
        raise Corrupt(f"{name}, which captures are not known to hold")
    return plain(name, members)


def plain(name: str, members: tuple[tables.Member, ...], in_struct: bool = True) -> Decoder:
    """The decoder of members that lie one after the other, or of parameters."""
    return _Source(name, members, in_struct).compiled()


def chain(data: bytes, at: int) -> tuple[dict[str, Any] | None, int]:
    """A pNext chain."""
    count, at = wire.pointer(data, at)
    if count == wire.NONE:
        return None, at
    stype = _STYPE(data, at)[0]
    name = tables.STYPES.get(stype)
    if name is None:
        raise Corrupt(f"a pNext chain with the structure type {stype}, which is newer than this vkharness")
    value, at = _made(name)(data, at)
    return value, at


_STYPE = struct.Struct("<i").unpack_from
