"""Serial, native and witness runs as functions on blocks, in this process.

A driver may crash on a trace. A caller that must survive uses `vkharness.judged_replay.replay_job` in a worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from vkharness.findings import Box, Certainty, FailedCallError, Finding, Hazard, Place, UserError
from vkharness.replay.contents.observe import OutputDifference, Outputs, compare, observe
from vkharness.replay.contents.regions import region_of
from vkharness.replay.native_strategies.execution_relation import BatchGraph, EndlessRunError
from vkharness.replay.outcomes.executor import execute, open_scene
from vkharness.replay.outcomes.native_run import execute_native
from vkharness.replay.outcomes.serial import Serial
from vkharness.replay.outcomes.witness import AllowedOutcome, SerialCapture, as_shown, variants, why_unchanged
from vkharness.replay.schedule.cut_instances import CutSteps
from vkharness.replay.schedule.replayable import replayable
from vkharness.replay.schedule.steps import ANY, flatten
from vkharness.trace.calls import Block

END = "at the end"


@dataclass(slots=True)
class WitnessResult:
    """Result of executing a hazard. `reason` says why nothing was shown, and is empty otherwise."""

    shown: bool
    differences: list[OutputDifference]
    outcome_id: str
    reason: str
    expected: Outputs
    observed: Outputs | None = None
    """Outputs of the serial run (`expected`) and of the outcome (`observed`), both at `moment`."""
    moment: str = ""
    """When the difference exists: at the end of the trace, or only until something overwrites it."""
    tried: list[str] = field(default_factory=list)
    """The ids of outcomes in the order in which they were executed."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able form without the contents."""
        return {
            "shown": self.shown,
            "outcome": self.outcome_id,
            "reason": self.reason,
            "moment": self.moment,
            "tried": self.tried,
            "differences": [difference.to_dict() for difference in self.differences],
            "unobserved": {str(key): value for key, value in self.expected.unobserved.items()},
            "notes": self.expected.notes,
        }


def run_serial(blocks: list[Block], device: str, in_steps: bool = False) -> Outputs:
    """Runs in submission order with full barriers between actions, which gives the reference contents. `in_steps`: in
    place of barriers, each command has a submit of its own that the host waits for.

    Raises `UserError` when the trace cannot run.
    """
    blocks = replayable(blocks)
    with open_scene(blocks, device) as scene:
        execute(scene, Serial().plan(flatten(blocks)), in_steps)
        return observe(scene.contents, scene.notes)


def run_native(blocks: list[Block], device: str) -> Outputs:
    """Runs a trace as recorded, with its own command buffers and synchronization. Raises `UserError` when it cannot
    run, and `EndlessRunError` where a wait of it has no signal."""
    blocks = replayable(blocks)
    if reason := BatchGraph(blocks).hangs():
        raise EndlessRunError(reason)
    with open_scene(blocks, device, native=True) as scene:
        execute_native(scene)
        return observe(scene.contents, scene.notes)


def first_with_outcome(blocks: list[Block], findings: Sequence[Finding]) -> int:
    """The place in `findings`, which are not empty, of the first that has an outcome to execute; 0 when none has one.

    Needs no driver. A program that does the same in each frame has findings that differ in this: only an image that
    was presented before is on a screen. Raises `UserError` for a malformed trace.
    """
    if len(findings) == 1:
        return 0
    steps = flatten(replayable(blocks))
    for at, finding in enumerate(findings):
        try:
            as_shown(steps, finding)
        except UserError:
            continue
        return at
    return 0


def run_witness(
    blocks: list[Block], finding: Finding, device: str, serial_outputs: Outputs | None = None
) -> WitnessResult:
    """Executes the outcomes that one hazard makes possible until one changes something that is observed.

    `serial_outputs` only saves observing the serial run again; the run itself is repeated, to capture what the accesses
    found. A hazard without a defined outcome gives a result with a reason. Raises `UserError` when the trace cannot
    run.
    """
    blocks = replayable(blocks)
    try:
        steps, finding = _shown_steps(blocks, finding, device, serial_outputs)
    except FailedCallError:
        raise
    except UserError as error:
        expected = serial_outputs or run_serial(blocks, device)
        return WitnessResult(False, [], "", str(error), expected)
    with open_scene(blocks, device) as scene:
        region = region_of(finding, scene.contents)
        capture = SerialCapture(finding, region)
        execute(scene, capture.plan(steps))
        expected = observe(scene.contents, scene.notes)
        captured, held = capture.captured, scene.contents.keep_twins()
    result = WitnessResult(False, [], "", why_unchanged(blocks, steps, finding, captured), expected)
    try:
        for variant in variants(steps, finding):
            outcome = AllowedOutcome(finding, region, captured, variant)
            plan = outcome.plan(steps)
            result.tried.append(outcome.outcome)
            result.outcome_id = outcome.outcome
            try:
                with open_scene(blocks, device) as scene:
                    execute(scene, plan)
                    observed = observe(scene.contents, scene.notes)
            except FailedCallError:
                raise
            except UserError as error:
                # The trace itself ran above: what cannot be done is this outcome.
                result.reason = str(error)
                continue
            if _judge(result, END, expected, observed) or _judge(
                result,
                f"after block {steps[outcome.moment - 1].identity.call}",
                captured.moments[outcome.moment],
                outcome.moments[outcome.moment],
            ):
                break
    finally:
        held.close()
    return result


def _shown_steps(blocks: list[Block], finding: Finding, device: str, serial_outputs: Outputs | None) -> CutSteps:
    """`as_shown` of a trace. Raises `UserError` where a stream with a cut instance cannot run, or leaves other bytes
    than the whole one. Draws that write undefined values may do that."""
    whole = flatten(blocks)
    shown = as_shown(whole, finding)
    if shown.steps is not whole:
        with open_scene(blocks, device) as scene:
            execute(scene, Serial().plan(shown.steps))
            observed = observe(scene.contents, scene.notes)
        if compare(serial_outputs or run_serial(blocks, device), observed):
            raise UserError("both accesses are in one render pass instance, and it leaves other bytes when it is cut")
    return shown


def _judge(result: WitnessResult, moment: str, expected: Outputs, observed: Outputs) -> bool:
    """Compares two observations of one moment and takes them into the result when they differ."""
    differences = compare(expected, observed)
    if differences:
        result.shown, result.reason, result.moment = True, "", moment
        result.differences, result.expected, result.observed = differences, expected, observed
    return bool(differences)


def finding_from_dict(value: dict[str, Any]) -> Finding:
    """A Finding from `Finding.to_dict()`. UserError when members are missing or of the wrong type."""
    try:
        ranges = value.get("ranges") or [value["range"]]
        return Finding(
            hazard=Hazard(value["hazard"]),
            access=str(value["access"]),
            prior_access=str(value["prior_access"]),
            place=_place(value, ""),
            prior=_place(value, "prior_"),
            resource=int(value["resource"]),
            resource_type=str(value["resource_type"]),
            ranges=tuple((int(span["offset"]), int(span["size"])) for span in ranges if span),
            boxes=tuple(_box(item) for item in value.get("subresources") or []),
            certainty=Certainty(value.get("certainty", Certainty.EXACT)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the finding is malformed ({type(error).__name__}: {error})") from None


def _place(value: dict[str, Any], prefix: str) -> Place:
    executed_by = value.get(f"{prefix}executed_by")
    return Place(
        call=int(value[f"{prefix}call"]),
        command=str(value[f"{prefix}command"]),
        site=value.get(f"{prefix}site"),
        command_buffer=value.get(f"{prefix}command_buffer"),
        submit=value.get(f"{prefix}submit"),
        batch=int(value.get(f"{prefix}batch", ANY)),
        position=int(value.get(f"{prefix}position", ANY)),
        executed_by=(int(executed_by[0]), int(executed_by[1])) if executed_by else None,
    )


def _box(value: dict[str, Any]) -> Box:
    x, y, z = (int(number) for number in value["offset"])
    width, height, depth = (int(number) for number in value["extent"])
    return Box(int(value["aspect"]), int(value["mip"]), int(value["layer"]), (x, y, z), (width, height, depth))
