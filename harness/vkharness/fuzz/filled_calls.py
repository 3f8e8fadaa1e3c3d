"""Calls and structs in normal form with every member: those that nobody gives are zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkharness.replay.objects.encode import EncodedMember, members, parameters
from vkharness.spec._generated import TYPE_ALIASES
from vkharness.spec.shapes import struct_types


def struct(name: str, **values: Any) -> dict[str, Any]:
    """A struct, by any of its names. A count that is not given is that of its array."""
    name = TYPE_ALIASES.get(name, name)
    made = {member.name: default(member) for member in members(name)}
    if name in struct_types():
        made["sType"] = struct_types()[name]
    return _filled(made, members(name), values)


def arguments(command: str, **values: Any) -> dict[str, Any]:
    """The arguments of a command, in the same way."""
    listed = parameters(command)
    return _filled({each.name: default(each) for each in listed}, listed, values)


def default(member: EncodedMember) -> Any:
    """The zero of a member."""
    if member.pointer:
        return None
    if member.dims:
        return "" if member.kind == "text" else _zeros(member, member.dims)
    return _scalar(member)


def _zeros(member: EncodedMember, dims: tuple[int, ...]) -> list[Any]:
    """A fixed-size array, nested as its bounds are."""
    return [_zeros(member, dims[1:]) if dims[1:] else _scalar(member) for _ in range(dims[0])]


def _scalar(member: EncodedMember) -> Any:
    if member.kind in ("struct", "union"):
        return struct(member.type)
    return 0.0 if member.kind == "float" else None if member.kind == "void" else 0


def _filled(made: dict[str, Any], listed: Sequence[EncodedMember], values: dict[str, Any]) -> dict[str, Any]:
    assert values.keys() <= made.keys(), values.keys() - made.keys()
    lengths = {
        member.length: len(values[member.name])
        for member in listed
        if isinstance(member.length, str) and isinstance(values.get(member.name), list)
    }
    return {**made, **{name: size for name, size in lengths.items() if name in made}, **values}
