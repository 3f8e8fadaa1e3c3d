"""Which rows observe a fill, as their traces say: whether bytes were others if it ran late or wrote another word.

No driver runs anything here but the recording. So the rows that must notice such a driver are known before it is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vkharness.computed.expected_bytes import compute_steps
from vkharness.findings import UserError
from vkharness.replay.schedule.replayable import replayable
from vkharness.replay.schedule.steps import Step, StepKind, flatten
from vkharness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING
from vkharness.spec.shapes import main_name
from vkharness.suite.claims import Claim
from vkharness.suite.judge_scenario import ask, load_module
from vkharness.suite.row import Row
from vkharness.trace.calls import Block, Call
from vkharness.verdicts import BrokenPromise

OBSERVED = "vkharness.suite.mutation.observed_fills:run"
FILL = "vkCmdFillBuffer"
WORK = ("vkCmdDraw", "vkCmdDispatch", "vkCmdExecuteCommands", "vkCmdCopy", "vkCmdBlit", "vkCmdResolve")
"""Beginnings of the names of what a late fill comes after, as in `is_work` of promises.h, beside render passes."""


def late_fills(steps: Iterable[Step]) -> Iterator[Step]:
    """Steps with each fill behind the next work; what nothing follows runs before the host does the next step."""
    held: list[Step] = []
    inside = False
    for step in steps:
        if step.kind is StepKind.ACTION and main_name(step.name) == FILL:
            held.append(step)
            continue
        if step.kind is StepKind.HOST:
            yield from held
            held.clear()
        yield step
        begins, ends = step.name.startswith(BEGINS_RENDERING), step.name.startswith(ENDS_RENDERING)
        inside = begins or (inside and not ends)
        if not inside and (ends or step.name.startswith(WORK)):
            yield from held
            held.clear()
    yield from held


def wrong_fills(steps: Iterable[Step]) -> Iterator[Step]:
    """Steps in which each fill writes another word."""
    for step in steps:
        block = step.block
        if isinstance(block, Call) and main_name(block.name) == FILL:
            step = replace(step, block=replace(block, args={**block.args, "data": block.args["data"] ^ 1}))
        yield step


class ObservedFill(NamedTuple):
    """A change of fills that a broken driver makes, and the promise that a row which observes one reports as broken."""

    change: Callable[[Iterable[Step]], Iterator[Step]]
    says: BrokenPromise


OBSERVED_FILLS = {
    "fill-past-a-barrier": ObservedFill(late_fills, BrokenPromise.BARRIER),
    "fill-of-a-wrong-value": ObservedFill(wrong_fills, BrokenPromise.COMPUTATION),
}
"""By promise (`vkharness.device.faults.broken_promises`)."""


def observes(blocks: list[Block], promise: str) -> bool:
    """Whether a trace leaves other bytes on a driver that breaks this promise, in submission order with every barrier.
    Bytes that are not computed count as equal. Raises `UserError` for a trace that cannot be computed."""
    blocks = replayable(blocks)
    steps = flatten(blocks)
    right = compute_steps(blocks, steps)
    wrong = compute_steps(blocks, [*OBSERVED_FILLS[promise].change(steps)])
    for key, cells in right.cells.items():
        other = wrong.cells[key]
        known = cells.known & other.known
        differs = cells.data != other.data
        if np.any(known & (differs if differs.shape == known.shape else differs.any(axis=-1))):
            return True
    return False


def run(module: str, scenario: str, variant: str, device: str, promise: str) -> dict[str, Any]:
    """Whether a row `observes`, as the driver of this process records it: {"observes": bool}. A row that cannot run
    here or whose bytes cannot be computed does not."""
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    blocks = ask(Row(f"{Path(module).parent.name}/{scenario}", variant, device, []), claim, execute=False)
    try:
        return {"observes": observes(blocks, promise)}
    except UserError:
        return {"observes": False}
