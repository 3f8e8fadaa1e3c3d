"""Slots that sleep: whenever a state is worked out, it is the one that mapping every state at once gives."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.rounds import WAITS, Rounds
from vkharness.check import Analysis
from vkharness.findings import Finding
from vkharness.fuzz import random_text
from vkharness.fuzz.kept_streams import kept_streams
from vkharness.spans import merge
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.syncval import slots
from vkharness.syncval.evidence import Description
from vkharness.syncval.slots import Slots
from vkharness.syncval.state import EMPTY, Change, State, Write, intern
from vkharness.syncval.validator import Validator
from vkharness.text_form import stream_text
from vkharness.trace.codec import load
from vkharness.trace.effects import StreamEvent

ROOT = Path(__file__).resolve().parents[2]
SLEEPY = [(1, 1, 1), (2, 3, 4), (3, 1000, 5), (1, 0, 10_000)]
"""AWAKE, STEPS and KEPT: everything sleeps at once, and is brought forward at different times, or never."""
TRACES = ("formats/trace", "gfxrecon", "sparse", "structures")
EVERYTHING_AWAKE = (1 << 30, 1, 1)
"""The plain way: every change maps every state."""


def set_limits(monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int, int]) -> None:
    for name, value in zip(("AWAKE", "STEPS", "KEPT"), limits, strict=True):
        monkeypatch.setattr(slots, name, value)


def judged(streams: list[list[StreamEvent]], check: bool) -> list[Finding]:
    """Returns the findings of syncval in streams that follow one another on one device. Ranges that touch count as one:
    how they are cut shows which slots were shared."""
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    found: list[Finding] = []
    for stream in streams:
        for event in stream:
            found += validator.consume(event)
        if check:
            validator._context._check()
    found += validator.finish()
    return [replace(each, ranges=tuple(merge(list(each.ranges)))) for each in found]


def random_streams(seed: int, count: int) -> Iterator[list[StreamEvent]]:
    """Random streams, all of the same few resources, so that later ones meet what earlier ones left."""
    chosen = random.Random(seed)
    features = [each for each in random_text.FEATURES if each != "sparse"]
    for _ in range(count):
        yield stream_text.parse(random_text.make(lambda several: chosen.choice(list(several)), features))


@pytest.mark.parametrize("limits", SLEEPY)
def test_sleep_changes_no_finding_of_random_streams(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int, int]
) -> None:
    found = 0
    for seed in range(20):
        streams = list(random_streams(seed, 6))
        set_limits(monkeypatch, EVERYTHING_AWAKE)
        plain = judged(streams, check=False)
        set_limits(monkeypatch, limits)
        assert judged(streams, check=True) == plain, f"seed {seed}"
        found += len(plain)
    assert found > 200


@pytest.mark.parametrize("limits", SLEEPY[1:3])
def test_sleep_changes_no_finding_of_kept_streams(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int, int]
) -> None:
    kept = kept_streams([ROOT / "scenarios" / "streams"])
    set_limits(monkeypatch, limits)
    for each in kept:
        assert tuple(found.hazard.value for found in judged([stream_text.parse(each.text)], False)) == each.finds


@pytest.mark.parametrize("limits", SLEEPY[1:3])
def test_sleep_changes_no_finding_of_recorded_traces(
    monkeypatch: pytest.MonkeyPatch, limits: tuple[int, int, int]
) -> None:
    """Traces that earlier versions recorded, and rounds that leave much behind."""
    paths = [path for folder in TRACES for path in sorted((ROOT / "tests" / "data" / folder).glob("*.jsonl"))]
    assert len(paths) > 10
    recorded = [list(load(path)) for path in paths]
    rounds = Rounds(1, WAITS, commands=10)
    recorded.append([block for _ in range(30) for block in rounds.round()])
    for blocks in recorded:
        set_limits(monkeypatch, EVERYTHING_AWAKE)
        plain = [(each.message, each) for each in Analysis().follow(blocks).findings]
        set_limits(monkeypatch, limits)
        assert [(each.message, each) for each in Analysis().follow(blocks).findings] == plain


def written(queue: int) -> State:
    return intern(Write(ACCESS_KIND["SYNC_COPY_TRANSFER_WRITE"].index, queue, queue), (), ())


def moved(step: int) -> Change:
    """Adds a number to the queue of each write, of which there are a hundred."""
    return Change(
        ("moved", step), lambda state: state if state.write is None else written((state.write.queue + step) % 100)
    )


def test_a_slot_that_sleeps_misses_nothing_and_finds_its_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, (2, 1, 1000))
    held = Slots()
    pointers = [held.get(written(queue)) for queue in range(0, 50, 10)]
    for step in (1, 2, 3):
        held.map(moved(step))
    assert len(held) <= 2
    assert pointers[0].sleeps
    assert held.get(written(6)) is pointers[0].find(), "two slots with one state"
    assert [each.peek() for each in pointers] == [written(queue + 6) for queue in range(0, 50, 10)]
    assert [each.find().state for each in pointers] == [written(queue + 6) for queue in range(0, 50, 10)]
    held._check()


def test_changes_are_kept_only_while_somebody_misses_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred states, of which each change meets half at once: those that sleep follow, and so does the list."""
    set_limits(monkeypatch, (50, 200, 10))
    held = Slots()
    pointers = [held.get(written(queue)) for queue in range(100)]
    kept = []
    for _ in range(2_000):
        held.map(moved(1))
        kept.append(held.kept)
    assert max(kept[1_000:]) <= max(kept[:1_000])
    assert max(kept) < 100
    assert [each.find().state for each in pointers] == [written(queue) for queue in range(100)]
    del pointers
    held.get(EMPTY)
    for _ in range(100):
        held.map(moved(1))
    held._check()


@pytest.mark.parametrize("waits", [WAITS, ("none",)])
def test_rounds_with_fresh_resources_cost_the_same_late_as_early(waits: tuple[str, ...]) -> None:
    """300 rounds in which nothing is destroyed: states that changes met, and what is awake, are counted."""
    stream, mirror = Rounds(1, waits, commands=6), Analysis()
    context = mirror._validator._context
    steps, awake = [], []
    for _ in range(300):
        before = context.store.sizes().steps
        for block in stream.round():
            mirror.step(block)
        steps.append(context.store.sizes().steps - before)
        awake.append(context.store.sizes().awake)
    assert context.ranges > 300
    assert max(awake) <= slots.AWAKE + 30, "states that nobody touches are awake"
    assert sum(steps[-100:]) <= 1.2 * sum(steps[20:120])
