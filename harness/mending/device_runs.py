"""A mended trace on a device: the bytes of the trace as it was, other legal orders, and what the Khronos layer says.

All runs are in a worker of their own, since a driver may crash.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.device.drivers import find_driver
from harness.device.process import Died, Worker
from harness.findings import UserError
from harness.layer.enable import environment
from harness.layer.manifest import find_layer
from harness.replay.contents.observe import Outputs, compare
from harness.replay.outcomes.jobs import run_native, run_serial
from harness.replay.outcomes.legal_order_runs import run_reorders
from harness.trace.calls import Block
from harness.trace.codec import load, save

ORDERS = 10
"""How many random orders are drawn."""
HAZARD = "SYNC-HAZARD-"
"""How the layer's identifiers of hazards begin."""


def run_on(device: str, before: list[Block], after: list[Block]) -> Iterator[tuple[bool, str]]:
    """(whether it holds, a line) for each thing that was tried on a device, by a driver's name. Raises `UserError`."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Path(folder) / "before.jsonl", Path(folder) / "after.jsonl"
        for path, blocks in zip(paths, (before, after), strict=True):
            save(path, blocks)
        arguments = {"before": str(paths[0]), "after": str(paths[1]), "device": device}
        with Worker(find_driver(device)) as worker:
            yield from _lines(_answer(worker.call("harness.mending.device_runs:compare_job", arguments)), device)
        yield from _under_the_layer(paths[1], device)


def compare_job(before: str, after: str, device: str) -> dict[str, Any]:
    """Runs both traces; JSON-able, for a `Worker`. Resources that two serial runs of the trace as it was leave with
    different bytes are not compared."""
    original, mended = load(Path(before)), load(Path(after))
    expected = run_serial(original, device)
    runs = {"serially": run_serial(mended, device), "as recorded": run_native(mended, device)}
    differing = {how: _differing(expected, outputs) for how, outputs in runs.items()}
    if any(differing.values()):
        unstable = _differing(expected, run_serial(original, device))
        differing = {how: sorted(set(several) - set(unstable)) for how, several in differing.items()}
    found = run_reorders(mended, [("reverse", 0), *(("random", seed) for seed in range(ORDERS))], device)
    return {
        "differing": differing,
        "surfaces": len(expected.surfaces),
        "orders": len(found.executed),
        "broken": [run.outcome for run in found.differing],
        "reason": found.reason,
    }


def native_job(trace: str, device: str) -> dict[str, Any]:
    """Runs a trace as it was recorded; JSON-able, for a `Worker`."""
    run_native(load(Path(trace)), device)
    return {}


def _differing(expected: Outputs, observed: Outputs) -> list[int]:
    return sorted({each.resource for each in compare(expected, observed)})


def _answer(answer: dict[str, Any] | Died) -> dict[str, Any]:
    if isinstance(answer, Died):
        raise UserError(f"the driver {answer.reason} while it ran the mended trace")
    return answer


def _lines(answer: dict[str, Any], device: str) -> Iterator[tuple[bool, str]]:
    for how, several in answer["differing"].items():
        told = f"differs in {', '.join(map(str, several))}" if several else "the bytes of the trace as it was"
        yield not several, f"{device}, {how}: {told} ({answer['surfaces']} surfaces compared)"
    orders, broken = answer["orders"], answer["broken"]
    told = f"{answer['reason'] or 'nothing can be reordered'}"
    if orders:
        told = f"{orders} tried, " + (f"other bytes in {', '.join(broken)}" if broken else "all leave the same bytes")
    yield not broken, f"{device}, other legal orders: {told}"


def _under_the_layer(trace: Path, device: str) -> Iterator[tuple[bool, str]]:
    """Runs a trace as recorded under today's Khronos layer, where one is installed, and counts its hazards."""
    layer = find_layer("today")
    if layer is None:
        return
    log = trace.with_name("layer.txt")
    variables = environment(layer) | {
        "VK_INSTANCE_LAYERS": layer.name,
        "VK_VALIDATION_LOG_FILENAME": str(log),
        "VK_VALIDATION_DEBUG_ACTION": "VK_DBG_LAYER_ACTION_LOG_MSG",
    }
    with Worker(find_driver(device), variables=variables) as worker:
        _answer(worker.call("harness.mending.device_runs:native_job", {"trace": str(trace), "device": device}))
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    hazards = [line.split("[ ")[-1].split(" ]")[0] for line in text.splitlines() if f"[ {HAZARD}" in line]
    told = f"it still reports {', '.join(sorted(set(hazards)))}" if hazards else "no hazard"
    yield True, f"{device}, under layer {layer.version_text}: {told}"
