"""`SpanMap` against a list with one cell an address, and the native one against the one in Python."""

from __future__ import annotations

import gc
import random
import sys
import weakref
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vkharness import native
from vkharness.spans import PythonSpanMap, SpanMap, merge, overlap, subtract

SIZE = 24
spans = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda pair: (min(pair), max(pair)))
operations = st.lists(st.tuples(st.sampled_from(["assign", "erase", "update"]), spans, st.integers(0, 2)), max_size=40)


class Small(PythonSpanMap[int]):
    """Changes its container at sizes that a test reaches."""

    __slots__ = ()
    LARGE = 4


KINDS = [PythonSpanMap, Small, *([] if native.core is None else [native.core.SpanMap])]
needs_core = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")


def toggled(value: int, _begin: int, _end: int, old: int | None) -> int | None:
    return None if old == value else (old or 0) + value


def cells(held: SpanMap[int]) -> list[int | None]:
    found: list[int | None] = [None] * SIZE
    for begin, end, value in held:
        found[begin:end] = [value] * (end - begin)
    return found


@pytest.mark.parametrize("kind", KINDS)
@given(steps=operations)
def test_it_holds_what_a_list_of_cells_would(
    kind: type[SpanMap[int]], steps: list[tuple[str, tuple[int, int], int]]
) -> None:
    held = kind()
    model: list[int | None] = [None] * SIZE
    for name, (begin, end), value in steps:
        if name == "assign":
            held.assign(begin, end, value)
            model[begin:end] = [value] * (end - begin)
        elif name == "erase":
            held.erase(begin, end)
            model[begin:end] = [None] * (end - begin)
        else:
            held.update(begin, end, partial(toggled, value))
            model[begin:end] = [None if old == value else (old or 0) + value for old in model[begin:end]]
        held._check()
        assert cells(held) == model
        pieces = held.pieces(begin, end)
        assert [v for b, e, v in pieces for _ in range(b, e)] == [v for v in model[begin:end] if v is not None]


@given(st.permutations(range(9)), st.permutations(range(9)))
def test_its_container_changes_with_its_size_and_not_at_each_step(coming: list[int], going: list[int]) -> None:
    held = Small()
    kinds = []
    for at in coming:
        held.assign(2 * at, 2 * at + 1, at)
        held._check()
        kinds.append(type(held._begins) is list)
    for at in going:
        held.erase(2 * at, 2 * at + 1)
        held._check()
        kinds.append(type(held._begins) is list)
    assert kinds == [True] * 4 + [False] * (5 + 7) + [True] * 2


@given(st.lists(spans))
def test_merged_spans_cover_the_same_addresses_and_do_not_touch(several: list[tuple[int, int]]) -> None:
    merged = merge(list(several))
    assert {at for b, e in merged for at in range(b, e)} == {at for b, e in several for at in range(b, e)}
    assert all(left[1] < right[0] for left, right in pairwise(merged))


@pytest.mark.parametrize("kind", KINDS)
def test_an_exact_span_is_found_without_a_search(kind: type[SpanMap[str]]) -> None:
    held = kind()
    held.assign(4, 8, "a")
    assert held.exact(4, 8) == "a"
    assert held.exact(4, 7) is None
    assert held.exact(5, 8) is None


def test_merged_ranges_neither_overlap_nor_touch() -> None:
    assert merge([(5, 9), (0, 2), (2, 3), (8, 12), (20, 20)]) == [(0, 3), (5, 12)]


@given(st.lists(spans), st.lists(spans))
def test_overlap_and_subtract_part_the_addresses(several: list[tuple[int, int]], others: list[tuple[int, int]]) -> None:
    first, second = merge(several), merge(others)
    held, taken = ({at for b, e in each for at in range(b, e)} for each in (first, second))
    assert {at for b, e in overlap(first, second) for at in range(b, e)} == held & taken
    assert {at for b, e in subtract(first, second) for at in range(b, e)} == held - taken


VALUES = (0, False, 1, 1.0, True, "a", None, ("a",), (1,), (True,))
"""Some are equal, and are not the same."""


def step(chosen: random.Random, most: int) -> tuple[str, tuple[Any, ...]]:
    """A method and its arguments: mostly small spans in [0, most), now and then a large one, or none at all."""
    width = chosen.choice((0, 1, 2, 3, 8, 40, most // 8 if chosen.random() < 0.02 else 5))
    begin = chosen.randrange(most)
    span = (begin, begin + width)
    name = chosen.choice(("assign", "assign", "assign", "put", "erase", "update"))
    if name == "erase":
        return name, span
    if name == "update":
        made = [chosen.choice((None, 1, *VALUES)) for _ in range(5)]
        return name, (*span, lambda low, high, old: made[hash((low, high, old)) % 5])
    return name, (*span, chosen.choice(VALUES))


@needs_core
@pytest.mark.parametrize(("seed", "most"), [(1, 100), (2, 3_000), (3, 100_000), (4, 1 << 70)])
def test_the_native_map_does_what_the_python_map_does(seed: int, most: int) -> None:
    """With thousands of spans, so that the tree has several levels; it grows, and is emptied in the end."""
    chosen = random.Random(seed)
    ours: SpanMap[Any] = native.core.SpanMap()  # type: ignore[union-attr]
    theirs: PythonSpanMap[Any] = PythonSpanMap()
    places = list(range(0, min(most, 100_000), 9))
    chosen.shuffle(places)
    for held in (ours, theirs):
        for at in places:
            held.assign(at, at + 2, at)
    for at in range(6_000):
        name, arguments = step(chosen, most)
        assert getattr(ours, name)(*arguments) == getattr(theirs, name)(*arguments)
        begin, end = arguments[0] - 20, arguments[1] + 20
        assert list(map(repr, ours.pieces(begin, end))) == list(map(repr, theirs.pieces(begin, end)))
        assert repr(ours.exact(*arguments[:2])) == repr(theirs.exact(*arguments[:2]))
        if at % 500 == 0:
            ours._check()
            assert (len(ours), repr(list(ours))) == (len(theirs), repr(list(theirs)))
    chosen.shuffle(places)
    for at in places:
        for held in (ours, theirs):
            held.erase(at - 3, at + 7)
        if at % 50 == 0:
            ours._check()
            assert len(ours) == len(theirs)
    for held in (ours, theirs):
        held.erase(0, 2 * most)
    ours._check()
    assert list(ours) == list(theirs) == []


@needs_core
def test_the_native_map_outlives_values_that_change_it() -> None:
    held: SpanMap[Any] = native.core.SpanMap()  # type: ignore[union-attr]

    class Hostile:
        def __eq__(self, other: object) -> bool:
            held.erase(0, 100)
            return False

        __hash__ = None  # type: ignore[assignment]

        def __del__(self) -> None:
            with suppress(RuntimeError):
                held.assign(50, 51, "from a finalizer")

    held.assign(0, 4, Hostile())
    with pytest.raises(RuntimeError, match="changed while"):
        held.assign(4, 8, Hostile())
    held._check()
    held.update(0, 60, lambda begin, end, old: held.assign(2, 90, Hostile()))
    held._check()
    with pytest.raises(ZeroDivisionError):
        held.update(0, 90, lambda begin, end, old: 1 // 0)
    with pytest.raises(TypeError):
        held.assign("0", 4, 1)  # type: ignore[arg-type]
    with pytest.raises(OverflowError):
        held.assign(0, 1 << 200, 1)
    with pytest.raises(KeyError):
        held.set_exact(1000, 1001, 1)
    with pytest.raises(TypeError):
        held.assign(0, 1)  # type: ignore[call-arg]
    held._check()


@needs_core
def test_the_native_map_gives_up_what_it_held() -> None:
    value = object()
    before = sys.getrefcount(value)
    held: SpanMap[Any] = native.core.SpanMap()  # type: ignore[union-attr]
    for at in range(1000):
        held.assign(at * 3, at * 3 + 2, value)
    held.update(0, 1500, lambda begin, end, old: None if begin % 2 else old)
    held.put(2997, 2999, value)
    del held
    assert sys.getrefcount(value) == before

    class Circle:
        def __init__(self) -> None:
            self.held: SpanMap[Circle] = native.core.SpanMap()  # type: ignore[union-attr]
            self.held.assign(0, 1, self)
            self.going = iter(self.held)

    seen = weakref.ref(Circle())
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("kind", KINDS)
def test_values_may_change_while_spans_are_given(kind: type[SpanMap[int]]) -> None:
    held = kind()
    for at in range(100):
        held.assign(at * 2, at * 2 + 1, at)
    for begin, end, value in held:
        held.set_exact(begin, end, value + 1)
    assert [value for _, _, value in held] == list(range(1, 101))
