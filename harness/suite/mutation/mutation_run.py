"""Mutants of many scenarios, in worker processes side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from harness.device.drivers import find_driver
from harness.device.pool import run_jobs, why
from harness.findings import UserError
from harness.suite.claims import Claim
from harness.suite.mutation.mutant import Mutant
from harness.suite.row_job import load_module

JOB = "harness.suite.mutation.mutation_job:run"
Named = tuple[Path, str]
"""A scenario: its file and its name there."""


def claims(paths: Sequence[Path]) -> list[Named]:
    """Every scenario with a named dependency in these files and folders, in order."""
    files = [file for path in paths for file in (sorted(path.rglob("scenario_*.py")) if path.is_dir() else [path])]
    found = []
    for file in files:
        if not file.is_file():
            raise UserError(f"{file}: no such file")
        for name, value in vars(load_module(file.resolve())).items():
            if isinstance(value, Claim) and len(value.variants) > 1:
                found.append((file.resolve(), name))
    return found


def run(
    several: Sequence[Named], device: str, layer: str, processes: int, advance: Callable[[], None] = lambda: None
) -> Iterator[Mutant]:
    """Their mutants, recorded on `device` in some processes; `advance` is called after each scenario."""
    jobs = [{"module": str(file), "scenario": name, "layer": layer} for file, name in several]
    for position, answer in run_jobs(find_driver(device), JOB, jobs, processes):
        advance()
        if isinstance(answer, dict):
            yield from (Mutant.from_dict(each) for each in answer["mutants"])
        else:
            file, name = several[position]
            yield Mutant(f"{file.parent.name}/{name}", "", "", "", problem=why(answer))
