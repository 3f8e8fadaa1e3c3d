"""A barrier inserted before the later command of a finding, or before the render pass instance that holds it.

It has the second form, in which stages and accesses are exact. `in_own_form` gives it the form that the program uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vkharness.findings import Finding, Place
from vkharness.mending.image_parts import image_part
from vkharness.mending.recordings import OPEN, CommandRecording, Recordings
from vkharness.needed_scopes import needed
from vkharness.spec.enums import VkPipelineStage2
from vkharness.trace.barrier_calls import (
    SECOND,
    BarrierCommand,
    BarrierEntry,
    BufferPart,
    ImagePart,
    Masks,
    form_of,
    is_barrier,
)
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace

MOST_PARTS = 4
"""The most ranges of a resource that get a barrier each. More are taken together."""


def with_barriers(trace: EditedTrace, findings: Sequence[Finding], ranged: bool) -> EditedTrace | None:
    """Inserts, for each finding, a barrier directly before its later command. With `ranged` the barriers are limited to
    the resource and range. None where a barrier cannot stand between the two."""
    recordings = Recordings(trace.blocks)
    wanted: dict[int, list[BarrierEntry]] = {}
    for finding in findings:
        site = barrier_site(trace, recordings, finding)
        entries = _entries(trace, recordings, finding, site, ranged) if site is not None else []
        if site is None or not entries:
            return None
        wanted.setdefault(site, []).extend(entries)
    several: dict[int, Call] = {}
    for site, entries in wanted.items():
        trace, added = _with_entries(trace, recordings, site, entries)
        several |= {} if added is None else {site: added}
    return trace.with_each_inserted(several)


def barrier_site(trace: EditedTrace, recordings: Recordings, finding: Finding) -> int | None:
    """The position before which a barrier orders the later command after the earlier one; None if there is none."""
    position, prior = (_in_primary(recordings, finding, later=True), _in_primary(recordings, finding, later=False))
    recording = recordings.at(position)
    if recording is None or recording.continues:
        return None
    instance = recording.instance_at(position)
    while instance is not None:
        if instance.begin <= prior < position and one_execution(finding):
            return None
        position = instance.begin
        at = recording.instances.index(instance)
        instance = recording.instances[at - 1] if instance.resumes and at else None
    return position


def site_after(recordings: Recordings, place: Place) -> int | None:
    """The position before which a barrier comes after a command, and after the render pass instance that holds it."""
    position = recordings.in_primary(place.call - 1, place.executed_by[0] - 1 if place.executed_by else None)
    recording = recordings.at(position)
    if recording is None or recording.continues:
        return None
    instance = recording.instance_at(position)
    last = position if instance is None else instance.end
    return next((each for each in (*recording.positions, recording.end) if last < each < OPEN), None)


def one_execution(finding: Finding) -> bool:
    """Whether the two accesses of a finding belong to one execution of a command buffer."""
    place, prior = finding.place, finding.prior
    return (place.submit, place.batch, place.position) == (prior.submit, prior.batch, prior.position)


def _in_primary(recordings: Recordings, finding: Finding, later: bool) -> int:
    place = finding.place if later else finding.prior
    executed_by = place.executed_by[0] - 1 if place.executed_by else None
    return recordings.in_primary(place.call - 1, executed_by)


def insert_entries(
    trace: EditedTrace, recordings: Recordings, site: int, entries: Sequence[BarrierEntry]
) -> EditedTrace:
    """Inserts a barrier before a position; where one was inserted before, that one takes the entries."""
    trace, added = _with_entries(trace, recordings, site, entries)
    return trace if added is None else trace.inserted(site, [added])


def _with_entries(
    trace: EditedTrace, recordings: Recordings, site: int, entries: Sequence[BarrierEntry]
) -> tuple[EditedTrace, Call | None]:
    """The trace in which a barrier that was inserted before a position has the entries, too; or, where there is none,
    the barrier to insert."""
    recording = recordings.at(site)
    assert recording is not None
    before = recording.before(site)
    if trace.origins[before] < 0 and is_barrier(trace.call(before)):
        held = BarrierCommand.of(trace.call(before))
        made = replace(held, entries=united(held.entries, entries))
        return trace.changed(before, made.call(SECOND).args), None
    made = BarrierCommand(recording.command_buffer, united((), entries))
    return trace, made.call(SECOND)


def in_own_form(trace: EditedTrace) -> EditedTrace:
    """The trace with inserted barriers in the form that the program uses."""
    name = form_of(trace.source)
    for edit in list(trace.edits()):
        if edit.before is None and is_barrier(edit.after) and name != SECOND:
            trace = trace.replaced(edit.position, BarrierCommand.of(edit.after).call(name))
    return trace


def united(held: Sequence[BarrierEntry], more: Sequence[BarrierEntry]) -> tuple[BarrierEntry, ...]:
    """Entries taken together where that makes none of them wider."""
    made = list(held)
    for entry in more:
        for at, each in enumerate(made):
            joined = _joined(each, entry)
            if joined is not None:
                made[at] = joined
                break
        else:
            made.append(entry)
    return tuple(made)


def _joined(one: BarrierEntry, other: BarrierEntry) -> BarrierEntry | None:
    if one == other:
        return one
    a, b = one.masks, other.masks
    if one.part == other.part and one.families == other.families and a.is_memory == b.is_memory:
        same_src = (a.src_stages, a.src_accesses) == (b.src_stages, b.src_accesses)
        same_dst = (a.dst_stages, a.dst_accesses) == (b.dst_stages, b.dst_accesses)
        return replace(one, masks=a | b) if same_src or same_dst else None
    if a == b and isinstance(one.part, BufferPart) and isinstance(other.part, BufferPart):
        first, last = sorted((one.part, other.part), key=lambda part: part.offset)
        if first.buffer == last.buffer and last.offset <= first.offset + first.size:
            size = max(first.offset + first.size, last.offset + last.size) - first.offset
            return replace(one, part=replace(first, size=size))
    return None


def _entries(
    trace: EditedTrace, recordings: Recordings, finding: Finding, site: int, ranged: bool
) -> list[BarrierEntry]:
    masks = sides_filled(trace, needed(finding))
    parts = _parts(trace, recordings, finding, site) if ranged and masks.is_memory else [None]
    return [BarrierEntry(masks, part) for part in parts]


def sides_filled(trace: EditedTrace, masks: Masks) -> Masks:
    """Masks in which a side that no stage performs is ALL_COMMANDS, which holds it."""
    everything = VkPipelineStage2.ALL_COMMANDS
    return replace(masks, src_stages=masks.src_stages or everything, dst_stages=masks.dst_stages or everything)


def _parts(trace: EditedTrace, recordings: Recordings, finding: Finding, site: int) -> Sequence[BufferPart | ImagePart]:
    if finding.resource_type == "VkBuffer" and finding.ranges:
        ranges = finding.ranges
        if len(ranges) > MOST_PARTS:
            begin = min(offset for offset, _ in ranges)
            ranges = ((begin, max(offset + size for offset, size in ranges) - begin),)
        return [BufferPart(finding.resource, offset, size) for offset, size in ranges]
    if finding.resource_type == "VkImage" and finding.boxes:
        recording = recordings.at(site)
        part = image_part(trace, recording, site, finding) if isinstance(recording, CommandRecording) else None
        return [part] if part is not None else []
    return []
