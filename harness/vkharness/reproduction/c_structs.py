"""Structs that hold unions, which the `vulkan` package cannot make, as cffi makes them from nested dictionaries."""

from __future__ import annotations

from typing import Any

from vkharness.findings import UserError
from vkharness.reproduction.script import Script, is_zero, named, short_name
from vkharness.spec import _generated as tables
from vkharness.spec.shapes import Member, members, signature
from vkharness.trace.calls import Call

_ADDRESSES = ("deviceAddress", "hostAddress")
OF_UNIONS = frozenset({"vkCmdBuildAccelerationStructuresKHR", "vkGetAccelerationStructureBuildSizesKHR"})
"""Functions whose structs hold unions. Without the second one, the size of scratch memory is not known."""


def c_call(script: Script, call: Call, given: list[str]) -> str:
    """A call with C pointers, whose first parameters are `given`."""
    listed = signature(call.name)
    assert listed is not None
    args = call.args if call.name.startswith("vkCmd") else _without_addresses(call.args)
    rest = [_value(script, row, args.get(row.name)) for row in listed.params[len(given) :]]
    return f'rig.c_function("{call.name}")({", ".join([*given, *rest])})'


def _without_addresses(value: Any) -> Any:
    """Arguments of a query of sizes, which looks at no address."""
    if isinstance(value, list):
        return [_without_addresses(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: 0 if key in _ADDRESSES else _without_addresses(each) for key, each in value.items()}


def _value(script: Script, row: Member, value: Any, depth: int = 0) -> str:
    """An expression for a parameter, a member, or what stands `depth` pointers deep in one."""
    if value is None:
        return "vk.ffi.NULL"
    unknown = UserError(f"no scenario can be written: {row.name} of {row.type} is of no known kind")
    if isinstance(value, list):
        if row.pointer <= depth:
            raise unknown
        each = ", ".join(_value(script, row, held, depth + 1) for held in value)
        stars = "*" * (row.pointer - depth - 1)
        return script.variable(
            f'vk.ffi.new("{row.type} {stars}[]", [{each}])',
            short_name(row.type) if row.type.startswith("Vk") else "numbers",
        )
    base = tables.TYPE_ALIASES.get(row.type, row.type)
    if isinstance(value, dict):
        made = _struct(script, base, value)
        return (
            made if row.pointer == depth else script.variable(f'vk.ffi.new("{row.type} *", {made})', short_name(base))
        )
    if base in tables.HANDLES:
        return script.handle(value, base) if value else "vk.ffi.NULL"
    if row.type == "VkDeviceAddress":
        return script.address(value)
    if not isinstance(value, int) or row.pointer > depth:
        raise unknown
    return named(base, value)


def _struct(script: Script, kind: str, value: dict[str, Any]) -> str:
    """A struct, or the member of a union that is given; what is zero is left out."""
    rows = {row.name: row for row in members(kind) or ()}
    if not rows or not rows.keys() >= value.keys():
        raise UserError(f"no scenario can be written: {kind} is not known")
    if value.get("pNext"):
        raise UserError(f"no scenario can be written: {kind} chains another struct")
    given = [f'"{name}": {_value(script, rows[name], held)}' for name, held in value.items() if not is_zero(held)]
    return f"{{{', '.join(given)}}}"
