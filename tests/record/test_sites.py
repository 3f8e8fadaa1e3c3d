"""The line of the program that made a call."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from vkharness.call_sites import DEEPEST, frames_of, shown
from vkharness.native import core
from vkharness.record.sites import Sites

SOURCE = "def ask(caller):\n    return caller()\n"


def asker(path: str) -> Callable[[Callable[[], Any]], Any]:
    """A function of a file that says what every such file says."""
    names: dict[str, Any] = {}
    exec(compile(SOURCE, path, "exec"), names)
    made: Callable[[Callable[[], Any]], Any] = names["ask"]
    return made


WAYS = [False, pytest.param(True, marks=pytest.mark.skipif(core is None, reason="there is no native core"))]


def caller_of(sites: Sites, natively: bool) -> Callable[[], Any]:
    return core.Sites(sites.explain, sites.none).caller if natively and core is not None else sites.caller


@pytest.mark.parametrize("natively", WAYS)
def test_equal_functions_of_two_files_are_two_sites(natively: bool) -> None:
    """Code of two files is equal where the files say the same in the same lines."""
    caller = caller_of(Sites(), natively)
    one, other = asker("/program/one.py"), asker("/program/other.py")
    assert one.__code__ == other.__code__
    found = [each(caller) for each in (one, other, one)]
    assert found == ["/program/one.py:2", "/program/other.py:2", "/program/one.py:2"]


def through(caller: Callable[[], Any]) -> Any:
    return caller()


def one_pass(caller: Callable[[], Any]) -> Any:
    return through(caller)


def other_pass(caller: Callable[[], Any]) -> list[Any]:
    return [through(caller) for _ in range(2)]


def descend(depth: int, caller: Callable[[], Any]) -> Any:
    return caller() if not depth else descend(depth - 1, caller)


@pytest.mark.parametrize("natively", WAYS)
def test_a_site_has_the_callers_of_its_line_up_to_what_runs_the_program(natively: bool) -> None:
    caller = caller_of(Sites(), natively)
    found = one_pass(caller)
    test = test_a_site_has_the_callers_of_its_line_up_to_what_runs_the_program.__name__
    assert [each.function for each in frames_of(found)] == ["through", "one_pass", test], "pytest is no part of it"
    assert found == frames_of(found)[0].site and found.endswith(f":{through.__code__.co_firstlineno + 1}")
    first, second = other_pass(caller)
    assert first is second and first != found and shown(first) == frames_of(first)[1].site


@pytest.mark.parametrize("natively", WAYS)
def test_a_deep_stack_is_cut_at_its_outer_end(natively: bool) -> None:
    found = descend(100, caller_of(Sites(), natively))
    assert [each.function for each in frames_of(found)] == ["descend"] * DEEPEST


@pytest.mark.parametrize("natively", WAYS)
def test_code_that_is_made_again_and_again_is_forgotten(natively: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The memory that new code in each call takes stays within a limit; that of the native form is no variable."""
    monkeypatch.setattr("vkharness.record.sites.MOST_KNOWN", 10)
    sites = Sites()
    caller = caller_of(sites, natively)
    code = []
    for _ in range(100):
        made = asker("/program/made.py")
        assert made(caller) == "/program/made.py:2"
        code.append(weakref.ref(made.__code__))
    gc.collect()
    assert natively or sum(each() is not None for each in code) < 20


def test_the_library_of_python_may_make_a_call_and_is_no_caller() -> None:
    sites = Sites()
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(sites.caller).result()
        later = pool.submit(one_pass, sites.caller).result()
    assert str(found).rpartition("/")[2].startswith("thread.py:")
    assert [each.function for each in frames_of(later)] == ["through", "one_pass"]
