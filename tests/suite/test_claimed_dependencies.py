"""`advise` and `mend` on scenarios, whose dependencies are known. `bench/advise_scenarios.py` and
`bench/mend_scenarios.py` ask about all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkharness.device.pool import sample
from vkharness.suite.advise_scenarios import advise_scenarios
from vkharness.suite.mend_scenarios import Named, mend_scenarios
from vkharness.suite.mutation.judge_mutants import claims

SCENARIOS = Path(__file__).parents[2] / "scenarios"

pytestmark = [pytest.mark.driver, pytest.mark.slow]


def sampled(count: int, seed: int) -> list[Named]:
    print(f"{count} scenarios, seed {seed}")
    several = claims([SCENARIOS])
    return [several[at] for at in sample(len(several), count, seed)]


def test_no_dependency_of_a_sample_is_called_needless(given_seed: int) -> None:
    found = [each for each in advise_scenarios(sampled(12, given_seed), "lavapipe", 1) if not each["problem"]]
    assert [each for each in found if each["needless"]] == []
    assert found


def test_a_sample_is_mended_with_no_more_than_is_needed(given_seed: int) -> None:
    """Each twin without a dependency is mended with nothing that can be left out."""
    found = [each for each in mend_scenarios(sampled(8, given_seed), "lavapipe", 1) if not each["problem"]]
    assert [each for each in found if each["open"] or each["wider"]] == []
    assert found


def test_a_transition_is_mended_by_the_dependency_to_which_it_belongs() -> None:
    """A final transition waits for the dependency of the subpass that used the attachment; a barrier after the pass
    would have to wait for all commands."""
    name = "scenario_dependency_of_the_last_subpass_leaves_another_transition"
    [found] = mend_scenarios([each for each in claims([SCENARIOS]) if each[1] == name], "lavapipe", 1)
    assert (found["how"], found["open"], found["wider"]) == (["subpass dependency"], [], [])
