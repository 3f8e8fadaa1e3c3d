"""Marks and their guard: which tests need a driver or the Khronos layer, found from what the tests use.

A test is marked `driver` or `layer` when it, its fixtures or the functions of tests/ that these call use one of the
names below, and `driver` when it has a parameter `driver` or `device`. So `pytest -m "not driver and not layer"` runs
on a machine without a Vulkan loader. To keep that true, a test without the mark `driver` may neither import the
vulkan package nor start a process bound to a driver.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import nullcontext
from functools import cache
from types import CodeType, FunctionType
from typing import Any

import hypothesis
import pytest

from tests.support.copied_processes import CopiedProcesses

hypothesis.settings.register_profile(
    "vkharness", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("vkharness")
"""No test fails because a machine is slow."""

LAYER_NAMES = {"LayerListener", "layer_fuzz", "excuse_hunt", "find_layer", "find_layers"}
DRIVER_NAMES = LAYER_NAMES | {"Worker", "run_jobs", "Headless", "Rig", "environment", "make_rig", "vulkan"}
BOUND = "VK_DRIVER_FILES"
"""The environment variable that binds a process to a driver."""


class DriverRefusedError(Exception):
    """A test without the mark `driver` asked for one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests by what they use."""
    for item in items:
        if isinstance(item, pytest.Function) and item.module.__name__.startswith("tests."):
            fixtures = [each.func for several in item._fixtureinfo.name2fixturedefs.values() for each in several]
            names = _names_used_by(item.function, *fixtures)
            parameters = item.callspec.params.keys() if hasattr(item, "callspec") else set()
            if names & LAYER_NAMES:
                item.add_marker("layer")
            if names & DRIVER_NAMES or {"driver", "device"} & parameters:
                item.add_marker("driver")


@cache
def _names_used_by(*functions: Callable[..., object]) -> set[str]:
    """Names in a test's function, its fixtures', and those of everything in tests/ that these call."""
    left: list[object] = [*functions]
    names: set[str] = set()
    seen: set[int] = set()
    while left:
        each = inspect.unwrap(left.pop())  # type: ignore[arg-type]
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, type):
            left += [made for made in vars(each).values() if isinstance(made, FunctionType)]
        elif isinstance(each, FunctionType):
            found = set(_names_in(each.__code__))
            names |= found
            left += [held for name in found if _of_tests(held := each.__globals__.get(name))]
    return names


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _of_tests(value: object) -> bool:
    return callable(value) and str(getattr(value, "__module__", "")).startswith("tests.")


class Guard:
    """An audit hook (sys.addaudithook) that raises, while `on`, for what needs a driver."""

    def __init__(self) -> None:
        self.on = False
        self.at_start = os.environ.get(BOUND)

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event == "import" and args[0] == "vulkan":
            raise DriverRefusedError("a test without the mark 'driver' imports vulkan")
        if event == "subprocess.Popen" and (args[3] or os.environ).get(BOUND) not in (None, "", self.at_start):
            raise DriverRefusedError("a test without the mark 'driver' starts a process bound to a driver")


FRESH = {
    "test_copied_processes.py",
    "test_fault_hunt.py",
    "test_installed.py",
    "test_live_run.py",
    "test_native.py",
    "test_parent_death.py",
    "test_process.py",
    "test_program_runner.py",
    "test_setup_script.py",
    "test_start.py",
    "test_structure.py",
}
"""Files whose tests are about processes as the system has them. Others get copies (`support.copied_processes`)."""
COPIES = pytest.StashKey[CopiedProcesses]()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Ends the process that is copied."""
    if COPIES in config.stash:
        config.stash[COPIES].close()


GUARD = Guard()
sys.addaudithook(GUARD)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Guards the tests of tests/ that have no mark `driver`; processes that a test begins are copies."""
    ours = item.nodeid.startswith("tests/")
    GUARD.on = ours and item.get_closest_marker("driver") is None
    copies = item.config.stash.setdefault(COPIES, CopiedProcesses())
    with copies.begun() if ours and item.path.name not in FRESH else nullcontext():
        try:
            return (yield)
        finally:
            GUARD.on = False
