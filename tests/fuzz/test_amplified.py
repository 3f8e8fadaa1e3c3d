"""Traces that ask for much work: valid ones, of a size in proportion, and part of the hunt."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.streams import Stream
from vkharness.check import Analysis
from vkharness.fuzz.hostile.amplified import LARGEST_SIZE, SHAPES, amplified, any_amplified
from vkharness.fuzz.hostile.hunt import Hunt
from vkharness.fuzz.hostile.tally import HuntPlan
from vkharness.fuzz.hostile.trial import Limits, Trials
from vkharness.trace import work_budget
from vkharness.trace.calls import Call
from vkharness.trace.codec import load, read_trace
from vkharness.trace.work_budget import A_BLOCK, A_BUFFER, A_COMMAND, A_HAZARD, UNITS, OverBudget

BYTES_A_UNIT = 64
"""Of memory, at most."""


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_is_judged_whole(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(amplified(shape, 8))
    blocks = load(path)
    assert not [each for each in blocks if isinstance(each, Call) and each.unread]
    assert Analysis().follow(blocks).verdict in ("clean", "hazards")


@pytest.mark.parametrize("shape", SHAPES)
def test_the_file_is_in_proportion_to_the_size(shape: str) -> None:
    small, middle, large = (len(amplified(shape, size)) for size in (64, 128, 256))
    assert large - middle <= 2.2 * (middle - small)


@pytest.fixture
def shared_units() -> Iterator[None]:
    """A tenth of those that a command has."""
    work_budget.share(0.1)
    yield
    work_budget.end_sharing()


@pytest.mark.parametrize("shape", SHAPES)
def test_memory_is_in_proportion_to_the_file_and_the_counted_work(
    shape: str, shared_units: None, tmp_path: Path
) -> None:
    """What grows faster than the file is counted, so the budget ends it: at that end the most memory is taken.

    Of memory that C++ takes nobody knows here.
    """
    path = tmp_path / "t.jsonl"
    path.write_bytes(amplified(shape, LARGEST_SIZE))
    before = UNITS.left
    tracemalloc.start()
    try:
        with suppress(OverBudget):
            Analysis().follow(read_trace(path))
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert taken <= (2 << 20) + 4 * path.stat().st_size + BYTES_A_UNIT * (before - UNITS.left)


def test_a_hazard_is_work_each_time_that_it_is_met(shared_units: None) -> None:
    """Also where it is reported no more: a file of 22 kB met half a million of them."""

    def taken(submits: int) -> int:
        stream = Stream()
        buffer = stream.buffer(64)
        stream.begin()
        stream.fill(buffer, 1)
        stream.fill(buffer, 2)
        stream.end()
        for _ in range(submits):
            stream.submit(stream.commands, wait=False)
        before = UNITS.left
        assert len(Analysis().follow(stream.blocks).findings) == 2  # inside of the command buffer, and across submits
        return before - UNITS.left

    executed = A_BLOCK + A_BUFFER + 2 * A_COMMAND
    assert taken(20) - taken(10) >= 10 * (executed + 2 * A_HAZARD)


def test_shapes_of_all_sizes_are_drawn() -> None:
    rng = random.Random(1)
    drawn = {any_amplified(rng) for _ in range(60)}
    assert len(drawn) > 30
    assert max(map(len, drawn)) <= max(len(amplified(shape, LARGEST_SIZE)) for shape in SHAPES)


def test_the_hunt_has_them(tmp_path: Path) -> None:
    def nothing(_: list[str]) -> None:
        raise SystemExit(0)

    hunt = Hunt(HuntPlan(1, ""), [], Trials(nothing, tmp_path, Limits(), False), tmp_path / "keep")
    rng = random.Random(2)
    texts = [hunt._trial(rng).sample.files["t.jsonl"] for _ in range(400)]
    whole = {amplified(shape, 1 << bits) for shape in SHAPES for bits in range(LARGEST_SIZE.bit_length())}
    assert whole & set(texts)
