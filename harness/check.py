"""The wiring: one stream of calls through the interpreter and the validator, one verdict.

The live `Session` and `vkharness check` both judge through this one class, so that a program and its trace cannot
be judged differently. No loader or driver is needed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import replace

from harness.commands.contents.at_submit import without_bounds
from harness.commands.debug_info import DebugInfo
from harness.commands.device_writes import device_writes
from harness.commands.interpret import Interpreter
from harness.findings import Certainty, Finding, Hazard, Unjudged
from harness.report.sentences import explain
from harness.spans import Span
from harness.syncval.evidence import Description
from harness.syncval.validator import Validator
from harness.trace.calls import Block
from harness.trace.effects import StreamEvent
from harness.trace.resources import Buffer, Memory, describe

CLEAN, HAZARDS, UNKNOWN = "clean", "hazards", "unknown"


class Analysis:
    """Follows one program, block by block."""

    def __init__(
        self,
        keep_events: bool = False,
        keep_at_most: int = sys.maxsize,
        bounds: bool = False,
        assumed_rewrites: bool | None = None,
    ) -> None:
        """`keep_events`: what each block does stays in `events`, so that other judges need not interpret it again. Past
        `keep_at_most` of them none is kept. `bounds`: what draws could reach at most is judged, too, where it follows
        from contents of memory that are unknown."""
        self.events: list[StreamEvent] = []
        self.keeps_events = keep_events
        self._keep_at_most = keep_at_most
        self._interpreter = Interpreter(bounds, assumed_rewrites)
        self._validator = Validator(self.describe, self._is_host_visible, self._buffers_of)
        self._of_bounds = Validator(self.describe, is_host_visible=self._is_host_visible) if bounds else None
        """Judges bounds beside everything else, so that a bound never stands in the way of another finding."""
        self.findings: list[Finding] = []

    def step(self, block: Block) -> list[Finding]:
        """Judges one block; the findings that it causes, also kept in `findings`."""
        new: list[Finding] = []
        for stream_event in self._interpreter.step(block):
            if self.keeps_events:
                self.events.append(stream_event)
            if self._of_bounds is not None:
                found = self._of_bounds.consume(stream_event)
                new += [finding for finding in found if finding.certainty is Certainty.BOUND]
                stream_event = without_bounds(stream_event)
            new += self._validator.consume(stream_event)
        if self.keeps_events and len(self.events) > self._keep_at_most:
            self.keeps_events = False
            self.events.clear()
        if new:
            self._tell(new)
        return new

    def _tell(self, new: list[Finding]) -> None:
        for finding in new:
            self.annotate(finding)
        self.findings += new

    def annotate(self, finding: Finding) -> None:
        """Gives a finding its words, and what the program calls its objects, its places and its frames."""
        finding.explain = explain
        self.debug.annotate(finding)

    @property
    def in_doubt(self) -> bool:
        """Whether aspects of attachments may be rewritten where the trace does not say that the device keeps them
        apart."""
        return any(each.in_doubt for each in self._interpreter.objects.aspect_rewrites.values())

    def advise_where_in_doubt(self, blocks: Iterable[Block]) -> None:
        """Adds as advice what would be a hazard on a device that rewrites other aspects; `blocks` are the stream
        again."""
        known = {_pair(each) for each in self.findings}
        for each in Analysis(assumed_rewrites=True).follow(blocks).findings:
            if _pair(each) not in known and not each.advice:
                self.findings.append(replace(each, hazard=Hazard.REWRITES_OTHER_ASPECT))

    def follow(self, blocks: Iterable[Block]) -> Analysis:
        """Judges a whole stream."""
        for block in blocks:
            self.step(block)
        self.finish()
        return self

    def finish(self) -> list[Finding]:
        """Ends the stream: judges what waits for events that nothing signaled. The findings, also in `findings`."""
        new = self._validator.finish()
        self._tell(new)
        return new

    @property
    def debug(self) -> DebugInfo:
        """What the program calls its objects and its places."""
        return self._interpreter.objects.debug

    @property
    def unmodelled(self) -> dict[str, int]:
        """Names of what the mirror cannot judge, with how often each was met."""
        return self._validator.unmodelled

    @property
    def unjudged(self) -> Unjudged:
        """What the verdict leaves out."""
        objects = self._interpreter.objects
        names = objects.debug.names
        unseen = [each._replace(resource_name=names.get(each.resource, "")) for each in self._validator.unseen.all()]
        nothing = not self._validator.submits
        return Unjudged(objects.contents.left_out, unseen, nothing, objects.payloads.outside_waits)

    @property
    def verdict(self) -> str:
        """`hazards` when any was found, `unknown` when something unmodelled may hide one, else `clean`. Advice,
        refuted and ignored findings do not count."""
        if any(each.counts for each in self.findings):
            return HAZARDS
        return UNKNOWN if self.unmodelled else CLEAN

    def written(self, memory: int, begin: int, end: int) -> list[Span]:
        """Bytes of a memory object that submitted work writes and that the host does not know to be complete."""
        return self._validator.written(memory, begin, end)

    def may_write(self, command_buffers: Iterable[int]) -> dict[int, list[Span]]:
        """Memory object to the bytes that executing command buffers may write: at least what they write."""
        return device_writes(self._interpreter.objects, command_buffers, not self.unmodelled)

    def _is_host_visible(self, space: int) -> bool:
        objects = self._interpreter.objects
        image = objects.image(space)
        held = objects.get(Memory, image.memory or 0 if image is not None and image.is_one_linear else space)
        return held is not None and held.host_visible

    def _buffers_of(self, memory: int) -> list[tuple[int, int, int]]:
        held = [each for each in self._interpreter.objects.every(Buffer) if each.memory == memory]
        return sorted((each.offset, each.offset + each.size, each.id) for each in held)

    def describe(self, resource: int, spans: list[Span]) -> Description:
        """What addresses of a resource mean: bytes of a buffer or memory object, boxes of an image.

        Those of a sparse buffer are of the memory bound to it, and its own under its negative id.
        """
        objects = self._interpreter.objects
        if resource in objects.sparse.resources:
            spans = objects.sparse.own_addresses(resource, spans)
        resource = abs(resource)
        return Description(*describe(objects.image(resource) or objects.buffer(resource), spans))


def _pair(finding: Finding) -> tuple[int, int, str, str]:
    return (finding.prior.call, finding.place.call, finding.prior_access, finding.access)
