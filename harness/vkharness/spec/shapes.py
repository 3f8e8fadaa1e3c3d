"""Named views of the rows of `_generated`: members of structs, parameters and signatures of commands."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from vkharness.spec import _generated as tables


class Member(NamedTuple):
    """A struct member or command parameter. The docstring of `_generated` says what each part means."""

    name: str
    type: str
    pointer: int
    const: bool
    length: tables.Length
    dims: tuple[int, ...]
    terminated: bool
    bits: int
    selector: str | None
    unchecked: bool


class Signature(NamedTuple):
    """A command: C return type, parameters in order, the command that it is an alias of (None for most)."""

    returns: str
    params: tuple[Member, ...]
    alias_of: str | None


def resolve(type_name: str) -> str:
    """The name under which the tables list a type."""
    return tables.TYPE_ALIASES.get(type_name, type_name)


def is_callback(type_name: str) -> bool:
    """Whether a type is a pointer to a function."""
    return type_name in tables.FUNCPOINTERS or type_name.startswith("PFN_")


@cache
def members(struct: str) -> tuple[Member, ...] | None:
    """Members of a struct or union under any of its names, in C order; None for a type that the tables lack."""
    rows = tables.STRUCTS.get(resolve(struct))
    return None if rows is None else tuple(Member(*row) for row in rows)


@cache
def struct_types() -> Mapping[str, int]:
    """Struct to the VkStructureType that it carries."""
    return {struct: value for value, struct in tables.STYPES.items()}


def new_struct(ffi: Any, name: str, **given: Any) -> Any:
    """A pointer to a new C struct (cffi) with its sType and the given members set; all others are zero."""
    return ffi.new(f"{name} *", {"sType": struct_types()[name], **given})


@cache
def signature(command: str) -> Signature | None:
    """Signature of a command under exactly this name, or under the name it is an alias of; None if unknown."""
    row = tables.COMMANDS.get(command) or tables.COMMANDS.get(main_name(command))
    return None if row is None else Signature(row[0], tuple(Member(*param) for param in row[1]), row[2])


def main_name(command: str) -> str:
    """The one name that stands for a command and its aliases: vkCmdCopyBuffer2KHR gives vkCmdCopyBuffer2."""
    return tables.COMMAND_ALIASES.get(command, command)
