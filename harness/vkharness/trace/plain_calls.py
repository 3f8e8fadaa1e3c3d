"""Calls in the plain form, in which nearly every call of a trace is: read by functions that are made from the tables.

A function is made for each command and struct when it is first met. It gives what the codecs give
(`vkharness.trace.field_codecs`), only sooner, and leaves alone whatever is not plain: values of the wrong type or out
of range, members that are left out, names that are newer than the tables, bytes in files. The codecs read such a call
from its start, and say what is wrong with it. So a plain call is one that nobody has a remark about, and reading it
changes nothing but the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vkharness.spec import _generated as tables
from vkharness.trace.call_shapes import command_check
from vkharness.trace.calls import INDICES, Call
from vkharness.trace.field_codecs import (
    Array,
    Chain,
    Counts,
    Members,
    Nullable,
    Rows,
    Struct,
    Union,
    Uuid,
    command_counts,
    command_forms,
    outputs,
    own_forms,
    struct_counts,
    stype_form,
)
from vkharness.trace.lines import Corrupt
from vkharness.trace.scalars import (
    HEX,
    Blob,
    Boolean,
    Enumeration,
    FieldCodec,
    Flags,
    Handle,
    Integer,
    Opaque,
    Reading,
    Text,
)

Read = Callable[[Any, Reading], Any]
"""From JSON to normal form."""

MOST_LINKS = 16
"""The most structs of a pNext chain that are read here."""
MOST_TEXTS = 4096
"""The most texts of flags that are kept with their numbers, for each kind of flags."""


class NotPlain(Exception):
    """A value is not plain; the codecs say what it is."""


_TROUBLE = (NotPlain, Corrupt, KeyError, TypeError, ValueError, OverflowError, RecursionError)
"""Exceptions that the reading of a value raises if the value is not plain."""


class PlainCommand:
    """How the plain calls of one command are read."""

    __slots__ = ("_check", "_read", "_results", "name")

    def __init__(self, name: str, forms: Members) -> None:
        self.name = name
        self._read = _compiled(name, forms, command_counts(name))
        self._results = tables.ENUMS["VkResult"] if tables.COMMANDS[name][0] == "VkResult" else None
        self._check = command_check(name)

    def call(self, value: dict[str, Any], function: dict[str, Any], reading: Reading) -> Call:
        """The call of a block. Raises one of `_TROUBLE` where it is not plain."""
        index, thread = value["index"], function.get("thread", 0)
        if type(index) is not int or index not in INDICES or type(thread) is not int or not 0 <= thread < 1 << 64:
            raise NotPlain
        result = None if self._results is None else self._results[function["return"]]
        args = self._read(function["args"], reading)
        if self._check is not None:
            self._check(args)
        return Call(index, self.name, args, result, reading.stacks.site(value), thread)


def read_plain(value: dict[str, Any], reading: Reading) -> Call | None:
    """The call of a block, None where the codecs must read it."""
    function = value.get("function")
    if type(function) is not dict:
        return None
    name = function.get("name")
    command = _plain_command(name) if type(name) is str else None
    if command is None:
        return None
    try:
        return command.call(value, function, reading)
    except _TROUBLE:
        return None


class _PlainCommands(dict[str, "PlainCommand | None"]):
    """Command to how it is read. Names that the tables do not have are not kept: a trace has as many as it likes."""

    def __missing__(self, name: str) -> PlainCommand | None:
        command = tables.COMMANDS.get(name)
        if command is None:
            return None
        forms = command_forms(name)
        is_plain = forms is not None and not outputs(name) and not own_forms(name)
        plain = is_plain and command[0] in ("void", "VkResult")
        made = self[name] = PlainCommand(name, forms) if plain and forms is not None else None
        return made


_plain_command = _PlainCommands().__getitem__


# -- functions from forms ----------------------------------------------------------------------------------------------


class _Structs(dict[str, Read]):
    """Struct to the function that reads it. Structs may hold themselves, so that it is looked up when it runs."""

    def __missing__(self, name: str) -> Read:
        made = self[name] = _compiled(name, Struct(name).members, struct_counts(name))
        return made


_STRUCTS = _Structs()


class _Texts(dict[str, int]):
    """Texts of one kind of flags, or of one enum, with their numbers."""

    def __init__(self, form: Flags | Enumeration) -> None:
        super().__init__()
        self._flags = isinstance(form, Flags)
        self.update(form.values)
        if isinstance(form, Flags):
            self.update((name, form.bit(name) or 0) for name in form.values)

    def __missing__(self, text: str) -> int:
        if not self._flags or type(text) is not str or not HEX.match(text):
            raise NotPlain
        number = int(text, 16)
        if len(self) < MOST_TEXTS:
            self[text] = number
        return number


def _chain(value: Any, reading: Reading) -> Any:
    """A pNext chain of structs that the tables have."""
    link = value
    for _ in range(MOST_LINKS):
        link = link["pNext"]
        if link is None:
            return _STRUCTS[tables.STYPES[stype_form().values[value["sType"]]]](value, reading)
    raise NotPlain


def _compiled(name: str, forms: Members, counts: Counts) -> Read:
    """The function that reads a struct, or the arguments of a command; `v` is the object."""
    space: dict[str, Any] = {"NotPlain": NotPlain, "structs": _STRUCTS, "chain": _chain, "refuse": _refuse}
    lines = ["if type(v) is not dict: raise NotPlain"]
    local = {key: f"m{at}" for at, (key, _) in enumerate(forms)}
    for key, form in forms:
        lines += [f"{local[key]} = v[{key!r}]", *_lines_of(form, local[key], space)]
    for key, length in counts:
        if length not in local:
            continue
        held, said = local[key], local[length]
        lines.append(f"if type({held}) in (list, bytes) and type({said}) is int and len({held}) != {said}:")
        lines.append("    raise NotPlain")
    lines.append(f"return {{{', '.join(f'{key!r}: {held}' for key, held in local.items())}}}")
    body = "".join(f"    {line}\n" for line in lines)
    exec(compile(f"def read(v, r):\n{body}", f"<plain {name}>", "exec"), space)
    made: Read = space["read"]
    return made


def _lines_of(form: FieldCodec, held: str, space: dict[str, Any]) -> list[str]:
    """Python lines that take the variable `held` from JSON to normal form; what they need is put into `space`."""
    if isinstance(form, (Integer, Handle)):
        low, high = (form.low, form.high) if isinstance(form, Integer) else (0, (1 << 64) - 1)
        return [f"if type({held}) is not int or not {low} <= {held} <= {high}: raise NotPlain"]
    if isinstance(form, Boolean):
        return [f"{held} = 1 if {held} is True else 0 if {held} is False else refuse()"]
    if isinstance(form, (Flags, Enumeration)):
        return [f"{held} = {_named(space, _Texts(form))}[{held}]"]
    if isinstance(form, Text):
        return [f"if {held} is not None and type({held}) is not str: raise NotPlain"]
    if isinstance(form, Opaque):
        return [f"{held} = None"]
    inner = _lines_of_pointer(form, held, space)
    return [f"if {held} is not None:", *(f"    {line}" for line in inner)] if inner else _others(form, held, space)


def _refuse() -> int:
    raise NotPlain


def _lines_of_pointer(form: FieldCodec, held: str, space: dict[str, Any]) -> list[str]:
    """For forms whose value may be null: the lines for one that is not."""
    if isinstance(form, Nullable):
        return _lines_of(form.target, held, space) or ["pass"]
    if isinstance(form, Chain):
        return [f"{held} = chain({held}, r)"]
    if isinstance(form, Blob):
        return [f"if type({held}) is not list: raise NotPlain", f"{held} = bytes({held})"]
    if isinstance(form, Rows):
        return ["raise NotPlain"]
    if isinstance(form, Array) and not isinstance(form, Uuid) and form.bound is None:
        return _elements(form, held, space)
    return []


def _elements(form: Array, held: str, space: dict[str, Any]) -> list[str]:
    one = held + "_"
    lines = [f"    {line}" for line in _lines_of(form.element, one, space)]
    return [
        f"if type({held}) is not list: raise NotPlain",
        f"{held}_all = []",
        f"for {one} in {held}:",
        *lines,
        f"    {held}_all.append({one})",
        f"{held} = {held}_all",
    ]


def _others(form: FieldCodec, held: str, space: dict[str, Any]) -> list[str]:
    """Structs, arrays of fixed size, and what its codec reads, which has no remarks about what it takes."""
    if isinstance(form, Union):
        return ["raise NotPlain"]
    if isinstance(form, Struct):
        return [f"{held} = structs[{form.name!r}]({held}, r)"]
    if isinstance(form, Array) and not isinstance(form, Uuid):
        return [
            f"if type({held}) is list and len({held}) > {form.bound}: raise NotPlain",
            *_elements(form, held, space),
        ]
    return [f"{held} = {_named(space, form.read)}({held}, r)"]


def _named(space: dict[str, Any], value: Any) -> str:
    """A name for a value in the functions that are made."""
    name = f"_{len(space)}"
    space[name] = value
    return name
