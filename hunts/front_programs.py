"""Random programs on a driver that does nothing: what the mirror's front end makes of any arguments.

The calls are those of `CallStream`, with C memory that holds what they say. Commands are called through the package or
through its `lib`, and some of their arguments are what no program should give: other types, huge integers, objects that
raise or make calls when they are asked for a number. What is recorded, what is judged and what is raised is told.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import vkharness
from vkharness.device.headless import import_vulkan
from vkharness.findings import UserError
from vkharness.fuzz.hostile.call_streams import CallStream
from vkharness.record.critical import critical
from vkharness.record.proxy import current
from vkharness.record.rebind import rebind
from vkharness.record.struct_layout import prototype
from vkharness.replay.objects.encode import Encoder, Handles
from vkharness.spec._generated import HANDLES
from vkharness.spec.declared_types import declared_types
from vkharness.spec.shapes import signature

CALLS = 60
"""Of a program, behind those that make its objects."""
UNEVEN = "vkCmdBuildAccelerationStructures"
"""How the names of commands begin that are left out: the lengths of their lists of lists follow from other lists, with
which random ones do not agree."""
ASKS = "asks for findings"
"""Stands in the place of a call: somebody asks the session for its findings."""
FIRST = 0x10000
"""The raw handle of object 0."""
_ADDRESS = re.compile(r"0x[0-9a-f]+")


class DeafDriver:
    """Stands in place of the package's `lib`: every function succeeds, and makes the objects that it is told to."""

    def __init__(self, ffi: Any, lib: Any) -> None:
        self._ffi, self._lib = ffi, lib
        self.made: list[tuple[int, list[int]]] = []
        """Objects that the next call makes: the parameter in which it answers, and the raw handles."""
        self.result = 0
        """Result of the next call that returns anything."""
        self.heard: list[str] = []
        """The names of the last calls, as many as there are until somebody clears it."""

    def __getattr__(self, name: str) -> Any:
        found, kind = None, None
        try:
            found = getattr(self._lib, name)
        except self._ffi.error as error:  # the loader has none of that name, as of those of extensions
            if signature(name) is None:
                raise AttributeError(str(error)) from None
            kind = prototype(name)
        if name.startswith("vk"):
            kind = kind or self._ffi.typeof(found)
            answer = None if kind.result.kind == "void" else 0
            call = critical(lambda *args: self._call(name, args, answer))  # C, as far as a program notices
            found = self._ffi.callback(kind, call)
        setattr(self, name, found)
        return found

    def _call(self, name: str, arguments: tuple[Any, ...], answer: int | None) -> int | None:
        self.heard.append(name)
        for at, raw in self.made:
            for place, each in enumerate(raw):
                arguments[at][place] = self._ffi.cast("void *", each)
        self.made.clear()
        if answer is None:
            return None
        result, self.result = self.result, 0
        return result


_drivers: list[DeafDriver] = []
"""The one of this process, once there is one. It is never dropped, since function pointers outlive a session."""


def heard() -> list[str]:
    """The names of the calls that the driver of this process got since it was entered last."""
    return list(_drivers[0].heard)


@contextmanager
def deaf_driver() -> Iterator[Any]:
    """The package, on a driver that does nothing. Enter it before a session."""
    vulkan = import_vulkan()
    package = sys.modules["vulkan._vulkan"]
    lib = package.lib
    if not _drivers:
        _drivers.append(DeafDriver(vulkan.ffi, lib))
    _drivers[0].heard.clear()
    rebind(lib, _drivers[0])
    try:
        yield vulkan
    finally:
        rebind(_drivers[0], lib)


def calls_of(seed: int) -> list[tuple[int, int]]:
    """The calls of a seed's program: the seed, with the number of each."""
    return [(seed, number) for number in range(len(CallStream(random.Random(seed)).text(CALLS).splitlines()) - 1)]


class CallProgram(NamedTuple):
    """A program as data."""

    calls: list[dict[str, Any]]
    """Each with its `name` and its `args` in normal form, and with its `result` where that is not 0."""
    objects: dict[int, tuple[str, int]]
    """By id, the type of a handle, and the raw handle."""
    of_package: float = 0.6
    """The share of commands that are called through the package, and not through its `lib`."""
    hostile: float = 0.3
    """The share of commands with an argument that no program should give."""
    keeps_trace: bool = True
    """Whether the session hears of each call; otherwise those of commands wait in a log."""


def random_calls(seed: int) -> CallProgram:
    """Calls that the registry alone makes."""
    stream = CallStream(random.Random(seed))
    lines = stream.text(CALLS).splitlines()[1:]
    calls = [json.loads(line, object_hook=_adapted)["function"] for line in lines]
    objects = {each: (kind, FIRST + 16 * each) for kind, several in stream._alive.items() for each in several}
    return CallProgram(calls, objects, keeps_trace=seed % 3 != 0)


class FrontProgram:
    """The program of one seed, as it runs."""

    def __init__(self, seed: int, program: CallProgram, vk: Any) -> None:
        self._vk, self._seed, self._program, self._chosen = vk, seed, program, random.Random(seed)
        self._handles = Handles()
        for id, (kind, raw) in program.objects.items():
            self._handles.add(id, kind, raw)
        self._kept: list[Any] = []
        self._left = 20

    def run(self, numbers: Sequence[int]) -> Iterator[str]:
        """Makes the calls of these numbers; tells what is raised."""
        for number in numbers:
            each = self._program.calls[number]
            name = each["name"]
            if name.startswith(UNEVEN):
                continue
            self._chosen.seed(f"{self._seed} {number}")
            if name == ASKS:
                _ask()
            if not hasattr(_drivers[0], name) or (shape := signature(name)) is None:
                continue
            encoder = Encoder(declared_types(), self._handles)
            self._kept.append(encoder)
            try:
                encoded = encoder.call(name, each["args"], "")
            except UserError:
                continue
            _drivers[0].made[:] = [
                (at, self._raw(each["args"][member.name]))
                for at, member in enumerate(shape.params)
                if member.name in encoded.outputs and member.type in HANDLES
            ]
            _drivers[0].result = each.get("result", 0)
            told = self._made(name, encoded.arguments)
            _drivers[0].made.clear()
            _drivers[0].result = 0
            if told:
                yield f"{number}: {name} {_ADDRESS.sub('', told)}"

    def _raw(self, value: Any) -> list[int]:
        several = value if isinstance(value, list) else [value]
        return [self._handles.raw(each) for each in several if each in self._handles]

    def _made(self, name: str, arguments: list[Any]) -> str:
        """Makes one call; what it raises, in words."""
        of_package = name.startswith("vkCmd") and self._chosen.random() < self._program.of_package
        function = getattr(self._vk, name, None) if of_package else None  # it has none of extensions
        function = function or getattr(self._vk.lib, name)
        if name.startswith("vkCmd") and self._chosen.random() < self._program.hostile:
            at = self._chosen.randrange(len(arguments))
            arguments[at] = self._hostile(arguments[at])
        try:
            function(*arguments)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def _hostile(self, value: Any) -> Any:
        """Something in the place of an argument that no call can take, or that it can only take as a number. What would
        be taken for a pointer or for an array is left out: C would read there, too."""
        ffi = self._vk.ffi
        values: list[Callable[[], Any]] = [lambda: None, lambda: [None], lambda: self]
        if not isinstance(value, ffi.CData) or ffi.typeof(value) is not ffi.typeof("void *"):
            values += [
                lambda: ffi.cast("VkBuffer", 5), lambda: ffi.new("VkOffset3D *"), lambda: ffi.new("VkRect2D[64]"),
                lambda: ffi.cast("float", 1),
            ]  # fmt: skip
        if isinstance(value, int):
            values += [lambda: -1, lambda: 1 << 200, lambda: "text", lambda: (), lambda: 1.5, lambda: Number(self)]
            values += [lambda: Number(self, value)] * 4
        return self._chosen.choice(values)()

    def again(self) -> None:
        """Makes another call in the middle of one."""
        if self._left > 0:
            self._left -= 1
            handle = self._vk.ffi.cast("VkCommandBuffer", FIRST)
            self._made("vkCmdDispatch", [handle, 1, 1, self._chosen.randrange(3)])


def _ask() -> None:
    """Looks at the findings of the session that is attached."""
    session = current()
    if isinstance(session, vkharness.Session):
        len(session.findings)


class Number:
    """Something like a number. It makes a call when it is first asked: how often it is asked is nobody's promise."""

    def __init__(self, program: FrontProgram, value: int | None = None) -> None:
        self._program, self._value, self._asked = program, value, False

    def __int__(self) -> int:
        return self.__index__()

    def __index__(self) -> int:
        if not self._asked:
            self._asked = True
            self._program.again()
        if self._value is None:
            raise ValueError("no number")
        return self._value


def _adapted(value: dict[str, Any]) -> dict[str, Any]:
    """An object of a stream with numbers for their names, and bytes for those that stand for any."""
    for key, each in value.items():
        if each in ("NaN", "Infinity"):
            value[key] = float(each)
        elif isinstance(each, list) and each and all(item == 7 for item in each):
            value[key] = bytes(each)
        elif isinstance(each, list):
            value[key] = [float(item) if item in ("NaN", "Infinity") else item for item in each]
    return value


def told_of_calls(calls: Sequence[tuple[int, int]]) -> Iterator[str]:
    """Yields the errors and the records of the calls of one program, and the findings about them."""
    yield from told_of_program(calls, random_calls)


def told_of_program(calls: Sequence[tuple[int, int]], program: Callable[[int], CallProgram]) -> Iterator[str]:
    """The same for the program of a seed."""
    seed = calls[0][0] if calls else 0
    made = program(seed)
    with deaf_driver() as vk, vkharness.attach(keep_trace=made.keeps_trace) as session:
        yield from FrontProgram(seed, made, vk).run([number for _, number in calls])
    yield from (_ADDRESS.sub("", repr(block)) for block in session.blocks or [])
    for each in session.findings:
        yield f"{each.message} {each.missing} {each}"
    yield f"{session.verdict}, unmodelled {session.unmodelled}, internal errors {session.internal_errors}"
