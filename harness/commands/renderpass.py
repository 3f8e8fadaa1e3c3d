"""Render passes and framebuffers: creation, and the instances that command buffers begin, advance and end
(specification: "Render Pass Commands"; SYNC_RULES 2.8)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from harness.commands.attachments import Attachment, area_of, find_attachment, load, resolve, store
from harness.commands.descriptors import chained
from harness.commands.objects import CommandBuffer, Objects
from harness.commands.registry import call, command
from harness.commands.rendering_state import PassInstance, Rendering
from harness.commands.renderpass_plan import make_render_pass
from harness.trace.calls import Call
from harness.trace.effects import (
    Access,
    Effect,
    Occurrence,
    PassBegin,
    PassEnd,
    SubpassBegin,
    Transition,
    Unmodelled,
)
from harness.trace.rendering import (
    ALL_VIEWS,
    RESOLVE_MODE_NONE,
    Framebuffer,
    LayoutChange,
    PartOperation,
    Reference,
    RenderPass,
    Subpass,
)
from harness.trace.resources import DEPTH, STENCIL

IMAGELESS = 1
"""VK_FRAMEBUFFER_CREATE_IMAGELESS_BIT."""
ATTACHMENT_BEGIN_INFO = 1000108003


@call("vkCreateRenderPass", "vkCreateRenderPass2")
def create_render_pass(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Keeps it, with the work of its subpasses laid out once."""
    objects.add(make_render_pass(call.args["pRenderPass"], call.args["pCreateInfo"]))
    return ()


@call("vkCreateFramebuffer")
def create_framebuffer(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """An imageless one gets its image views when a render pass instance begins."""
    info = call.args["pCreateInfo"]
    views = None if info["flags"] & IMAGELESS else tuple(info["pAttachments"] or ())
    id = call.args["pFramebuffer"]
    objects.add(Framebuffer(id, views, (info["width"], info["height"]), info["layers"]))
    return ()


@call("vkDestroyRenderPass", "vkDestroyFramebuffer")
def destroy(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """They have no addresses; instances that were recorded stay resolved."""
    objects.remove(call.args.get("renderPass") or call.args.get("framebuffer") or 0)
    return ()


@command("vkCmdBeginRenderPass", "vkCmdBeginRenderPass2")
def begin_render_pass(objects: Objects, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """The instance begins, and its first subpass."""
    info = args["pRenderPassBegin"]
    render_pass = objects.get(RenderPass, info["renderPass"])
    framebuffer = objects.get(Framebuffer, info["framebuffer"])
    if render_pass is None or framebuffer is None or not render_pass.subpasses:
        buffer.rendering = None
        yield Unmodelled("a render pass or framebuffer that was not seen")
        return
    views = framebuffer.views
    if views is None:
        views = tuple((chained(info, ATTACHMENT_BEGIN_INFO) or {}).get("pAttachments") or ())
    attachments = tuple(
        find_attachment(objects, views[at]) if at < len(views) else None for at in range(len(render_pass.attachments))
    )
    for what in render_pass.unmodelled:
        yield Unmodelled(what)
    if None in attachments:
        yield Unmodelled("an attachment that was not seen")
    instance = PassInstance(render_pass, attachments, framebuffer.layers, area_of(info["renderArea"]), 0)
    yield PassBegin(len(render_pass.subpasses), render_pass.dependencies)
    yield from _begin_subpass(buffer, instance)


@command("vkCmdNextSubpass", "vkCmdNextSubpass2")
def next_subpass(objects: Objects, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """The current subpass resolves and stores, the next one transitions and loads."""
    instance = buffer.rendering.instance if buffer.rendering is not None else None
    if instance is None or instance.subpass + 1 >= len(instance.render_pass.subpasses):
        yield Unmodelled("the next subpass of a render pass instance that was not seen")
        return
    yield from _end_subpass(instance)
    yield from _begin_subpass(buffer, replace(instance, subpass=instance.subpass + 1))


@command("vkCmdEndRenderPass", "vkCmdEndRenderPass2")
def end_render_pass(objects: Objects, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """The last subpass resolves and stores, then every attachment goes into its final layout."""
    instance = buffer.rendering.instance if buffer.rendering is not None else None
    buffer.rendering = None
    if instance is None:
        return (Unmodelled("the end of a render pass instance that was not seen"),)
    final = [(made, last) for change, last in instance.render_pass.final for made in _transitions(instance, [change])]
    end = PassEnd(tuple(made for made, _ in final), tuple(last for _, last in final))
    return (*_end_subpass(instance), end)


def _begin_subpass(buffer: CommandBuffer, instance: PassInstance) -> Iterator[Effect]:
    work = instance.render_pass.work[instance.subpass]
    yield SubpassBegin(instance.subpass, tuple(_transitions(instance, work.changes)))
    for each, attachment in _present(instance, work.loads):
        yield from load(attachment, each.operation, instance.layers_of(each.views), instance.area)
    buffer.rendering = subpass_rendering(instance)


def _end_subpass(instance: PassInstance) -> Iterator[Effect]:
    """Resolves come before stores: a resolve attachment is stored as resolved."""
    yield from _resolves(instance)
    for each, attachment in _present(instance, instance.render_pass.work[instance.subpass].stores):
        yield from store(attachment, each.operation, instance.layers_of(each.views), instance.area)


def _present(instance: PassInstance, operations: Iterable[PartOperation]) -> Iterator[tuple[PartOperation, Attachment]]:
    for each in operations:
        attachment = instance.attachments[each.attachment]
        if attachment is not None:
            yield each, attachment.only(each.aspect)


def _transitions(instance: PassInstance, changes: Iterable[LayoutChange]) -> Iterator[Transition]:
    """Whole layers of a view: as many as the framebuffer has, or those of the views that any subpass uses."""
    layers = instance.layers_of(instance.render_pass.views)
    for change in changes:
        attachment = instance.attachments[change.attachment]
        if attachment is not None:
            spans = attachment.only(change.aspects).subresources(layers)
            image = attachment.image.id
            yield Transition(image, image, spans, change.old, change.new)


def _resolves(instance: PassInstance) -> Iterator[Access]:
    subpass = instance.render_pass.subpasses[instance.subpass]
    layers = instance.layers_of(subpass.view_mask)
    for reference, target in zip(subpass.colors, subpass.resolves, strict=False):
        read, written = _attached(instance, reference), _attached(instance, target)
        if read is not None and written is not None:
            yield from resolve(read, written, layers, instance.area)
    modes = ((DEPTH, subpass.depth_resolve_mode), (STENCIL, subpass.stencil_resolve_mode))
    for aspect, mode in modes:
        read = _attached(instance, subpass.depth_stencil, aspect)
        written = _attached(instance, subpass.depth_stencil_resolve, aspect)
        if mode != RESOLVE_MODE_NONE and read is not None and written is not None:
            yield from resolve(read, written, layers, instance.area)


def _attached(instance: PassInstance, reference: Reference | None, aspects: int = 0) -> Attachment | None:
    """The attachment that a reference names; None when it is unused or lacks the aspects asked for."""
    attachment = instance.attachments[reference.attachment] if reference is not None else None
    if attachment is None or not aspects:
        return attachment
    chosen = attachment.only(aspects)
    return chosen if chosen.aspects and not chosen.is_color else None


def subpass_rendering(instance: PassInstance) -> Rendering:
    """What is bound in the current subpass of an instance."""
    subpass: Subpass = instance.render_pass.subpasses[instance.subpass]
    inputs = []
    for each in subpass.inputs:
        attachment = _attached(instance, each)
        inputs.append(attachment.only(each.aspects) if attachment and each and each.aspects else attachment)
    return Rendering(
        area=instance.area,
        layers=instance.layers_of(subpass.view_mask),
        view_mask=0 if subpass.view_mask == ALL_VIEWS else subpass.view_mask,
        colors=tuple(_attached(instance, each) for each in subpass.colors),
        depth=_attached(instance, subpass.depth_stencil, DEPTH),
        stencil=_attached(instance, subpass.depth_stencil, STENCIL),
        inputs=tuple(inputs),
        instance=instance,
    )


def inherited(objects: Objects, info: dict[str, Any]) -> Rendering | None:
    """What a secondary command buffer that continues a render pass instance renders to, from its
    VkCommandBufferInheritanceInfo. None when it names no framebuffer (or an imageless one): the attachments are then
    known only where it is executed. The render area is that of the framebuffer."""
    render_pass = objects.get(RenderPass, info["renderPass"])
    framebuffer = objects.get(Framebuffer, info["framebuffer"])
    if render_pass is None or framebuffer is None or framebuffer.views is None:
        return None
    if info["subpass"] >= len(render_pass.subpasses):
        return None
    attachments = tuple(find_attachment(objects, view) for view in framebuffer.views)
    if len(attachments) < len(render_pass.attachments):
        return None
    area = (0, 0, *framebuffer.extent)
    return subpass_rendering(PassInstance(render_pass, attachments, framebuffer.layers, area, info["subpass"]))
