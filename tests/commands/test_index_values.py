"""The vertices that known indices mean, against a plain reading of them, few and many, in one chunk and in pieces."""

from __future__ import annotations

import struct
from dataclasses import replace
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from vkharness.commands.contents.index_values import FEW, MOST_RUNS, Indices, held_indices, joined_runs, runs_of
from vkharness.commands.contents.known_memory import MOST_BYTES, KnownMemory
from vkharness.commands.drawing.by_contents import IndexedDraw, Part
from vkharness.commands.drawing.vertex import IndexSource, Source, VertexSource
from vkharness.spans import Span
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
