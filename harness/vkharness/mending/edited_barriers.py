"""Edits of barriers that are nearly right: one of their two scopes fits, and the other one or the range does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vkharness.findings import Finding
from vkharness.mending.recordings import Recordings
from vkharness.mending.scope_sites import (
    Path,
    ScopeSite,
    barrier_sites,
    covers_destination,
    covers_source,
    widened_part,
)
from vkharness.mending.semaphores import after_waits
from vkharness.needed_scopes import needed
from vkharness.spec.enums import VK_WHOLE_SIZE, VkDependency
from vkharness.spec.scopes import IMAGE_LAYOUT_TRANSITION, OWNERSHIP_TRANSFER
from vkharness.spec.shapes import main_name
from vkharness.trace.barrier_calls import Masks
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace, value_at, with_value

MOST_TRIED = 4
"""The most barriers between two commands that are tried, the nearest to the later command first."""
TRANSITIONS = (IMAGE_LAYOUT_TRANSITION.name, OWNERSHIP_TRANSFER.name)
"""Accesses that barriers make."""
BARRIERS = ("vkCmdPipelineBarrier", "vkCmdPipelineBarrier2")


def with_transition_scopes(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Widens the scopes of the barriers that make the layout transitions of findings. None where a finding is about no
    transition of a barrier."""
    for finding in findings:
        edited = _transition_scopes(trace, finding)
        if edited is None:
            return None
        trace = edited
    return trace


def _transition_scopes(trace: EditedTrace, finding: Finding) -> EditedTrace | None:
    masks = after_waits(trace, finding)
    before, after = Masks(masks.src_stages, masks.src_accesses), Masks(0, 0, masks.dst_stages, masks.dst_accesses)
    sides = (
        (finding.access, finding.place.call, finding.through or finding.resource, before),
        (finding.prior_access, finding.prior.call, finding.resource, after),
    )
    for access, index, image, more in sides:
        call = trace.blocks[index - 1]
        if access != IMAGE_LAYOUT_TRANSITION.name or not isinstance(call, Call) or more == Masks():
            continue
        if main_name(call.name) in BARRIERS:
            args = call.args
            for site in barrier_sites(call):
                if site.part is not None and value_at(args, site.part).get("image") == image:
                    args = site.with_masks(args, site.joined(args, more))
            return trace.changed(index - 1, args) if args is not call.args else None
    return None


def _named(args: dict[str, Any], path: Path) -> tuple[int | None, int | None]:
    part = value_at(args, path)
    return part.get("buffer"), part.get("image")


def nearly_right(trace: EditedTrace, recordings: Recordings, finding: Finding) -> Iterator[tuple[int, int]]:
    """(position, number) of the dependencies between the two commands of a finding of which one scope fits, the nearest
    to the later command first."""
    tried = 0
    for position in _between(trace, recordings, finding):
        call = trace.call(position)
        for number, site in enumerate(barrier_sites(call)):
            if _fits_partly(call, site, finding):
                yield position, number
                tried += 1
                if tried == MOST_TRIED:
                    return


def with_other_scopes(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Gives the barriers between the commands of findings that name the resource, and of which no scope fits, the
    scopes that are needed in place of theirs. None where a finding has no such barrier."""
    made = trace
    for finding in findings:
        recordings, wanted = Recordings(made.blocks), needed(finding)
        position = next((each for each in _between(made, recordings, finding) if _is_wrong(made, each, finding)), None)
        if position is None or not wanted.src_stages or not wanted.dst_stages:
            return None
        args = made.call(position).args
        [site] = barrier_sites(made.call(position))
        made = made.changed(position, _with_range(site.with_masks(args, site.in_form(wanted)), site, finding))
    return made if made is not trace else None


def without_region(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Makes the barriers between the commands of findings, or those that make their transitions, hold for all of the
    framebuffer, where they hold by region. None where a finding has no such barrier outside of an instance of a render
    pass: inside, the flag may have to stay (VUID-vkCmdPipelineBarrier-dependencyFlags-07891)."""
    made = trace
    for finding in findings:
        recordings = Recordings(made.blocks)
        own = (finding.place.call - 1, finding.prior.call - 1)
        transitions = (each for each in own if isinstance(made.blocks[each], Call) and _is_barrier(made, each))
        changed = [
            (position, args)
            for position in (*_between(made, recordings, finding), *transitions)
            if (args := _args_without_region(made, recordings, position, finding)) is not None
        ]
        if not changed:
            return None
        made = made.changed(*changed[0])
    return made


def _args_without_region(
    trace: EditedTrace, recordings: Recordings, position: int, finding: Finding
) -> dict[str, Any] | None:
    """The arguments of a barrier without the flag. None where it has none, is inside of an instance, or is not about
    the resource of the finding."""
    call, recording = trace.call(position), recordings.at(position)
    path = ("pDependencyInfo", "dependencyFlags") if "pDependencyInfo" in call.args else ("dependencyFlags",)
    flags = value_at(call.args, path)
    if not flags & VkDependency.BY_REGION or recording is None or recording.instance_at(position) is not None:
        return None
    if recording.continues or not any(_is_about(call.args, site, finding) for site in barrier_sites(call)):
        return None
    args: dict[str, Any] = with_value(call.args, path, flags & ~VkDependency.BY_REGION)
    return args


def _is_wrong(trace: EditedTrace, position: int, finding: Finding) -> bool:
    """Whether a barrier is for the resource of a finding alone, makes no transition, and has no scope that fits."""
    call = trace.call(position)
    sites = list(barrier_sites(call))
    if len(sites) != 1 or sites[0].part is None or not _is_about(call.args, sites[0], finding):
        return False
    part = value_at(call.args, sites[0].part)
    return part.get("oldLayout") == part.get("newLayout") and not _fits_partly(call, sites[0], finding)


def _between(trace: EditedTrace, recordings: Recordings, finding: Finding) -> Iterator[int]:
    """Positions of the barriers after the earlier and before the later command, in their two recordings."""
    place, prior = finding.place.call - 1, finding.prior.call - 1
    late, early = recordings.at(place), recordings.at(prior)
    if late is None:
        return
    for position in reversed(late.positions):
        if (
            position < place
            and (late is not early or position > prior or prior >= place)
            and _is_barrier(trace, position)
        ):
            yield position
    if early is not None and early is not late:
        for position in reversed(early.positions):
            if position > prior and _is_barrier(trace, position):
                yield position


def _is_barrier(trace: EditedTrace, position: int) -> bool:
    return main_name(trace.call(position).name) in BARRIERS


def _fits_partly(call: Call, site: ScopeSite, finding: Finding) -> bool:
    if not _is_about(call.args, site, finding):
        return False
    masks, wanted = site.masks(call.args), needed(finding)
    if site.accesses is None and wanted.is_memory:
        return False
    return covers_source(masks, wanted) or covers_destination(masks, wanted)


def _is_about(args: dict[str, Any], site: ScopeSite, finding: Finding) -> bool:
    if site.part is None:
        return True
    part = value_at(args, site.part)
    families = {part.get("srcQueueFamilyIndex"), part.get("dstQueueFamilyIndex")}
    return finding.resource in (part.get("buffer"), part.get("image")) and len(families) == 1


def with_wider_barrier(
    trace: EditedTrace, position: int, number: int, findings: Sequence[Finding]
) -> EditedTrace | None:
    """Widens one dependency of a barrier to what findings need. None where that changes nothing."""
    call = trace.call(position)
    args = call.args
    site = list(barrier_sites(call))[number]
    for finding in findings:
        if not _is_about(args, site, finding):
            return None
        args = site.with_masks(args, site.joined(args, _lacking(site, args, finding)))
        args = _with_range(args, site, finding)
    return trace.changed(position, args) if args != call.args else None


def _lacking(site: ScopeSite, args: dict[str, Any], finding: Finding) -> Masks:
    """Returns the bits that a finding needs beyond the masks: none on a side that covers it already."""
    masks, wanted = site.masks(args), needed(finding)
    source = (0, 0) if covers_source(masks, wanted) else (wanted.src_stages, wanted.src_accesses)
    target = (0, 0) if covers_destination(masks, wanted) else (wanted.dst_stages, wanted.dst_accesses)
    return Masks(*source, *target)


def _with_range(args: dict[str, Any], site: ScopeSite, finding: Finding) -> dict[str, Any]:
    """Arguments in which a buffer barrier covers the range of a finding. A barrier of an image keeps its range, since a
    transition of more of the image would be another one."""
    if site.part is None or "buffer" not in value_at(args, site.part) or not finding.ranges:
        return args
    begin = min(offset for offset, _ in finding.ranges)
    end = max(offset + size for offset, size in finding.ranges)
    part = value_at(args, site.part)
    if part["offset"] <= begin and (part["size"] == VK_WHOLE_SIZE or end <= part["offset"] + part["size"]):
        return args
    return widened_part(args, site.part, begin, end - begin)
