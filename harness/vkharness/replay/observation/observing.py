"""Observing a trace: all of it in this process, or bit by bit in a worker that may die."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

from vkharness.findings import DeviceLostError, UserError
from vkharness.replay.objects.target import open_target
from vkharness.replay.observation.declared import DeclaredAccesses
from vkharness.replay.observation.experiments import Budget, Experimenter, commands_of, is_observed
from vkharness.replay.observation.shader_notes import ShaderNotes, why_not, with_features
from vkharness.replay.outcomes.executor import open_scene
from vkharness.replay.schedule.replayable import replayable
from vkharness.replay.schedule.steps import flatten
from vkharness.replay.schedule.units import units_of
from vkharness.trace.calls import Block
from vkharness.trace.codec import load
from vkharness.trace.observations import Observation, ObservedCommand

BYTES = 4 << 30
"""The default budget: bytes of contents that are read back."""
RUNS = 24
"""The default number of runs of one command to find its reads."""


def observe_trace(
    blocks: list[Block],
    device: str,
    budget: Budget,
    first: int = 0,
    passed_over: tuple[int, ...] = (),
    shaders: bool = True,
) -> Iterator[Observation | int]:
    """The observation of each command in submission order, from number `first` on. Before them comes the number of all
    commands.

    Commands before `first`, and those whose numbers are in `passed_over`, run without experiments. With `shaders` they
    are instrumented, as far as the device can run that. Raises `UserError` when the trace cannot run.
    """
    blocks = replayable(blocks)
    done = first
    try:
        for each in _observations(blocks, device, budget, (first, passed_over), shaders):
            done += not isinstance(each, int)
            yield each
    except DeviceLostError:
        raise
    except UserError:
        if not shaders:
            raise
        # A driver may refuse an instrumented shader. Without them the trace may run.
        yield from _observations(blocks, device, budget, (done, passed_over), False)


def _observations(
    blocks: list[Block], device: str, budget: Budget, which: tuple[int, tuple[int, ...]], shaders: bool
) -> Iterator[Observation | int]:
    declarations = DeclaredAccesses(blocks)
    units = units_of(flatten(blocks))
    instrumented = shaders and not why_not(open_target(device))
    with open_scene(with_features(blocks) if instrumented else blocks, device) as scene:
        notes = ShaderNotes(scene.device) if instrumented else None
        experimenter = Experimenter(scene, declarations, budget, notes)
        try:
            yield sum(map(is_observed, units))
            number = 0
            for unit in units:
                if not is_observed(unit):
                    experimenter.run(unit)
                    continue
                if number >= which[0] and number not in which[1]:
                    yield experimenter.observe(unit)
                else:
                    experimenter.run(unit)
                number += 1
        finally:
            experimenter.snapshots.close()
            if notes is not None:
                scene.device.wait()
                notes.close()


def commands_at(blocks: list[Block], number: int) -> tuple[ObservedCommand, ...]:
    """Returns the commands that observation number `number` of a trace is about; none past the end. Needs no driver."""
    units = [unit for unit in units_of(flatten(replayable(blocks))) if is_observed(unit)]
    return commands_of(units[number]) if number < len(units) else ()


class _Going:
    """The observation that goes on in this process between two jobs."""

    key: tuple[Any, ...] = ()
    found: Iterator[Observation | int] = iter(())
    budget = Budget(0, 0)


def observe_some(
    trace: str, device: str, first: int, passed_over: list[int], shaders: bool, count: int, budget: dict[str, int]
) -> dict[str, Any]:
    """The next `count` observations of a trace file, as a job for a `Worker`: `{"total", "found", "spent"}`.

    The first job of a process opens the trace and begins at command number `first`; later ones with the same other
    arguments go on from where the last one stopped. Raises `UserError` when the trace cannot run.
    """
    key = (trace, device, first, shaders, *passed_over)
    if _Going.key != key:
        if isinstance(_Going.found, Generator):
            _Going.found.close()
        _Going.key, _Going.budget = key, Budget(**budget)
        _Going.found = observe_trace(load(Path(trace)), device, _Going.budget, first, tuple(passed_over), shaders)
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
