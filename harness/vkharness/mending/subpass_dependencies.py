"""Dependencies of render passes: widened, or added, between two subpasses or with VK_SUBPASS_EXTERNAL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from vkharness.findings import Finding, Place
from vkharness.mending.insertion import one_execution
from vkharness.mending.recordings import EXTERNAL, Instance, Recordings
from vkharness.mending.scope_sites import subpass_sites
from vkharness.mending.semaphores import after_waits
from vkharness.needed_scopes import ALL_QUEUES, needed
from vkharness.spec.enums import VkDependency, VkPipelineStage2, VkStructureType
from vkharness.spec.scopes import IMAGE_LAYOUT_TRANSITION, expand_stages
from vkharness.spec.shapes import main_name
from vkharness.trace.barrier_calls import SECOND, BarrierCommand, BarrierEntry, Masks
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace, value_at

FRAMEBUFFER_SPACE = (
    VkPipelineStage2.FRAGMENT_SHADER
    | VkPipelineStage2.EARLY_FRAGMENT_TESTS
    | VkPipelineStage2.LATE_FRAGMENT_TESTS
    | VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT
)
GRAPHICS = expand_stages(VkPipelineStage2.ALL_GRAPHICS, ALL_QUEUES)
Ends = tuple[int, int, int]
"""The position of the call that creates a render pass, the source subpass and the destination subpass."""


def ends_of(trace: EditedTrace, recordings: Recordings, finding: Finding) -> Iterator[Ends]:
    """The subpass dependencies that could order the two accesses of a finding, the likely ones first."""
    late, early = _instance(recordings, finding.place), _instance(recordings, finding.prior)
    if late is not None and early is late and finding.prior.call <= finding.place.call and one_execution(finding):
        for src in _subpasses(late, _position(recordings, finding.prior), finding.prior.command):
            for dst in _subpasses(late, _position(recordings, finding.place), finding.place.command):
                if src < dst:
                    yield from _made(trace, late, src, dst)
        if finding.prior_access == IMAGE_LAYOUT_TRANSITION.name:
            for dst in _subpasses(late, _position(recordings, finding.place), finding.place.command):
                yield from _made(trace, late, EXTERNAL, dst)
        if finding.access == IMAGE_LAYOUT_TRANSITION.name:
            for src in _subpasses(late, _position(recordings, finding.prior), finding.prior.command):
                yield from _made(trace, late, src, EXTERNAL)
        return
    if late is not None:
        for dst in _subpasses(late, _position(recordings, finding.place), finding.place.command):
            yield from _made(trace, late, EXTERNAL, dst)
    if early is not None:
        for src in _subpasses(early, _position(recordings, finding.prior), finding.prior.command):
            yield from _made(trace, early, src, EXTERNAL)


def _position(recordings: Recordings, place: Place) -> int:
    """Where a command is in its primary command buffer."""
    return recordings.in_primary(place.call - 1, place.executed_by[0] - 1 if place.executed_by else None)


def _instance(recordings: Recordings, place: Place) -> Instance | None:
    position = _position(recordings, place)
    recording = recordings.at(position)
    return recording.instance_at(position) if recording is not None else None


def _subpasses(instance: Instance, position: int, command: str) -> Sequence[int]:
    """The subpasses to which an access may belong. Those of vkCmdNextSubpass are of the one that ends, too, and those
    of vkCmdEndRenderPass are of the subpass that used an attachment last."""
    at = instance.subpass_at(position)
    if main_name(command).startswith("vkCmdNextSubpass"):
        return (at, at - 1)
    if main_name(command).startswith("vkCmdEndRender"):
        return range(len(instance.subpasses) - 1, -1, -1)
    return (at,)


def _made(trace: EditedTrace, instance: Instance, src: int, dst: int) -> Iterator[Ends]:
    if instance.render_pass is None:
        return
    for position in range(instance.begin - 1, -1, -1):
        block = trace.blocks[position]
        makes = isinstance(block, Call) and block.name.startswith("vkCreateRenderPass")
        if makes and block.args.get("pRenderPass") == instance.render_pass:  # type: ignore[union-attr]
            yield position, src, dst
            return


def with_subpass_dependency(
    trace: EditedTrace, ends: Ends, findings: Sequence[Finding], by_region: bool, add: bool
) -> EditedTrace | None:
    """Widens the dependency between two subpasses to what findings need; with `add` there is a new one where there is
    none. None where nothing changes."""
    position, src, dst = ends
    call = trace.call(position)
    more = Masks()
    for finding in findings:
        more |= after_waits(trace, finding)
    if not more.src_stages and src != EXTERNAL:
        more = replace(more, src_stages=_after_transitions(call, src))
    for one, other, site in subpass_sites(call):
        if (one, other) == (src, dst):
            args = site.with_masks(call.args, site.joined(call.args, more))
            return trace.changed(position, args) if args != call.args else None
    return trace.changed(position, _with_another(call, src, dst, more.first_form, by_region)) if add else None


def _after_transitions(call: Call, subpass: int) -> int:
    """The stages that come after the layout transitions at the begin of a subpass, by the dependencies to it."""
    stages = 0
    for _, dst, site in subpass_sites(call):
        if dst == subpass:
            stages |= site.masks(call.args).dst_stages
    return stages


def _with_another(call: Call, src: int, dst: int, masks: Masks, by_region: bool) -> dict[str, Any]:
    info = call.args["pCreateInfo"]
    made: dict[str, Any] = {"srcSubpass": src, "dstSubpass": dst}
    made |= {
        "srcStageMask": masks.src_stages or VkPipelineStage2.TOP_OF_PIPE,
        "dstStageMask": masks.dst_stages or VkPipelineStage2.BOTTOM_OF_PIPE,
        "srcAccessMask": masks.src_accesses,
        "dstAccessMask": masks.dst_accesses,
        "dependencyFlags": VkDependency.BY_REGION if by_region else 0,
    }
    if main_name(call.name) == "vkCreateRenderPass2":
        made = {"sType": VkStructureType.SUBPASS_DEPENDENCY_2, "pNext": None, **made, "viewOffset": 0}
    several = [*(info["pDependencies"] or ()), made]
    return {**call.args, "pCreateInfo": {**info, "dependencyCount": len(several), "pDependencies": several}}


def may_be_by_region(findings: Sequence[Finding]) -> bool:
    """Whether a dependency for these findings may hold by region: all its stages are framebuffer-space."""
    masks = Masks()
    for finding in findings:
        masks |= needed(finding)
    both = masks.src_stages | masks.dst_stages
    return bool(masks.src_stages and masks.dst_stages) and not both & ~FRAMEBUFFER_SPACE


def with_subpass_barrier(trace: EditedTrace, findings: Sequence[Finding]) -> EditedTrace | None:
    """Inserts barriers before the later commands, inside their subpass, and lets the render pass declare them.

    A render pass declares them by a dependency of the subpass on itself. Its stages are of graphics; where the first
    scope has a framebuffer-space stage, the second one has no other, and it holds by region ("VkSubpassDependency").
    None where a finding is not within one subpass.
    """
    made = trace
    for finding in sorted(findings, key=lambda each: -each.place.call):
        changed = _with_subpass_barrier(made, finding)
        if changed is None:
            return None
        made = changed
    return made if made is not trace else None


def _with_subpass_barrier(trace: EditedTrace, finding: Finding) -> EditedTrace | None:
    recordings = Recordings(trace.blocks)
    late, early = _instance(recordings, finding.place), _instance(recordings, finding.prior)
    at, before = _position(recordings, finding.place), _position(recordings, finding.prior)
    masks = needed(finding)
    if late is None or late is not early or not one_execution(finding) or not (masks.src_stages and masks.dst_stages):
        return None
    subpass = late.subpass_at(at)
    position = finding.place.call - 1
    is_begin = position in late.subpasses or finding.place.call > late.end
    if subpass != late.subpass_at(before) or is_begin or finding.prior.call > finding.place.call:
        return None
    local = bool(masks.src_stages & FRAMEBUFFER_SPACE)
    if (masks.src_stages | masks.dst_stages) & ~GRAPHICS or (local and masks.dst_stages & ~FRAMEBUFFER_SPACE):
        return None
    flags = VkDependency.BY_REGION if local else 0
    made = trace
    for create, src, dst in _made(trace, late, subpass, subpass):
        declared = next(
            (site for one, other, site in subpass_sites(trace.call(create)) if one == other == subpass), None
        )
        if declared is None:
            made = trace.changed(create, _with_another(trace.call(create), src, dst, masks.first_form, local))
        else:
            args = declared.with_masks(trace.call(create).args, declared.joined(trace.call(create).args, masks))
            made = trace.changed(create, args)
            flags = value_at(args, declared.stages).get("dependencyFlags", flags)
        recording = recordings.at(position)
        assert recording is not None
        barrier = BarrierCommand(recording.command_buffer, (BarrierEntry(masks),), flags)
        return made.inserted(position, [barrier.call(SECOND)])
    return None
