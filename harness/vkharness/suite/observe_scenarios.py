"""Scenarios on a driver, each command observed: does any reach what `vkharness.commands` does not declare?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.replay.observation.experiments import Budget
from vkharness.replay.observation.observing import BYTES, observe_trace
from vkharness.suite.claims import Claim, Variant
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.runner import NoAnswer, run_tasks
from vkharness.suite.twins import Twin
from vkharness.trace.observations import Observation

Named = tuple[Path, str]
"""A scenario: its file and its name there."""


def scenarios(paths: Sequence[Path]) -> list[Named]:
    """Every scenario in these files and folders, in order. Raises `UserError` for one that does not exist."""
    files = [file for path in paths for file in (sorted(path.rglob("scenario_*.py")) if path.is_dir() else [path])]
    found = []
    for file in files:
        if not file.is_file():
            raise UserError(f"{file}: no such file")
        found += [
            (file.resolve(), name)
            for name, value in vars(load_module(file.resolve())).items()
            if isinstance(value, Claim)
        ]
    return found


def observe_scenarios(
    several: Sequence[Named], device: str, runs: int, processes: int, advance: Callable[[int], object] = lambda _: None
) -> Iterator[tuple[str, list[Observation], str]]:
    """(name, what its commands did, why it could not be observed) of each scenario. `runs` as in `Budget`."""
    tasks = [{"module": str(file), "scenario": name, "device": device, "runs": runs} for file, name in several]
    for at, answer in run_tasks(f"{__name__}:run", tasks, device, processes, advance=advance):
        file, name = several[at]
        title = f"{file.parent.name}/{name}"
        if isinstance(answer, NoAnswer):
            yield title, [], answer.problem
        else:
            yield title, [Observation.from_dict(each) for each in answer["pieces"]], ""


def run(module: str, scenario: str, device: str, runs: int) -> dict[str, Any]:
    """One scenario with all its dependencies, recorded and observed on this process' driver: `{"pieces": [...]}`.

    `runs` as in `Budget`. Raises `UserError` when the device cannot record or run it.
    """
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    session, _, _ = record(claim, Twin(Variant()).amend, None)
    found = observe_trace(session.blocks or [], device, Budget(BYTES, runs))
    return {"pieces": [each.to_dict() for each in found if isinstance(each, Observation)]}
