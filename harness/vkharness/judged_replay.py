"""The driver itself as what is judged: the bytes that it leaves, and which promise of the specification it broke.

One stream is run in ways that need less and less of a driver. The bytes are held against those that were computed on
the host (`vkharness.computed`), and what was not computed against the driver's own simplest run:

| wrong | right | what is broken |
|---|---|---|
| in steps: a submit for each command, the host waits | | the driver computes wrongly |
| with a full barrier between commands | in steps | barriers |
| as recorded, on a synchronized stream | with full barriers | the dependency that the stream has |

Rows of the suite (`vkharness.suite.judge_bytes`) and replays of any trace are judged here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vkharness.check import CLEAN, Analysis
from vkharness.computed.expected_bytes import ComputedBytes, compute
from vkharness.findings import Finding, UserError
from vkharness.lost_order import LostOrder, lost_orders
from vkharness.replay import MODES
from vkharness.replay.contents.observe import OutputDifference, Outputs, compare
from vkharness.replay.native_strategies.table import WrongRun
from vkharness.replay.objects.target import open_target
from vkharness.replay.outcomes.jobs import finding_from_dict, run_serial
from vkharness.replay.schedule.replayable import replayable
from vkharness.replay.schedule.steps import flatten
from vkharness.report.replay_text import caption, difference_line
from vkharness.report.replays import draw, native_runs, reordered, summary, witnessed
from vkharness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load
from vkharness.trace.effects import StreamEvent
from vkharness.trace.sparse_effects import BIND_SPARSE
from vkharness.verdicts import BrokenPromise, BytesVerdict

NOTHING_LOST = "no access of the trace is in order by this signal alone"
AGAIN = 3
"""How often a difference in bytes that nobody computed must come again."""


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The verdict on the bytes that a serial run of a driver left."""

    verdict: BytesVerdict
    left: bool = True
    """Whether it left what was computed."""
    wrong: WrongRun | None = None
    """The run that shows the broken promise."""

    def broken(self, promise: BrokenPromise, wrong: WrongRun) -> JudgedRun:
        """The same with a promise that a run shows to be broken."""
        line = difference_line(wrong.differences[0].to_dict())
        return replace(self, verdict=replace(self.verdict, broken=promise, difference=line), wrong=wrong)


def computed_bytes(blocks: list[Block], device: str, events: Iterable[StreamEvent] | None = None) -> ComputedBytes:
    """As `compute`, for a device; nothing, with the reason, where a stream is not followed."""
    binds = any(isinstance(each, Call) and each.name == BIND_SPARSE for each in blocks)
    try:
        return compute(blocks, events, reads_zeros=binds and open_target(device).reads_zeros)
    except UserError as error:
        return ComputedBytes(reasons={str(error): None})


def judge_serial(
    blocks: list[Block],
    device: str,
    serial: Outputs,
    computed: ComputedBytes,
    races: Callable[[], bool],
    also_unknown: bool = True,
) -> JudgedRun:
    """Judges a driver by the bytes that a serial run left.

    `races` says whether a race that no run orders may change them by right: then nothing is said. `also_unknown`: bytes
    that were not computed are held against a run in steps. Raises `UserError` when the stream cannot run.
    """
    known, total = computed.count(serial)
    wrong = beside(computed, serial)
    judged = JudgedRun(BytesVerdict(known, total, unknown=computed.why_unknown(serial)), not wrong)
    if not (wrong or (also_unknown and known < total)) or races():
        return judged
    steps = run_serial(blocks, device, in_steps=True)
    if wrong_steps := beside(computed, steps):
        return judged.broken(BrokenPromise.COMPUTATION, wrong_steps)
    wrong = wrong or _unlike(blocks, device, steps, serial)
    return judged if wrong is None else judged.broken(BrokenPromise.BARRIER, wrong)


def beside(computed: ComputedBytes, run: Outputs) -> WrongRun | None:
    """How a run differs from what was computed; None where it does not."""
    expected = computed.beside(run)
    differences = compare(expected, run)
    return WrongRun(expected, run, differences) if differences else None


def race_in_one_instance(blocks: list[Block], findings: Iterable[Finding]) -> bool:
    """Whether both accesses of a hazard lie in one render pass instance, which no run cuts."""
    instances: defaultdict[tuple[int, tuple[int, int]], set[int]] = defaultdict(set)
    begun = ended = 0
    for step in flatten(replayable(blocks)) if findings else ():
        begun += step.name.startswith(BEGINS_RENDERING)
        if begun != ended:
            instances[step.identity.call, step.identity.executed_by].add(begun)
        ended = begun if step.name.startswith(ENDS_RENDERING) else ended
    pairs = [[(each.call, each.executed_by or (0, 0)) for each in (one.place, one.prior)] for one in findings]
    return any(instances[place] & instances[prior] for place, prior in pairs)


def resources_of(differences: Iterable[OutputDifference]) -> set[int]:
    """The resources that differ."""
    return {each.resource for each in differences}


def _unlike(blocks: list[Block], device: str, steps: Outputs, serial: Outputs) -> WrongRun | None:
    """How the serial run differs from the one in steps each time. Nobody computed these bytes, and invocations of one
    dispatch that race leave others from run to run."""
    differences = compare(steps, serial)
    for _ in range(AGAIN):
        if not differences:
            return None
        varied = resources_of(compare(steps, run_serial(blocks, device, in_steps=True)))
        held = resources_of(compare(steps, run_serial(blocks, device))) - varied
        differences = [each for each in differences if each.resource in held]
    return WrongRun(steps, serial, differences) if differences else None


def replay_job(
    trace: str,
    mode: str,
    device: str,
    finding: dict[str, Any] | list[dict[str, Any]] | None = None,
    artifacts: str | None = None,
    iterations: int = 1,
    strategy: str = "random",
    seed: int = 0,
) -> dict[str, Any]:
    """Replays a trace file in one mode; JSON-able arguments and result, for a `Worker`.

    `native` runs `iterations` times and compares each run with the serial one; `reorder` draws that many orders, with
    seeds from `seed` on, and does the same with each that is new. `bytes` of the result is what the serial run, and on
    a clean trace the native ones, left beside what was computed. `artifacts` is a folder for pictures of what differs.
    Of several findings, `witness` executes the first that has an outcome; `at` of its result says which. Raises
    UserError for a mode or finding that makes no sense and for traces that cannot run.
    """
    if mode not in MODES:
        raise UserError(f"unknown replay mode {mode!r}: use one of {', '.join(MODES)}")
    blocks, folder = load(Path(trace)), Path(artifacts) if artifacts else None
    result: dict[str, Any] = {"mode": mode, "device": device}
    if mode == "witness":
        if not finding:
            raise UserError("replay mode witness needs a finding")
        findings = [finding] if isinstance(finding, dict) else finding
        return result | _witnessed(blocks, device, folder, findings)
    if mode == "reorder":
        orders = [(strategy, seed + number) for number in range(iterations)]
        serial, told = reordered(blocks, device, folder, orders)
        if serial is None:
            return result | told
    else:
        serial = run_serial(blocks, device)
        told = summary(serial)
    judged = _JudgedReplay(blocks, device, serial)
    if mode == "native":
        told |= native_runs(blocks, device, folder, serial, max(1, iterations), judged.hear)
    return result | told | {"bytes": judged.told(folder)}


def _witnessed(blocks: list[Block], device: str, folder: Path | None, findings: list[dict[str, Any]]) -> dict[str, Any]:
    """`witnessed`; of a finding about a signal, an outcome of the first hazard that follows from it (`lost_orders`)."""
    passed: list[LostOrder | None] = []
    for lost in lost_orders(blocks, map(finding_from_dict, findings)):
        if lost is not None and lost.findings:
            break
        passed.append(lost)
    else:
        lost = None
    if lost is None or None in passed:
        found = witnessed(blocks, device, folder, findings[: len(passed)])
        if found["tried"]:
            return found
        if lost is None:
            return found if passed[0] is None else found | {"reason": NOTHING_LOST}
    told = [each.to_dict() for each in lost.findings]
    found = witnessed(lost.blocks, device, folder, told)
    return found | {"follows": caption(told[found["at"]]), "at": len(passed)}


class _JudgedReplay:
    """The bytes of a replay. Bytes that were not computed are not judged: a trace may be large, and runs are slow."""

    def __init__(self, blocks: list[Block], device: str, serial: Outputs) -> None:
        self._blocks, self._device = blocks, device
        self._analysis: Analysis | None = None
        self._computed = computed_bytes(blocks, device)
        self._judged = judge_serial(blocks, device, serial, self._computed, self._races, also_unknown=False)

    def _analyzed(self) -> Analysis:
        self._analysis = self._analysis or Analysis().follow(self._blocks)
        return self._analysis

    def _races(self) -> bool:
        return race_in_one_instance(self._blocks, self._analyzed().findings)

    def hear(self, outputs: Outputs) -> None:
        """Takes in what a run as recorded left: on a clean trace, where the serial run is right, all that is known."""
        if not self._judged.left or self._judged.wrong is not None:
            return
        wrong = beside(self._computed, outputs)
        if wrong is not None and self._analyzed().verdict == CLEAN:
            self._judged = self._judged.broken(BrokenPromise.DEPENDENCY, wrong)

    def told(self, folder: Path | None) -> dict[str, Any]:
        """JSON-able, with pictures of what shows a broken promise."""
        verdict, wrong = self._judged.verdict, self._judged.wrong
        said = {**asdict(verdict), "broken": str(verdict.broken), "left": self._judged.left}
        if folder is not None and wrong is not None:
            record = {"device": self._device, "broken": str(verdict.broken)}
            said["pictures"] = draw(folder / f"broken-{verdict.broken}", *wrong, record)
        return said
