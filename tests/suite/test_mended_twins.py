"""Twins of scenarios are mended with nothing that can be left out. `bench/mend_scenarios.py` tries all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.device.pool import sample
from harness.suite.mend_scenarios import mend_scenarios
from harness.suite.mutation.judge_mutants import claims

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SAMPLE = 8


@pytest.mark.driver
@pytest.mark.slow
def test_a_sample_is_mended_with_no_more_than_is_needed(fresh_seed: int) -> None:
    print(f"{SAMPLE} scenarios, seed {fresh_seed}")
    several = claims([SCENARIOS])
    chosen = [several[at] for at in sample(len(several), SAMPLE, fresh_seed)]
    found = [each for each in mend_scenarios(chosen, "lavapipe", 1) if not each["problem"]]
    assert [each for each in found if each["open"] or each["wider"]] == []
    assert found
