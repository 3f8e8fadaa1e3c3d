"""C memory to normal form (the shape that `vkharness.trace.calls` describes), by the generated tables.

For each struct one reader function is written as Python source, once, and compiled: it unpacks the struct's numbers
and pointers in one go and builds the dictionary, calling the readers of nested structs. A copy of one region costs
about 1 microsecond, a barrier with one buffer about 3.

A `Decoder` binds that code to one session's handle tables, and to the memory in which addresses lie. Pointers that
Vulkan ignores are not followed.
"""

from __future__ import annotations

import math
import struct
import threading
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any

from vkharness.record import struct_layout as layout
from vkharness.record.sites import GENERATED
from vkharness.record.template_data import Templates, hooks
from vkharness.spec._generated import EXTENDED, HANDLES, SELECTIONS, STRUCTS, STYPES, UNIONS
from vkharness.spec.followed import GUARDS, IGNORED_ELSEWHERE, MOST_LINKS, NEVER_FOLLOWED
from vkharness.spec.shapes import Member, is_callback, members, resolve
from vkharness.trace.handles import HandleRegistry
from vkharness.trace.named_objects import OBJECT_TYPES, object_finder

CHAIN_HEAD = 16
"""Bytes of sType and pNext, which each struct of a chain begins with."""

Reader = Callable[[int], dict[str, Any]]


def pointer_value(member: Member, var: str, length: str | None, owner: str = "", stride: str = "") -> str:
    """Python expression for what pointer `var` (an address, maybe 0) leads to; `length` counts elements or bytes, and
    `stride` says how many bytes apart structs lie that do not lie side by side.

    Where it leads to no memory: None for a member of the struct `owner`; an argument of a command raises `BufferError`.
    Names used in the expression: `R_<struct>` readers, `T_<handle>` tables and the functions of `Decoder.namespace`.
    """
    if stride:
        return _apart(member, var, str(length), stride)
    inner = _pointee(member, var, length)
    if inner == "None":
        return inner
    there = f"member_there({var}, %s, {owner!r}, {member.name!r})" if owner else f"there({var}, %s, {member.name!r})"
    return f"({inner} if {var} and {there % _pointee_size(member, length)} else None)"


def _apart(member: Member, var: str, length: str, stride: str) -> str:
    """Python expression for structs that lie apart. One that begins within the one before takes the room of it all the
    same, so that no more are read than there is memory for."""
    name = resolve(member.type)
    size = layout.size_of(name)
    room = f"{length} and ({length} - 1) * max({stride}, {size}) + {size}"
    listed = f"[R_{name}({var} + at * {stride}) for at in range({length})]"
    return f"({listed} if {var} and there({var}, {room}, {member.name!r}) else None)"


def _pointee_size(member: Member, length: str | None) -> str:
    """Python expression for how many bytes are read behind a pointer; of text that ends with NUL the first one."""
    name = resolve(member.type)
    counts_bytes = isinstance(member.length, tuple) and member.length[0] == "bytes"
    if member.pointer > 1:
        size = 8
    elif counts_bytes or name == "void" or (name == "char" and not member.terminated and length):
        size = 1
    elif name == "char":
        return "1"
    else:
        size = layout.size_of(name) if name in STRUCTS or name in HANDLES else _number_size(name)
    return f"{length} * {size}" if length else str(size)


def _number_size(name: str) -> int:
    code = layout.scalar_code(name)
    return 1 if code is None else layout.size_of_number(code)


def _pointee(member: Member, var: str, length: str | None) -> str:
    name = resolve(member.type)
    if member.name in NEVER_FOLLOWED or is_callback(name) or name == "VkAllocationCallbacks":
        return "None"
    if name in ("char", "void"):
        return (_text if name == "char" else _untyped)(member, var, length)
    if isinstance(member.length, tuple) and member.length[0] == "bytes":
        return f"blob({var}, {length})"
    if name in STRUCTS:
        return _structs(member, name, var, length)
    code = "Q" if name in HANDLES else layout.scalar_code(name)
    if code is None or member.pointer > 1:
        return "None"
    if name in HANDLES:
        return f"[T_{name}[h] for h in many('Q', {var}, {length})]" if length else f"T_{name}[one('Q', {var})]"
    return f"list(many('{code}', {var}, {length}))" if length else f"one('{code}', {var})"


def _text(member: Member, var: str, length: str | None) -> str:
    if member.pointer == 2:
        texts = f"text(q) if q and member_there(q, 1, 'an element', {member.name!r}) else None"
        return f"[{texts} for q in many('Q', {var}, {length})]" if length else "None"
    return f"text({var})" if member.terminated or not length else f"fixed_text(blob({var}, {length}))"


def _untyped(member: Member, var: str, length: str | None) -> str:
    if member.pointer == 2 and not member.const and not length:
        return f"one('Q', {var})"
    return f"blob({var}, {length})" if member.pointer == 1 and length else "None"


def _structs(member: Member, name: str, var: str, length: str | None) -> str:
    if member.pointer == 2:
        structs = (
            f"R_{name}(q) if q and member_there(q, {layout.size_of(name)}, 'an element', {member.name!r}) else None"
        )
        return f"[{structs} for q in many('Q', {var}, {length})]" if length else "None"
    if length is None:
        return f"R_{name}({var})"
    size = layout.size_of(name)
    return f"[R_{name}(q) for q in range({var}, {var} + {length} * {size}, {size})]"


def length_value(member: Member, count_of: Callable[[str], str]) -> str | None:
    """Python expression for a member's length; `count_of` gives the expression for a sibling's value."""
    length = member.length
    if length is None:
        return None
    if isinstance(length, int):
        return str(length)
    if isinstance(length, str):
        return count_of(length)
    if length[0] == "bytes":
        return count_of(str(length[1]))
    if length[0] == "ceil_div":
        return f"-(-{count_of(str(length[1]))} // {length[-1]})"
    raise LookupError(f"no way to count {member.name} by {length}")


class StructSource:
    """Writes the reader of one struct or union: `format` for `struct.unpack_from`, `code` of the function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields = layout.fields_of(name)
        self.pieces: list[tuple[int, int, str]] = []
        self.variables: dict[int, str] = {}
        self.order: list[str] = []
        self.numbers: dict[str, str] = {}
        rows = [member for member in members(name) or () if not left_out(name, member)]
        for member in rows:
            self._load(member)
        self.pieces.sort()
        body = ", ".join(f"{member.name!r}: {self._value(member)}" for member in rows)
        load = f"    {', '.join(v for _, _, v in self._targets())}, = U_{name}(mem, a)\n" if self.pieces else ""
        self.source = f"def R_{name}(a):\n{load}    return {{{body}}}\n"

    @property
    def format(self) -> str:
        """Format for one `unpack_from` at the struct's address, gaps as pad bytes."""
        text, at = "<", 0
        for offset, size, code in self.pieces:
            text += (f"{offset - at}x" if offset > at else "") + code
            at = offset + size
        return text

    def _targets(self) -> list[tuple[int, int, str]]:
        found = []
        for offset, _, code in self.pieces:
            base = self.variables[offset]
            count = int(code[:-1] or 1)
            names = [base] if code.endswith("s") or count == 1 else [f"{base}_{i}" for i in range(count)]
            found += [(offset, i, name) for i, name in enumerate(names)]
        return found

    def _load(self, member: Member) -> None:
        field = self.fields[member.name]
        name = resolve(member.type)
        code: str | None
        if member.pointer or name in HANDLES:
            code = "Q"
        else:
            code = layout.scalar_code(name)
        if code is None:
            return
        count = math.prod(member.dims)
        if self.name in UNIONS and not member.dims:
            self.numbers[member.name] = f"one('{code}', a)"
            return
        if name == "char" and member.dims:
            piece, size = f"{count}s", count
        else:
            piece, size = (f"{count}{code}" if count > 1 else code), count * struct.calcsize("<" + code)
        if field.offset not in self.variables:
            self.variables[field.offset] = f"m{len(self.variables)}"
            self.pieces.append((field.offset, size, piece))
        var = self.variables[field.offset]
        self.numbers[member.name] = f"({var} >> {field.shift} & {(1 << field.bits) - 1})" if field.bits else var

    def _value(self, member: Member) -> str:
        name = resolve(member.type)
        var = self.numbers.get(member.name)
        if member.name == "pNext" and var is not None:
            return f"(chain({var}, {self.name!r}) if {var} else None)"
        if member.pointer and var is not None:
            value = pointer_value(member, var, length_value(member, self.numbers.__getitem__), self.name)
            guard = GUARDS.get((self.name, member.name))
            return f"({value} if {self.numbers[guard[0]]} in {tuple(map(int, guard[1]))} else None)" if guard else value
        if name in STRUCTS:
            return self._nested(member, name)
        if var is None:
            return "None"
        enumeration = OBJECT_TYPES.get((self.name, member.name))
        if enumeration is not None:
            return f"object_id({enumeration!r}, {self.numbers['objectType']}, {var})"
        if name == "char" and member.dims:
            return f"fixed_text({var})"
        wrap = f"T_{name}[%s]" if name in HANDLES else "%s"
        return _grid(member.dims, [wrap % v for v in self._elements(member, var)]) if member.dims else wrap % var

    @staticmethod
    def _elements(member: Member, var: str) -> list[str]:
        count = math.prod(member.dims)
        return [var] if count == 1 else [f"{var}_{i}" for i in range(count)]

    def _nested(self, member: Member, name: str) -> str:
        at = self.fields[member.name].offset
        if selects_pointers(member):
            assert member.selector is not None
            choices, selected = SELECTIONS[name], self.numbers[member.selector]
            held = [
                (each.name, _of_union(name, each, f"a + {at}")) for each in members(name) or () if each.name in choices
            ]
            tests = (f"{{{kind!r}: {value}}} if {selected} in {tuple(choices[kind])} else " for kind, value in held)
            return f"({''.join(tests)}{{}})"
        if not member.dims:
            return f"R_{name}(a + {at})"
        size = layout.size_of(name)
        count = math.prod(member.dims)
        return f"[R_{name}(q) for q in range(a + {at}, a + {at + count * size}, {size})]"


def _of_union(owner: str, member: Member, at: str) -> str:
    """Python expression for the member of a union that is selected, at this address."""
    name = resolve(member.type)
    if member.pointer:
        return pointer_value(member, f"one('Q', {at})", None, owner)
    return f"R_{name}({at})" if name in STRUCTS else f"one({layout.scalar_code(name)!r}, {at})"


def selects_pointers(member: Member) -> bool:
    """Whether a member is a union of which another member says what it is, with pointers in it."""
    name = resolve(member.type)
    return member.selector is not None and name in SELECTIONS and any(map(_has_pointers, members(name) or ()))


def left_out(struct: str, member: Member) -> bool:
    """Whether a member has no part in the normal form: all views of a union but one, and pointers in unions."""
    return struct in UNIONS and (
        (struct == "VkClearColorValue" and member.name != "uint32")
        or (struct == "VkClearValue" and member.name != "color")
        or _has_pointers(member)
    )


def _grid(dims: tuple[int, ...], values: list[str]) -> str:
    if len(dims) == 1:
        return "[" + ", ".join(values) + "]"
    step = len(values) // dims[0]
    return "[" + ", ".join(_grid(dims[1:], values[i : i + step]) for i in range(0, len(values), step)) + "]"


def _has_pointers(member: Member) -> bool:
    name = resolve(member.type)
    if member.pointer or is_callback(name):
        return True
    return any(_has_pointers(inner) for inner in members(name) or ())


@cache
def _compiled(name: str) -> tuple[str, CodeType]:
    source = StructSource(name)
    return source.format, compile(source.source, f"{GENERATED}{name}>", "exec")


@cache
def extends(name: str, owner: str) -> bool:
    """Whether a struct may be in a pNext chain behind `owner`, which the chain belongs to or which is in it, too."""
    roots = frozenset(EXTENDED.get(name, ()))
    return owner in roots or not roots.isdisjoint(EXTENDED.get(owner, ()))


class _Reading(threading.local):
    """The state of one thread's decoding."""

    links = 0
    """How many unknown structs lie before the one that is being read."""


class Decoder:
    """Readers bound to one session's handles. `namespace` holds the global names of the session's generated code."""

    def __init__(
        self, objects: HandleRegistry, cut: set[str] | None = None, memory: layout.ReadMemory = layout.OWN_MEMORY
    ) -> None:
        self.objects = objects
        self._memory = memory
        self._reading = _Reading()
        self.cut = set[str]() if cut is None else cut
        """Chains that ended where there is no memory, or after `MOST_LINKS` structs, and members that lead to none."""
        self.namespace: dict[str, Any] = {
            "mem": memory.view,
            "many": memory.many,
            "one": memory.one,
            "blob": memory.blob,
            "text": memory.text,
            "fixed_text": layout.fixed_text,
            "chain": self.chain,
            "there": memory.there,
            "count_at": memory.count_at,
            "member_there": self._member_there,
            "object_id": object_finder(objects),
            **hooks(Templates(self.read, objects.table, memory)),
        }

    def read(self, struct_name: str, address: int) -> dict[str, Any]:
        """The struct at an address, in normal form."""
        return self.reader(struct_name)(address)

    def reader(self, struct_name: str) -> Reader:
        """The reader of one struct: address to dictionary. Made on first use, with the readers that it calls."""
        found: Reader | None = self.namespace.get("R_" + struct_name)
        if found is None:
            layout_format, code = _compiled(struct_name)
            self.namespace["U_" + struct_name] = struct.Struct(layout_format).unpack_from
            self.bind(code)
            exec(code, self.namespace)
            found = self.namespace["R_" + struct_name]
        return found

    def bind(self, code: CodeType) -> dict[str, Any]:
        """Global names that generated code uses, as far as they are readers, tables or functions of this decoder."""
        names: dict[str, Any] = {}
        for name in _global_names(code):
            if name.startswith("R_"):
                names[name] = self.reader(name[2:])
            elif name.startswith("T_") and name not in self.namespace:
                names[name] = self.namespace[name] = self.objects.table(name[2:])
            elif name in self.namespace:
                names[name] = self.namespace[name]
        return names

    def missing(self, owner: str, member: str) -> None:
        """Notes a pointer of a struct that leads to no memory, as a chain that does, unless Vulkan may ignore it."""
        if (owner, member) not in IGNORED_ELSEWHERE:
            self.cut.add(f"{member} of {owner}")

    def _member_there(self, address: int, size: int, owner: str, member: str) -> bool:
        found = self._memory.is_readable(address, size)
        if not found:
            self.missing(owner, member)
        return found

    def chain(self, address: int, owner: str) -> dict[str, Any] | None:
        """Reads the pNext chain at `address`, of a struct `owner`, no further than a driver follows it.

        A struct that the tables lack is kept as its sType; one that extends nothing of this chain is passed over.
        Where there is no memory the chain ends: a driver that does not look at `pNext` does not notice either.
        Specification: "Valid Usage for Structure Pointer Chains".
        """
        for _ in range(MOST_LINKS):
            if not address:
                return None
            if not self._memory.is_readable(address, CHAIN_HEAD):
                break
            kind, following = struct.unpack_from("<i4xQ", self._memory.view, address)
            name = STYPES.get(kind)
            if name is None:
                return {"sType": kind, "pNext": self._after_unknown(following, owner)}
            if extends(name, owner):
                if self._memory.is_readable(address, layout.size_of(name)):
                    return self.reader(name)(address)
                break
            address = following
        self.cut.add(f"a pNext chain of {owner}")
        return None

    def _after_unknown(self, address: int, owner: str) -> dict[str, Any] | None:
        if self._reading.links >= MOST_LINKS:
            self.cut.add(f"a pNext chain of {owner}")
            return None
        self._reading.links += 1
        try:
            return self.chain(address, owner)
        finally:
            self._reading.links -= 1


def _global_names(code: CodeType) -> set[str]:
    names = set() if code.co_name == "<module>" else set(code.co_names)  # a module names what it defines
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names
