"""Replays of traces in each mode as JSON-able results, with pictures of what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.replay import strategies
from vkharness.replay.contents.observe import OutputDifference, Outputs, compare
from vkharness.replay.outcomes.jobs import finding_from_dict, first_with_outcome, run_native, run_witness
from vkharness.replay.outcomes.legal_order_runs import run_reorders
from vkharness.replay.schedule.screens import in_trace
from vkharness.report.pictures import write_pictures
from vkharness.report.replay_text import caption
from vkharness.trace.calls import Block


def witnessed(
    blocks: list[Block], device: str, folder: Path | None, findings: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """The result of executing the first of the findings that has an outcome; `at` says which."""
    at = first_with_outcome(blocks, [finding_from_dict(each) for each in findings])
    finding = findings[at]
    result = run_witness(blocks, finding_from_dict(finding), device)
    found = {**result.to_dict(), "at": at}
    if folder is not None and result.shown and result.observed is not None:
        record = {"caption": caption(finding), "finding": finding, "device": device, **found}
        found["pictures"] = draw(folder, result.expected, result.observed, result.differences, record)
    return found


def native_runs(
    blocks: list[Block],
    device: str,
    folder: Path | None,
    serial: Outputs,
    count: int,
    hear: Callable[[Outputs], object],
) -> dict[str, Any]:
    """How `count` runs as recorded differ from the serial one; `hear` is told what each left."""
    runs = []
    for number in range(1, count + 1):
        outputs = run_native(blocks, device)
        hear(outputs)
        runs.append(compare(serial, outputs))
        if folder is not None and runs[-1]:
            record = {"device": device, "run": number}
            draw(folder / f"run-{number}", serial, outputs, runs[-1], record)
    return {
        "runs": [[difference.to_dict() for difference in run] for run in runs],
        "differing_runs": sum(1 for run in runs if run),
    }


def reordered(
    blocks: list[Block], device: str, folder: Path | None, chosen: list[tuple[str, int]]
) -> tuple[Outputs | None, dict[str, Any]]:
    """Executes other legal orders of a trace. Returns the outputs of the serial run, where one was made, and how the
    others differ from it. `chosen` are strategies with their seeds."""
    if not strategies.load(chosen[0][0]).seeded:
        del chosen[1:]
    found = run_reorders(blocks, chosen, device)
    for run in found.differing:
        if folder is not None and found.expected is not None and run.observed is not None:
            record = {"device": device, **run.to_dict()}
            draw(folder / run.outcome.replace(" ", "-"), found.expected, run.observed, run.differences, record)
    return found.expected, {
        **summary(found.expected or Outputs()),
        "orders": [run.to_dict() for run in found.runs],
        "units": found.units,
        "differing_runs": len(found.differing),
        "unstable": found.unstable,
        "unmodelled": found.unmodelled,
        "reason": found.reason,
    }


def draw(
    folder: Path, expected: Outputs, observed: Outputs, differences: list[OutputDifference], record: dict[str, Any]
) -> list[str]:
    """Writes the pictures of a difference; their paths. Raises `UserError` when they cannot be written."""
    try:
        return [str(path) for path in write_pictures(folder, expected, observed, differences, record)]
    except OSError as error:
        raise UserError(f"{folder}: cannot be written: {error.strerror or error}") from None


def summary(outputs: Outputs) -> dict[str, Any]:
    """Returns the sizes of the surfaces observed after a run, and the reasons why others are not observed."""
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
