"""Runs one variant of one scenario on the driver of this process, asks every judge, and answers with its row.

It runs in a worker (`vkharness.device.process`), so that a driver that dies takes nothing with it.
"""

from __future__ import annotations

import errno
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import vkharness
from vkharness.agreement import compare as compare_opinions
from vkharness.device.headless import is_null_hardware
from vkharness.device.queue_emulation import logical_queues
from vkharness.device.survey import driver_version
from vkharness.findings import DeviceLostError, FailedCallError, Finding, LacksError, UnwrittenError, UserError
from vkharness.layer.compare import Comparison, compare
from vkharness.layer.known_differences import known_differences
from vkharness.layer.listen import LayerListener
from vkharness.layer.manifest import LayerInfo, chosen_layers
from vkharness.model import Opinion, judge_stream_events
from vkharness.replay.outcomes.jobs import run_witness
from vkharness.report.pictures import write_pictures
from vkharness.report.replay_text import caption
from vkharness.rig.core import Amend
from vkharness.rig.requirements import queue_masks
from vkharness.rig.rig import Rig
from vkharness.suite.attack import attack
from vkharness.suite.claims import WHOLE, Claim, ExpectedHazard
from vkharness.suite.judge_bytes import judge_bytes
from vkharness.suite.native_times import native_times
from vkharness.suite.row import Row
from vkharness.suite.twins import Twin
from vkharness.trace.calls import Block
from vkharness.trace.codec import save
from vkharness.verdicts import LayerVerdict, ModelVerdict, Status, Unshown, WitnessVerdict


def load_module(path: Path) -> ModuleType:
    """A scenario module from its file, imported once a process. Raises `UserError`, in one line, where it raises."""
    name = f"harness_scenarios.{path.parent.name}.{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise UserError(f"{path}: not a Python module")
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[name]
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            place = f"{path}:{lines[-1]}" if lines else str(path)
            told = " ".join(traceback.format_exception_only(error)[-1].split())
            raise UserError(f"{place}: cannot be imported: {told}") from error
    return sys.modules[name]


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors of a disk that takes no more."""


def run(
    module: str,
    scenario: str,
    variant: str,
    device: str,
    artifacts: str | None,
    layers: list[str],
    native: int | str,
    keep: bool = False,
) -> dict[str, Any]:
    """One row, as a dictionary (`vkharness.suite.row.Row`). `layers` are the Khronos layers to ask (`chosen_layers`);
    `native` says how often to run as recorded, and under which strategies, as `--vk-native` does (a clean stream runs
    so once at least); `keep`: a whole scenario leaves its trace also when it is clean. Raises `UnwrittenError` when the
    disk did not take what is kept."""
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    chosen = claim.variant(variant)
    row = Row(f"{Path(module).parent.name}/{scenario}", variant, device, [str(e) for e in claim.expected(chosen)])
    try:
        blocks = ask(row, claim, *layers, native=native, artifacts=artifacts)
        if keep and artifacts and chosen.kind == WHOLE and blocks and not row.syncval:
            folder = Path(artifacts) / row.scenario / row.variant / row.device
            folder.mkdir(parents=True, exist_ok=True)
            save(folder / "trace.jsonl", blocks)
    except OSError as error:
        if artifacts is None or error.errno not in FULL:
            raise
        raise UnwrittenError(f"{artifacts}: cannot be written: {error.strerror}") from None
    return row.to_dict()


def ask(
    row: Row, claim: Claim, *layers: str, execute: bool = True, native: int | str = 0, artifacts: str | None = None
) -> list[Block]:
    """Records the row's variant of a claim, fills in what every judge says, and returns the recorded blocks.

    `execute`: hazards are shown in bytes; `artifacts` is the folder for what is shown; the rest as for `run`.
    """
    chosen = claim.variant(row.variant)
    try:
        # One layer to an instance: every one asked has its own recording. The newest one's is what goes on.
        found = chosen_layers(*layers)
        known: list[LayerInfo | None] = [each for each in found if each.knows(claim.needs)]
        for asked in known or [None]:
            twin = Twin(chosen)
            session, listener, logical = record(claim, twin.amend, asked, row)
            twin.finish()
            if logical:
                row.layers.clear()
                break
            if listener is not None:
                _ask_layer(row, session, listener)
        texts = [each.version_text for each in found]
        row.layers = {each: row.layers.get(each, LayerVerdict(asked=False)) for each in texts}
    except DeviceLostError:
        raise
    except UserError as error:
        # A feature that the device lacks is nobody's mistake. Any other error is the scenario's, and must not count as
        # a skip.
        row.problem = str(error)
        row.status = Status.UNAVAILABLE if isinstance(error, LacksError) else Status.FAILED
        return []
    row.syncval = sorted({str(expected_of(each)) for each in session.findings})
    row.unmodelled = sorted(session.unmodelled) + session.internal_errors
    row.storing_shaders = session.unjudged.storing_shaders
    row.messages = [each.message for each in session.findings]
    blocks = session.blocks or []
    opinion = judge_stream_events(session.events)
    _ask_model(row, session.findings, opinion)
    folder = Path(artifacts) / row.scenario / row.variant / row.device if artifacts else None
    if not execute:
        return blocks
    if session.findings:
        _show(row, blocks, session.findings, folder)
    if not is_null_hardware():
        clean = opinion.clean and not session.findings
        serial = attack(row, blocks, opinion, folder) if clean else None
        events = None if session.unjudged.left_out else session.events
        judge_bytes(row, blocks, folder, native_times(native, int(clean)), serial, events, session.findings)
    return blocks


def _ask_model(row: Row, findings: Sequence[Finding], opinion: Opinion) -> None:
    said = compare_opinions(findings, opinion)
    row.model = ModelVerdict(said.disagreements)


def expected_of(finding: Finding) -> ExpectedHazard:
    """The hazard of a finding, as a claim says it."""
    return ExpectedHazard(finding.hazard, finding.place.command, finding.prior.command)


def record(
    claim: Claim, amend: Amend, layer: LayerInfo | None, row: Row | None = None
) -> tuple[vkharness.Session, LayerListener | None, bool]:
    """Records a claim on the device, mirrored, `amend` deciding what becomes of its dependencies; with that layer
    enabled in the same process when asked for. Also whether logical queues stood for some that the device lacks. A
    `row` learns what the driver says of itself."""
    with _listening(layer) as listener, logical_queues(queue_masks(claim.queues)) as below:

        def sink(block: Block) -> None:
            if listener is not None:
                listener.take(block.index, session.id_of)

        with (
            vkharness.attach(keep_trace=True, strict=True, sink=sink) as session,
            Rig(claim.needs, listener, amend, claim.queues) as rig,
        ):
            if row is not None:
                row.driver = driver_version(rig.gpu)
            claim.function(rig)
    return session, listener, below.active


@contextmanager
def _listening(layer: LayerInfo | None) -> Iterator[LayerListener | None]:
    with nullcontext() if layer is None else LayerListener.open(layer) as listener:
        yield listener


def compared(session: vkharness.Session, listener: LayerListener) -> Comparison:
    """Compares the findings of a recording made by `record` with the messages of the layer that listened to it."""
    known = known_differences(listener.layer.version)
    return compare(session.findings, listener.messages, known, session.blocks or [])


def _ask_layer(row: Row, session: vkharness.Session, listener: LayerListener) -> None:
    said = compared(session, listener)
    disagreements = [*said.lines(), *(f"invalid: {text}" for _, text in listener.other_messages)]
    row.layers[listener.layer.version_text] = LayerVerdict(True, tuple(disagreements), sum(said.used.values()))


def _show(row: Row, blocks: list[Block], findings: Sequence[Finding], folder: Path | None) -> None:
    """Executes every hazard's outcomes. Advice has no outcome of its own; a driver that executes nothing shows
    nothing."""
    shown = 0
    unshown = []
    hazards = (
        []
        if is_null_hardware()
        else [
            each
            for each in findings
            if not each.hazard.is_advice and (each.hazard.is_between_accesses or each.hazard.is_ownership)
        ]
    )
    for number, finding in enumerate(hazards):
        try:
            result = run_witness(blocks, finding, row.device)
        except FailedCallError:
            raise
        except UserError as error:
            unshown.append(Unshown(str(expected_of(finding)), str(error)))
            continue
        shown += result.shown
        if not result.shown:
            unshown.append(Unshown(str(expected_of(finding)), result.reason))
        elif folder is not None and result.observed is not None:
            told = finding.to_dict()
            record = {"row": row.scenario, "caption": caption(told), "finding": told, "device": row.device}
            record |= result.to_dict()
            place = folder / f"{number}-{finding.hazard.lower()}"
            write_pictures(place, result.expected, result.observed, result.differences, record)
            row.artifacts.append(str(place))
    if hazards:
        row.witness = WitnessVerdict(shown, len(hazards), tuple(unshown))
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        save(folder / "trace.jsonl", blocks)
