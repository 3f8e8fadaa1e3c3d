"""VkRenderPass as data, from either form of its create info, with the work that its subpasses do by themselves.

This work is layout transitions, load and store operations, and the implicit dependencies (specification: "Render Pass
Creation").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from vkharness.findings import Hazard, Place, UserError
from vkharness.spec.enums import (
    VK_SUBPASS_EXTERNAL,
    VkAttachmentDescription,
    VkDependency,
    VkImageAspect,
    VkImageLayout,
    VkResolveMode,
    VkStructureType,
)
from vkharness.spec.formats import format_of
from vkharness.spec.masks import scope
from vkharness.trace.chain import chained
from vkharness.trace.effects import EXTERNAL, Dependency, SubpassDependency
from vkharness.trace.render_passes import (
    ALL_VIEWS,
    AttachmentAspect,
    AttachmentAspectOperation,
    AttachmentDescription,
    AttachmentTransition,
    Reference,
    RenderPass,
    Subpass,
    SubpassWork,
    stored_as,
)
from vkharness.trace.usage_effects import InvalidUsage
from vkharness.trace.view_pairs import ViewPairs

ATTACHMENT_ACCESSES = scope(
    "NONE/INPUT_ATTACHMENT_READ|COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
    "|DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
)[1]
ALL_COMMANDS, ATTACHMENT_WRITES = scope("ALL_COMMANDS/COLOR_ATTACHMENT_WRITE|DEPTH_STENCIL_ATTACHMENT_WRITE")
READ_ONLY = {
    VkImageLayout.DEPTH_STENCIL_READ_ONLY_OPTIMAL,
    VkImageLayout.SHADER_READ_ONLY_OPTIMAL,
    VkImageLayout.DEPTH_READ_ONLY_OPTIMAL,
    VkImageLayout.DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL,
    VkImageLayout.READ_ONLY_OPTIMAL,
}
"""The layouts in which colour or depth of an attachment is read-only."""
READ_ONLY_STENCIL = READ_ONLY - {VkImageLayout.DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL} | {
    VkImageLayout.STENCIL_READ_ONLY_OPTIMAL,
    VkImageLayout.DEPTH_ATTACHMENT_STENCIL_READ_ONLY_OPTIMAL,
}
IMPLICIT_BEGIN = Dependency(0, 0, ALL_COMMANDS, ATTACHMENT_ACCESSES)
IMPLICIT_END = Dependency(ALL_COMMANDS, ATTACHMENT_WRITES, 0, 0)
"""The dependency of a transition without an explicit one from or to VK_SUBPASS_EXTERNAL ("VkSubpassDependency")."""


RESOLVED_LATER = "an attachment that is used before a resolve into it"


def make_render_pass(id: int, info: dict[str, Any], made: Place) -> RenderPass:
    """The render pass of a VkRenderPassCreateInfo or VkRenderPassCreateInfo2, and the call that makes it."""
    attachments = tuple(_description(each) for each in info["pAttachments"] or ())
    subpasses = subpasses_of(info)
    changes, final = _transitions(attachments, subpasses)
    work = _work(attachments, subpasses, changes)
    offsets = (chained(info, VkStructureType.RENDER_PASS_MULTIVIEW_CREATE_INFO) or {}).get("pViewOffsets") or ()
    everything = [
        _dependency(each, subpasses, offsets[at] if at < len(offsets) else 0)
        for at, each in enumerate(info["pDependencies"] or ())
    ]
    explicit = tuple(each for each in everything if max(each.src, each.dst) < len(subpasses))
    implicit = tuple(_implicit(explicit, work, final))
    unmodelled = ("a view offset between several views",) * any(map(_has_offset, explicit))
    unmodelled += (RESOLVED_LATER,) * _uses_what_it_resolves_later(subpasses)
    wrong = InvalidUsage(Hazard.PRESERVED_AND_USED, id, "VkRenderPass", made)
    misuses = (wrong,) if _preserves_what_it_uses(info, subpasses) else ()
    return RenderPass(id, attachments, subpasses, explicit + implicit, work, tuple(final), unmodelled, misuses)


def _uses_what_it_resolves_later(subpasses: tuple[Subpass, ...]) -> bool:
    """Whether a subpass uses an attachment, other than to resolve into it, that it or a later one resolves into.

    Such a target "may have its contents modified at any point once rendering begins". Specification: "Render Pass
    Multisample Resolve Operations". Rule: rules.md#resolves-at-the-end-of-rendering-are-colour-accesses.
    """
    targets: set[int] = set()
    for subpass in reversed(subpasses):
        several = (*subpass.resolves, subpass.depth_stencil_resolve)
        targets |= {each.attachment for each in several if each is not None}
        others = (*subpass.inputs, *subpass.colors, subpass.depth_stencil)
        if any(each is not None and each.attachment in targets for each in others):
            return True
    return False


def _description(info: dict[str, Any]) -> AttachmentDescription:
    try:
        aspects = format_of(info["format"]).aspects
    except UserError:
        aspects = VkImageAspect.COLOR  # an external format: colour
    stencil = chained(info, VkStructureType.ATTACHMENT_DESCRIPTION_STENCIL_LAYOUT)
    layouts = (info["initialLayout"], info["finalLayout"])
    stencil_layouts = (stencil["stencilInitialLayout"], stencil["stencilFinalLayout"]) if stencil else layouts
    parts = []
    if not aspects & (VkImageAspect.DEPTH | VkImageAspect.STENCIL):
        parts.append(AttachmentAspect(VkImageAspect.COLOR, info["loadOp"], info["storeOp"], *layouts))
    if aspects & VkImageAspect.DEPTH:
        parts.append(AttachmentAspect(VkImageAspect.DEPTH, info["loadOp"], info["storeOp"], *layouts))
    if aspects & VkImageAspect.STENCIL:
        parts.append(
            AttachmentAspect(VkImageAspect.STENCIL, info["stencilLoadOp"], info["stencilStoreOp"], *stencil_layouts)
        )
    return AttachmentDescription(info["format"], tuple(parts), bool(info["flags"] & VkAttachmentDescription.MAY_ALIAS))


def subpasses_of(info: dict[str, Any]) -> tuple[Subpass, ...]:
    """The subpasses of a VkRenderPassCreateInfo, to which the view masks are chained, or a VkRenderPassCreateInfo2.

    A render pass has multiview when any of its subpasses names a view.
    """
    several, attachments = info["pSubpasses"] or (), len(info["pAttachments"] or ())
    chain = chained(info, VkStructureType.RENDER_PASS_MULTIVIEW_CREATE_INFO)
    masks = list((chain or {}).get("pViewMasks") or ())
    masks = [each.get("viewMask", masks[at] if at < len(masks) else 0) for at, each in enumerate(several)]
    aspects = {
        (each["subpass"], each["inputAttachmentIndex"]): each["aspectMask"]
        for each in (chained(info, VkStructureType.RENDER_PASS_INPUT_ATTACHMENT_ASPECT_CREATE_INFO) or {}).get(
            "pAspectReferences"
        )
        or ()
    }
    density = (chained(info, VkStructureType.RENDER_PASS_FRAGMENT_DENSITY_MAP_CREATE_INFO_EXT) or {}).get(
        "fragmentDensityMapAttachment"
    )
    return tuple(
        _subpass(each, attachments, masks[at] if any(masks) else ALL_VIEWS, at, aspects, density)
        for at, each in enumerate(several)
    )


def _subpass(
    info: dict[str, Any],
    attachments: int,
    views: int,
    index: int,
    aspects: dict[tuple[int, int], int],
    density: dict[str, Any] | None,
) -> Subpass:
    def refer(reference: dict[str, Any] | None, chosen: int = 0) -> Reference | None:
        if reference is None or not 0 <= reference["attachment"] < attachments:
            return None  # VK_ATTACHMENT_UNUSED, or out of range
        stencil = chained(reference, VkStructureType.ATTACHMENT_REFERENCE_STENCIL_LAYOUT)
        layout = reference["layout"]
        return Reference(
            reference["attachment"],
            layout,
            stencil["stencilLayout"] if stencil else layout,
            chosen or reference.get("aspectMask") or 0,
        )

    inputs = [refer(each, aspects.get((index, at), 0)) for at, each in enumerate(info["pInputAttachments"] or ())]
    resolve = chained(info, VkStructureType.SUBPASS_DESCRIPTION_DEPTH_STENCIL_RESOLVE) or {}
    rate = chained(info, VkStructureType.FRAGMENT_SHADING_RATE_ATTACHMENT_INFO_KHR) or {}
    texel = rate.get("shadingRateAttachmentTexelSize") or {"width": 1, "height": 1}
    return Subpass(
        inputs=tuple(inputs),
        colors=tuple(refer(each) for each in info["pColorAttachments"] or ()),
        resolves=tuple(refer(each) for each in info["pResolveAttachments"] or ()),
        depth_stencil=refer(info["pDepthStencilAttachment"]),
        depth_stencil_resolve=refer(resolve.get("pDepthStencilResolveAttachment")),
        depth_resolve_mode=resolve.get("depthResolveMode", VkResolveMode.NONE),
        stencil_resolve_mode=resolve.get("stencilResolveMode", VkResolveMode.NONE),
        view_mask=views,
        rate=refer(rate.get("pFragmentShadingRateAttachment")),
        rate_texel=(texel["width"], texel["height"]),
        density=refer(density),
    )


def _dependency(info: dict[str, Any], subpasses: tuple[Subpass, ...], offset: int) -> SubpassDependency:
    """A VkSubpassDependency(2). A chained VkMemoryBarrier2 replaces its masks."""
    masks = chained(info, VkStructureType.MEMORY_BARRIER_2) or info
    flags, src, dst = info.get("dependencyFlags", 0), _end(info["srcSubpass"]), _end(info["dstSubpass"])
    views = None
    if flags & VkDependency.VIEW_LOCAL and 0 <= src < len(subpasses) and 0 <= dst < len(subpasses):
        offset = info.get("viewOffset", offset)
        views = ViewPairs(subpasses[src].view_mask, subpasses[dst].view_mask, offset)
    return SubpassDependency(
        src,
        dst,
        Dependency(masks["srcStageMask"], masks["srcAccessMask"], masks["dstStageMask"], masks["dstAccessMask"]),
        by_region=bool(flags & VkDependency.BY_REGION),
        device_group=bool(flags & VkDependency.DEVICE_GROUP),
        views=views if views is not None and ALL_VIEWS not in (views.src, views.dst) else None,
    )


def _has_offset(each: SubpassDependency) -> bool:
    """Whether views with different numbers depend on each other, in subpasses with several: accesses name no view."""
    views = each.views
    return views is not None and views.offset != 0 and max(views.src.bit_count(), views.dst.bit_count()) > 1


def _end(subpass: int) -> int:
    return EXTERNAL if subpass == VK_SUBPASS_EXTERNAL else subpass


def _work(
    attachments: tuple[AttachmentDescription, ...],
    subpasses: tuple[Subpass, ...],
    changes: list[list[AttachmentTransition]],
) -> tuple[SubpassWork, ...]:
    """Transitions and loads where an attachment is used first, and stores where it is used last.

    With multiview the loads and stores go by view (rules.md#each-view-is-a-layer-of-its-own).
    """
    uses = [{each.attachment for each in subpass.drawn} for subpass in subpasses]
    loads = _first_uses(attachments, subpasses, uses, range(len(subpasses)), store=False)
    stores = _first_uses(attachments, subpasses, uses, range(len(subpasses) - 1, -1, -1), store=True)
    return tuple(SubpassWork(tuple(changes[at]), loads[at], stores[at]) for at in range(len(subpasses)))


def _first_uses(
    attachments: tuple[AttachmentDescription, ...],
    subpasses: tuple[Subpass, ...],
    uses: list[set[int]],
    order: range,
    store: bool,
) -> dict[int, tuple[AttachmentAspectOperation, ...]]:
    """For each subpass, the operations of the views that no subpass earlier in `order` has used."""
    seen: dict[int, int] = {}
    found = {}
    for index in order:
        operations = []
        for at in sorted(uses[index]):
            views = subpasses[index].view_mask
            fresh = views & ~seen.get(at, 0)
            seen[at] = seen.get(at, 0) | views
            if fresh:
                operations += [
                    AttachmentAspectOperation(
                        at, part.aspect, stored_as(part.load, part.store) if store else part.load, fresh
                    )
                    for part in attachments[at].parts
                ]
        found[index] = tuple(operations)
    return found


def _layout(reference: Reference, aspect: int) -> int:
    return reference.stencil_layout if aspect == VkImageAspect.STENCIL else reference.layout


def _transitions(
    attachments: tuple[AttachmentDescription, ...], subpasses: tuple[Subpass, ...]
) -> tuple[list[list[AttachmentTransition]], list[AttachmentTransition]]:
    """The transitions at the begin of each subpass, and those at the end of the instance.

    Attachments that no subpass uses have one at the end, too.
    """
    now = _initial(attachments)
    since: dict[tuple[int, int], list[int]] = {key: [] for key in now}
    """The subpasses that used an aspect of an attachment since its last transition."""
    users = {at: tuple(i for i, each in enumerate(subpasses) if each.uses(at)) for at in range(len(attachments))}
    changes: list[list[tuple[AttachmentTransition, list[int]]]] = []
    for index, subpass in enumerate(subpasses):
        wanted: dict[tuple[int, int], int] = {}
        for each in subpass.references:
            for part in attachments[each.attachment].parts:
                wanted.setdefault((each.attachment, part.aspect), _layout(each, part.aspect))
        moves = []
        for (at, aspect), new in wanted.items():
            old, earlier = now[at, aspect], since[at, aspect]
            if old != new and not (earlier and _are_read_only(aspect, old, new)):
                since[at, aspect] = []
                move = AttachmentTransition(at, aspect, old, new, tuple(earlier), users[at])
                moves.append((move, since[at, aspect]))
            since[at, aspect].append(index)
        changes.append(moves)
        now.update(wanted)
    ends = (
        AttachmentTransition(at, part.aspect, now[at, part.aspect], part.final_layout, tuple(earlier), users[at])
        for at, attachment in enumerate(attachments)
        for part in attachment.parts
        for earlier in (since[at, part.aspect],)
    )
    begins = [_joined(replace(move, later=tuple(several[1:])) for move, several in moves) for moves in changes]
    return begins, _joined(each for each in ends if each.old != each.new)


def _initial(attachments: tuple[AttachmentDescription, ...]) -> dict[tuple[int, int], int]:
    return {(at, part.aspect): part.initial_layout for at, each in enumerate(attachments) for part in each.parts}


def _are_read_only(aspect: int, old: int, new: int) -> bool:
    """Whether an aspect is read-only in both layouts. From one subpass to another the implementation orders such a
    transition, if it makes any. Rule: rules.md#read-only-layouts-need-no-dependency."""
    return {old, new} <= (READ_ONLY_STENCIL if aspect == VkImageAspect.STENCIL else READ_ONLY)


def _joined(moves: Iterable[AttachmentTransition]) -> list[AttachmentTransition]:
    """The same transitions, with equal ones of depth and stencil as a single one."""
    found: dict[AttachmentTransition, int] = {}
    for each in moves:
        key = replace(each, aspects=0)
        found[key] = found.get(key, 0) | each.aspects
    return [replace(key, aspects=aspects) for key, aspects in found.items()]


def _implicit(
    explicit: tuple[SubpassDependency, ...], work: tuple[SubpassWork, ...], final: Iterable[AttachmentTransition]
) -> Iterator[SubpassDependency]:
    """The implicit dependencies, from EXTERNAL to the first subpass that uses an attachment, and from the last one to
    EXTERNAL.

    They exist where an automatic transition leaves the initial layout or enters the final layout, and no explicit
    dependency does the same.
    """
    entered = {each.dst for each in explicit if each.src == EXTERNAL}
    left = {each.src for each in explicit if each.dst == EXTERNAL}
    for index, each in enumerate(work):
        if index not in entered and any(change.users[0] == index for change in each.changes):
            yield SubpassDependency(EXTERNAL, index, IMPLICIT_BEGIN)
    for last in sorted({change.users[-1] for change in final if change.users} - left):
        yield SubpassDependency(last, EXTERNAL, IMPLICIT_END)


def _preserves_what_it_uses(info: dict[str, Any], subpasses: tuple[Subpass, ...]) -> bool:
    """Whether a subpass preserves an attachment that it also uses, which stays used.

    Rule: rules.md#preserved-attachments-are-not-used.
    """
    return any(
        subpass.uses(at)
        for each, subpass in zip(info["pSubpasses"] or (), subpasses, strict=True)
        for at in each["pPreserveAttachments"] or ()
    )
