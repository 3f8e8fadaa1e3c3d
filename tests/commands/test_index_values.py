"""The vertices that known indices mean, against a plain reading of them, few and many, in one chunk and in pieces."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import chain, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vkharness import native
from vkharness.commands.contents.index_values import FEW, MOST_RUNS, Indices, held_indices, joined_runs, runs_of
from vkharness.commands.contents.known_memory import MOST_BYTES, KnownMemory
from vkharness.commands.drawing.by_contents import IndexedDraw, Part
from vkharness.commands.drawing.numbered_draws import NumberedSteps
from vkharness.commands.drawing.vertex import IndexSource, Source, VertexSource
from vkharness.commands.flat_reaches import Writes, moved_plan
from vkharness.spans import Span
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.effects import Access
from vkharness.trace.graphics_state import VertexBinding

CODES = {1: "B", 2: "H", 4: "I"}


def known_runs(memory: KnownMemory, indices: Indices) -> list[Span] | None:
    held = held_indices(memory, indices)
    return None if held is None else runs_of(held, indices)


def meant(values: list[int], size: int, restart: bool) -> set[int]:
    return {value for value in values if not (restart and value == (1 << 8 * size) - 1)}


def covered(runs: list[Span]) -> set[int]:
    assert runs == sorted(runs) and all(one[1] < two[0] for one, two in pairwise(runs))
    return {value for begin, end in runs for value in range(begin, end)}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_runs_hold_what_the_indices_mean_and_nothing_else(data: st.DataObject) -> None:
    size, restart = data.draw(st.sampled_from([1, 2, 4])), data.draw(st.booleans())
    largest = (1 << 8 * size) - 1
    values = data.draw(st.lists(st.one_of(st.integers(0, 40), st.integers(largest - 3, largest)), min_size=1))
    values *= data.draw(st.sampled_from([1, 1 + FEW]))
    memory, bytes_of = KnownMemory(), struct.pack(f"<{len(values)}{CODES[size]}", *values)
    cut = data.draw(st.integers(0, len(bytes_of)))
    memory.write(1, 100, bytes_of[:cut])
    memory.write(1, 100 + cut, bytes_of[cut:])
    found = known_runs(memory, Indices(1, (100, 100 + len(bytes_of)), size, restart))
    assert found is not None and covered(found) == meant(values, size, restart)


def test_bytes_that_are_unknown_make_all_of_it_unknown() -> None:
    memory = KnownMemory()
    memory.write(1, 0, bytes(64))
    memory.forget(1, (60, 61))
    assert known_runs(memory, Indices(1, (0, 64), 4, False)) is None
    assert known_runs(memory, Indices(1, (0, 60), 4, False)) == [(0, 1)]


def test_of_many_runs_those_with_the_smallest_gaps_are_joined() -> None:
    for repeated in 1, FEW:
        values = [*range(0, 2000, 2), 10_000, 10_001] * repeated
        memory = KnownMemory()
        memory.write(1, 0, struct.pack(f"<{len(values)}I", *values))
        found = known_runs(memory, Indices(1, (0, 4 * len(values)), 4, False))
        assert found is not None and len(found) == MOST_RUNS
        assert found[-1] == (10_000, 10_002) and set(values) <= covered(found)
    assert joined_runs([(0, 1), (5, 6), (7, 8)], 2) == [(0, 1), (5, 8)]


def test_a_fill_is_read_at_any_place_and_costs_no_memory() -> None:
    memory = KnownMemory()
    memory.fill(1, (6, 1 << 40), 0x04030201)
    assert memory.read(1, (7, 12)) == bytes((2, 3, 4, 1, 2))
    assert known_runs(memory, Indices(1, (6, 1 << 40), 2, False)) == [(0x0201, 0x0202), (0x0403, 0x0404)]


def test_the_largest_are_forgotten_when_too_much_is_kept() -> None:
    memory, large = KnownMemory(), bytes(MOST_BYTES // 8)
    memory.write(1, 0, b"small")
    for at in range(12):
        memory.write(2, at * len(large), large)
    assert memory.read(1, (0, 5)) == b"small"
    kept = [at for at in range(12) if memory.read(2, (at * len(large), at * len(large) + 4)) is not None]
    assert 0 < len(kept) < 8


def test_a_draw_that_comes_again_asks_for_its_vertices_when_its_indices_are_others() -> None:
    memory = KnownMemory()
    sources = (VertexSource(Source(7, 8, 100, 200), VertexBinding(0, 4, 0, 4)),)
    draw = IndexedDraw(IndexSource(Source(1, 1, 0, 64), 4, False), (Part(0, 2, 0),), sources)

    def spans() -> list[tuple[Span, ...]]:
        return [each.spans for each in draw.outcome(memory).accesses if isinstance(each, Access)]

    assert spans() == [] and draw.outcome(memory).unknown
    memory.write(1, 0, struct.pack("<2I", 0, 3))
    assert spans() == spans() == [((100, 104), (112, 116))]
    last = draw.outcome(memory).accesses
    assert draw.outcome(memory).accesses is last
    memory.write(1, 0, struct.pack("<2I", 3, 0))
    assert draw.outcome(memory).accesses is last, "other bytes mean the same vertices"
    memory.write(1, 0, struct.pack("<I", 1))
    assert spans() == [((100, 108),)]
    memory.forget(1, (0, 1))
    assert spans() == [] and draw.outcome(memory).unknown
    memory.write(1, 0, struct.pack("<2I", 0, 1))
    assert spans() == [((100, 108),)]
    assert replace(draw, indices=None).outcome(memory).accesses == ()


READS = ACCESS_KIND["SYNC_INDEX_INPUT_INDEX_READ"].index
SOURCES = (
    VertexSource(Source(7, 8, 100, 400), VertexBinding(0, 4, 0, 4)),
    VertexSource(Source(7, 8, 96, 380), VertexBinding(1, 12, 4, 8)),
    VertexSource(Source(9, 10, 0, 1 << 20), VertexBinding(2, 0, 0, 4)),
    VertexSource(Source(5, 6, 50, 90), VertexBinding(3, 8, 0, 8)),
)


def _bound(indices: IndexSource, where: list[int]) -> IndexSource:
    """An index buffer that is bound so many bytes behind another one."""
    source = indices.source
    return indices._replace(source=source._replace(base=source.base + sum(where)))


@pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_several_draws_at_once_read_what_each_of_them_reads(data: st.DataObject) -> None:
    """Also where the native core leaves them to Python, which the draws of many vertices without a gap are not."""
    size, restart = data.draw(st.sampled_from([1, 2, 4])), data.draw(st.booleans())
    largest = (1 << 8 * size) - 1
    value = st.one_of(st.integers(0, 9), st.just(largest))
    values = data.draw(st.lists(value, min_size=1, max_size=40)) + list(
        range(data.draw(st.sampled_from([0, 8, FEW + 9])))
    )
    values = [each % (largest + 1) for each in values]
    memory, bytes_of = KnownMemory(), struct.pack(f"<{len(values)}{CODES[size]}", *values)
    cut = data.draw(st.sampled_from([0, 7, len(bytes_of)]))
    memory.write(1, 100, bytes_of[:cut])
    memory.write(1, 100 + cut, bytes_of[cut:])
    limit = 100 + len(bytes_of) - data.draw(st.integers(0, 3))
    sources = tuple(data.draw(st.lists(st.sampled_from(SOURCES), unique=True)))
    indices = IndexSource(Source(1, 1, 100, limit), size, restart)
    number, bound = st.integers(0, len(values) + 2), data.draw(st.lists(st.integers(0, 9), max_size=1))
    series = NumberedSteps(IndexedDraw(_bound(indices, bound), (), sources), (1, 1, 0, 0, 0, *bound), bool(bound))
    given = number, st.just(1), number, st.just(0), st.integers(0, 5), *(st.integers(0, 9) for _ in bound)
    draws = data.draw(st.lists(st.tuples(*given), min_size=1, max_size=9))
    read = Access(READS, 0, (), 0), 0, Writes.NOTHING, ((0, 1),)
    plan = moved_plan([read], ((3, 4, 640, 7),), ((1, 1, 9),), (), ()).plan((1,))
    plans = [plan] * (1 + len(draws))
    found = series.plans(plans, 1, struct.pack(f"={len(given) * len(draws)}Q", *chain(*draws)), memory)
    unbound = indices
    for at, (count, _, first, _, offset, *where) in enumerate(draws):
        indices = _bound(unbound, where)
        expected = IndexedDraw(indices, (Part(first, count, offset),), sources).outcome(memory)
        made = None if found is None else found[at]
        if made is not None:
            assert not expected.unknown and made.effects == (*expected.accesses, *plan.effects)
        spans = [each.spans for each in expected.accesses if isinstance(each, Access)]
        is_plain = spans and all(len(each) == 1 for each in spans) and count <= FEW and cut in (0, len(bytes_of))
        runs = (
            []
            if not is_plain
            else known_runs(
                memory, Indices(1, indices.source.span(first * size, (first + count) * size), size, restart)
            )
        )
        if is_plain and runs is not None and len(runs) == 1 and len(sources) == 1:
            assert made is not None, "that is what the native core is for"


@pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
def test_the_native_core_takes_only_what_it_can_read() -> None:
    assert native.core is not None
    indices, index, sources = (1, 1, 0, 64), (2, 0), ((7, 8, 0, 64, 4, 0, 4, 1, 0),)

    def make(layout: int, *given: tuple[Any, ...]) -> Any:
        return native.core.ContentDraws(lambda plan, *reads: None, layout, *given, False)  # type: ignore[union-attr]

    wrong: list[tuple[Any, ...]] = [(0, (), (), indices, each, sources) for each in ((3, 0), (2,), (2, -1))]
    wrong += [(0, (), (), each, index, sources) for each in (indices[:3], (*indices[:3], -1))]
    wrong += [(0, (), (), indices, index, ((7, 8, 0, 64, 1 << 40, 0, 4, 1, 0),)), (4, (), (), indices, index, sources)]
    wrong += [(0, indices, (), indices, index, sources), (1, (), indices, indices, index, sources)]
    for each in wrong:
        with pytest.raises(ValueError):
            make(*each)
    draws, numbers = make(0, (), (), indices, index, sources), struct.pack("=5Q", 3, 1, 0, 0, 0)
    assert draws.hull(numbers, 2, []) == (0, 6) and draws.hull(b"", 2, []) is None is draws.hull(numbers, 0, [])
    memory = KnownMemory()
    memory.write(1, 0, bytes(6))
    pieces = [[], [], memory.pieces(1, (0, 6))]
    assert draws.plans([], 0, numbers, pieces) == draws.plans([1], 0, numbers, []) == [None]
    for unread in (numbers[1:], struct.pack("=5Q", 1 << 63, 1, 0, 0, 0), None):
        with pytest.raises(ValueError):
            draws.plans([], 0, unread, pieces)
    for bad in (None, [None], [[None]], [[(0, 6, None)]], [[(0, 6, (None, 0))]], [[("", 6, (None, 0))]]):
        with pytest.raises((AttributeError, TypeError, ValueError)):
            draws.plans([], 0, numbers, bad)
