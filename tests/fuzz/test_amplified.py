"""Traces that ask for much work: valid ones, of a size in proportion, and part of the hunt."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from vkharness.check import Analysis
from vkharness.fuzz.hostile.amplified import LARGEST_SIZE, SHAPES, amplified, any_amplified
from vkharness.fuzz.hostile.hunt import Hunt
from vkharness.fuzz.hostile.tally import HuntPlan
from vkharness.fuzz.hostile.trial import Limits, Trials
from vkharness.trace.calls import Call
from vkharness.trace.codec import load


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
