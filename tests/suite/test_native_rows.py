"""Rows that run as recorded under strategies: what a stream does not allow is said, and is no failure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


def strategies_of(module: str, scenario: str, native: str) -> dict[str, Any]:
    """Runs a whole row on lavapipe. Returns the result of each strategy, by name."""
    with Worker(find_driver("lavapipe")) as worker:
        arguments = [str(SCENARIOS / module), scenario, "whole", "lavapipe", None, ["off"], native]
        names = ("module", "scenario", "variant", "device", "artifacts", "layers", "native")
        row: Any = worker.call("vkharness.suite.judge_scenario:run", dict(zip(names, arguments, strict=True)))
    assert (row["problem"], row["status"]) == ("", "passed")
    return {each["strategy"]: each for each in row["verdicts"]["native"]["strategies"]}


def test_a_dispatch_whose_invocations_would_overwrite_each_other_does_not_grow() -> None:
    module, scenario = "descriptor/scenario_dispatches.py", "scenario_array_elements_by_remainder_and_mask"
    found = strategies_of(module, scenario, "1:plain,large")
    assert (found["plain"]["times"], found["plain"]["reason"]) == (1, "")
    assert (found["large"]["times"], found["large"]["corrupt"]) == (0, 0)
    assert found["large"]["reason"] == "as recorded only: invocations of one dispatch would write the same bytes"


def test_a_dispatch_whose_invocations_write_their_own_words_grows() -> None:
    found = strategies_of("barrier/scenario_accesses.py", "scenario_two_dispatches_write_one_buffer", "1:large")
    assert (found["large"]["times"], found["large"]["reason"]) == (1, "")
