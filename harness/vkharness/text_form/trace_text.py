"""A trace as stream text: its effects, with names of text for its handles, where text can say all that decides."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from vkharness.check import Analysis
from vkharness.findings import Finding, UserError
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED
from vkharness.syncval.evidence import Description
from vkharness.syncval.validator import Validator
from vkharness.text_form import stream_text
from vkharness.text_form.handle_names import MOST, number
from vkharness.trace.calls import Block
from vkharness.trace.effects import (
    Command,
    CommandBufferReset,
    Destroyed,
    Execute,
    PayloadShared,
    Presented,
    QueueObtained,
    Recorded,
    SemaphoreCreated,
    StreamEvent,
    Submission,
    Submitted,
)
from vkharness.trace.host_effects import (
    FenceCreated,
    HostWaitedSemaphores,
    MemoryMapped,
    MemoryUnmapped,
    SignalMoved,
    UnseenSemaphore,
)
from vkharness.trace.ownership_effects import SharedResource
from vkharness.trace.work_budget import spend

RESOURCE, QUERIES = "r", "y"
_KINDS = {
    **dict.fromkeys(("space", "resource", "memory", "image"), RESOURCE),
    "queue": "q",
    **dict.fromkeys(("event", "events"), "e"),
    **dict.fromkeys(("fence", "fences"), "f"),
    "pool": QUERIES,
    **dict.fromkeys(("semaphore", "waits", "semaphores"), "s"),
}
"""The kinds of handles by the members of stream events that hold them."""
SILENT = (CommandBufferReset, Recorded, MemoryMapped, MemoryUnmapped, FenceCreated, UnseenSemaphore)
"""Stream events that decide nothing in most streams. Where one does, the text has other findings, and is refused."""
MOST_LINES = 400
"""Lines of a text up to which the smallest one is looked for."""
A_LINE = 50
"""Units of work that judging a line takes."""


def text_of(blocks: Iterable[Block]) -> str:
    """The text of a trace. Raises `UserError`, in one line, where text cannot say what the trace says."""
    analysis = Analysis(keep_events=True, eager=True).follow(blocks)
    if analysis.unmodelled:
        raise UserError(f"stream text cannot say what is not modelled: {', '.join(sorted(analysis.unmodelled))}")
    try:
        text = stream_text.spell(_Renaming(analysis.events).events())
        found = findings_of(text)
    except (ValueError, TypeError, LookupError) as error:
        raise UserError(f"stream text cannot say this: {error}") from None
    if _kinds(found) != _kinds(analysis.findings):
        raise UserError(
            f"stream text does not say all that decides here: {len(found)} findings in the text, "
            f"{len(analysis.findings)} in the trace"
        )
    return text


def findings_of(text: str, source: str = "") -> list[Finding]:
    """What syncval finds in a text."""
    validator = Validator(lambda resource, spans: Description("VkBuffer", tuple(spans), ()))
    stream = stream_text.parse(text, source)
    return [found for each in stream for found in validator.consume(each)] + validator.finish()


def smallest(text: str, finding: Finding) -> str:
    """The text without the lines that a finding like this one needs not: what is left has the finding and no other.

    Raises `OverBudget` where looking for it takes more work than a command may do."""
    wanted, lines = _kind(finding), text.splitlines()
    if len(lines) > MOST_LINES:
        return text
    step = len(lines) // 2
    while step:
        at = len(lines)
        while at > 0:
            begin = max(0, at - step)
            left = lines[:begin] + lines[at:]
            spend(A_LINE * len(left), "lines of a smaller text")
            if _finds(left, wanted):
                lines = left
            at = begin
        step //= 2
    return "\n".join(lines) + "\n"


def _finds(lines: Sequence[str], wanted: tuple[str, ...]) -> bool:
    try:
        return wanted in map(_kind, findings_of("\n".join(lines)))
    except (ValueError, UserError):
        return False


def _kind(finding: Finding) -> tuple[str, ...]:
    return (finding.hazard, finding.place.command, finding.prior.command, finding.access, finding.prior_access)


def _kinds(findings: Iterable[Finding]) -> Counter[tuple[str, ...]]:
    found: Counter[tuple[str, ...]] = Counter()
    for each in findings:
        found[_kind(each)] += 1 + each.repeated
    return found


class _Renaming:
    """Gives the handles of a stream the names of stream text, in the order in which they come."""

    def __init__(self, stream: Sequence[StreamEvent]) -> None:
        self._stream = stream
        self._names: dict[tuple[str, int], int] = {}
        self._counts: Counter[str] = Counter()
        self._timelines = {
            each.semaphore for each in stream if isinstance(each, SemaphoreCreated) and each.initial is not None
        }
        self._has_families = _transfers_ownership(stream)

    def events(self) -> list[StreamEvent]:
        """The stream, with what text has no word for left out where it decides nothing."""
        kept = (each for each in self._stream if not self._is_silent(each))
        return [self._renamed(each) for each in kept]

    def _is_silent(self, each: StreamEvent) -> bool:
        match each:
            case SemaphoreCreated(initial=initial):
                return initial is None
            case SharedResource(acquirers=acquirers):
                return acquirers is None
            case QueueObtained():
                return not self._has_families
            case Destroyed(space=space):
                return (RESOURCE, space) not in self._names
            case PayloadShared() | SignalMoved():
                raise UserError("stream text cannot say this: a payload is shared with somebody outside")
        return isinstance(each, SILENT)

    def _handle(self, kind: str, handle: int) -> int:
        if not handle:
            return 0
        if kind == "s" and handle in self._timelines:
            kind = "t"
        known = self._names.get((kind, handle))
        if known is None:
            at = self._counts[kind]
            self._counts[kind] += 1
            if at > MOST:
                raise UserError(f"stream text has names for {MOST} handles of a kind")
            if kind == RESOURCE and at < 26:
                known = number(chr(ord("a") + at))
            elif kind == QUERIES:
                known = 6000 + at
            else:
                known = number(f"{kind}{at - 26 if kind == RESOURCE else at + 1}")
            self._names[kind, handle] = known
        return known

    def _renamed(self, value: Any, member: str = "") -> Any:
        """A value with the handles in it renamed. What text has no words for is an error, or is what text means."""
        kind = _KINDS.get(member)
        if isinstance(value, bool):
            return value
        if isinstance(value, int):
            return self._handle(kind, value) if kind else value
        if isinstance(value, Command):
            return Command(value.call, value.name, None, tuple(self._renamed(each) for each in value.effects))
        if isinstance(value, Execute):
            held = [self._renamed(each) for _, commands in value.buffers for each in commands]
            return Execute(((value.buffers[0][0], held),)) if held else Execute(())
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return tuple(self._renamed(each, member) for each in value)
        if not dataclasses.is_dataclass(value) or isinstance(value, type):
            return value
        return self._of_class(value)

    def _of_class(self, value: Any) -> Any:
        found = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
        if found.get("aliases"):
            raise UserError("stream text cannot say this: two resources share memory")
        if isinstance(value, Submission):
            commands = [self._renamed(each) for _, several in value.buffers for each in several]
            made = {name: self._renamed(each) for name, each in found.items() if name != "buffers"}
            return Submission(**made, buffers=((0, commands),))
        if isinstance(value, HostWaitedSemaphores):
            return HostWaitedSemaphores(tuple((self._handle("s", each), least) for each, least in value.values))
        if isinstance(value, Presented):
            for member, kind in (("images", RESOURCE), ("fences", "f")):
                pairs = tuple((stream_text.SWAPCHAIN, self._handle(kind, each)) for _, each in found.pop(member))
                changed: dict[str, Any] = {member: pairs}
                value = dataclasses.replace(value, **changed)
        kept = found.keys() - {"site", "by"} - ({"resource"} if "space" in found else set())
        made = {name: self._renamed(each, name) for name, each in found.items() if name in kept}
        if "resource" in found and "space" in found:
            made["resource"] = made["space"]
        if isinstance(value, Submitted) and not self._has_families:
            made["family"] = VK_QUEUE_FAMILY_IGNORED
        return dataclasses.replace(value, **made)


def _transfers_ownership(stream: Iterable[StreamEvent]) -> bool:
    """Whether a barrier of the stream moves a resource to another family."""
    submits = (each for each in stream if isinstance(each, Submitted))
    commands = (command for each in submits for batch in each.batches for _, held in batch.buffers for command in held)
    parts = (part for command in commands for effect in command.effects for part in getattr(effect, "ranges", ()))
    return any(part.src_family != part.dst_family for part in parts)
