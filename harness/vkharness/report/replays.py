"""Replays of trace files as JSON-able jobs for `vkharness.device.process.Worker`, with pictures of what differs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.replay import MODES, strategies
from vkharness.replay.contents.observe import OutputDifference, Outputs, compare
from vkharness.replay.outcomes.jobs import finding_from_dict, first_with_outcome, run_native, run_serial, run_witness
from vkharness.replay.outcomes.legal_order_runs import run_reorders
from vkharness.replay.schedule.screens import in_trace
from vkharness.report.pictures import write_pictures
from vkharness.report.replay_text import caption
from vkharness.trace.calls import Block
from vkharness.trace.codec import load


def replay_job(
    trace: str,
    mode: str,
    device: str,
    finding: dict[str, Any] | Sequence[dict[str, Any]] | None = None,
    artifacts: str | None = None,
    iterations: int = 1,
    strategy: str = "random",
    seed: int = 0,
) -> dict[str, Any]:
    """Replays a trace file in one mode; JSON-able arguments and result, for a `Worker`.

    `native` runs `iterations` times and compares each run with the serial one; `reorder` draws that many orders, with
    seeds from `seed` on, and does the same with each that is new. `artifacts` is a folder for pictures
    of what differs. Of several findings, `witness` executes the first that has an outcome; `at` of its result says
    which. Raises UserError for a mode or finding that makes no sense and for traces that cannot run.
    """
    if mode not in MODES:
        raise UserError(f"unknown replay mode {mode!r}: use one of {', '.join(MODES)}")
    blocks = load(Path(trace))
    folder = Path(artifacts) if artifacts else None
    if mode == "witness":
        if not finding:
            raise UserError("replay mode witness needs a finding")
        findings = [finding] if isinstance(finding, dict) else finding
        return {"mode": mode, "device": device, **_witness(blocks, device, folder, findings)}
    if mode == "reorder":
        return _reorder(blocks, device, folder, [(strategy, seed + number) for number in range(iterations)])
    serial = run_serial(blocks, device)
    result = {"mode": mode, "device": device, **_summary(serial)}
    return result if mode == "serial" else result | _native(blocks, device, folder, serial, max(1, iterations))


def _witness(
    blocks: list[Block], device: str, folder: Path | None, findings: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    at = first_with_outcome(blocks, [finding_from_dict(each) for each in findings])
    finding = findings[at]
    result = run_witness(blocks, finding_from_dict(finding), device)
    found = {**result.to_dict(), "at": at}
    if folder is not None and result.shown and result.observed is not None:
        record = {"caption": caption(finding), "finding": finding, "device": device, **found}
        found["pictures"] = _draw(folder, result.expected, result.observed, result.differences, record)
    return found


def _native(blocks: list[Block], device: str, folder: Path | None, serial: Outputs, count: int) -> dict[str, Any]:
    runs = []
    for number in range(1, count + 1):
        outputs = run_native(blocks, device)
        runs.append(compare(serial, outputs))
        if folder is not None and runs[-1]:
            record = {"device": device, "run": number}
            _draw(folder / f"run-{number}", serial, outputs, runs[-1], record)
    return {
        "runs": [[difference.to_dict() for difference in run] for run in runs],
        "differing_runs": sum(1 for run in runs if run),
    }


def _reorder(blocks: list[Block], device: str, folder: Path | None, chosen: list[tuple[str, int]]) -> dict[str, Any]:
    if not strategies.load(chosen[0][0]).seeded:
        del chosen[1:]
    found = run_reorders(blocks, chosen, device)
    for run in found.differing:
        if folder is not None and found.expected is not None and run.observed is not None:
            record = {"device": device, **run.to_dict()}
            _draw(folder / run.outcome.replace(" ", "-"), found.expected, run.observed, run.differences, record)
    return {
        "mode": "reorder",
        "device": device,
        **_summary(found.expected or Outputs()),
        "orders": [run.to_dict() for run in found.runs],
        "units": found.units,
        "differing_runs": len(found.differing),
        "unstable": found.unstable,
        "unmodelled": found.unmodelled,
        "reason": found.reason,
    }


def _draw(
    folder: Path, expected: Outputs, observed: Outputs, differences: list[OutputDifference], record: dict[str, Any]
) -> list[str]:
    try:
        return [str(path) for path in write_pictures(folder, expected, observed, differences, record)]
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror or error}") from None


def _summary(outputs: Outputs) -> dict[str, Any]:
    surfaces = [
        {
            "resource": in_trace(surface.resource),
            "kind": surface.kind,
            "subresource": surface.subresource,
            "bytes": int(surface.data.size),
        }
        for surface in outputs.surfaces.values()
    ]
    unobserved = {str(key): value for key, value in outputs.unobserved.items()}
    return {"surfaces": surfaces, "unobserved": unobserved, "notes": outputs.notes}
