"""`SpanMap` against a list with one cell an address."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.spans import SpanMap, merge, overlap, subtract

SIZE = 24
spans = st.tuples(st.integers(0, SIZE), st.integers(0, SIZE)).map(lambda pair: (min(pair), max(pair)))
operations = st.lists(st.tuples(st.sampled_from(["assign", "erase", "update"]), spans, st.integers(0, 2)), max_size=40)


class Small(SpanMap[int]):
    """Changes its container at sizes that a test reaches."""

    __slots__ = ()
    LARGE = 4


def toggled(value: int, _begin: int, _end: int, old: int | None) -> int | None:
    return None if old == value else (old or 0) + value


def cells(held: SpanMap[int]) -> list[int | None]:
    found: list[int | None] = [None] * SIZE
    for begin, end, value in held:
        found[begin:end] = [value] * (end - begin)
    return found


@pytest.mark.parametrize("kind", [SpanMap, Small])
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


def test_an_exact_span_is_found_without_a_search() -> None:
    held: SpanMap[str] = SpanMap()
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
