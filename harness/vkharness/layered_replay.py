"""A trace replayed as recorded below a Khronos layer, what the layer says of it beside our own judges, and the report
of what differs, with the smallest trace in which it does.

A replay makes the calls of the trace once more on one queue, so it refuses a trace of which it would show the layer
another stream. What the layer says of the replay's own work (first contents) counts for nothing and is kept apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from vkharness.agreement import MOST_EVENTS, ask_model
from vkharness.check import Analysis
from vkharness.findings import UserError
from vkharness.layer.compare import Comparison, compare
from vkharness.layer.enable import said_settings
from vkharness.layer.known_differences import known_differences
from vkharness.layer.listen import HeardMessage, LayerListener
from vkharness.layer.manifest import LayerInfo, find_layer
from vkharness.layer.parse import LayerMessage
from vkharness.reduction.whatever_holds import smallest
from vkharness.replay.objects.encode import Handles
from vkharness.replay.objects.target import layered_target
from vkharness.replay.outcomes.executor import open_scene
from vkharness.replay.outcomes.native_run import execute_native
from vkharness.replay.schedule.batch_scheduler import runnable, submissions
from vkharness.replay.schedule.replayable import replayable
from vkharness.report.layer_report import LayerCase, layer_report
from vkharness.report.rules import rule_of, rule_of_hazard
from vkharness.report.text import finding_text
from vkharness.trace.calls import Block, Call
from vkharness.trace.codec import load, save
from vkharness.whole_file import write_whole

MOST_STREAMS = 300
"""Streams that are judged at most to make a trace small."""
ANCHOR = re.compile(r"rules\.md#([\w-]+)")
"""A rule of docs/rules.md, as an entry of known_differences.toml names it."""
TRACE, REPORT = "trace.jsonl", "report.md"
"""Files in the folder of a report."""


class JudgeDifference(NamedTuple):
    """One thing that a layer and we see differently. The same in a smaller stream when it is equal."""

    line: str
    """In words: `layer-only at record (block 31): ...`, or `invalid: VUID-...` for a message of another kind."""
    id: str = ""
    """That of the entry of known_differences.toml that explains it; `silent-by-design` for what no layer tracks."""
    reason: str = ""
    """That entry's reason."""


class LayerAnswer(NamedTuple):
    """Messages of a layer about one stream, compared with our findings."""

    layer: LayerInfo
    device: str
    blocks: list[Block]
    analysis: Analysis
    heard: list[HeardMessage]
    comparison: Comparison
    invalid: tuple[str, ...]
    """Identifiers of messages that are not about synchronization."""
    notes: tuple[str, ...] = ()
    """Parts of the stream that could not be replayed as they were."""

    @property
    def differences(self) -> list[JudgeDifference]:
        """Those that nothing explains first."""
        known = [
            JudgeDifference(
                each.subject.line, each.difference.id if each.difference else "silent-by-design", each.reason
            )
            for each in self.comparison.expected
        ]
        open_ = [*self.comparison.lines(), *(f"invalid: {each}" for each in self.invalid)]
        return [*map(JudgeDifference, open_), *known]

    def to_dict(self) -> dict[str, Any]:
        """JSON-able. `messages` and `findings` are in full, `expected` are differences that are known of the version,
        `disagreements` those that nothing explains."""
        findings = self.analysis.findings
        calls = {block.index: block for block in self.blocks if isinstance(block, Call)}
        heard = [{**each._asdict(), **_named(calls.get(each.call or 0))} for each in self.heard]
        differences = self.differences
        return {
            "layer": self.layer.version_text,
            "manifest": str(self.layer.manifest),
            "settings": said_settings(self.layer),
            "device": self.device,
            "messages": [each for each in heard if each["call"] is not None],
            "of_replay": [each for each in heard if each["call"] is None],
            "findings": [finding_text(each).plain for each in findings],
            "rules": list(dict.fromkeys([*self._rules(), *map(rule_of, findings)])),
            "unmodelled": dict(self.analysis.unmodelled),
            "notes": list(self.notes),
            "agreed": self.comparison.agreed,
            "ours": len(findings),
            "expected": [each._asdict() for each in differences if each.id],
            "disagreements": [each.line for each in differences if not each.id],
        }

    def _rules(self) -> Iterator[str]:
        """Anchors of the rules that differences are about."""
        for subject in self.comparison.disagreements:
            hazard, _, _, access, prior_access = subject.key
            yield rule_of_hazard(hazard, access, prior_access)
        for each in self.comparison.expected:
            yield from ANCHOR.findall(each.difference.rule) if each.difference else ()


def layer_job(trace: str, device: str, layer: str) -> dict[str, Any]:
    """Runs a trace file as recorded on a device below the layer of that manifest (or version), and compares.

    JSON-able arguments and result, for a `Worker`: that of `LayerAnswer.to_dict`, and `model`, whether our second judge
    agrees with the first. Raises `UserError` for a trace that cannot run so, and for a layer that cannot be asked.
    """
    blocks = load(Path(trace))
    with LayerPlayer.open(layer, device) as player:
        said = player.ask(blocks)
    return {**said.to_dict(), "model": str(ask_model(said.analysis))}


def report_job(trace: str, device: str, layer: str, folder: str, *, smaller: bool = True) -> dict[str, Any]:
    """Writes the report of what a layer and we see differently in a trace file, as `report_differences` does.

    JSON-able, for a `Worker`: `{"report": path}`, empty where nothing differs. Raises `UserError` as `layer_job`, and
    when a file cannot be written.
    """
    case = LayerCase(Path(trace).name)
    return {"report": report_differences(load(Path(trace)), device, layer, Path(folder), case, smaller=smaller)}


def report_differences(
    blocks: list[Block], device: str, layer: str, folder: Path, case: LayerCase, *, smaller: bool = True
) -> str:
    """Writes the report of what a layer and we see differently in a stream into `folder`, a trace beside it, and
    returns the report's path; empty where nothing differs.

    `smaller`: the trace is the smallest found in which the first difference is. Raises `UserError` as `layer_job`, and
    when a file cannot be written.
    """
    with LayerPlayer.open(layer, device) as player:
        said = player.ask(blocks)
        if not said.differences:
            return ""
        if smaller:
            wanted, most = said.differences[0], {each.line for each in said.differences}
            small = smallest(blocks, lambda left: _has(player.ask(left), wanted, most), steps=MOST_STREAMS)
            said = player.ask(small.blocks)
    return write_report(said, folder, case, len(blocks))


def write_report(said: LayerAnswer, folder: Path, case: LayerCase, whole: int) -> str:
    """Writes a report and its trace; the report's path. `whole` is the number of calls before any were left out.

    Raises `UserError` when one cannot be written."""
    found = find_layer(said.layer.version_text)
    same = found is not None and found.manifest == said.layer.manifest
    name = said.layer.version_text if same else str(said.layer.manifest)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: cannot be made: {error.strerror}") from None
    save(folder / TRACE, said.blocks)
    write_whole(folder / REPORT, layer_report(said.to_dict(), said.blocks, case, TRACE, name, whole))
    return str(folder / REPORT)


def _has(said: LayerAnswer, wanted: JudgeDifference, most: set[str]) -> bool:
    return wanted in said.differences and {each.line for each in said.differences} <= most


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
    if list(submissions(runnable(blocks))) != list(submissions(blocks)):
        raise UserError("a batch waits for a signal that comes later: the layer would judge another stream")


class LayerPlayer:
    """Plays streams below one layer on one device, each with objects of its own."""

    def __init__(self, listener: LayerListener, device: str) -> None:
        self._listener, self._device = listener, device

    @classmethod
    @contextmanager
    def open(cls, layer: str, device: str) -> Iterator[Self]:
        """Below the layer of that manifest or version. Raises `UserError` where it cannot be asked."""
        with LayerListener.open(layer) as listener, layered_target(device, listener):
            yield cls(listener, device)

    def ask(self, blocks: list[Block]) -> LayerAnswer:
        """Returns the layer's messages about a stream, and our findings. Raises `UserError` if it cannot run so."""
        refuse_another_stream(blocks)
        analysis = Analysis(keep_events=True, keep_at_most=MOST_EVENTS).follow(blocks)
        listener = self._listener
        heard, others = len(listener.heard), len(listener.other_messages)
        messages, notes = self._listen(blocks)
        invalid = {text for _, text in listener.other_messages[others:]}
        return LayerAnswer(
            listener.layer,
            self._device,
            blocks,
            analysis,
            listener.heard[heard:],
            compare(analysis.findings, messages, known_differences(listener.layer.version), blocks),
            tuple(dict.fromkeys(e.id for e in listener.heard[heard:] if e.call is not None and e.text in invalid)),
            tuple(notes),
        )

    def _listen(self, blocks: list[Block]) -> tuple[list[LayerMessage], list[str]]:
        """The messages about synchronization that came in calls of the trace, each with its call and the resource's id;
        and what could not be replayed as it was."""
        messages: list[LayerMessage] = []
        with open_scene(blocks, self._device, native=True) as scene:
            self._listener.take()

            def made(block: Block) -> None:
                taken = self._listener.take(block.index, lambda kind, raw: _id_of(scene.handles, kind, raw))
                messages.extend(taken)

            execute_native(scene, made=made)
            self._listener.take()
            return messages, scene.notes


def _id_of(handles: Handles, kind: str, raw: int) -> int | None:
    """The id of the trace for a handle of the driver; of several the last one made."""
    return next((id for id, entry in reversed(handles.entries.items()) if entry == (kind, raw)), None)


def _named(call: Call | None) -> dict[str, str]:
    return {"command": call.name if call else "", "site": (call.site if call else None) or ""}
