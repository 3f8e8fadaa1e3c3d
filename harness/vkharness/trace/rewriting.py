"""A call with other ids in place of the handles that it names, by the registry's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.trace.calls import Call
from vkharness.trace.references import HandleField, members_of, parameters_of
from vkharness.trace.templates import WRITES, own_keys

NewId = Callable[[int, bool], int]
"""From the id of a handle, and whether the call makes it, to the id that takes its place."""


def with_handles(call: Call, new: NewId) -> Call:
    """The call with new ids of its handles. What it says beside them is shared. VK_NULL_HANDLE stays."""
    args = _fields(parameters_of(call.name), call.args, new)
    if WRITES in own_keys(call.name) and WRITES in args:
        field = HandleField(WRITES, "VkWriteDescriptorSet", True, False)
        args = {**args, WRITES: _value(field, args[WRITES], new)}
    return call if args is call.args else replace(call, args=args)


def struct_with_handles(struct: str, value: Mapping[str, Any], new: NewId) -> dict[str, Any]:
    """A struct with new ids of its handles. It may lack members."""
    return _struct(struct, dict(value), new)


def _fields(fields: tuple[HandleField, ...], values: dict[str, Any], new: NewId) -> dict[str, Any]:
    made = values
    for field in fields:
        held = values.get(field.name)
        if not held:
            continue
        changed = _value(field, held, new)
        if changed is not held:
            made = {**made, field.name: changed}
    return made


def _value(field: HandleField, value: Any, new: NewId) -> Any:
    if isinstance(value, list):
        made = [_value(field, each, new) for each in value]
        return made if any(a is not b for a, b in zip(made, value, strict=True)) else value
    if field.struct:
        return _struct(field.type, value, new) if isinstance(value, dict) else value
    if not value or not isinstance(value, int):
        return value
    changed = new(value, field.made)
    return value if changed == value else changed


def _struct(name: str, value: dict[str, Any], new: NewId) -> dict[str, Any]:
    made = _fields(members_of(name), value, new)
    following = value.get("pNext")
    if isinstance(following, dict):
        struct = tables.STYPES.get(following.get("sType", -1))
        changed = following if struct is None else _struct(struct, following, new)
        if changed is not following:
            made = {**made, "pNext": changed}
    return made
