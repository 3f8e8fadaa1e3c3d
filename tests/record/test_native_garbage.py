"""Objects of the native front end that are garbage: they go, and what ends meanwhile may find them and call them."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.native_commands import Recorder, ffi, native_command, new_objects
from vkharness import native
from vkharness.record import native_front
from vkharness.record.decode import Decoder
from vkharness.record.native_front import arm, new_function
from vkharness.record.native_shapes import ShapeField

pytestmark = pytest.mark.skipif(not native_front.available(), reason=f"in use: {native.in_use}")
core: Any = native.core


_ends = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, _ends)


def shape_that_asks(asked: Callable[..., Any]) -> Any:
    inner = core.Shape("inner", (tuple(ShapeField("pNext", 0, 8, kind="c", object=asked)),))
    return core.Shape("outer", (tuple(ShapeField("member", 0, 8, kind="s", object=inner)),))


def sites_that_ask(asked: Callable[..., Any]) -> Any:
    return core.Sites(Explains(asked), None)


def read(shape: Any) -> None:
    memory = ctypes.c_uint64(0)
    assert shape.read(ctypes.addressof(memory)) == {"member": {"pNext": None}}


def find_caller(sites: Any) -> None:
    assert sites.caller() == "asked"


@pytest.mark.parametrize(
    ("make", "use"), [(shape_that_asks, read), (sites_that_ask, find_caller)], ids=["Shape", "Sites"]
)
def test_what_is_found_while_garbage_is_cleared_can_be_called(
    make: Callable[..., Any], use: Callable[[Any], None]
) -> None:
    used: list[int] = []

    def look(_: int | None) -> None:
        for each in gc.get_objects():
            if type(each) is kind and id(each) == place:
                use(each)
                used.append(place)

    ends = _ends(look)  # no finalizer, which would be called before anything is cleared
    kind, place = leave_garbage(make, _new_capsule(1, None, ends))
    gc.collect()
    assert used


class Explains:
    """Explains each stack in any state."""

    def __init__(self, held: object) -> None:
        self.held = held

    def __call__(self, _: object, __: object) -> SimpleNamespace:
        return SimpleNamespace(ends=True, site="asked")


class Asked:
    """Answers in any state, which a function that was cleared does not."""

    def __init__(self, ring: list[Any]) -> None:
        self.ring = ring

    def __call__(self, _: Any) -> str:
        return "asked"


def leave_garbage(make: Callable[..., Any], last: object) -> tuple[type, int]:
    """Type and place of an object in a ring. What was made first is cleared first: the object, then who holds it and
    `last`."""
    ring: list[Any] = []
    found = make(Asked(ring))
    holder = {"last": last, "found": found, "ring": ring}
    keeper: list[Any] = [holder]
    keeper.append(keeper)
    ring.append(keeper)
    return type(found), id(found)


def test_a_function_goes_that_its_own_command_calls() -> None:
    """No other object of the ring can be cleared: a command keeps its recorder for as long as it can be called."""
    recorder: Any = Recorder()
    function = recorder.record_at = recorder.lost = new_function(stood_for)
    name = "vkCmdBeginQuery"
    arm(function, native_command(name, ffi.NULL, recorder, Decoder(new_objects())))
    held = sys.getrefcount(stood_for)
    del recorder, function
    gc.collect()
    assert sys.getrefcount(stood_for) < held


def stood_for() -> None:
    """A Python function for which a native one stands in."""
