"""Findings that judges could make of a stream: pairs of commands that touch the same addresses, or use one event.

Whether something orders a pair is not asked. `excuse_fuzz` falsifies findings with them; `excusable` asks which of them
the known differences would explain if one judge alone said them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from vkharness.findings import Finding, Hazard, Place
from vkharness.layer.compare import Explained, explained_alone, tested_at
from vkharness.layer.known_differences import LayerDifference
from vkharness.layer.parse import RECORD, SUBMIT, LayerMessage
from vkharness.layer.stream import EXECUTE, Stream
from vkharness.layer.subject import recordings_of
from vkharness.layer.touches import Touch, apart, common
from vkharness.spec.command_classes import NEXT_SUBPASS
from vkharness.trace.calls import Call
from vkharness.trace.resources import describe


class Judged(NamedTuple):
    """A command, where its access is judged."""

    place: Place
    call: Call


def sequences(stream: Stream) -> list[list[Judged]]:
    """The commands of each recording, submitted or not, and those of all submits."""
    submitted: list[Judged] = []
    for _, (submit, batch, position), commands in stream.executions(1 << 62):
        queue = (stream.at(submit) or commands[0]).args["queue"]
        submitted += _placed(commands, submit=submit, batch=batch, position=position, queue=queue)
    return [*(list(_placed(commands)) for commands in recordings_of(stream)), submitted]


def _placed(commands: Sequence[Call], **where: int) -> Iterator[Judged]:
    primary = commands[0].args["commandBuffer"] if commands else 0
    executing: Call | None = None
    entry, last = -1, (0, 0)
    for call in commands:
        buffer = call.args["commandBuffer"]
        if call.name == EXECUTE:
            executing, entry, last = call, -1, (0, 0)
        inside = None
        if buffer != primary and executing is not None:
            if buffer != last[0] or call.index <= last[1]:  # another secondary, or the same one again
                entry = list(executing.args["pCommandBuffers"]).index(buffer, entry + 1)
            last, inside = (buffer, call.index), (executing.index, entry)
        yield Judged(Place(call.index, call.name, None, buffer, executed_by=inside, **where), call)


def _is_judged(prior: Place, place: Place) -> bool:
    """A command where it is recorded or executed is no pair, and pairs inside a command buffer at its submit are none.
    What is inside one execution of a secondary was found where that was recorded."""
    if place.submit is None:
        return prior.executed_by != place.executed_by or (place.executed_by is None and prior.call != place.call)
    return (prior.submit, prior.batch, prior.position) != (place.submit, place.batch, place.position)


def accesses(stream: Stream, sequence: Sequence[Judged], at: int) -> Iterator[Finding]:
    """Of the command at a position: each access, and the last write of some of its bytes or a read since then."""
    place = sequence[at].place
    for touch in _touched(stream, sequence[at]):
        left = touch
        for earlier in reversed(sequence[:at]):
            for prior in _touched(stream, earlier):
                shared = common([left], [prior]) if prior.write or touch.write else []
                if shared and _is_judged(earlier.place, place):
                    yield _finding(stream, place, earlier.place, shared[0], prior)
                if shared and prior.write:
                    left = apart(left, prior)
            if not left.spans:
                break


def _touched(stream: Stream, judged: Judged) -> Sequence[Touch]:
    place = judged.place
    return stream.as_executed((place.submit, place.batch, place.position) if place.submit else None).touches(
        judged.call
    )


def _finding(stream: Stream, place: Place, prior: Place, touch: Touch, earlier: Touch) -> Finding:
    hazard = f"{'WRITE' if touch.write else 'READ'}_AFTER_{'WRITE' if earlier.write else 'READ'}"
    objects, id = stream.objects, touch.resource
    kind, ranges, boxes = describe(objects.image(id) or objects.buffer(id), touch.spans)
    return Finding(Hazard(hazard), touch.access, earlier.access, place, prior, id, kind, ranges, boxes)


def event_operations(sequence: Sequence[Judged], at: int) -> Iterator[Finding]:
    """False findings about the last operation on an event before this one."""
    place, own = sequence[at]
    for event in _events(own):
        earlier = next((each for each in reversed(sequence[:at]) if event in _events(each.call)), None)
        rule = _event_rule(own.name, earlier.call.name) if earlier is not None else None
        if earlier is not None and rule is not None and _is_judged(earlier.place, place):
            yield Finding(rule, "", "", place, earlier.place, event, "VkEvent")


def _events(call: Call) -> Sequence[int]:
    if call.name.startswith(("vkCmdSetEvent", "vkCmdResetEvent")):
        return (call.args["event"],)
    return call.args["pEvents"] or () if call.name.startswith("vkCmdWaitEvents") else ()


def _event_rule(name: str, earlier: str) -> Hazard | None:
    """Gives the rule that an event operation breaks if nothing orders it after the earlier one; None for none."""
    before = next(each for each in ("Set", "Reset", "Wait") if earlier.startswith(f"vkCmd{each}"))
    if name.startswith("vkCmdWait"):
        return Hazard.WAIT_FOR_UNORDERED_SET if before == "Set" else None
    if name.startswith("vkCmdReset"):
        return {"Set": Hazard.RESET_EVENT_AFTER_SET, "Wait": Hazard.RESET_EVENT_AFTER_WAIT}.get(before)
    return Hazard(f"{name}-wait" if before == "Wait" else f"{name}-{before.lower()}-race")


# --- what would be excused -------------------------------------------------------------------------------------------


def excusable(
    stream: Stream, findings: Iterable[Finding], differences: Sequence[LayerDifference]
) -> Iterator[Explained]:
    """Yields the reports that the known differences would explain if one of the two judges alone made them: of each
    conceivable pair, and of these findings of ours, which may be of kinds that pairs do not have."""
    said = list(findings)
    for sequence in sequences(stream):
        for at in range(len(sequence)):
            said += _with_races(accesses(stream, sequence, at), sequence)
            said += event_operations(sequence, at)
    yield from explained_alone(said, [_message(each, stream) for each in said], differences, stream)


def _with_races(findings: Iterable[Finding], sequence: Sequence[Judged]) -> Iterator[Finding]:
    """Findings, and of two subpasses the same as races."""
    entered = [each.place.call for each in sequence if each.call.name.startswith(NEXT_SUBPASS)]
    for finding in findings:
        yield finding
        if any(finding.prior.call <= call <= finding.place.call for call in entered):
            yield replace(finding, hazard=Hazard(finding.hazard.value.replace("_AFTER_", "_RACING_")))


def _message(finding: Finding, stream: Stream) -> LayerMessage:
    """The message with which a layer would say the same."""
    hazard, command, prior_command, access, prior_access = finding.key
    place, submit = finding.place, tested_at(finding.place)
    numbers, own = stream.numbers_of(finding.prior.call), stream.numbers_of(place.call)
    inside = place.executed_by if place.submit is None else None
    return LayerMessage(
        "", hazard, command, "", RECORD if submit is None else SUBMIT, access, prior_access, prior_command,
        seq_no=max(numbers, default=None),
        recorded_seq_no=max(own, default=None),
        entry=inside[1] if inside else place.position,
        batch=place.batch,
        resource=finding.through or finding.resource,
        call=place.call if submit is None else submit,
    )  # fmt: skip
