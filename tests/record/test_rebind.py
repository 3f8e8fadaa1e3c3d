"""Names of modules that stand-ins are put in place of, one inside the other."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from vkharness.record import rebind as moving
from vkharness.record.rebind import rebind


class Thing:
    """Something that modules have names for."""


@pytest.fixture
def module() -> Iterator[ModuleType]:
    made = sys.modules["a_module_of_a_test"] = ModuleType("a_module_of_a_test")
    yield made
    del sys.modules[made.__name__]


def test_two_moves_one_inside_the_other_look_at_a_module_once(module: ModuleType) -> None:
    """A look at every name of every module takes milliseconds, and a suite makes such moves for each row."""
    lib, inner, outer, function, ours = (Thing() for _ in range(5))
    module.lib, module.function = lib, function  # type: ignore[attr-defined]
    looks = []
    for _ in range(3):
        rebind(lib, inner)
        rebind(inner, outer, [(function, ours)])
        assert (module.lib, module.function) == (outer, ours)
        looks.append(moving._looks[module.__name__])
        rebind(outer, inner, [(ours, function)])
        assert (module.lib, module.function) == (inner, function)
        rebind(inner, lib)
        assert (module.lib, module.function) == (lib, function)
    assert looks[0] is looks[1] is looks[2]


def test_names_that_change_between_two_moves_are_found(module: ModuleType) -> None:
    lib, ours, function = Thing(), Thing(), Thing()
    module.lib = lib  # type: ignore[attr-defined]
    rebind(lib, ours)
    module.lib, module.function, module.late = function, ours, ours  # type: ignore[attr-defined]
    rebind(ours, lib)
    assert (module.lib, module.function, module.late) == (function, lib, lib)
    other = sys.modules["a_later_module_of_a_test"] = ModuleType("a_later_module_of_a_test")
    other.lib = lib  # type: ignore[attr-defined]
    rebind(lib, ours)
    assert (other.lib, module.late) == (ours, ours)
    del sys.modules[other.__name__]
    rebind(ours, lib)
    assert module.late is lib and other.__name__ not in moving._looks


@pytest.mark.parametrize("meanwhile", ["nothing", "another move"])
def test_a_name_that_a_program_changed_and_gave_back_is_moved_again(module: ModuleType, meanwhile: str) -> None:
    """`monkeypatch` does so: a command of the package was left out of all later sessions."""
    lib, ours, function, made = (Thing() for _ in range(4))
    module.lib, module.function = lib, function  # type: ignore[attr-defined]
    for _ in range(2):
        rebind(lib, ours, [(function, made)])
        rebind(ours, lib, [(made, function)])
    module.function = Thing()  # type: ignore[attr-defined]
    if meanwhile == "another move":
        rebind(Thing(), Thing())
    rebind(lib, ours)
    rebind(ours, lib)
    module.function = function  # type: ignore[attr-defined]
    rebind(lib, ours, [(function, made)])
    assert (module.lib, module.function) == (ours, made)
    rebind(ours, lib, [(made, function)])
