"""Which objects a call names and which it makes: every handle in its arguments, by the registry's tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

from vkharness.spec import _generated as tables
from vkharness.spec.shapes import main_name, members, signature
from vkharness.trace.calls import Call
from vkharness.trace.templates import WRITES, own_keys


class HandleReference(NamedTuple):
    """One handle in the arguments of a call. `made`: the call returns it."""

    type: str
    id: int
    made: bool


class HandleField(NamedTuple):
    """A member or parameter that may hold handles: of type `struct`, or a handle when that is empty."""

    name: str
    type: str
    struct: bool
    made: bool


def references(call: Call) -> Iterator[HandleReference]:
    """The handles that a call names, in the order of its parameters. VK_NULL_HANDLE is none.

    What a call that failed would have made is left out. A call that the tables lack names nothing.
    """
    for field in parameters_of(call.name):
        if not field.made or call.succeeded:
            yield from _in_value(field, call.args.get(field.name), field.made)
    for name in own_keys(call.name):
        if name == WRITES:
            yield from _in_value(HandleField(WRITES, "VkWriteDescriptorSet", True, False), call.args.get(name), False)


def references_in(struct: str, value: Mapping[str, Any]) -> Iterator[HandleReference]:
    """The handles that a struct names, in the order of its members; nothing for a struct that the tables lack."""
    return _in_struct(struct, value, False)


def _in_value(field: HandleField, value: Any, made: bool) -> Iterator[HandleReference]:
    if isinstance(value, list):
        for each in value:
            yield from _in_value(field, each, made)
    elif field.struct:
        if isinstance(value, dict):
            yield from _in_struct(field.type, value, made)
    elif value and isinstance(value, int):
        yield HandleReference(field.type, value, made)


def _in_struct(name: str, value: Mapping[str, Any], made: bool) -> Iterator[HandleReference]:
    for field in members_of(name):
        yield from _in_value(field, value.get(field.name), made)
    following = value.get("pNext")
    if isinstance(following, dict):
        struct = tables.STYPES.get(following.get("sType", -1))
        if struct is not None:
            yield from _in_struct(struct, following, made)


@cache
def parameters_of(command: str) -> tuple[HandleField, ...]:
    """The parameters of a command that may hold handles; none of a command that the tables lack."""
    found = signature(command) or signature(main_name(command))
    return () if found is None else _fields(found.params)


@cache
def members_of(struct: str) -> tuple[HandleField, ...]:
    """The members of a struct that may hold handles; none of a struct that the tables lack."""
    return _fields(members(struct) or ())


def _fields(listed: Any) -> tuple[HandleField, ...]:
    fields = []
    for each in listed:
        base = tables.TYPE_ALIASES.get(each.type, each.type)
        if base in tables.HANDLES:
            fields.append(HandleField(each.name, base, False, bool(each.pointer) and not each.const))
        elif base in tables.STRUCTS and base != "VkAllocationCallbacks":
            fields.append(HandleField(each.name, base, True, bool(each.pointer) and not each.const))
    return tuple(fields)
