"""A trace replayed as recorded below a Khronos layer, and what the layer says of it beside our own judges.

A replay makes the calls of the trace once more on one queue, so it refuses a trace of which it would show the layer
another stream. What the layer says of the replay's own work (first contents) counts for nothing and is kept apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vkharness.agreement import MODEL_LIMIT, ask_model
from vkharness.check import Analysis
from vkharness.findings import Finding, UserError
from vkharness.layer.compare import Comparison, compare
from vkharness.layer.known_differences import known_differences
from vkharness.layer.listen import LayerListener
from vkharness.layer.parse import LayerMessage
from vkharness.replay.objects.encode import Handles
from vkharness.replay.objects.target import layered_target
from vkharness.replay.outcomes.executor import open_scene
from vkharness.replay.outcomes.native_run import execute_native
from vkharness.replay.schedule.batch_scheduler import runnable
from vkharness.replay.schedule.replayable import replayable
from vkharness.report.rules import rule_of
from vkharness.report.text import finding_text
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load


def layer_job(trace: str, device: str, layer: str) -> dict[str, Any]:
    """Runs a trace file as recorded on a device below the layer of that manifest (or version), and compares.

    JSON-able arguments and result, for a `Worker`: `messages` and `findings` in full, `agreed`, `expected` (differences
    that are known of this version) and `disagreements`. Raises `UserError` for a trace that cannot run so, and for a
    layer that cannot be asked.
    """
    blocks = load(Path(trace))
    refuse_another_stream(blocks)
    analysis = Analysis(keep_events=True, keep_at_most=MODEL_LIMIT).follow(blocks)
    findings = list(analysis.findings)
    with LayerListener.open(layer) as listener:
        messages, notes = _listen(blocks, device, listener)
        said = compare(findings, messages, known_differences(listener.layer.version), blocks)
    model = ask_model(analysis)
    calls = {block.index: block for block in blocks if isinstance(block, Call)}
    heard = [{**each._asdict(), **_named(calls.get(each.call or 0))} for each in listener.heard]
    invalid = {text for _, text in listener.other_messages}
    of_trace = [each for each in heard if each["call"] is not None]
    return {
        "layer": listener.layer.version_text,
        "manifest": str(listener.layer.manifest),
        "device": device,
        "messages": of_trace,
        "of_replay": [each for each in heard if each["call"] is None],
        "findings": [finding_text(each).plain for each in findings],
        "rules": list(dict.fromkeys(map(rule_of, findings))),
        "model": str(model),
        "unmodelled": dict(analysis.unmodelled),
        "notes": notes,
        **_compared(findings, said),
        "disagreements": [*said.lines(), *(f"invalid: {each['text']}" for each in of_trace if each["text"] in invalid)],
    }


def refuse_another_stream(blocks: list[Block]) -> None:
    """Raises `UserError` for a trace that a replay as recorded does not play call by call: one with several queues, a
    swapchain or shared payloads, or one that submits what can only run later."""
    queues = {block.args["queue"] for block in blocks if isinstance(block, Call) and "queue" in block.args}
    if len(queues) > 1:
        raise UserError(
            f"the trace uses {len(queues)} queues and a replay has one: the layer would judge another stream"
        )
    if replayable(blocks) is not blocks:
        raise UserError("a replay does without swapchains and shared payloads: the layer would judge another stream")
    if list(map(_extent, runnable(blocks))) != list(map(_extent, blocks)):
        raise UserError("a batch waits for a signal that comes later: the layer would judge another stream")


def _extent(block: Block) -> tuple[int, int]:
    return block.index, len(block.args.get("pSubmits") or ()) if isinstance(block, Call) else 0


def _listen(blocks: list[Block], device: str, listener: LayerListener) -> tuple[list[LayerMessage], list[str]]:
    """The messages about synchronization that came in calls of the trace, each with its call and the resource's id; and
    what could not be replayed as it was."""
    messages: list[LayerMessage] = []
    with layered_target(device, listener), open_scene(blocks, device, native=True) as scene:
        listener.take()

        def made(block: Block) -> None:
            messages.extend(listener.take(block.index, lambda kind, raw: _id_of(scene.handles, kind, raw)))

        execute_native(scene, made=made)
        listener.take()
        return messages, scene.notes


def _id_of(handles: Handles, kind: str, raw: int) -> int | None:
    """The id of the trace for a handle of the driver; of several the last one made."""
    return next((id for id, entry in reversed(handles.entries.items()) if entry == (kind, raw)), None)


def _named(call: Call | None) -> dict[str, str]:
    return {"command": call.name if call else "", "site": (call.site if call else None) or ""}


def _compared(findings: Sequence[Finding], said: Comparison) -> dict[str, Any]:
    return {
        "agreed": said.agreed,
        "ours": len(findings),
        "expected": [
            {"side": each.subject.side, "id": each.difference.id if each.difference else "", "reason": each.reason}
            for each in said.expected
        ],
    }
