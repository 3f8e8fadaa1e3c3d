"""Runs of a trace in legal orders other than submission order, each compared with the serial run.

A trace without conflicts must leave the serial bytes in each run. A difference is a bug of a judge, of the replay or of
the driver. A trace with conflicts may differ, which shows a race by nothing but the order of whole commands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from vkharness.model import Opinion, judge
from vkharness.replay.contents.observe import OutputDifference, Outputs, compare, observe
from vkharness.replay.outcomes.executor import Plan, execute, open_scene
from vkharness.replay.outcomes.jobs import run_serial
from vkharness.replay.outcomes.reorder import Reorder
from vkharness.replay.schedule.legal_orders import LegalOrders
from vkharness.replay.schedule.replayable import replayable
from vkharness.replay.schedule.steps import flatten
from vkharness.replay.schedule.units import units_of
from vkharness.trace.calls import Block, Call
from vkharness.trace.sparse_effects import BIND_SPARSE


@dataclass(slots=True)
class OrderRun:
    """One legal order, and the bytes that it changed."""

    outcome: str
    """The text that reproduces this run."""
    moved: int
    """The number of units that ran after a unit that was submitted later."""
    same_as: str = ""
    """The outcome of an earlier run with the same order. Only that run was executed."""
    differences: list[OutputDifference] = field(default_factory=list)
    observed: Outputs | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form without the contents."""
        return {
            "outcome": self.outcome,
            "moved": self.moved,
            "same_as": self.same_as,
            "differences": [difference.to_dict() for difference in self.differences],
        }


@dataclass(slots=True)
class Reorders:
    """The runs of all orders that were asked for. `reason` says why only submission order is possible, if so."""

    runs: list[OrderRun]
    expected: Outputs | None = None
    """The outputs of the serial run; None when nothing was executed."""
    unstable: list[int] = field(default_factory=list)
    """Resources that two serial runs leave with different bytes, such as timestamps. They are not compared."""
    reason: str = ""
    unmodelled: list[str] = field(default_factory=list)
    """Names of commands that are not modelled. Their order is not known, so that nothing is moved."""
    units: int = 0
    """The number of units of the trace that reach memory."""

    @property
    def executed(self) -> list[OrderRun]:
        """The runs that were executed: one of each order."""
        return [run for run in self.runs if not run.same_as]

    @property
    def differing(self) -> list[OrderRun]:
        """The runs that left other bytes than the serial one."""
        return [run for run in self.runs if run.differences]


SERIAL = "serial"


def run_reorders(
    blocks: list[Block],
    chosen: Iterable[tuple[str, int]],
    device: str,
    opinion: Opinion | None = None,
    most: int | None = None,
) -> Reorders:
    """Executes the orders that (strategy, seed) pairs give, each once, and at most `most` of them.

    `opinion` is the model's of the same trace. Raises `UserError` when the trace cannot run or a strategy is unknown.
    """
    opinion = opinion or judge(blocks)
    if opinion.unmodelled:
        names = sorted(opinion.unmodelled)
        reason = f"no legal order but submission order is known: not modelled: {', '.join(names)}"
        return Reorders([], reason=reason, unmodelled=names)
    if any(isinstance(block, Call) and block.name == BIND_SPARSE for block in blocks):
        return Reorders([], reason="orders in which sparse memory is bound are not explored")
    blocks = replayable(blocks)
    steps = flatten(blocks)
    legal = LegalOrders(units_of(steps), opinion)
    found, plans = Reorders([], units=sum(map(legal.acts, range(len(legal.units))))), []
    known: dict[tuple[int, ...], str] = {}
    for strategy, seed in chosen:
        if len(found.executed) == most:
            break
        made = Reorder(legal, strategy, seed)
        same = known.setdefault(made.order, made.outcome if made.moved else SERIAL)
        found.runs.append(OrderRun(made.outcome, made.moved, same if same != made.outcome else ""))
        plans.append(made.plan(steps))
    if not found.executed:
        found.reason = "nothing was reordered: the orders drawn are submission order"
        return found
    found.expected = run_serial(blocks, device)
    for run, plan in zip(found.runs, plans, strict=True):
        if not run.same_as:
            run.observed = _run(blocks, plan, device)
            run.differences = compare(found.expected, run.observed)
    if found.differing:
        _leave_out_the_unstable(found, run_serial(blocks, device))
    return found


def _run(blocks: list[Block], plan: Plan, device: str) -> Outputs:
    with open_scene(blocks, device) as scene:
        execute(scene, plan)
        return observe(scene.contents, scene.notes)


def _leave_out_the_unstable(found: Reorders, again: Outputs) -> None:
    assert found.expected is not None
    varied = {each.resource for each in compare(found.expected, again)}
    for run in found.differing:
        found.unstable += [each.resource for each in run.differences if each.resource in varied]
        run.differences = [each for each in run.differences if each.resource not in varied]
    found.unstable = sorted(set(found.unstable))
