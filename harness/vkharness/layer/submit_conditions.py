"""Conditions about 1.3.239: how it tests command buffers when they are submitted, and what it loses of accesses.

It merges what each command buffer accessed first into what the queue did before, piece by piece; a piece ends with a
synchronization command. While recording, it loses the end of an access that meets a tracked range and goes beyond the
last address that the command buffer tracks. An access that meets nothing tracked is recorded whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from vkharness.findings import Finding, Place
from vkharness.layer.conditions import condition, matches
from vkharness.layer.parse import RECORD
from vkharness.layer.stream import Address, Stream
from vkharness.layer.subject import EVERYWHERE, LAYER, ExecutedCommand, Subject
from vkharness.layer.touches import Touch, common
from vkharness.spans import SpanMap
from vkharness.spec.command_classes import is_submit
from vkharness.spec.enums import VkPipelineStage2
from vkharness.trace.calls import Call


@condition
def segment_reported_already(subject: Subject) -> bool:
    """At this submit the layer reported another hazard of the same command buffer between the same two synchronization
    commands: it says one a segment."""
    if subject.finding is None:
        return False
    piece, place = subject.segment, subject.finding.place
    entry = place.executed_by[1] if place.executed_by and place.submit is None else place.position
    others = (
        replace(subject, side=LAYER, key=message.key, kind=message.kind, finding=None, message=message)
        for message in subject.messages
        if message.entry == entry
    )
    return any(steps[-1].call in piece for other in others for steps in other.occurrences)


@condition
def optimal_image_in_segment(subject: Subject) -> bool:
    """The hazard is in a buffer or linear image, and the same segment touches an image with optimal tiling, or lies
    between two touches of one: the result for optimal images replaces the one for linear memory."""
    stream, segment = subject.stream, subject.segment
    if subject.finding is None or not segment or not stream.address_of(subject.finding.resource).linear:
        return False
    touched: dict[int, list[int]] = {}
    for call in subject.command_buffer:
        for touch in stream.touches(call):
            if not stream.address_of(touch.resource).linear:
                touched.setdefault(touch.resource, []).append(call.index)
    first, last = segment[0].index, segment[-1].index
    return any(min(calls) <= last and first <= max(calls) for calls in touched.values())


@condition
def read_not_tested(subject: Subject) -> bool:
    """An earlier command of the command buffer reads the resource: of the reads before the first write, the layer
    tests only the first. Or it is written later in the same segment: the verdict on that write replaces this one."""
    own, stream, finding = subject.command, subject.stream, subject.finding
    if own is None or finding is None:
        return False
    return any(
        finding.resource in stream.reads(call) for call in subject.command_buffer if call.index < own.index
    ) or any(finding.resource in stream.writes(call) for call in subject.segment if call.index >= own.index)


@condition
def read_before_in_command_buffer(subject: Subject) -> bool:
    """An earlier command of the command buffer reads what the second command writes, and the first access is of another
    kind: such reads stand for earlier writes only if those are of the same kind as the second access."""
    own, stream = subject.command, subject.stream
    earlier = [call for call in subject.command_buffer if own is not None and call.index < own.index]
    target = [touch for touch in stream.touches(own) if touch.write] if own is not None else []
    reads = (touch for call in earlier for touch in stream.touches(call) if not touch.write)
    return subject.key[3] != subject.key[4] and bool(common(reads, target))


@condition
def reads_forgotten(subject: Subject) -> bool:
    """An earlier command buffer only read a range that an even earlier one wrote: merging drops such reads. Then a WAR
    is not seen, or shows as WAW against the older write, which may also be no hazard at all."""
    own, steps, first = subject.command, subject.steps, subject.position
    hazards = ("WRITE_*_READ",) if subject.finding is not None else ("WRITE_*_WRITE",)
    if own is None or first < 0 or not matches(subject.key[0], hazards):
        return False
    target = [touch for touch in subject.stream.touches(own) if touch.write]
    if subject.finding is not None:
        return _is_forgotten(first, steps, target, subject.stream)
    return any(
        _is_forgotten(position, steps, target, subject.stream)
        for position, step in enumerate(steps)
        if position > first and step.place and not subject.is_own(step.place)
    )


def _is_forgotten(read: int, steps: Sequence[ExecutedCommand], target: Sequence[Touch], stream: Stream) -> bool:
    """True when step `read` reads some part of `target` that an earlier execution wrote and its own does not write."""
    reads = common((touch for touch in stream.touches(steps[read].call) if not touch.write), target)
    for part in [replace(touch, spans=(span,)) for touch in reads for span in touch.spans]:
        writers = {
            each.execution
            for each in steps
            if each.execution <= steps[read].execution
            and common([part], (touch for touch in stream.touches(each.call) if touch.write))
        }
        if writers and steps[read].execution not in writers:
            return True
    return False


@condition
def host_waited_for_older_value(subject: Subject) -> bool:
    """Between the two accesses the host waited for a value of a timeline below one that the first access' submit, or a
    later one, signals."""
    first = subject.finding.prior.submit if subject.finding is not None else None
    signaled: dict[int, int] = {}
    for stages, semaphore, value in subject.stream.values_between(first, subject.limit) if first is not None else ():
        if not stages and value < signaled.get(semaphore, 0):
            return True
        if stages:
            signaled[semaphore] = max(value, signaled.get(semaphore, 0))
    return False


@condition
def host_waited_for_some_stages(subject: Subject) -> bool:
    """Between the two accesses the host waited for a value of a timeline that the first access' submit, or a later one,
    signals for other stages than ALL_COMMANDS."""
    first = subject.finding.prior.submit if subject.finding is not None else None
    partial: set[tuple[int, int]] = set()
    for stages, semaphore, value in subject.stream.values_between(first, subject.limit) if first is not None else ():
        if not stages and (semaphore, value) in partial:
            return True
        if stages and not stages & VkPipelineStage2.ALL_COMMANDS:
            partial.add((semaphore, value))
    return False


@condition
def open_and_not_submitted(subject: Subject) -> bool:
    """While recording: contents of memory decide what a command between the two accesses, or one of the two, touches,
    and nothing submits the second command."""
    stream, said = subject.stream, subject.stream.at(subject.call)
    if said is None or is_submit(said.name):
        return False
    if any(said in commands for _, _, commands in stream.executions(EVERYWHERE)):
        return False
    for steps in subject.occurrences:
        first = next((at for at in range(len(steps) - 2, -1, -1) if subject.may_be_first(steps[at])), len(steps))
        if any(stream.facts(step.call).is_open for step in steps[first:]):
            return True
    return False


# --- accesses beyond what is tracked ---------------------------------------------------------------------------------


@condition
def beyond_tracked_memory(subject: Subject, unseen: Sequence[str]) -> bool:
    """Of the access that the layer must know to see this hazard, it lost just the hazardous part: while recording that
    of the first command, at submit that of either. What it says instead is about an older access of a lost part.
    `unseen` are commands that the layer passes over."""
    finding, own, stream = subject.finding, subject.command, subject.stream
    if finding is not None:
        places = (finding.prior,) if subject.kind == RECORD else (finding.prior, finding.place)
        return any(_is_lost(place, finding, stream, unseen) for place in places)
    commands = [call for call in subject.command_buffer if call is not own or subject.kind != RECORD]
    mine = stream.touches(own) if own is not None else ()
    return any(common([lost], mine) for _, lost in _lost_parts(stream, commands, unseen))


def _is_lost(place: Place, finding: Finding, stream: Stream, unseen: Sequence[str]) -> bool:
    command = stream.at(place.call)
    if command is None or "commandBuffer" not in command.args:
        return False
    before = command.index + 1 if place.submit is None else place.submit
    commands = [call for call in stream.recorded(command.args["commandBuffer"], before) if call.index <= command.index]
    lost = [
        span
        for call, part in _lost_parts(stream, commands, unseen)
        if call is command and part.resource == finding.resource
        for span in part.spans
    ]
    base = stream.address_of(finding.resource).offset
    return bool(lost) and all(
        any(begin < base + offset + size and base + offset < end for begin, end in lost)
        for offset, size in finding.ranges
    )


Key = tuple[int, int, int]
"""(memory, offset of the resource, address) as the layer orders what it tracks."""


def _lost_parts(stream: Stream, commands: Iterable[Call], unseen: Sequence[str]) -> Iterator[tuple[Call, Touch]]:
    """Yields (command, part of an access) for each part that the layer loses. `commands` are those of one command
    buffer, in order."""
    tracked: dict[int, SpanMap[bool]] = {}
    last: dict[bool, tuple[Key, int]] = {}
    for call in commands:
        for touch in () if matches(call.name, unseen) else _region_by_region(stream, call):
            address = stream.address_of(touch.resource)
            ranges = tracked.setdefault(touch.space, SpanMap())
            for begin, end in touch.spans:
                kept, latest = end, last.get(address.linear)
                if latest is not None and latest[1] == touch.space and ranges.pieces(begin, end):
                    kept = min(end, latest[0][2])
                if kept < end:
                    yield call, replace(touch, spans=((kept, end),))
                ranges.assign(begin, kept, True)
                key = _key(address, kept)
                if latest is None or key > latest[0]:
                    last[address.linear] = (key, touch.space)


def _key(address: Address, end: int) -> Key:
    # A buffer's addresses are those of its memory already.
    return (address.memory, 0 if address.linear else address.offset, end)


def _region_by_region(stream: Stream, call: Call) -> Iterator[Touch]:
    """Touches of one region after the other: effects merge the regions of a buffer copy, which the layer does not."""
    touches = stream.touches(call)
    info = call.args.get("pCopyBufferInfo") or call.args
    if not call.name.startswith("vkCmdCopyBuffer") or "srcBuffer" not in info or "dstBuffer" not in info:
        indirect = call.name == "vkCmdDispatchIndirect"  # whose descriptors come first
        yield from sorted(touches, key=lambda touch: indirect and touch.stage == VkPipelineStage2.DRAW_INDIRECT)
        return
    held = {touch.resource: touch for touch in touches}
    for region in info["pRegions"] or ():
        for buffer, offset, write in (("srcBuffer", "srcOffset", False), ("dstBuffer", "dstOffset", True)):
            begin = stream.address_of(info[buffer]).offset + region[offset]
            if info[buffer] in held:
                yield replace(held[info[buffer]], spans=((begin, begin + region["size"]),), write=write)
