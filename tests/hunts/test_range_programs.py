"""The native range store and the one in Python, side by side, over thousands of ranges in one space."""

from __future__ import annotations

from collections import Counter

import pytest

from hunts.range_programs import RangePlayer, Step, ranges_of
from vkharness import native
from vkharness.syncval import slots
from vkharness.syncval.range_store import NativeRangeStore, PythonRangeStore, automaton

STEPS_OF_PROGRAMS = (
    "open_batch", "finish_batch", "keep_batches", "access", "recorded", "barrier", "change_everything", "copy", "erase",
    "forget_over", "drop", "look",
)  # fmt: skip
pytestmark = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")


def compare(steps: list[Step], looks: int) -> int:
    """Plays steps to both. Each says the same of each step, and holds the same every `looks` steps; the native one is
    whole behind each step. The most ranges that there were at a look."""
    python, core = (RangePlayer(store) for store in (PythonRangeStore(), NativeRangeStore(automaton(1 << 15))))
    most = 0
    for number, step in enumerate(steps, 1):
        assert python.play(step) == core.play(step), f"step {number}: {step}"
        core.store._check()
        if number % looks == 0 or number == len(steps):
            assert python.contents() == core.contents(), f"step {number}: {step}"
            most = max(most, core.store.ranges())
    return most


def test_both_stores_hold_the_same() -> None:
    assert max(compare(ranges_of(seed), 50) for seed in range(10)) > 1_000


def test_both_stores_hold_the_same_where_slots_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("AWAKE", 4), ("NEW_STEP", 1), ("KEPT", 30)):
        monkeypatch.setattr(slots, name, value)
    for seed in range(200, 206):
        compare(ranges_of(seed), 50)


def test_both_stores_hold_the_same_after_each_step() -> None:
    assert max(compare(ranges_of(seed)[:100], 1) for seed in range(100, 104)) > 200


def test_programs_that_nobody_has_seen(fresh_seed: int) -> None:
    print(f"seed {fresh_seed}")
    for seed in range(fresh_seed, fresh_seed + 2):
        compare(ranges_of(seed), 50)


def test_programs_have_steps_of_all_kinds() -> None:
    counts = Counter(step[0] for seed in range(16) for step in ranges_of(seed))
    assert set(counts) == set(STEPS_OF_PROGRAMS)
    assert all(hasattr(RangePlayer, f"_{name}") for name in counts)
