"""Events while a driver calls the program back, in the middle of a call: debug messages, allocators, reports."""

from __future__ import annotations

import ctypes
import select
import signal
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest

import vkharness
from hunts.front_programs import deaf_driver
from tests.record.test_interrupts import TimeLimit, handler, native, raise_limit
from vkharness.device.headless import import_vulkan
from vkharness.record.critical import critical, uncritical
from vkharness.trace.calls import block_name

pytestmark = pytest.mark.driver
WAYS = ("package", "lib", "python")
"""A native command through the package and through its `lib`, and one that is recorded in Python."""

KEPT: list[Any] = []
"""The functions of drivers: as those of real ones, no other gets their addresses while the process lives."""


@pytest.fixture
def driver() -> Iterator[Any]:
    """The package, on a driver whose functions tests replace."""
    with deaf_driver() as vk:
        lib = sys.modules["vulkan._vulkan"].lib
        before = {name: getattr(lib, name) for name in ("vkCmdFillBuffer", "vkEndCommandBuffer")}
        yield vk
        for name, function in before.items():
            setattr(lib, name, function)


def replace(vk: Any, name: str, function: Callable[..., Any] | int) -> None:
    """Puts a function of Python, or the address of one of C, in place of one of the driver."""
    lib = sys.modules["vulkan._vulkan"].lib
    kind = vk.ffi.typeof(getattr(lib, name))
    made = vk.ffi.cast(kind, function) if isinstance(function, int) else vk.ffi.callback(kind, function)
    KEPT.append(made)
    setattr(lib, name, made)


def call(vk: Any, way: str, function: Callable[..., Any] | int, commands: int = 16) -> list[str]:
    """Makes one call to a driver that has this function; the calls that were recorded."""
    name = "vkEndCommandBuffer" if way == "python" else "vkCmdFillBuffer"
    replace(vk, name, function)
    with vkharness.attach(keep_trace=True) as session:
        handle = vk.ffi.cast("VkCommandBuffer", commands)
        rest = () if way == "python" else (vk.ffi.cast("VkBuffer", 0), 0, 64, 1)
        try:
            getattr(vk.lib if way == "lib" else vk, name)(handle, *rest)
        finally:
            assert not session.internal_errors
            found = [*map(block_name, session.blocks or ())]
    return found


def rings() -> None:
    signal.raise_signal(signal.SIGUSR1)


def waits() -> None:
    signal.setitimer(signal.ITIMER_REAL, 1e-3)
    select.select([], [], [], 60)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("number", "act"), [(signal.SIGUSR1, rings), (signal.SIGALRM, waits)])
def test_a_handler_raises_in_the_callback_in_which_its_signal_came(
    way: str, number: int, act: Callable[[], None], driver: Any
) -> None:
    """Also in one that waits for it. The call goes on and is recorded."""
    told: list[str] = []

    def back(*_: Any) -> int | None:
        try:
            act()
        except TimeLimit:
            told.append("in the callback")
        return 0 if way == "python" else None

    with handler(number, raise_limit):
        assert len(call(driver, way, back)) == 1
    assert told == ["in the callback"]


@native
@pytest.mark.parametrize("way", WAYS)
def test_a_signal_that_comes_in_a_driver_is_handled_behind_the_call(way: str, driver: Any) -> None:
    """In the frame of who made it, when the call is recorded. The function of the driver is C's `raise`, and the
    command buffer is the number of a signal."""
    frames: list[str] = []

    def limit(number: int, frame: FrameType | None) -> None:
        assert frame is not None
        frames.append(frame.f_code.co_name)
        raise TimeLimit

    rise = ctypes.cast(ctypes.CDLL(None)["raise"], ctypes.c_void_p).value
    assert rise is not None
    name = "vkEndCommandBuffer" if way == "python" else "vkCmdFillBuffer"
    replace(driver, name, rise)
    with handler(signal.SIGUSR1, limit), vkharness.attach(keep_trace=True) as session:
        handle = driver.ffi.cast("VkCommandBuffer", int(signal.SIGUSR1))
        rest = () if way == "python" else (driver.ffi.cast("VkBuffer", 0), 0, 64, 1)
        with pytest.raises(TimeLimit):
            getattr(driver.lib if way == "lib" else driver, name)(handle, *rest)
    ours = test_a_signal_that_comes_in_a_driver_is_handled_behind_the_call.__name__
    names = {ours, name, "_callApi"}  # with those of the package
    assert len(frames) == 1 and frames[0] in names and (session.verdict, session.unmodelled) == ("clean", {})
    assert [*map(block_name, session.blocks or ())] == [name]


@native
def test_signals_that_wait_are_handled_where_the_driver_calls_back() -> None:
    """One that came before: the callback may wait for it."""
    told: list[str] = []

    def back() -> None:
        try:
            while True:
                len(told)
        except TimeLimit:
            told.append("in the callback")

    @critical
    def section() -> None:
        signal.raise_signal(signal.SIGUSR1)
        told.append("in the section")
        uncritical(ctypes.CFUNCTYPE(None)(back))()
        told.append("behind the driver")

    with handler(signal.SIGUSR1, raise_limit), vkharness.attach():
        section()
    assert told == ["in the section", "in the callback", "behind the driver"]


@native
@pytest.mark.parametrize("way", WAYS)
def test_debuggers_see_the_callback_and_nothing_of_the_mirror(way: str, driver: Any) -> None:
    seen: list[str] = []

    def back(*_: Any) -> int | None:
        return 0 if way == "python" else None

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        seen.append(f"{event} {frame.f_code.co_name}")

    replace(driver, "vkEndCommandBuffer" if way == "python" else "vkCmdFillBuffer", back)
    with vkharness.attach():
        handle, buffer = driver.ffi.cast("VkCommandBuffer", 16), driver.ffi.cast("VkBuffer", 32)
        function = driver.lib.vkEndCommandBuffer if way == "python" else driver.vkCmdFillBuffer
        sys.settrace(trace)
        try:
            function(handle) if way == "python" else function(handle, buffer, 0, 64, 1)
        finally:
            sys.settrace(None)
    assert seen == ["call back"]


@pytest.mark.parametrize("kind", [signal.SIGUSR1, None])
def test_a_debug_message_of_the_loader_is_a_callback(kind: int | None) -> None:
    """Neither an exception of its signal handler nor one of its own costs a call, and the program goes on."""
    told: list[str] = []

    def hear(*_: Any) -> int:
        try:
            if kind is None:
                raise TimeLimit
            signal.raise_signal(kind)
        except TimeLimit:
            told.append("in the callback")
        return 0

    with handler(signal.SIGUSR1, raise_limit), vkharness.attach(keep_trace=True) as session:
        vk = import_vulkan()
        made = vk.VkInstanceCreateInfo(ppEnabledExtensionNames=["VK_EXT_debug_utils"])
        instance = vk.vkCreateInstance(made, None)
        try:
            info = vk.VkDebugUtilsMessengerCreateInfoEXT(messageSeverity=0x1, messageType=0x1, pfnUserCallback=hear)
            create, send, destroy = (
                vk.vkGetInstanceProcAddr(instance, name)
                for name in (
                    "vkCreateDebugUtilsMessengerEXT", "vkSubmitDebugUtilsMessageEXT", "vkDestroyDebugUtilsMessengerEXT",
                )
            )  # fmt: skip
            messenger = create(instance, info, None)
            told.clear()
            send(instance, 0x1, 0x1, vk.VkDebugUtilsMessengerCallbackDataEXT(pMessage="told"))
            destroy(instance, messenger, None)
        finally:
            vk.vkDestroyInstance(instance, None)
            vars(sys.modules["vulkan._vulkan"])["_internal_vkDebugUtilsMessengerCallbackEXT"] = None
    assert told == ["in the callback"]
    assert "vkSubmitDebugUtilsMessageEXT" in map(block_name, session.blocks or ())
    assert session.internal_errors == []
