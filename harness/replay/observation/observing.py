"""Observing a trace: all of it in this process, or bit by bit in a worker that may die."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from harness.findings import UserError
from harness.replay.observation.declared import DeclaredAccesses
from harness.replay.observation.experiments import Budget, Experimenter
from harness.replay.outcomes.executor import open_scene
from harness.replay.schedule.screens import without_presentation
from harness.replay.schedule.steps import flatten
from harness.replay.schedule.units import units_of
from harness.trace.calls import Block
from harness.trace.codec import load
from harness.trace.observations import Observation

BYTES = 4 << 30
"""The default budget: bytes of contents that are read back."""
RUNS = 24
"""The default number of runs of one command to find its reads."""


def observe_trace(
    blocks: list[Block], device: str, budget: Budget, first: int = 0, passed_over: tuple[int, ...] = ()
) -> Iterator[Observation | int]:
    """The observation of each command in submission order, from number `first` on. Before them comes the number of all
    commands.

    Commands before `first`, and those whose numbers are in `passed_over`, run without experiments. Raises `UserError`
    when the trace cannot run.
    """
    blocks = without_presentation(blocks)
    declarations = DeclaredAccesses(blocks)
    units = units_of(flatten(blocks))
    with open_scene(blocks, device) as scene:
        experimenter = Experimenter(scene, declarations, budget)
        try:
            yield sum(map(experimenter.is_observed, units))
            number = 0
            for unit in units:
                if not experimenter.is_observed(unit):
                    experimenter.run(unit)
                    continue
                if number >= first and number not in passed_over:
                    yield experimenter.observe(unit)
                else:
                    experimenter.run(unit)
                number += 1
        finally:
            experimenter.snapshots.close()


class _Going:
    """The observation that goes on in this process between two jobs."""

    key: tuple[Any, ...] = ()
    found: Iterator[Observation | int] = iter(())
    budget = Budget(0, 0)


def observe_some(
    trace: str, device: str, first: int, passed_over: list[int], count: int, budget: dict[str, int]
) -> dict[str, Any]:
    """The next `count` observations of a trace file, as a job for a `Worker`: `{"total", "found", "spent"}`.

    The first job of a process opens the trace and begins at command number `first`; later ones with the same other
    arguments go on from where the last one stopped. Raises `UserError` when the trace cannot run.
    """
    key = (trace, device, first, *passed_over)
    if _Going.key != key:
        if isinstance(_Going.found, Generator):
            _Going.found.close()
        _Going.key, _Going.budget = key, Budget(**budget)
        _Going.found = observe_trace(load(Path(trace)), device, _Going.budget, first, tuple(passed_over))
    total, found = 0, []
    try:
        for each in _Going.found:
            if isinstance(each, int):
                total = each
                continue
            found.append(each.to_dict())
            if len(found) == count:
                break
    except UserError:
        _Going.key = ()
        raise
    return {"total": total, "found": found, "spent": _Going.budget.spent}
