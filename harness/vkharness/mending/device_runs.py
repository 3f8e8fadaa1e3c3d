"""A mended trace on a device: the bytes of the trace as it was, other legal orders, and what the Khronos layer says.

All runs are in a worker of their own, since a driver may crash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, JobError, Worker
from vkharness.findings import Finding, UserError
from vkharness.layer.enable import environment
from vkharness.layer.manifest import LayerInfo, find_layer
from vkharness.layer.parse import parse, plain_command
from vkharness.replay.contents.observe import Outputs, compare
from vkharness.replay.outcomes.jobs import run_native, run_serial
from vkharness.replay.outcomes.legal_order_runs import run_reorders
from vkharness.temporary import temporary_folder
from vkharness.trace.calls import Block
from vkharness.trace.codec import load, save

ORDERS = 10
"""How many random orders are drawn."""
HAZARD = "SYNC-HAZARD-"
"""How the layer's identifiers of hazards begin."""
Words = tuple[str, str, str]
"""A hazard as the layer and we both say it: its name, the command and the earlier command."""
_MESSAGE = re.compile(r"^Validation \w+: \[ (?P<name>\S+) \](?P<text>.*?)(?=^Validation \w+: \[|\Z)", re.M | re.S)


def run_on(
    device: str, before: list[Block], after: list[Block], findings: Sequence[Finding] = ()
) -> Iterator[tuple[bool, str]]:
    """(whether it holds, a line) for each thing that was tried on a device, by a driver's name; `findings` are those
    that were to be mended. Raises `UserError`."""
    with temporary_folder() as folder:
        paths = folder / "before.jsonl", folder / "after.jsonl"
        for path, blocks in zip(paths, (before, after), strict=True):
            save(path, blocks)
        arguments = {"before": str(paths[0]), "after": str(paths[1]), "device": device}
        with Worker(find_driver(device)) as worker:
            yield from _lines(_answer(worker.call("vkharness.mending.device_runs:compare_job", arguments)), device)
        yield from _under_the_layer(*paths, device, findings)


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
    return sorted({each.resource for each in compare(_by_order(expected), _by_order(observed))})


def _by_order(outputs: Outputs) -> Outputs:
    """With the reads of the host numbered from -1 on. They are named by their blocks, and a mend moves these."""
    reads = sorted((resource for resource, _ in outputs.surfaces if resource < 0), reverse=True)
    numbers = {each: -number for number, each in enumerate(reads, 1)}
    moved = (replace(each, resource=numbers.get(each.resource, each.resource)) for each in outputs.surfaces.values())
    renamed = {(each.resource, each.subresource): each for each in moved}
    return replace(outputs, surfaces=renamed)


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


def _under_the_layer(before: Path, after: Path, device: str, findings: Sequence[Finding]) -> Iterator[tuple[bool, str]]:
    """Runs the mended trace as recorded under today's Khronos layer, where one is installed.

    It holds when the layer reports no hazard, or only what it reports of the trace as it was and neither judge finds
    there: the mend did not bring that and was not asked to mend it. It holds, too, when known differences of the layer
    explain the rest."""
    layer = find_layer("today")
    if layer is None:
        return
    left = _reported(after, device, layer)
    found = {_same_words(*each.key[:3]) for each in findings}
    others = {each for each in left & _reported(before, device, layer) if each not in found} if left else set()
    told = "no hazard"
    if left:
        names = ", ".join(sorted({f"{hazard} at {command or 'no known command'}" for hazard, command, _ in left}))
        told = f"it still reports {names}"
        if others == left:
            told += ", as it does of the trace as it was, where neither judge finds that"
        elif _are_known(left - others, after, device, layer):
            told, others = f"{told}, which is a known difference of that layer", left
    yield left == others, f"{device}, under layer {layer.version_text}: {told}"


def _are_known(hazards: set[Words], trace: Path, device: str, layer: LayerInfo) -> bool:
    """Whether known differences of a layer explain hazards that it reports of a trace. What we find there, too, is no
    difference."""
    arguments = {"trace": str(trace), "device": device, "layer": str(layer.manifest)}
    try:
        ours = {_same_words(*each.key[:3]) for each in Analysis().follow(load(trace)).findings}
        with Worker(find_driver(device)) as worker:
            said = worker.call("vkharness.layered_replay:layer_job", arguments)
    except (JobError, UserError):
        return False
    return hazards.isdisjoint(ours) and isinstance(said, dict) and not said["disagreements"]


def _reported(trace: Path, device: str, layer: LayerInfo) -> set[Words]:
    """Each hazard that the layer reports of a run of a trace as recorded."""
    log = trace.with_name("layer.txt")
    log.unlink(missing_ok=True)
    variables = environment(layer) | {
        "VK_INSTANCE_LAYERS": layer.name,
        "VK_VALIDATION_LOG_FILENAME": str(log),
        "VK_VALIDATION_DEBUG_ACTION": "VK_DBG_LAYER_ACTION_LOG_MSG",
    }
    with Worker(find_driver(device), variables=variables) as worker:
        _answer(worker.call("vkharness.mending.device_runs:native_job", {"trace": str(trace), "device": device}))
    return hazards_in(log.read_text(encoding="utf-8", errors="replace") if log.exists() else "")


def hazards_in(log: str) -> set[Words]:
    """The messages in a log of the layer that are about hazards."""
    messages = [parse(found["name"], found["text"]) for found in _MESSAGE.finditer(log)]
    return {_same_words(*each.key[:3]) for each in messages if each.vuid.startswith(HAZARD)}


def _same_words(hazard: str, command: str, prior_command: str) -> Words:
    return (str(hazard), plain_command(command), plain_command(prior_command))
