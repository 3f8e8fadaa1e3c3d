"""Render passes and framebuffers, and the instances that command buffers begin, advance and end.

Specification: "Render Pass Commands"; rules.md#subpass.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.rendering import store_none
from vkharness.commands.rendering.attachments import area_of, find_attachment
from vkharness.commands.rendering.fragment_reads import DYNAMIC, READ_BY_THE_HOST
from vkharness.commands.rendering.render_pass_instance import PassInstance, instance
from vkharness.commands.rendering.render_pass_plan import make_render_pass
from vkharness.findings import Place
from vkharness.spec.enums import VkFramebufferCreate, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import Effect, PassBegin, StreamEvent, Unmodelled
from vkharness.trace.render_passes import Framebuffer, RenderPass
from vkharness.trace.resources import ImageView

MOST_INSTANCES = 16
"""The most ways to begin an instance that a framebuffer remembers."""


@call("vkCreateRenderPass", "vkCreateRenderPass2")
def create_render_pass(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a render pass, with the plan of its subpasses."""
    made = Place(call.index, call.name, call.site)
    objects.add(make_render_pass(call.args["pRenderPass"], call.args["pCreateInfo"], made))
    return ()


@call("vkCreateFramebuffer")
def create_framebuffer(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a framebuffer. An imageless framebuffer gets its image views when a render pass instance begins."""
    info = call.args["pCreateInfo"]
    views = None if info["flags"] & VkFramebufferCreate.IMAGELESS else tuple(info["pAttachments"] or ())
    id = call.args["pFramebuffer"]
    objects.add(Framebuffer(id, views, (info["width"], info["height"]), info["layers"]))
    return ()


@call("vkDestroyRenderPass", "vkDestroyFramebuffer")
def destroy(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes a render pass or framebuffer. It has no addresses, and recorded instances stay as they are."""
    objects.remove(call.args.get("renderPass") or call.args.get("framebuffer") or 0)
    return ()


@command("vkCmdBeginRenderPass", "vkCmdBeginRenderPass2")
def begin_render_pass(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Begins an instance and its first subpass."""
    info = args["pRenderPassBegin"]
    render_pass = objects.get(RenderPass, info["renderPass"])
    framebuffer = objects.get(Framebuffer, info["framebuffer"])
    buffer.rendering = None
    if render_pass is None or framebuffer is None or not render_pass.subpasses:
        return (Unmodelled("a render pass or framebuffer that was not seen"),)
    views = framebuffer.views
    if views is None:
        views = tuple(
            (chained(info, VkStructureType.RENDER_PASS_ATTACHMENT_BEGIN_INFO) or {}).get("pAttachments") or ()
        )
    area = area_of(info["renderArea"])
    key = (render_pass.id, views, area)
    first = framebuffer.instances.get(key)
    named: list[Effect] = [*render_pass.misuses, *map(Unmodelled, render_pass.unmodelled)]
    if first is None:
        several = range(len(render_pass.attachments))
        attachments = tuple(find_attachment(objects, views[at]) if at < len(views) else None for at in several)
        first = instance(PassInstance(render_pass, attachments, framebuffer.layers, area), objects.aliasing)
        if None in attachments:
            named.append(Unmodelled("an attachment that was not seen"))
        else:
            if len(framebuffer.instances) >= MOST_INSTANCES:
                framebuffer.instances.clear()
            framebuffer.instances[key] = first
    maps = {each.density.attachment for each in render_pass.subpasses if each.density is not None}
    for view in [objects.get(ImageView, views[at]) for at in maps if at < len(views)]:
        if view is not None and not view.flags & DYNAMIC:
            named.append(Unmodelled(READ_BY_THE_HOST))
    buffer.rendering = first
    store_none.begin(buffer)
    return (*named, PassBegin(len(render_pass.subpasses), render_pass.dependencies), *first.at_begin)


@command("vkCmdNextSubpass", "vkCmdNextSubpass2")
def next_subpass(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Resolves and stores of the current subpass, then transitions and loads of the next."""
    ended = buffer.rendering
    if ended is None or ended.following is None:
        return (Unmodelled("the next subpass of a render pass instance that was not seen"),)
    buffer.rendering = ended.following
    return (*ended.at_end, *store_none.stores(buffer, ended), *ended.following.at_begin)


@command("vkCmdEndRenderPass", "vkCmdEndRenderPass2")
def end_render_pass(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Resolves and stores of the last subpass, then the transition of every attachment to its final layout."""
    ended, buffer.rendering = buffer.rendering, None
    if ended is None or ended.end is None:
        return (Unmodelled("the end of a render pass instance that was not seen"),)
    return (*ended.at_end, *store_none.stores(buffer, ended), ended.end)
