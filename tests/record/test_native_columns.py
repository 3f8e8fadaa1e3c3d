"""Calls of the native front end that repeat what is known, taken as columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.native_commands import Recorder, direct, line_of, native_command, new_log, new_objects
from tests.support.said_calls import SaidInOrder
from vkharness.commands.interpret import RepeatedCommand
from vkharness.native import in_use
from vkharness.record import native_front
from vkharness.record import struct_layout as layout
from vkharness.record.decode import Decoder
from vkharness.record.native_front import call_directly

pytestmark = pytest.mark.skipif(not native_front.available(), reason=f"in use: {in_use}")
ffi: Any = layout.package_ffi()


@pytest.fixture(autouse=True)
def called_directly() -> Iterator[None]:
    call_directly(True)
    yield
    call_directly(False)


def said_calls(count: int) -> Any:
    """Calls of `count` different fills, each made twice, that nobody has taken."""
    objects, recorder = new_objects(), Recorder()
    recorder.log = new_log()
    driver = ffi.callback(layout.prototype("vkCmdSetStencilWriteMask"), lambda *args: None)
    pointer = direct(driver, native_command("vkCmdSetStencilWriteMask", driver, recorder, Decoder(objects)))
    for at in (*range(count), *range(count)):
        pointer(ffi.NULL, 3, at)
    return recorder.log.take()


def test_calls_that_repeat_what_is_known_are_taken_as_columns() -> None:
    calls, buffer, other = said_calls(3), object(), object()
    assert (calls.said.kept, len(calls)) == (None, 6)
    assert calls.repeated(buffer, 7, None, line_of, None, None) == (b"", [], [], None, [])
    sites = []
    for (index, said, site, _), into in zip([next(calls) for _ in range(3)], (buffer, buffer, other), strict=True):
        said.kept = RepeatedCommand(7, into, f"plan {index}")  # type: ignore[arg-type]
        sites.append((said.name, site))
    assert calls.said.kept == (7, buffer, "plan 1")
    for wrong in ((other, 7), (buffer, 8)):
        assert calls.repeated(*wrong, None, line_of, None, None) == (b"", [], [], None, [])
    asked: list[str] = []

    def failing(name: str, site: str | None) -> None:
        asked.append(name)
        raise MemoryError(len(calls))

    with pytest.raises(MemoryError, match="3"):
        calls.repeated(buffer, 7, None, failing, None, None)
    numbers, lines, plans, *_ = calls.repeated(buffer, 7, None, line_of, None, None)
    assert (list(memoryview(numbers).cast("q")), lines, plans) == ([4, 5], sites[:2], ["plan 1", "plan 2"])
    assert len(calls) == 1 and next(calls)[1].kept[1] is other and list(calls) == []
    assert calls.said is None and asked == ["vkCmdSetStencilWriteMask"]


def test_calls_may_be_taken_while_they_are_taken() -> None:
    calls, buffer = said_calls(2), object()
    for _, said, _, _ in (next(calls), next(calls)):
        said.kept = RepeatedCommand(0, buffer, "plan")  # type: ignore[arg-type]

    def again(name: str, site: str | None) -> tuple[str, str | None]:
        list(calls)
        return name, site

    assert calls.repeated(buffer, 0, None, again, None, None)[2] == ["plan", "plan"]
    assert len(calls) == 0 and next(calls, None) is None


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.booleans()), max_size=6), st.randoms())
def test_states_are_followed_as_in_python(known: list[tuple[str, str, bool]], chosen: Any) -> None:
    calls, buffer = said_calls(4), object()
    rows = [next(calls) for _ in range(4)]
    tokens = {letter: object() for letter in "abc"}
    states: dict[str, dict[Any, Any]] = {"x": {}, "y": {}}
    for at, (letter, state, has_plan) in enumerate(known):
        states[state][tokens[letter]] = (f"plan {at}" if has_plan else None, states[chosen.choice("xy")])
    for _, said, _, _ in rows:
        said.kept = chosen.choice([None, (0, buffer, "its own"), *tokens.values()])
    waits = SaidInOrder([(index, said, site) for index, (_, said, site, _) in enumerate(rows, rows[-1][0] + 1)])
    while len(calls):
        assert (len(calls), calls.said.kept) == (len(waits), waits.said.kept)
        found = [each.repeated(buffer, 0, states["x"], line_of, None, None) for each in (calls, waits)]
        assert found[0][:3] == found[1][:3] and found[0][3] is found[1][3]
        next(calls, None)
        del waits._calls[:1]
