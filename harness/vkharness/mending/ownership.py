"""Transfers of queue family ownership: the half that is missing, or both.

A release stands after the earlier access in its command buffer, an acquire before the later one. Both have the same
resource, range, layouts and families ("Queue Family Ownership Transfer"). A semaphore orders the two halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from vkharness.findings import Finding, Hazard, OwnershipFamilies
from vkharness.mending.edited_barriers import with_transition_scopes
from vkharness.mending.image_parts import image_part
from vkharness.mending.insertion import barrier_site, insert_entries, site_after
from vkharness.mending.recordings import Recordings
from vkharness.mending.semaphores import with_semaphore, with_wider_wait
from vkharness.needed_scopes import scope_of
from vkharness.spec.enums import VK_WHOLE_SIZE
from vkharness.spec.scopes import IMAGE_LAYOUT_TRANSITION
from vkharness.trace.barrier_calls import BarrierCommand, BarrierEntry, BufferPart, ImagePart, Masks, is_barrier
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace
from vkharness.trace.effects import FAMILIES_OUTSIDE


def with_transfer(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Adds the halves of transfers that findings lack, and a semaphore where the halves race."""
    if not findings[0].hazard.is_ownership:
        ways = (with_transition_scopes, partial(with_wider_wait, number=0), with_semaphore)
        return next((made for made in (way(trace, findings) for way in ways) if made is not None), None)
    made = trace
    for first in {(each.prior.call, each.place.call): each for each in findings}.values():
        changed = _with_halves(made, _moved(trace, made, first))
        if changed is None:
            return None
        made = changed
    return made


def _with_halves(trace: EditedTrace, finding: Finding) -> EditedTrace | None:
    if finding.hazard is Hazard.OWNERSHIP_NOT_ACQUIRED:
        half = _half(trace, finding.prior.call, finding.resource)
        if half is not None and half.families[1] in FAMILIES_OUTSIDE:  # it comes back: the release is another API's
            half = replace(half, families=(half.families[1], half.families[0]))
        return _with_acquire(trace, finding, half)
    if finding.hazard is Hazard.OWNERSHIP_NOT_RELEASED:
        return _with_release(trace, finding, _half(trace, finding.place.call, finding.resource))
    if finding.hazard is Hazard.OWNERSHIP_MISMATCH:
        return _with_matching_halves(trace, finding)
    if isinstance(finding.gap, OwnershipFamilies):
        families = (finding.gap.source, finding.gap.destination)
        made = _in_transition(trace, finding, families)
        if made is not None:
            return made
        part = _whole(trace, finding)
        entry = BarrierEntry(Masks(), part, families) if part is not None else None
        if finding.gap.source in FAMILIES_OUTSIDE:
            return _with_acquire(trace, finding, entry)
        released = _with_release(trace, finding, entry)
        return None if released is None else _with_acquire(released, _moved(trace, released, finding), entry)
    return None


def _in_transition(trace: EditedTrace, finding: Finding, families: tuple[int, int]) -> EditedTrace | None:
    """With the layout transition that needs the contents as the acquire, and a release of the same layouts and range.
    None where the later access is none."""
    call = trace.blocks[finding.place.call - 1]
    if finding.access != IMAGE_LAYOUT_TRANSITION.name or families[0] in FAMILIES_OUTSIDE or not isinstance(call, Call):
        return None
    if not is_barrier(call):
        return None
    command = BarrierCommand.of(call)
    held = [each for each in command.entries if _names(each, finding.resource)]
    if len(held) != 1:
        return None
    entries = tuple(replace(each, families=families) if each is held[0] else each for each in command.entries)
    edited = trace.changed(finding.place.call - 1, replace(command, entries=entries).call(call.name).args)
    return _with_release(edited, finding, replace(held[0], families=families))


def _half(trace: EditedTrace, index: int, resource: int) -> BarrierEntry | None:
    """The half of a transfer of a resource in a barrier."""
    call = trace.blocks[index - 1]
    if not isinstance(call, Call) or not is_barrier(call):
        return None
    return next((each for each in BarrierCommand.of(call).entries if _is_half(each, resource)), None)


def _is_half(entry: BarrierEntry, resource: int) -> bool:
    return _names(entry, resource) and entry.families[0] != entry.families[1]


def _names(entry: BarrierEntry, resource: int) -> bool:
    part = entry.part
    return resource == (part.buffer if isinstance(part, BufferPart) else part.image if part is not None else 0)


def _with_acquire(trace: EditedTrace, finding: Finding, half: BarrierEntry | None) -> EditedTrace | None:
    recordings = Recordings(trace.blocks)
    site = barrier_site(trace, recordings, finding)
    if half is None or site is None:
        return None
    stage, access = scope_of(finding.access)
    if not stage:  # a transition comes after the first scope of its barrier
        stage, access = _first_scope(trace, finding)
    return insert_entries(trace, recordings, site, [replace(half, masks=Masks(0, 0, stage, access))])


def _first_scope(trace: EditedTrace, finding: Finding) -> tuple[int, int]:
    """The stages of the first scope of the barrier that makes the transition of a finding; none where none does."""
    call = trace.blocks[finding.place.call - 1]
    if not isinstance(call, Call) or not is_barrier(call):
        return 0, 0
    found = (each.masks.src_stages for each in BarrierCommand.of(call).entries if _names(each, finding.resource))
    return next(found, 0), 0


def _with_release(trace: EditedTrace, finding: Finding, half: BarrierEntry | None) -> EditedTrace | None:
    recordings = Recordings(trace.blocks)
    site = site_after(recordings, finding.prior)
    if half is None or site is None or recordings.at(site) is None:
        return None
    return insert_entries(trace, recordings, site, [replace(half, masks=Masks(*scope_of(finding.prior_access)))])


def _with_matching_halves(trace: EditedTrace, finding: Finding) -> EditedTrace | None:
    """With the resource, range, layouts and families of the release in the acquire."""
    release = _half(trace, finding.prior.call, finding.resource)
    call = trace.blocks[finding.place.call - 1]
    if release is None or not isinstance(call, Call) or not is_barrier(call):
        return None
    command = BarrierCommand.of(call)
    entries = tuple(
        replace(each, part=release.part, families=release.families) if _is_half(each, finding.resource) else each
        for each in command.entries
    )
    return trace.changed(finding.place.call - 1, replace(command, entries=entries).call(call.name).args)


def _whole(trace: EditedTrace, finding: Finding) -> BufferPart | ImagePart | None:
    """Returns the part of the resource that is transferred: a whole buffer, or the subresources of an image."""
    if finding.resource_type == "VkBuffer":
        return BufferPart(finding.resource, 0, VK_WHOLE_SIZE)
    recordings = Recordings(trace.blocks)
    recording = recordings.at(finding.place.call - 1)
    if finding.resource_type != "VkImage" or recording is None or not finding.boxes:
        return None
    return image_part(trace, recording, finding.place.call - 1, finding, recordings.at(finding.prior.call - 1))


def _moved(before: EditedTrace, after: EditedTrace, finding: Finding) -> Finding:
    """A finding of a trace in one with more calls."""
    call = after.origins.index(before.origin(finding.place.call)) + 1
    prior = after.origins.index(before.origin(finding.prior.call)) + 1
    return replace(finding, place=replace(finding.place, call=call), prior=replace(finding.prior, call=prior))
