"""Scenarios need their dependencies: `advise` calls none of them needless. `bench/advise_scenarios.py` tries all."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.device.pool import sample
from harness.suite.advise_scenarios import advise_scenarios
from harness.suite.mutation.judge_mutants import claims

SCENARIOS = Path(__file__).parents[2] / "scenarios"
SAMPLE = 12


@pytest.mark.driver
@pytest.mark.slow
def test_no_dependency_of_a_sample_is_called_needless(fresh_seed: int) -> None:
    print(f"{SAMPLE} scenarios, seed {fresh_seed}")
    several = claims([SCENARIOS])
    chosen = [several[at] for at in sample(len(several), SAMPLE, fresh_seed)]
    found = [each for each in advise_scenarios(chosen, "lavapipe", 1) if not each["problem"]]
    assert [each for each in found if each["needless"]] == []
    assert found
