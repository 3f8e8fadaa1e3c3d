"""The wiring: one stream of calls through the interpreter and the validator, one verdict.

The live `Session` and `vkharness check` both judge through this one class, so that a program and its trace cannot
be judged differently. No loader or driver is needed.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from vkharness.commands.contents.at_submit import without_bounds
from vkharness.commands.debug_info import DebugInfo
from vkharness.commands.device_writes import device_writes
from vkharness.commands.handlers import COMMANDS
from vkharness.commands.interpret import Interpreter, SaidCalls, Saying, may_repeat
from vkharness.commands.object_state import CommandBuffer
from vkharness.findings import Certainty, Finding, Hazard, Unjudged
from vkharness.groups import Repetitions
from vkharness.nearest_dependency import name_nearest
from vkharness.report.notebook import finding_html
from vkharness.report.sentences import explain
from vkharness.spans import Span
from vkharness.spec.command_classes import is_recorded, is_submit
from vkharness.strictness import uncounted
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.trace.calls import MALFORMED, Block, Call, block_name
from vkharness.trace.effects import Recorded, StreamEvent
from vkharness.trace.resources import Buffer, Memory, describe
from vkharness.trace.submits import batches
from vkharness.trace.work_budget import A_FINDING, RESERVE, OverBudget, at_least, spend

CLEAN, HAZARDS, UNKNOWN = "clean", "hazards", "unknown"
RUNS_OTHERS = "vkCmdExecuteCommands"
ENDS_RECORDING = "vkEndCommandBuffer"
MOST_SAYINGS = 1 << 13
"""The most calls of which it is kept what those do that say the same."""
CHANGES_OBJECTS = (
    "vkBegin", "vkBind", "vkDebugMarkerSet", "vkDestroy", "vkFree", "vkRelease", "vkReset", "vkSetDebug",
)  # fmt: skip
"""How calls begin after which objects may be gone, elsewhere or named otherwise: what was recorded before is judged
before, since its findings name objects as they were."""


Finding.as_html = finding_html


@dataclass(slots=True, eq=False)
class TraceSaying:
    """Name and arguments of calls that are equal in both (a *saying*). `kept` is for results that follow from them."""

    name: str
    args: dict[str, Any]
    kept: Any = None


class TraceSayings:
    """Names and arguments of calls, by the object of arguments: equal lines of a trace share one
    (`vkharness.trace.repeated_lines`)."""

    def __init__(self) -> None:
        self._known: dict[int, TraceSaying] = {}

    def of(self, call: Call) -> TraceSaying:
        """One object for all calls with these arguments, as long as it is among the last ones."""
        found = self._known.get(id(call.args))
        if found is None or found.name != call.name:
            if len(self._known) >= MOST_SAYINGS:
                self._known.clear()
            found = self._known[id(call.args)] = TraceSaying(call.name, call.args)
        return found


class Analysis:
    """Follows one program, block by block."""

    def __init__(
        self,
        keep_events: bool = False,
        keep_at_most: int = sys.maxsize,
        bounds: bool = False,
        assumed_rewrites: bool | None = None,
        eager: bool | None = None,
        partial: bool = False,
        counts_repetitions: bool = False,
        strict: bool = True,
    ) -> None:
        """`keep_events`: what each block does stays in `events`, and each finding, so that other judges need not
        interpret it again; past `keep_at_most` none is kept. `bounds`: what draws could reach at most makes findings,
        where it follows from unknown contents of memory; else it makes the verdict unknown where it is in no order.
        `eager`: commands are judged as they are recorded, and not with the end of that; by default as VKHARNESS_EAGER
        says. `partial`: `stopped` says where a stream asks for more work than it may; else `follow` raises OverBudget.
        `counts_repetitions`: not each is kept (`vkharness.groups.Repetitions`). `strict`: each hazard counts."""
        self.is_strict, self._partial = strict, partial
        self.stopped = ""
        """The part that is left out of a stream that asks for more work than it may, in words; empty where none is."""
        self.events: list[StreamEvent] = []
        self.keeps_events = keep_events
        self._keep_at_most = keep_at_most
        self._interpreter = Interpreter(bounds, assumed_rewrites, possible=True)
        self._validator = Validator(self.describe, self._is_host_visible, self._buffers_of)
        self._of_bounds = Validator(self.describe, is_host_visible=self._is_host_visible) if bounds else None
        """Judges bounds beside everything else, so that a bound never stands in the way of another finding."""
        self.is_eager = os.environ.get("VKHARNESS_EAGER", "0") not in ("", "0") if eager is None else eager
        self._repetitions = Repetitions() if counts_repetitions else None
        self._found: list[Finding] = []
        self.possible: list[Finding] = []
        """Findings of which unknown contents of memory decide whether they are any; none with `bounds`."""
        self._given = 0
        """How many findings `step` has given."""
        self._recorded: dict[int, None] = {}
        """The command buffers with commands that were not judged, in the order of the first."""
        self._early: dict[int, list[Finding]] = {}
        """By command buffer, the findings for which somebody asked before it was judged."""
        self._judges = False
        """Whether a recording is being judged."""

    def step(self, block: Block) -> list[Finding]:
        """Judges one block; the findings that are new since the step before, also kept in `findings`.

        Recorded commands are judged with the end of their command buffer. They are judged before it where the command
        buffer is executed, and before a call that changes what findings say of an object.
        """
        if self._recorded and isinstance(block, Call):
            self._judge_before(block)
        for stream_event in self._interpreter.step(block):
            self._consume(stream_event)
        if self._recorded and (self.is_eager or (isinstance(block, Call) and block.name == ENDS_RECORDING)):
            self._judge_end(block)
        return self._new_findings()

    @property
    def recorded_alone(self) -> Collection[str]:
        """The names that `record` takes: none where commands are judged as they are recorded."""
        return () if self.is_eager else COMMANDS.keys()

    def record(self, index: int, name: str, args: dict[str, Any], site: str | None) -> None:
        """Takes a call that records a command, one of `COMMANDS`, and returned nothing: what `step` does with it, for
        those who need no `Call`. The command is judged later."""
        if len(self._recorded) > 1 and name == RUNS_OTHERS:
            self._judge(_named(args))
        self._record(index, name, args, site)

    def record_said(self, index: int, said: Saying, site: str | None) -> None:
        """As `record`, for a command whose name and arguments others may have had."""
        buffer = self._interpreter.repeat(index, said, site)
        if buffer is False:
            self.record_new(index, said, site)
        elif buffer is not None:
            self._note(buffer)

    def record_new(self, index: int, said: Saying, site: str | None) -> None:
        """As `record`, for a command whose effects are not known; later ones may have the same name and arguments."""
        if len(self._recorded) > 1 and said.name == RUNS_OTHERS:
            self._judge(_named(said.args))
        self._record(index, said.name, said.args, site, said)

    def record_repeated(self, calls: SaidCalls) -> None:
        """Takes as many of the next calls as only repeat what is known of what they say."""
        said = calls.said
        if said is not None and may_repeat(said) and not self.keeps_events:
            for buffer in self._interpreter.repeat_next(calls):
                self._note(buffer)

    def _record(
        self, index: int, name: str, args: dict[str, Any], site: str | None, said: Saying | None = None
    ) -> None:
        try:
            buffer = self._interpreter.record(index, name, args, site, said)
        except Exception as error:
            for stream_event in self._interpreter.failed(Call(index, name, args, None, site), error):
                self._consume(stream_event)
            return
        if buffer is not None:
            self._note(buffer)

    def _note(self, buffer: CommandBuffer) -> None:
        """Notes that a command was recorded. Of several physical devices each executes what it executes: nothing is
        judged before."""
        if self._interpreter.objects.groups is not None:
            return
        self._recorded[buffer.id] = None
        if self.keeps_events:
            self._keep(Recorded(buffer.id, buffer.commands[-1], buffer.queue_flags))

    def _consume(self, stream_event: StreamEvent) -> None:
        if self.keeps_events:
            self._keep(stream_event)
        if type(stream_event) is Recorded:
            self._recorded[stream_event.command_buffer] = None
            return
        new: list[Finding] = []
        if self._of_bounds is not None:
            new += _bounds(self._of_bounds.consume(stream_event))
            stream_event = without_bounds(stream_event)
        self._tell(new + self._validator.consume(stream_event))

    def _keep(self, stream_event: StreamEvent) -> None:
        self.events.append(stream_event)
        if len(self.events) > self._keep_at_most:
            self.keeps_events = False
            self.events.clear()

    def _judge_before(self, call: Call) -> None:
        """Judges recordings before a call after which they would be judged otherwise."""
        if is_recorded(call.name):
            if call.name == RUNS_OTHERS:
                self._judge(_named(call.args))
        elif call.name.startswith(CHANGES_OBJECTS):
            self._judge(list(self._recorded))
        elif is_submit(call.name):
            self._judge(executed_by(call))

    def _judge_end(self, block: Block) -> None:
        if self.is_eager:
            self._judge(list(self._recorded))
        elif isinstance(block, Call):
            self._judge([block.args.get("commandBuffer", 0)])
        if isinstance(block, Call) and block.name == ENDS_RECORDING:
            for each in filter(None, (self._validator, self._of_bounds)):
                each.end_recording(block.args.get("commandBuffer", 0))

    def _judge(self, command_buffers: Iterable[int]) -> None:
        """Judges what was recorded into command buffers."""
        for id in command_buffers:
            if id in self._recorded:
                del self._recorded[id]
                self._found += self._judged(id)
                if self._early:
                    self._early.pop(id, None)

    def _judged(self, id: int) -> list[Finding]:
        """The findings of a recording since it was judged by `_judge`. While that is going on there are none: a
        finalizer or a signal handler may ask in the middle of it."""
        found = self._early.get(id, [])
        buffer = self._interpreter.objects.get(CommandBuffer, id)
        if self._judges or buffer is None:
            return found
        self._judges = True
        try:
            recording = (id, buffer.commands, buffer.queue_flags)
            new = [] if self._of_bounds is None else _bounds(self._of_bounds.judge_recording(*recording))
            return found + self._annotated(new + self._validator.judge_recording(*recording))
        finally:
            self._judges = False

    def _look(self) -> None:
        """Judges recordings for somebody who asks. When that is does not change the order of findings."""
        for id in list(self._recorded):
            self._look_at(id)

    def _look_at(self, id: int) -> None:
        if found := self._judged(id):
            self._early[id] = found

    def _new_findings(self) -> list[Finding]:
        new = self._found[self._given :]
        self._given = len(self._found)
        return new

    @property
    def findings(self) -> list[Finding]:
        """All findings so far. Whoever asks gets those of command buffers that are being recorded, too."""
        self._look()
        return [*self._found, *chain.from_iterable(self._early.values())] if self._early else self._found

    def _tell(self, new: list[Finding]) -> None:
        spend(A_FINDING * len(new), "findings")
        self._found += self._annotated(new)

    def _annotated(self, new: list[Finding]) -> list[Finding]:
        """Findings with their words, without those that only may be."""
        for finding in new:
            self.annotate(finding)
        new = new if self._repetitions is None or self.keeps_events else self._repetitions.first(new)
        name_nearest(new, self._interpreter.objects, self.describe)
        if self._of_bounds is not None:
            return new
        self.possible += _bounds(new)
        return [finding for finding in new if finding.certainty is not Certainty.BOUND]

    def annotate(self, finding: Finding) -> None:
        """Gives a finding its words, whether it counts, and what the program calls its objects, places and frames."""
        finding.explain = explain
        finding.uncounted = None if self.is_strict else uncounted(finding, self._interpreter.objects)
        self.debug.annotate(finding, self._interpreter.objects.begun_after(finding.place.command_buffer))

    @property
    def in_doubt(self) -> bool:
        """Whether aspects may be rewritten where the trace does not say that the device keeps them apart."""
        return any(each.in_doubt for each in self._interpreter.objects.aspect_rewrites.values())

    def follow(self, blocks: Iterable[Block]) -> Analysis:
        """Judges a whole stream."""
        try:
            _follow(self, blocks)
            self.finish()
        except OverBudget as error:
            if not self._partial:
                raise
            self.stop(str(error))
        return self

    def stop(self, why: str) -> list[Finding]:
        """Judges nothing behind what was begun, which asks for more work than it may. The findings that `step` did not
        give."""
        self.stopped = f"{why}: what comes behind that"
        self._recorded.clear()
        with at_least(RESERVE), suppress(OverBudget):
            return self.finish()
        return self._new_findings()

    def finish(self) -> list[Finding]:
        """Ends the stream: judges all that is recorded or waits for an event. The findings that `step` did not give."""
        self._judge(list(self._recorded))
        self._tell(self._validator.finish())
        return self._new_findings()

    @property
    def debug(self) -> DebugInfo:
        """Names, labels and frames of the program."""
        return self._interpreter.objects.debug

    @property
    def unmodelled(self) -> dict[str, int]:
        """Names of what the mirror cannot judge, with how often each was met."""
        self._look()
        possible = _possible_texts(self.possible, self.findings) if self.possible else {}
        return self._validator.unmodelled | ({self.stopped: 1} if self.stopped else {}) | possible

    @property
    def unjudged(self) -> Unjudged:
        """Parts of the stream that the verdict leaves out."""
        objects, names = self._interpreter.objects, self.debug.names
        unseen = [each._replace(resource_name=names.get(each.resource, "")) for each in self._validator.unseen.all()]
        nothing, outside = not self._validator.submits, objects.payloads.outside_waits
        return Unjudged(objects.contents.left_out, unseen, nothing, outside, objects.shaders.stores)

    @property
    def verdict(self) -> str:
        """`hazards` when any that counts was found, `unknown` when something unmodelled may hide one, else `clean`."""
        return HAZARDS if any(each.counts for each in self.findings) else UNKNOWN if self.unmodelled else CLEAN

    def written(self, memory: int, begin: int, end: int) -> list[Span]:
        """Bytes of a memory object that submitted work writes and that the host does not know to be complete."""
        return self._validator.written(memory, begin, end)

    def may_write(self, command_buffers: Iterable[int]) -> dict[int, list[Span]]:
        """Memory object to the bytes that executing command buffers may write; what only may be read adds nothing."""
        exact = not (self._validator.unmodelled or self.stopped)
        return device_writes(self._interpreter.objects, command_buffers, exact)

    def _is_host_visible(self, space: int) -> bool:
        objects = self._interpreter.objects
        image = objects.image(space)
        held = objects.get(Memory, image.memory or 0 if image is not None and image.is_one_linear else space)
        return held is not None and held.host_visible

    def _buffers_of(self, memory: int) -> list[tuple[int, int, int]]:
        held = [each for each in self._interpreter.objects.every(Buffer) if each.memory == memory]
        return sorted((each.offset, each.offset + each.size, each.id) for each in held)

    def describe(self, resource: int, spans: list[Span]) -> Description:
        """Describes addresses of a resource: as bytes of a buffer or memory object, or as boxes of an image.

        Those of a sparse buffer are of the memory bound to it, and its own under its negative id.
        """
        objects = self._interpreter.objects
        if resource in objects.sparse.resources:
            spans = objects.sparse.own_addresses(resource, spans)
        resource = abs(resource)
        return Description(*describe(objects.image(resource) or objects.buffer(resource), spans))


def advise_where_in_doubt(analysis: Analysis, blocks: Iterable[Block]) -> None:
    """Adds as advice what `blocks`, its stream again, would do wrong on a device that rewrites other aspects."""
    known = {_pair(each) for each in analysis.findings}
    for each in Analysis(assumed_rewrites=True).follow(blocks).findings:
        if _pair(each) not in known and not each.advice:
            analysis.findings.append(replace(each, hazard=Hazard.REWRITES_OTHER_ASPECT))


def _follow(analysis: Analysis, blocks: Iterable[Block]) -> None:
    """Judges blocks. Raises OverBudget, with the block, where they ask for more work than they may."""
    sayings, alone = TraceSayings(), analysis.recorded_alone
    for block in blocks:
        try:
            if type(block) is Call and block.name in alone and block.result is None and not block.unread:
                analysis.record_said(block.index, sayings.of(block), block.site)
            else:
                analysis.step(block)
        except OverBudget as error:
            raise error.at(block.index, block_name(block)) from None


def _named(args: dict[str, Any]) -> Iterable[int]:
    """The command buffers that a command executes."""
    return args.get("pCommandBuffers") or ()


def executed_by(call: Call) -> Iterable[int]:
    """The command buffers that a submit executes; none if it cannot be read."""
    try:
        return [each for batch in batches(call.args) for each in batch.command_buffers]
    except MALFORMED:
        return ()


def _bounds(found: list[Finding]) -> list[Finding]:
    """Those of findings that are about bounds alone."""
    return [finding for finding in found if finding.certainty is Certainty.BOUND]


def _possible_texts(possible: Iterable[Finding], findings: Iterable[Finding]) -> dict[str, int]:
    """Returns the texts of findings that only may be, with how often each was met. Those with a command of a finding
    are left out: one missing dependency may be the cause of both."""
    known = {call for each in findings if each.counts for call in (each.prior.call, each.place.call)}
    left = (each for each in possible if known.isdisjoint((each.prior.call, each.place.call)))
    found = Counter[str]()
    for each in left:
        found[_possible_text(each)] += 1 + each.repeated
    return found


def _possible_text(finding: Finding) -> str:
    """`what vkCmdDraw may read of VkBuffer 5 by contents that are unknown, in no order with vkCmdCopyBuffer ...`"""
    places = finding.place, finding.prior
    reads, writes = places if "READ" in finding.access else reversed(places)
    what = f"{finding.resource_type} {finding.resource}"
    return (
        f"what {reads.command} may read of {what} by contents that are unknown, in no order with"
        f" {writes.command} (--bounds)"
    )


def _pair(finding: Finding) -> tuple[int, int, str, str]:
    return (finding.prior.call, finding.place.call, finding.prior_access, finding.access)
