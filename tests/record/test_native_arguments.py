"""Native functions get what the unmodified package and cffi would give the driver, and raise what those raise."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import vulkan._vulkan
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.native_commands import HANDLE, Recorder, address, direct
from vkharness.native import core, in_use
from vkharness.record import native_front
from vkharness.record import struct_layout as layout
from vkharness.record.native_front import _letter, _parameter, arm, call_directly, new_function, replaceable
from vkharness.record.sites import Sites
from vkharness.spec.shapes import signature

pytestmark = pytest.mark.skipif(not native_front.available(), reason=f"in use: {in_use}")
ffi: Any = layout.package_ffi()
NAMES = sorted(replaceable(vulkan._vulkan))
SHORT = settings(max_examples=300, deadline=None)


@pytest.fixture(autouse=True)
def called_directly() -> Iterator[None]:
    call_directly(True)
    yield
    call_directly(False)


class Driver:
    """A C function of a command that keeps what it gets: numbers, and as many elements as each argument has."""

    def __init__(self, name: str) -> None:
        self.kinds = layout.prototype(name).args
        self.got: list[Any] = []
        self.lengths: list[int] = []
        self.function = ffi.callback(layout.prototype(name), self._take)  # cffi's own type: called its own way

    def _take(self, *args: Any) -> None:
        self.got.append([self._seen(*each) for each in zip(args, self.kinds, self.lengths, strict=True)])

    @staticmethod
    def _seen(value: Any, kind: Any, length: int) -> Any:
        if kind.kind != "pointer":
            return value
        if not length:
            return bool(value)
        size = 1 if kind.item.cname == "void" else ffi.sizeof(kind.item)
        return bytes(ffi.buffer(ffi.cast("char *", value), length * size))

    def after(self, function: Callable[..., Any], args: tuple[Any, ...], names: dict[str, Any]) -> Any:
        """Returns the arguments that the driver gets by a call, or type and text of the exception of the call."""
        self.got.clear()
        self.lengths = [_length(value, kind) for value, kind in zip((*args, *names.values()), self.kinds, strict=False)]
        self.lengths += [0] * (len(self.kinds) - len(self.lengths))
        try:
            result = function(*args, **names)
        except Exception as error:
            assert not self.got
            return type(error), str(error)
        assert result is None
        return list(self.got)


def _length(value: Any, kind: Any) -> int:
    """Elements that are there for certain behind an argument."""
    if isinstance(value, (list, tuple)):
        return len(value)
    if kind.kind != "pointer" or not isinstance(value, ffi.CData):
        return 0
    held = ffi.typeof(value)
    return int(held.kind == "array" or (held is kind.item and held.kind == "struct"))


class Number:
    """An object that is an integer only when asked."""

    def __int__(self) -> int:
        return 3

    __index__ = __int__


def values_for(kind: Any) -> list[Any]:
    """Right and wrong values for an argument of a type."""
    wrong = [None, True, 0, 7, -1, 2**31, 2**32, 2**63, 2**64, 1.5, float("nan"), "text", "ü", b"bytes", object(),
             Number(), [], (), {}, [None], [1, 2], (1.5,), ["x"], [[1]], [{}], [{"no": 1}], {1: 2}, range(2),
             bytearray(8), ffi.NULL, ffi.cast("uint32_t", 9), ffi.cast("float", 0.1), ffi.new("uint32_t[2]", [4, 5]),
             ffi.new("VkOffset2D *", (1, 2)), ffi.new("VkOffset2D *", (1, 2))[0], ffi.cast("VkBuffer", HANDLE),
             [ffi.cast("VkBuffer", HANDLE)], [ffi.cast("VkImage", HANDLE), None], ffi.cast("void *", HANDLE),
             ffi.new("char[]", b"some text"), ffi.from_buffer(b"some bytes"), ffi.typeof("int"),
             iter([1, 2])]  # fmt: skip
    if kind.kind != "pointer":
        right: list[Any] = [0, 1, 2, 5, 0x7FFFFFFF, 0xFFFFFFFF]
        return [0.25, 1e300, 0.1, *right, *wrong] if kind.cname == "float" else right + wrong
    if kind.item.kind in ("struct", "union"):
        try:
            array = ffi.new(kind.item.cname + "[2]")
        except (TypeError, ValueError, ffi.error):  # a handle: nobody knows what it points to
            return [ffi.cast(kind, HANDLE), ffi.cast(kind, 0), *wrong]
        _kept.append(array)
        ffi.buffer(array)[:] = bytes(at % 251 for at in range(ffi.sizeof(array)))
        right = [array, array[0], ffi.addressof(array, 1), [array[0], array[1]], (array[1],), [{}, {}], [()], [array]]
        return right + wrong
    if kind.item.kind == "pointer":
        made = ffi.cast(kind.item, HANDLE)
        return [[made], (made, made), ffi.new(kind.item.cname + "[1]", [made]), [made, None], [made, 0], made, *wrong]
    if kind.item.cname == "void":
        return [ffi.new("uint32_t[2]", [1, 2]), ffi.new("VkOffset2D *")[0], *wrong]
    return [[1, 2], (0,), ffi.new(kind.item.cname + "[2]"), *wrong]


_kept: list[Any] = []
"""An element of an array does not keep the array."""


def undecoded(name: str, driver: Driver, recorder: Recorder) -> Any:
    """A command that reads none of its arguments, so that they may be anything."""
    assert core is not None
    kind, shape = layout.prototype(name), signature(name)
    assert shape is not None
    parameters = tuple(_parameter(p.name, each) for p, each in zip(shape.params, kind.args, strict=True))
    kinds = "".join(map(_letter, kind.args))
    sites = Sites()
    made = core.Sites(sites.explain, sites.none)
    return core.Command(name, parameters, core.Shape(name, ()), kinds, address(driver.function), made,
                        recorder.record_at, recorder.lost, None)  # fmt: skip


class Ways:
    """One command of a driver: as the package calls it, as cffi does, and both natively."""

    def __init__(self, name: str) -> None:
        import vulkan._vulkan as package

        self.driver = Driver(name)
        names = {"_callApi": package._callApi, "lib": type("Lib", (), {name: self.driver.function})}
        genuine = getattr(package, name)
        self.package = type(genuine)(genuine.__code__, names, name)
        recorder = self.recorder = Recorder()
        command = undecoded(name, self.driver, recorder)
        self.native = new_function(self.package)
        self.pointer = direct(self.driver.function, command)
        arm(self.native, command)


_ways: dict[str, Ways] = {}


@pytest.mark.parametrize("name", NAMES)
def test_every_value_alone_is_converted_as_the_package_and_cffi_do(name: str) -> None:
    ways = _ways.setdefault(name, Ways(name))
    plain = [ffi.cast(kind, 0) if kind.kind == "pointer" else 1 for kind in ways.driver.kinds]
    for place, kind in enumerate(ways.driver.kinds):
        for number in range(len(values_for(kind))):
            given = [(*plain[:place], values_for(kind)[number], *plain[place + 1 :]) for _ in range(4)]
            same(ways, given, [{}, {}, {}, {}])
    assert ways.recorder.calls and not ways.recorder.errors


def same(ways: Ways, given: list[tuple[Any, ...]], names: list[dict[str, Any]]) -> None:
    """The native ways do what those do that they stand in for; each has arguments of its own (iterators)."""
    seen = [
        ways.driver.after(function, args, keywords)
        for function, args, keywords in zip(
            (ways.package, ways.native, ways.driver.function, ways.pointer), given, names, strict=True
        )
    ]
    assert seen[0] == seen[1] or "nan" in str(seen[0])
    assert seen[2] == seen[3] or "nan" in str(seen[2])


@SHORT
@given(st.sampled_from(NAMES), st.integers(0, 2**32), st.integers(-2, 2))
def test_any_values_are_converted_as_the_package_and_cffi_do(name: str, seed: int, more: int) -> None:
    """Right and wrong ones together, too many, too few, some by name."""
    ways = _ways.setdefault(name, Ways(name))
    kinds = ways.driver.kinds

    def made() -> tuple[tuple[Any, ...], dict[str, Any]]:
        rng = random.Random(seed)
        values = [rng.choice(values_for(kind)) for kind in (*kinds, *kinds[:2])][: len(kinds) + more * (seed % 3 == 0)]
        names = [param.name for param in signature(name).params]  # type: ignore[union-attr]
        split = rng.randrange(len(values) + 1) if rng.random() < 0.3 else len(values)
        named = dict(zip(names[split:], values[split:], strict=False))
        if named and rng.random() < 0.2:
            named[rng.choice(["unknown", names[0]])] = 1
        return tuple(values[:split]), named

    pairs = [made() for _ in range(4)]
    same(ways, [args for args, _ in pairs], [names for _, names in pairs])
