"""The function of each command that a stream names: it takes the arguments as they lie in a record."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

from vkharness.live.record_memory import ARGUMENTS
from vkharness.record import struct_layout as layout
from vkharness.record.decode import Decoder
from vkharness.record.forward import CallSink, Function, make_forwarder
from vkharness.record.native_front import is_native
from vkharness.record.native_shapes import Shapes
from vkharness.record.payload_files import exported_file, imported_file
from vkharness.spec._generated import HANDLES
from vkharness.spec.shapes import resolve, signature
from vkharness.trace.calls import PAYLOAD

LONGEST_NAME = 256
NOTHING: dict[str, str] = {}


class RecordForm(NamedTuple):
    """How the arguments and the result of a command lie in its record."""

    arguments: struct.Struct
    arity: int
    result: Callable[[int], int | None]


class RecordCommand(NamedTuple):
    """A command of one stream."""

    name: str
    form: RecordForm | None
    """None of a command that the tables lack."""


@cache
def form_of(name: str) -> RecordForm | None:
    """How a command lies in a record; None of one that the tables lack."""
    shape = signature(name)
    if shape is None:
        return None
    text = "<"
    for param in shape.params:
        type_name = resolve(param.type)
        pointer = param.pointer or param.dims or type_name in HANDLES
        code = "Q" if pointer else layout.scalar_code(type_name) or "Q"
        text += f"{code}{8 - layout.size_of_number(code)}x"
    returns = resolve(shape.returns)
    is_signed = returns != "void" and layout.scalar_code(returns) in ("i", "q")
    number = _nothing if returns == "void" else _signed if is_signed else _unsigned
    return RecordForm(struct.Struct(text), len(shape.params), number)


class RecordCommands:
    """The commands of one stream, by the numbers that it gives them; and what generated code asks beside a call."""

    def __init__(self, decoder: Decoder, recorder: CallSink) -> None:
        self._decoder, self._recorder = decoder, recorder
        self._by_number: dict[int, RecordCommand] = {}
        self._functions: dict[str, Function] = {}
        self.result: int | None = None
        """Of the call that is taken now."""
        self.separate: dict[int, int] = {}
        """By the handle of a physical device: separateDepthStencilAttachmentAccess."""
        self.files: dict[int, str] = {}
        """By descriptor: the file behind it, for the call that is taken now."""

    def named(self, number: int, name: str) -> None:
        """The stream names a command."""
        self._by_number[number] = RecordCommand(name, form_of(name))

    def call(self, command: RecordCommand, arguments: tuple[Any, ...]) -> None:
        """Takes a call: decodes and records it. The function that does so is made with the first one."""
        function = self._functions.get(command.name)
        if function is None:
            function = make_forwarder(command.name, self._returned, self._decoder, self._recorder, self._origin)
            self._functions[command.name] = function
        function(*arguments)

    def of(self, number: int) -> RecordCommand | None:
        """The command of a number; None where the stream did not name it."""
        return self._by_number.get(number)

    def _returned(self, *_: object) -> int | None:
        return self.result

    def _origin(self, real: Function) -> dict[str, Any]:
        """See `vkharness.record.forward.of_this_process`: here addresses are in the record, and the call was made."""
        return {
            "real": real,
            "cast": _as_it_is,
            "uintptr": None,
            "separate_aspects": self.separate.get,
            "exported_file": partial(exported_file, key=self._file),
            "imported_file": partial(imported_file, key=self._file),
        }

    def _file(self, descriptor: int) -> dict[str, str]:
        found = self.files.get(descriptor)
        return NOTHING if found is None else {PAYLOAD: found}


def native_form(name: str, shapes: Shapes, recorder: CallSink) -> tuple[Any, int]:
    """The native form of a command's arguments, None where it has none, and how many arguments it has."""
    shape = signature(name)
    hooks = (recorder.before(name), recorder.after(name), recorder.cancelled(name))
    if shape is None or shape.returns != "void" or not is_native(name) or any(hook is not None for hook in hooks):
        return None, 0
    try:
        return shapes.of_command(name, shape), len(shape.params)
    except LookupError:
        return None, 0


def result_of(raw: int, command: RecordCommand) -> int | None:
    """The result of a call, from its 64 bits."""
    return None if command.form is None else command.form.result(raw)


def arguments_at(buffer: bytearray, command: RecordCommand) -> tuple[Any, ...]:
    """The arguments of the call in a record."""
    assert command.form is not None
    return command.form.arguments.unpack_from(buffer, ARGUMENTS)


def _as_it_is(_: object, value: int) -> int:
    return value


def _nothing(raw: int) -> None:
    return None


def _signed(raw: int) -> int:
    return raw - (1 << 64) if raw >> 63 else raw


def _unsigned(raw: int) -> int:
    return raw
