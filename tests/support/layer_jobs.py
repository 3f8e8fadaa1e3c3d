"""Jobs that a test of the Khronos layer runs in a child process: a stream is recorded, and both judges are compared."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import vkharness
from vkharness.fuzz.layer_fuzz import played, without_excuses
from vkharness.fuzz.random_steps import Step
from vkharness.layer.compare import compare
from vkharness.layer.known_differences import known_differences
from vkharness.layer.listen import LayerListener
from vkharness.layer.manifest import find_layer
from vkharness.rig.rig import Rig
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.twins import Twin

FILLS = 12
"""More than the number of messages of one kind after which a layer falls silent by default."""
SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"


def need_of_steps(entry: str, layer: str, steps: list[Step]) -> dict[str, list[str]]:
    """`_need` of a stream of steps, as random streams are played."""
    return _need(entry, *played(steps, layer))


def need_of_row(entry: str, layer: str, scenario: str, variant: str) -> dict[str, list[str]]:
    """`_need` of one variant of a scenario, `folder/name without scenario_`."""
    folder, _, name = scenario.partition("/")
    modules = [vars(load_module(path)) for path in sorted((SCENARIOS / folder).glob("scenario_*.py"))]
    (claim,) = [module[f"scenario_{name}"] for module in modules if f"scenario_{name}" in module]
    session, listener, _ = record(claim, Twin(claim.variant(variant)).amend, find_layer(layer))
    assert listener is not None
    return _need(entry, session, listener)


def excuses_of_steps(layer: str, steps: list[Step]) -> dict[str, Any]:
    """Leaves out, one after the other, our findings that the layer has too, and counts the entries that excuse that:
    how many such findings there are, and these entries."""
    session, listener = played(steps, layer)
    known, blocks = known_differences(listener.layer.version), session.blocks or []
    whole = compare(session.findings, listener.messages, known, blocks)
    excused: list[str] = []
    for finding in session.findings:
        less = [each for each in session.findings if each is not finding]
        said = compare(less, listener.messages, known, blocks)
        if said.agrees and said.agreed < whole.agreed:
            excused += said.used.keys() - whole.used.keys()
    return {"agreed": whole.agreed, "left": whole.lines(), "excused": excused}


def left_of_steps(layer: str, steps: list[Step]) -> dict[str, list[Step]]:
    """Returns the rest of a stream of steps without those that can need an excuse."""
    return {"left": without_excuses(steps, layer)}


def _need(entry: str, session: vkharness.Session, listener: LayerListener) -> dict[str, list[str]]:
    """Returns the differences that stay unexplained with all known differences, and `without` one of them."""
    known = known_differences(listener.layer.version)
    less = [each for each in known if each.id != entry]
    said = [compare(session.findings, listener.messages, known, session.blocks or []) for known in (known, less)]
    return {"left": said[0].lines() + session.internal_errors, "without": said[1].lines()}


def count_hazards(layer: str) -> dict[str, int]:
    """How often the layer speaks while fills of a buffer and a copy from it are recorded with nothing between, and at
    the second of two submits of a fill."""
    with LayerListener.open(layer) as listener, Rig((), listener) as rig:
        a, b = rig.buffer(256), rig.buffer(256)
        with rig.commands() as commands:
            for _ in range(FILLS):
                commands.fill(a, 1)
            commands.copy(a, b)
        recorded = len(listener.take())
        with rig.commands() as commands:
            commands.fill(b, 1)
        rig.submit(commands)
        rig.submit(commands)
        rig.wait()
        return {"recorded": recorded, "submitted": len(listener.take())}


def variables() -> dict[str, str]:
    """The environment of the process."""
    return dict(os.environ)
