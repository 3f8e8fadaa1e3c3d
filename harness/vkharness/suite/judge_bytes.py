"""The driver itself as what is judged: the bytes that it leaves, and which promise of the specification it broke.

One stream is run in ways that need less and less of a driver. The bytes are held against those that were computed on
the host (`vkharness.computed`), and what was not computed against the driver's own simplest run:

| wrong | right | what is broken |
|---|---|---|
| in steps: a submit for each command, the host waits | | the driver computes wrongly |
| with a full barrier between commands | in steps | barriers |
| as recorded, on a synchronized stream | with full barriers | the dependency that the scenario names |
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from vkharness.computed.expected_bytes import ComputedBytes, compute
from vkharness.findings import FailedCallError, UserError
from vkharness.replay.contents.observe import OutputDifference, Outputs, compare
from vkharness.replay.outcomes.jobs import run_native, run_serial
from vkharness.report.pictures import write_pictures
from vkharness.report.replay_text import difference_line
from vkharness.spec._generated import TASKS
from vkharness.spec.shapes import main_name
from vkharness.suite.row import Row
from vkharness.trace.calls import Block, Call
from vkharness.trace.effects import StreamEvent
from vkharness.verdicts import BrokenPromise, BytesVerdict, NativeVerdict


class _Wrong(NamedTuple):
    """A run that left wrong bytes, beside what it should have left."""

    expected: Outputs
    observed: Outputs
    differences: list[OutputDifference]


def judge_bytes(
    row: Row,
    blocks: list[Block],
    folder: Path | None,
    times: int,
    serial: Outputs | None,
    events: Iterable[StreamEvent] | None = None,
) -> None:
    """Fills in `row.bytes`, and `row.native` from `times` runs as recorded; pictures of the first wrong run.

    `serial` is what the serial run left, where it was made already, and `events` are as for `compute`. A stream that
    cannot be replayed, as the verdict of its orders or its hazards says, gets neither.
    """
    try:
        serial = serial or run_serial(blocks, row.device)
    except FailedCallError:
        raise
    except UserError:
        return
    try:
        computed = compute(blocks, events)
    except UserError:
        computed = ComputedBytes()
    known, total = computed.count(serial)
    row.bytes = BytesVerdict(known, total)
    wrong = _beside(computed, serial)
    if wrong or known < total:
        steps = run_serial(blocks, row.device, in_steps=True)
        wrong_steps = _beside(computed, steps)
        if wrong_steps:
            _broken(row, folder, BrokenPromise.COMPUTATION, wrong_steps)
        elif wrong := wrong or _unlike(blocks, row.device, steps, serial):
            _broken(row, folder, BrokenPromise.BARRIER, wrong)
    if times:
        _run_native(row, blocks, folder, times, serial)
    if row.bytes.broken:
        row.bytes = replace(row.bytes, commands=_actions(blocks))


def _actions(blocks: list[Block]) -> tuple[str, ...]:
    """The commands of a stream that do work, each once, by name."""
    names = {main_name(each.name) for each in blocks if isinstance(each, Call)}
    return tuple(sorted(name for name in names if name.startswith("vkCmd") and "action" in TASKS.get(name, ())))


def _beside(computed: ComputedBytes, run: Outputs) -> _Wrong | None:
    expected = computed.beside(run)
    differences = compare(expected, run)
    return _Wrong(expected, run, differences) if differences else None


def _unlike(blocks: list[Block], device: str, steps: Outputs, serial: Outputs) -> _Wrong | None:
    """How the serial run differs from the one in steps, without what two runs in steps leave different, too."""
    differences = compare(steps, serial)
    if differences:
        varied = {each.resource for each in compare(steps, run_serial(blocks, device, in_steps=True))}
        differences = [each for each in differences if each.resource not in varied]
    return _Wrong(steps, serial, differences) if differences else None


def _broken(row: Row, folder: Path | None, promise: BrokenPromise, wrong: _Wrong) -> None:
    assert row.bytes is not None
    line = difference_line(wrong.differences[0].to_dict())
    row.bytes = BytesVerdict(row.bytes.known, row.bytes.total, promise, line)
    if folder is not None:
        place = folder / f"broken-{promise}"
        write_pictures(place, *wrong, {"row": row.scenario, "device": row.device})
        row.artifacts.append(str(place))


def _run_native(row: Row, blocks: list[Block], folder: Path | None, times: int, serial: Outputs) -> None:
    """Runs the stream as recorded, beside the serial run."""
    corrupt = 0
    first: _Wrong | None = None
    for _ in range(times):
        observed = run_native(blocks, row.device)
        differences = compare(serial, observed)
        corrupt += bool(differences)
        if differences and first is None:
            first = _Wrong(serial, observed, differences)
    row.native = NativeVerdict(corrupt, times)
    if first is None or row.bytes is None:
        return
    if not row.expected and not row.bytes.broken:
        _broken(row, folder, BrokenPromise.DEPENDENCY, first)
    elif folder is not None:
        write_pictures(folder / "native", *first, {"row": row.scenario, "device": row.device})
        row.artifacts.append(str(folder / "native"))
