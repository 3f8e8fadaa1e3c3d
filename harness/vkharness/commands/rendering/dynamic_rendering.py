"""Dynamic rendering, and clears of attachments inside any render pass instance.

Specification: "Dynamic Rendering Commands", "Clearing Images Inside a Render Pass Instance";
rules.md#clears-of-attachments-are-draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from vkharness.commands.drawing.dynamic_state import forget_locations
from vkharness.commands.handlers import command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.rendering import store_none
from vkharness.commands.rendering.attachments import area_of, clear, find_attachment, load, resolve, store
from vkharness.commands.rendering.fragment_reads import DYNAMIC, READ_BY_THE_HOST, density_reads, rate_reads
from vkharness.commands.rendering.other_aspect import Operation, with_rewrites
from vkharness.spans import merge
from vkharness.spec.enums import (
    VkAttachmentStoreOp,
    VkImageAspect,
    VkImageLayout,
    VkRendering,
    VkResolveMode,
    VkStructureType,
)
from vkharness.trace.chain import chained
from vkharness.trace.effects import Access, Command, Effect, RenderingBegin, Unmodelled
from vkharness.trace.graphics_state import Targets
from vkharness.trace.inherited import InheritedClear
from vkharness.trace.render_passes import ALL_VIEWS, stored_as
from vkharness.trace.rendering_state import Area, Attachment, RenderingState, layers_of

Rects = tuple[tuple[int, int, int, int, int, int], ...]
"""x, y, width, height in texels, first layer, layers."""


@command("vkCmdBeginRendering")
def begin_rendering(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Loads the attachments, unless rendering resumes. Prepares the resolves and stores of the end,
    unless it suspends."""
    info = args["pRenderingInfo"]
    area = area_of(info["renderArea"])
    layers = layers_of(info["viewMask"] or ALL_VIEWS, info["layerCount"])
    uses = [(each, VkImageAspect.COLOR) for each in info["pColorAttachments"] or ()]
    uses += [(info["pDepthAttachment"], VkImageAspect.DEPTH), (info["pStencilAttachment"], VkImageAspect.STENCIL)]
    attached = [_attachment(objects, each, aspect) for each, aspect in uses]
    loads: list[Operation] = []
    at_end: list[Operation] = []
    if_written: list[tuple[Access, ...]] = []
    store_none.begin(buffer, bool(info["flags"] & VkRendering.RESUMING))
    forget_locations(buffer.drawing)
    if not info["flags"] & VkRendering.RESUMING:
        yield RenderingBegin()
    for (each, aspect), attachment in zip(uses, attached, strict=True):
        if attachment is None:
            if each and each["imageView"]:
                yield Unmodelled("an attachment that was not seen")
            continue
        if not info["flags"] & VkRendering.RESUMING:
            loads += ((attachment, one, layers) for one in load(attachment, each["loadOp"], layers, area))
        if not info["flags"] & VkRendering.SUSPENDING:
            at_end += _resolved(objects, attachment, each, aspect, layers, area)
            stored = stored_as(each["loadOp"], each["storeOp"])
            made = [(attachment, one, layers) for one in store(attachment, layers, area)]
            if stored != VkAttachmentStoreOp.NONE:
                at_end += made
            elif made:
                if_written.append(tuple(with_rewrites(made)))
    yield from with_rewrites(loads)
    for what in _extras(objects, info):
        yield Unmodelled(what)
    colors, (depth, stencil) = attached[:-2], attached[-2:]
    buffer.rendering = RenderingState(
        area,
        layers,
        info["viewMask"],
        tuple(colors),
        depth,
        stencil,
        at_end=tuple(with_rewrites(at_end)),
        stores_if_written=tuple(if_written),
        read_by_fragments=tuple(_fragment_reads(objects, info, layers, area)),
        suspends=bool(info["flags"] & VkRendering.SUSPENDING),
    )


@command("vkCmdEndRendering", "vkCmdEndRendering2KHR")
def end_rendering(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Resolves and stores the attachments."""
    rendering, buffer.rendering = buffer.rendering, None
    if rendering is None or rendering.end is not None:
        return (Unmodelled("the end of rendering whose beginning was not seen"),)
    buffer.suspended = rendering.suspends
    return (*rendering.at_end, *store_none.stores(buffer, rendering))


def _attachment(objects: ObjectState, info: dict[str, Any] | None, aspect: int) -> Attachment | None:
    """The attachment of a VkRenderingAttachmentInfo, for depth or stencil alone; None without an image view."""
    attachment = find_attachment(objects, info["imageView"], aspect) if info is not None else None
    if info is None or attachment is None:
        return None
    chain = chained(info, VkStructureType.ATTACHMENT_FEEDBACK_LOOP_INFO_EXT) or {}
    enabled = info["imageLayout"] == VkImageLayout.ATTACHMENT_FEEDBACK_LOOP_OPTIMAL_EXT
    return replace(attachment, feedback_loop=True) if enabled or chain.get("feedbackLoopEnable") else attachment


def _resolved(
    objects: ObjectState, source: Attachment, info: dict[str, Any], aspect: int, layers: Sequence[int], area: Area
) -> Iterator[Operation]:
    if info["resolveMode"] != VkResolveMode.NONE:
        target = find_attachment(objects, info["resolveImageView"], aspect)
        if target is not None:
            yield from ((target, one, layers) for one in resolve(source, target, layers, area))


def _fragment_reads(objects: ObjectState, info: dict[str, Any], layers: Sequence[int], area: Area) -> Iterator[Access]:
    """Yields the reads of a fragment shading rate attachment and of a fragment density map by draws."""
    held = chained(info, VkStructureType.RENDERING_FRAGMENT_SHADING_RATE_ATTACHMENT_INFO_KHR) or {}
    rate, density = find_attachment(objects, held.get("imageView", 0)), _density(objects, info)
    if rate is not None:
        size = held["shadingRateAttachmentTexelSize"]
        yield from rate_reads(rate, (size["width"], size["height"]), layers, area)
    if density is not None:
        yield from density_reads(density, layers)


def _density(objects: ObjectState, info: dict[str, Any]) -> Attachment | None:
    """The fragment density map."""
    held = chained(info, VkStructureType.RENDERING_FRAGMENT_DENSITY_MAP_ATTACHMENT_INFO_EXT) or {}
    return find_attachment(objects, held.get("imageView", 0))


def _extras(objects: ObjectState, info: dict[str, Any]) -> Iterator[str]:
    """Names of accesses beyond attachments that are not modelled."""
    density = _density(objects, info)
    if density is not None and not density.view.flags & DYNAMIC:
        yield READ_BY_THE_HOST


@command("vkCmdClearAttachments")
def clear_attachments(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes the rectangles, in the aspects that both the clear and the attachment have. Unused attachments are
    skipped.

    With multiview every view of the mask is cleared ("VkClearRect": baseArrayLayer 0, layerCount 1).
    """
    clears = tuple((each["aspectMask"], each["colorAttachment"]) for each in args["pAttachments"] or ())
    rects = tuple((*area_of(each["rect"]), each["baseArrayLayer"], each["layerCount"]) for each in args["pRects"] or ())
    if buffer.inheritance is not None:
        return (InheritedClear(Targets(), clears=clears, rects=rects),)
    return _clear_all(buffer.rendering, clears, rects)


def inherited_clears(commands: Iterable[Command], rendering: RenderingState) -> tuple[Command, ...]:
    """The commands of a secondary with the clears of the render pass instance in which it is executed."""
    return tuple(
        command.with_effects(tuple(_resolve_clears(command.effects, rendering)))
        if any(isinstance(effect, InheritedClear) for effect in command.effects)
        else command
        for command in commands
    )


def _resolve_clears(effects: Iterable[Effect], rendering: RenderingState) -> Iterator[Effect]:
    for effect in effects:
        if isinstance(effect, InheritedClear):
            yield from _clear_all(rendering, effect.clears, effect.rects)
        else:
            yield effect


def _clear_all(rendering: RenderingState | None, clears: Iterable[tuple[int, int]], rects: Rects) -> tuple[Effect, ...]:
    if rendering is None:
        return (Unmodelled("a clear of attachments that were not seen"),)
    return tuple(
        one
        for aspects, index in clears
        for attachment in _cleared(rendering, aspects, index)
        for one in _clear(rendering, attachment, rects)
    )


def _cleared(rendering: RenderingState, aspects: int, index: int) -> Iterator[Attachment]:
    chosen = [
        (VkImageAspect.COLOR, rendering.colors[index] if index < len(rendering.colors) else None),
        (VkImageAspect.DEPTH, rendering.depth),
        (VkImageAspect.STENCIL, rendering.stencil),
    ]
    for aspect, attachment in chosen:
        if aspects & aspect and attachment is not None:
            yield attachment


def _clear(rendering: RenderingState, attachment: Attachment, rects: Rects) -> Iterator[Access]:
    """One access of all rectangles in each stage, since rectangles of one command may overlap."""
    made: dict[int, list[Access]] = {}
    for x, y, width, height, first, count in rects:
        layers = rendering.layers if rendering.view_mask else range(first, first + count)
        for one in clear(attachment, layers, (x, y, width, height)):
            made.setdefault(one.access_kind, []).append(one)
    for several in made.values():
        yield replace(several[0], spans=tuple(merge([span for one in several for span in one.spans])))
