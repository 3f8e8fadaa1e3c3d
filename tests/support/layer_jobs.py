"""Jobs that a test of the Khronos layer runs in a child process: a stream is recorded, and both judges are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import harness
from harness.fuzz.random_steps import Step
from harness.fuzz.step_player import StepPlayer, open_rig
from harness.layer.compare import compare
from harness.layer.known_differences import known_differences
from harness.layer.listen import LayerListener
from harness.layer.manifest import find_layer
from harness.suite.judge_scenario import load_module, record
from harness.suite.twins import Twin

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


def need_of_steps(entry: str, layer: str, steps: list[Step]) -> dict[str, list[str]]:
    """`_need` of a stream of steps, as random streams are played."""
    with (
        LayerListener.open(layer) as listener,
        harness.attach(keep_trace=True, sink=lambda block: _listen(listener, block)) as session,
        open_rig(listener) as rig,
    ):
        StepPlayer(rig).play(steps)
    return _need(entry, session, listener)


def need_of_row(entry: str, layer: str, scenario: str, variant: str) -> dict[str, list[str]]:
    """`_need` of one variant of a scenario, `folder/name without scenario_`."""
    folder, _, name = scenario.partition("/")
    modules = [vars(load_module(path)) for path in sorted((SCENARIOS / folder).glob("scenario_*.py"))]
    (claim,) = [module[f"scenario_{name}"] for module in modules if f"scenario_{name}" in module]
    session, listener, _ = record(claim, Twin(claim.variant(variant)).amend, find_layer(layer))
    assert listener is not None
    return _need(entry, session, listener)


def _listen(listener: LayerListener, block: Any) -> None:
    listener.take(block.index)


def _need(entry: str, session: harness.Session, listener: LayerListener) -> dict[str, list[str]]:
    """What is left unexplained with all known differences, and `without` one of them."""
    known = known_differences(listener.layer.version)
    less = [each for each in known if each.id != entry]
    said = [compare(session.findings, listener.messages, known, session.blocks or []) for known in (known, less)]
    return {"left": said[0].lines() + session.internal_errors, "without": said[1].lines()}
