"""Layouts of the C memory that the native front end reads: rows for `Shape` of the native core, from the registry.

A shape gives what the generated Python of `decode` and `forward` gives. Where it has no form for a struct's member, the
struct is read by Python's reader; where it has none for a command's parameter, `LookupError` says so, and the command
goes the Python way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from vkharness.native import core
from vkharness.record import struct_layout as layout
from vkharness.record.decode import Decoder, left_out, selects_pointers
from vkharness.spec._generated import HANDLES, STRUCTS, UNIONS
from vkharness.spec.command_classes import decides_access
from vkharness.spec.followed import GUARDS, NEVER_FOLLOWED, STRIDES
from vkharness.spec.shapes import Member, Signature, is_callback, main_name, members, resolve
from vkharness.trace.named_objects import OBJECT_TYPES

BYTES_PER_ARGUMENT = 8
"""A command's arguments lie side by side, each at a multiple of this."""


class ShapeField(NamedTuple):
    """One member of a struct, or one parameter of a command, in the order in which the core takes it."""

    key: str
    offset: int
    size: int = 0
    """Bytes of one element."""
    form: str = "v"
    """v: the value itself, a: an array of fixed size, *: a pointer to one, +: a pointer to many."""
    kind: str = "0"
    """n: a number, b: bits of one, h: a handle, s: a struct, p: a struct that Python reads, c: `pNext`, B: bytes,
    0: nothing that is read (None)."""
    code: str = "B"
    """Of a number: as in the module `struct`."""
    shift: int = 0
    bits: int = 0
    object: Any = None
    """The table of a handle, the `Shape` of a struct, the function that Python reads with."""
    length: int = -1
    """Elements of an array; -1 where another member says how many."""
    count_offset: int = 0
    count_code: str = "I"
    divisor: int = 1
    """The number by which the other member's value is divided, rounding up, to get the number of elements."""
    guard: tuple[int, ...] = ()
    """The values of a member with which this one means anything (`GUARDS`); none where it always does."""
    guard_offset: int = 0
    guard_code: str = "I"
    stride_offset: int = 0
    stride_code: str = "0"
    """Of the member that says how many bytes apart structs lie; 0 where they lie side by side."""


Place = Callable[[str], tuple[int, str]]
"""Name of a sibling to its offset and number code."""


class Shapes:
    """Shapes bound to one session's handles. Those for `accesses_alone` leave out what no access follows from, so that
    a call is known by the rest: a viewport may be another one each time."""

    def __init__(self, decoder: Decoder, accesses_alone: bool = False) -> None:
        self._decoder, self._accesses_alone = decoder, accesses_alone
        self._made: dict[str, Any] = {}

    def of_command(self, name: str, shape: Signature) -> Any:
        """The shape of a command's arguments. `LookupError` where a parameter has no native form."""
        arguments = layout.prototype(name).args
        codes = {p.name: _argument_code(kind) for p, kind in zip(shape.params, arguments, strict=True)}
        places = {p.name: i * BYTES_PER_ARGUMENT for i, p in enumerate(shape.params)}

        def place(sibling: str) -> tuple[int, str]:
            return places[sibling], codes[sibling]

        of, stride = STRIDES.get(name, ("", ""))
        rows = [
            self._parameter(p, places[p.name], codes[p.name], place)
            if self._is_read(main_name(name), p)
            else ShapeField(p.name, places[p.name])
            for p in shape.params
        ]
        if of:
            at, code = place(stride)
            rows = [row._replace(stride_offset=at, stride_code=code) if row.key == of else row for row in rows]
        assert core is not None
        return core.Shape(name, tuple(map(tuple, rows)))

    def _parameter(self, param: Member, offset: int, code: str, place: Place) -> ShapeField:
        name = resolve(param.type)
        if param.pointer and not param.const:
            raise LookupError(param.name)  # an output
        if param.pointer or param.dims:
            return self._pointer(param, offset, place)
        if name in HANDLES:
            return self._handle(param.name, offset, name)
        if layout.scalar_code(name) is None:
            return ShapeField(param.name, offset)
        return ShapeField(param.name, offset, kind="n", code=code)

    def _is_read(self, owner: str, member: Member) -> bool:
        return not self._accesses_alone or decides_access(owner, member)

    def _struct(self, name: str) -> tuple[str, Any]:
        """Kind and object of a field that holds a struct."""
        found = self._made.get(name)
        if found is None:
            try:
                rows = self._members(name)
            except LookupError:
                found = "p", self._decoder.reader(name)
            else:
                assert core is not None
                found = "s", core.Shape(name, tuple(map(tuple, rows)), self._decoder.missing)
            self._made[name] = found
        return found

    def _members(self, name: str) -> list[ShapeField]:
        """A struct's fields. `LookupError` where it has a member without a native form."""
        fields = layout.fields_of(name)
        rows = members(name) or ()
        types = {member.name: member.type for member in rows}

        def place(sibling: str) -> tuple[int, str]:
            code = layout.scalar_code(types[sibling])
            if code is None or fields[sibling].bits:
                raise LookupError(sibling)
            return fields[sibling].offset, code

        return [self._member(name, member, fields[member.name], place) for member in rows if not left_out(name, member)]

    def _member(self, owner: str, member: Member, field: layout.Field, place: Place) -> ShapeField:
        name = resolve(member.type)
        if not self._is_read(owner, member):
            return ShapeField(member.name, field.offset)
        if (owner, member.name) in OBJECT_TYPES or len(member.dims) > 1 or selects_pointers(member):
            raise LookupError(member.name)
        if member.name == "pNext":
            return ShapeField(member.name, field.offset, kind="c", object=self._decoder.chain)
        if member.pointer:
            return self._guarded(owner, self._pointer(member, field.offset, place), place)
        count = math.prod(member.dims)
        found = ShapeField(member.name, field.offset)
        if name in HANDLES:
            found = self._handle(member.name, field.offset, name)
        elif name in STRUCTS or name in UNIONS:
            kind, struct = self._struct(name)
            found = found._replace(size=layout.size_of(name), kind=kind, object=struct)
        else:
            code = layout.scalar_code(name)
            if name == "char" and member.dims:
                raise LookupError(member.name)
            if code is not None:
                found = found._replace(size=layout.size_of_number(code), kind="n", code=code)
            if field.bits:
                found = found._replace(kind="b", shift=field.shift, bits=field.bits)
        return found._replace(form="a", length=count) if member.dims else found

    @staticmethod
    def _guarded(owner: str, found: ShapeField, place: Place) -> ShapeField:
        guard = GUARDS.get((owner, found.key))
        if guard is None:
            return found
        offset, code = place(guard[0])
        return found._replace(guard=tuple(map(int, guard[1])), guard_offset=offset, guard_code=code)

    def _handle(self, key: str, offset: int, name: str) -> ShapeField:
        return ShapeField(key, offset, size=8, kind="h", object=self._decoder.objects.table(name))

    def _pointer(self, member: Member, offset: int, place: Place) -> ShapeField:
        """A pointer: to one element, or to as many as its length says."""
        name = resolve(member.type)
        if member.name in NEVER_FOLLOWED or is_callback(name) or name == "VkAllocationCallbacks":
            return ShapeField(member.name, offset)
        if member.pointer > 1 or name == "char":
            raise LookupError(member.name)
        found = self._counted(member, offset, place)
        if name == "void" or (isinstance(member.length, tuple) and member.length[0] == "bytes"):
            if found.form == "*":
                return ShapeField(member.name, offset)
            return found._replace(size=1, kind="B")
        if name in HANDLES:
            return found._replace(size=8, kind="h", object=self._decoder.objects.table(name))
        if name in STRUCTS or name in UNIONS:
            kind, struct = self._struct(name)
            return found._replace(size=layout.size_of(name), kind=kind, object=struct)
        code = layout.scalar_code(name)
        if code is None:
            return ShapeField(member.name, offset)
        return found._replace(size=layout.size_of_number(code), kind="n", code=code)

    @staticmethod
    def _counted(member: Member, offset: int, place: Place) -> ShapeField:
        length: Any = member.dims[0] if member.dims else member.length
        if length is None:
            return ShapeField(member.name, offset, form="*")
        if isinstance(length, int):
            return ShapeField(member.name, offset, form="+", length=length)
        if isinstance(length, tuple) and length[0] not in ("bytes", "ceil_div"):
            raise LookupError(member.name)
        at, code = place(str(length if isinstance(length, str) else length[1]))
        divisor = int(length[-1]) if isinstance(length, tuple) and length[0] == "ceil_div" else 1
        return ShapeField(member.name, offset, form="+", count_offset=at, count_code=code, divisor=divisor)


def _argument_code(kind: Any) -> str:
    """The number code of an argument as cffi converts it: it takes exactly the numbers of this type."""
    ffi = layout.package_ffi()
    if kind.kind == "pointer":
        return "Q"
    if kind.cname in ("float", "double"):
        return str(kind.cname)[0]
    unsigned = int(ffi.cast(kind, -1)) > 0
    return {2: "hH", 4: "iI", 8: "qQ"}[ffi.sizeof(kind)][unsigned]
