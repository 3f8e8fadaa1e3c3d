"""Normal-form values to C memory: the inverse of what `record` decodes.

Values come from traces, which may be truncated or hostile, so everything is checked against the generated tables
before C sees it: types, ranges, the lengths of arrays against their counts, and handles against the objects that
exist. What does not fit raises `UserError` naming the call and the member. C memory lives as long as the `Encoder`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from vkharness.findings import UserError
from vkharness.replay.objects.device_addresses import DeviceAddresses
from vkharness.spec._generated import (
    BASETYPES,
    BITMASKS,
    COMMANDS,
    ENUMS,
    FUNCPOINTERS,
    HANDLES,
    STRUCTS,
    STYPES,
    TYPE_ALIASES,
    UNIONS,
)
from vkharness.spec._generated import Member as Row
from vkharness.spec.followed import STRIDES
from vkharness.spec.shapes import struct_types

MAX_DEPTH = 64
"""The deepest nesting of structures that is accepted."""

INTEGERS = frozenset({"uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t", "int64_t"})
INTEGERS |= {"int", "size_t"}
IGNORED = frozenset({"pAllocator", "pUserData"})


@dataclass(slots=True)
class Handles:
    """Maps ids of the trace to objects of the target: the name of the handle's type, and the raw handle."""

    entries: dict[int, tuple[str, int]] = field(default_factory=dict)
    addresses: DeviceAddresses = field(default_factory=DeviceAddresses)

    def add(self, identity: int, type_name: str, raw: int) -> None:
        """Makes `identity` stand for the object of the target whose raw handle is `raw`."""
        self.entries[identity] = (TYPE_ALIASES.get(type_name, type_name), raw)

    def raw(self, identity: int) -> int:
        """The raw handle of an id that is known to exist."""
        return self.entries[identity][1]

    def __contains__(self, identity: int) -> bool:
        return identity in self.entries


@dataclass(frozen=True, slots=True)
class EncodedMember:
    """One row of the generated tables, with names. The docstring of the tables describes the columns."""

    name: str
    type: str
    pointer: int
    const: bool
    length: Any
    dims: tuple[int, ...]
    terminated: bool
    unchecked: bool
    kind: str
    """'void', 'handle', 'struct', 'union', 'text', 'float' or 'int'."""


@dataclass(slots=True)
class Encoded:
    """One call ready to be made: its C arguments in order, and the C memory of its output parameters by name."""

    arguments: list[Any]
    outputs: dict[str, Any]


def _kind(row: Row) -> str:
    name = row[1]
    if name in FUNCPOINTERS or name.startswith("PFN_"):
        return "void"
    if name in HANDLES:
        return "handle"
    if name in UNIONS:
        return "union"
    if name in STRUCTS:
        return "struct"
    if name == "char":
        return "text"
    if name in ("float", "double"):
        return "float"
    # The rest are integers, `void`, and types of window systems and video headers, which have no normal form.
    if name.startswith("StdVideo"):
        return "int" if name.endswith("Idc") else "void"
    return "int" if name in INTEGERS or any(name in table for table in (BASETYPES, ENUMS, BITMASKS)) else "void"


def _member(row: Row) -> EncodedMember:
    return EncodedMember(row[0], row[1], row[2], row[3], row[4], row[5], row[6], row[9], _kind(row))


@cache
def members(struct: str) -> tuple[EncodedMember, ...]:
    """The members of a struct or union, in order."""
    return tuple(_member(row) for row in STRUCTS[struct])


@cache
def parameters(command: str) -> tuple[EncodedMember, ...]:
    """The parameters of a command, in order."""
    return tuple(_member(row) for row in COMMANDS[command][1])


class Encoder:
    """Encodes values and owns the C memory made for them. Drop it when the calls have returned."""

    def __init__(self, ffi: Any, handles: Handles) -> None:
        self.ffi = ffi
        self.handles = handles
        self.skipped: set[int] = set()
        """sType values of pNext elements that the tables do not have; they were left out."""
        self._kept: list[Any] = []
        self._depth = 0

    def call(self, name: str, args: Mapping[str, Any], where: str, given: Mapping[str, Any] | None = None) -> Encoded:
        """The arguments of one call. `given` overrides parameters with ready C values; `where` begins messages.

        Raises UserError for an unknown command or a value that does not fit its type.
        """
        if name not in COMMANDS:
            raise UserError(f"{where}: unknown command {name}")
        if not isinstance(args, dict):
            raise UserError(f"{where}: the arguments of {name} are not an object")
        encoded = Encoded([], {})
        of, stride = STRIDES.get(name, ("", ""))
        for parameter in parameters(name):
            path = f"{where}: {name} {parameter.name}"
            if given is not None and parameter.name in given:
                value = given[parameter.name]
            elif parameter.name == stride:
                value = self.ffi.sizeof(next(each.type for each in parameters(name) if each.name == of))
            elif parameter.pointer and not parameter.const and parameter.kind != "void":
                value = self._output(parameter, args, path)
                encoded.outputs[parameter.name] = value
            else:
                self._check_null(parameter, args, path)
                value = self._value(parameter, args, path)
            encoded.arguments.append(value)
        return encoded

    def struct(self, name: str, value: Any, path: str) -> Any:
        """A pointer to a new C struct with the members of `value`; members left out are zero."""
        pointer = self._new(f"{name} *")
        self._fill(pointer[0], name, value, path)
        return pointer

    def chain(self, value: Any, path: str) -> Any:
        """A pNext chain (nested dicts) as a `void *`; elements of unknown sType are left out."""
        if value is None:
            return self.ffi.NULL
        kind = value.get("sType") if isinstance(value, dict) else None
        if not isinstance(kind, int):
            raise UserError(f"{path} is not a struct with an sType")
        name = STYPES.get(kind)
        if name is None or name not in STRUCTS:
            self.skipped.add(kind)
            return self.chain(value.get("pNext"), path)
        return self.ffi.cast("void *", self.struct(name, value, f"{path}<{name}>"))

    def _new(self, kind: str, *arguments: Any) -> Any:
        memory = self.ffi.new(kind, *arguments)
        self._kept.append(memory)
        return memory

    def _output(self, member: EncodedMember, values: Mapping[str, Any], path: str) -> Any:
        """C memory for what a call returns; counts and struct chains that the call reads are filled in."""
        value = values.get(member.name)
        self._check_count(member, values, len(value) if isinstance(value, list) else 1, path)
        if member.pointer > 1:
            return self._new(f"{member.type}{' *' * member.pointer}")
        if member.kind in ("struct", "union"):
            items = value if isinstance(value, list) else [value]
            array = self._new(f"{member.type}[]", len(items))
            for index, item in enumerate(items):
                if item is not None:
                    self._fill(array[index], member.type, item, path)
            return array
        count = len(value) if isinstance(value, list) else 1
        array = self._new(f"{member.type}[]", count)
        if member.kind == "int" and isinstance(value, int):
            self._assign(array, 0, value, path)
        return array

    def _fill(self, target: Any, name: str, value: Any, path: str) -> None:
        """Writes `value` into the C struct `target`, in place."""
        if not isinstance(value, dict):
            raise UserError(f"{path} is not an object but {type(value).__name__}")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise UserError(f"{path}: nested deeper than {MAX_DEPTH} levels")
        for member in members(name):
            if member.name in value:
                self._set(target, member, value, f"{path}.{member.name}")
        kind = struct_types().get(name)
        if kind is not None:
            # The table's, so that no struct can pass for another one.
            target.sType = kind
        self._depth -= 1

    def _set(self, target: Any, member: EncodedMember, values: dict[str, Any], path: str) -> None:
        value = values[member.name]
        if member.pointer:
            if value is not None:
                setattr(target, member.name, self._value(member, values, path))
            return
        if member.dims:
            self._fill_array(target, member, value, path)
        elif member.kind in ("struct", "union"):
            self._fill(getattr(target, member.name), member.type, value, path)
        elif member.kind == "handle":
            setattr(target, member.name, self._handle(member, value, path))
        elif member.kind != "void":
            self._check_number(member, value, path)
            self._guard(lambda: setattr(target, member.name, value), value, path)

    def _value(self, member: EncodedMember, values: Mapping[str, Any], path: str) -> Any:
        """One parameter, or one pointer member, as a C value."""
        value = values.get(member.name)
        if not member.pointer and not member.dims:
            return self._scalar(member, value, path)
        if value is None or member.name in IGNORED:
            return self.ffi.NULL
        if member.name == "pNext":
            return self.chain(value, path)
        if isinstance(value, (bytes, bytearray)):
            return self._bytes(member, values, bytes(value), path)
        if member.kind == "void":
            return self.ffi.NULL
        if member.kind == "text":
            return self._text(member, values, value, path)
        if member.length is None and not member.dims:
            return self._pointee(member, value, path)
        return self._array(member, values, value, path)

    def _scalar(self, member: EncodedMember, value: Any, path: str) -> Any:
        if member.kind == "handle":
            return self._handle(member, value, path)
        if member.kind in ("struct", "union"):
            return self.struct(member.type, value, path)[0]
        if member.kind == "void":
            return self.ffi.NULL
        self._check_number(member, value, path)
        # Through memory of the exact type, so that a value out of range is refused rather than cut.
        cell = self._new(f"{member.type} *")
        self._assign(cell, 0, value, path)
        return cell[0]

    def _pointee(self, member: EncodedMember, value: Any, path: str) -> Any:
        if member.pointer > 1:
            raise UserError(f"{path}: pointers to pointers cannot be re-created")
        if member.kind in ("struct", "union"):
            return self.struct(member.type, value, path)
        cell = self._new(f"{member.type} *")
        self._assign(cell, 0, self._element(member, value, path), path)
        return cell

    def _array(self, member: EncodedMember, values: Mapping[str, Any], value: Any, path: str) -> Any:
        if not isinstance(value, list):
            raise UserError(f"{path} is not an array but {type(value).__name__}")
        self._check_count(member, values, len(value), path)
        if member.pointer > 1:
            if member.kind != "struct":
                raise UserError(f"{path}: pointers to pointers cannot be re-created")
            pointers = [self.struct(member.type, item, f"{path}[{index}]") for index, item in enumerate(value)]
            return self._new(f"{member.type} *[]", pointers)
        array = self._new(f"{member.type}[]", len(value))
        self._fill_items(array, member, value, path)
        return array

    def _fill_array(self, target: Any, member: EncodedMember, value: Any, path: str) -> None:
        """Writes a fixed-size array member, in place."""
        if member.kind == "text":
            if not isinstance(value, str) or len(value.encode(errors="surrogateescape")) >= member.dims[0]:
                raise UserError(f"{path} is not a text of fewer than {member.dims[0]} bytes")
            setattr(target, member.name, value.encode(errors="surrogateescape"))
            return
        if isinstance(value, (bytes, bytearray)):
            value = list(value)
        self._fill_grid(getattr(target, member.name), member, value, member.dims, path)

    def _fill_grid(self, array: Any, member: EncodedMember, value: Any, dims: tuple[int, ...], path: str) -> None:
        if not isinstance(value, list) or len(value) > dims[0]:
            raise UserError(f"{path} is not an array of {dims[0]} elements")
        if len(dims) == 1:
            self._fill_items(array, member, value, path)
            return
        for index, row in enumerate(value):
            self._fill_grid(array[index], member, row, dims[1:], f"{path}[{index}]")

    def _fill_items(self, array: Any, member: EncodedMember, value: list[Any], path: str) -> None:
        for index, item in enumerate(value):
            if member.kind in ("struct", "union"):
                self._fill(array[index], member.type, item, f"{path}[{index}]")
            else:
                self._assign(array, index, self._element(member, item, f"{path}[{index}]"), f"{path}[{index}]")

    def _element(self, member: EncodedMember, value: Any, path: str) -> Any:
        if member.kind == "handle":
            return self._handle(member, value, path)
        self._check_number(member, value, path)
        return value

    def _handle(self, member: EncodedMember, value: Any, path: str) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            raise UserError(f"{path} is not a handle but {type(value).__name__}")
        if value == 0:
            return self.ffi.cast(member.type, 0)
        entry = self.handles.entries.get(value)
        if entry is None or entry[0] != TYPE_ALIASES.get(member.type, member.type):
            if member.unchecked:
                # The specification lets such a member hold anything where it is not used.
                return self.ffi.cast(member.type, 0)
            what = "does not exist here, or has no memory" if entry is None else f"is a {entry[0]}, not a {member.type}"
            raise UserError(f"{path}: object {value} {what}")
        return self.ffi.cast(member.type, entry[1])

    def _text(self, member: EncodedMember, values: Mapping[str, Any], value: Any, path: str) -> Any:
        if member.pointer > 1:
            if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
                raise UserError(f"{path} is not an array of texts")
            self._check_count(member, values, len(value), path)
            return self._new("char *[]", [self._new("char[]", item.encode(errors="surrogateescape")) for item in value])
        if not isinstance(value, str):
            raise UserError(f"{path} is not a text but {type(value).__name__}")
        return self._new("char[]", value.encode(errors="surrogateescape"))

    def _bytes(self, member: EncodedMember, values: Mapping[str, Any], value: bytes, path: str) -> Any:
        """A blob; the memory is aligned for any type and padded to whole 8-byte words."""
        counts_bytes = member.kind == "void" or (isinstance(member.length, tuple) and member.length[0] == "bytes")
        size = 1 if counts_bytes else self.ffi.sizeof(member.type)
        self._check_count(member, values, len(value) // size, path)
        memory = self._new("uint64_t[]", len(value) // 8 + 1)
        self.ffi.memmove(memory, value, len(value))
        return self.ffi.cast(f"{member.type} *", memory)

    def _check_count(self, member: EncodedMember, values: Mapping[str, Any], have: int, path: str) -> None:
        """Refuses an array shorter than its count says: C would read past its end."""
        need = self._count(member, values)
        if need is not None and have < need:
            raise UserError(f"{path} has {have} elements where its count says {need}")

    def _count(self, member: EncodedMember, values: Mapping[str, Any]) -> int | None:
        length = member.length
        if length is None:
            return member.dims[0] if member.dims else None
        if isinstance(length, int):
            return length
        if isinstance(length, str):
            found = values.get(length)
        elif length[0] == "path":
            outer = values.get(length[1])
            found = outer.get(length[2]) if isinstance(outer, dict) else None
        elif length[0] == "bytes":
            found = values.get(length[1])
        else:
            count = values.get(length[1])
            found = -(-count // length[2]) if isinstance(count, int) else None
        return found if isinstance(found, int) else None

    def _check_null(self, parameter: EncodedMember, args: Mapping[str, Any], path: str) -> None:
        """Refuses a null pointer that the driver would follow: to a struct, or to as many elements as a count says."""
        if args.get(parameter.name) is not None or parameter.name in IGNORED or parameter.pointer != 1:
            return
        if parameter.kind not in ("struct", "union", "handle") or not parameter.const or parameter.unchecked:
            return
        if parameter.length is None or self._count(parameter, args):
            raise UserError(f"{path} is missing")

    def _check_number(self, member: EncodedMember, value: Any, path: str) -> None:
        wanted = (int, float) if member.kind == "float" else (int,)
        if not isinstance(value, wanted):
            raise UserError(f"{path} is not a number but {type(value).__name__}")

    def _assign(self, array: Any, index: int, value: Any, path: str) -> None:
        def assign() -> None:
            array[index] = value

        self._guard(assign, value, path)

    def _guard(self, assign: Callable[[], None], value: Any, path: str) -> None:
        try:
            assign()
        except (OverflowError, TypeError) as error:
            raise UserError(f"{path}: {value!r} does not fit ({error})") from None
