"""Render pass instances: what load, store and resolve operations, layout transitions and clears leave in attachments.

Specification: "Render Pass Load Operations", "Render Pass Store Operations", "Render Pass Multisample Resolve
Operations", "Automatic Layout Transitions", "Clearing Images Inside a Render Pass RenderingInstance".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vkharness.commands.interpret import Interpreter
from vkharness.commands.rendering.attachments import area_of, find_attachment
from vkharness.computed.attachment_texels import clear_area, resolve_area, undefine_area
from vkharness.computed.followed_transfers import KnownContents
from vkharness.findings import UserError
from vkharness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING, NEXT_SUBPASS, RENDERING_OBJECTS
from vkharness.spec.enums import (
    VkAttachmentLoadOp,
    VkAttachmentStoreOp,
    VkImageAspect,
    VkImageLayout,
    VkRendering,
    VkResolveMode,
    VkStructureType,
)
from vkharness.spec.formats import Format, format_of
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.render_passes import ALL_VIEWS, Framebuffer, Reference, RenderPass, stored_as
from vkharness.trace.rendering_state import Area, Attachment, layers_of

NO_WORDS = (0, 0, 0, 0)
UNFOLLOWED_PARTS = (
    VkStructureType.RENDERING_FRAGMENT_DENSITY_MAP_ATTACHMENT_INFO_EXT,
    VkStructureType.MULTISAMPLED_RENDER_TO_SINGLE_SAMPLED_INFO_EXT,
    VkStructureType.DEVICE_GROUP_RENDER_PASS_BEGIN_INFO,
)
"""Structures in the chain of a begin with which attachments hold something else."""


@dataclass(frozen=True, slots=True)
class StoreOperation:
    """A VkAttachmentStoreOp that is due."""

    attachment: Attachment
    operation: int
    layers: Sequence[int]


@dataclass(slots=True)
class RenderingInstance:
    """A render pass instance in progress, in its current subpass."""

    area: Area
    layers: Sequence[int] = ()
    """The layers that draws and clears write: those of the framebuffer, or the views of the subpass."""
    has_views: bool = False
    colors: list[Attachment | None] = field(default_factory=list)
    depth: Attachment | None = None
    stencil: Attachment | None = None
    resolves: list[tuple[Attachment, Attachment]] = field(default_factory=list)
    stores: list[StoreOperation] = field(default_factory=list)
    attachments: list[Attachment | None] = field(default_factory=list)
    """By index, for a VkRenderPass."""
    render_pass: RenderPass | None = None
    framebuffer_layers: int = 1
    subpass: int = 0
    clear_values: Sequence[dict[str, Any]] = ()
    written: set[int] = field(default_factory=set)
    """Images that draws and clears have written."""
    undefined: set[tuple[int, int]] = field(default_factory=set)
    """(image, aspect) of what the load operation NONE leaves undefined inside of the instance."""
    suspends: bool = False
    unfollowed: bool = False
    """Whether nothing that the attachments hold afterwards is known."""

    @property
    def all_attachments(self) -> Iterator[Attachment]:
        """Each attachment of it that is there."""
        several = (*self.attachments, *self.colors, self.depth, self.stencil, *(each for _, each in self.resolves))
        return (each for each in several if each is not None)


class RenderPassInstances:
    """Follows the render pass instance in progress; commands run one after the other, so that there is only one."""

    def __init__(self, contents: KnownContents) -> None:
        self._contents = contents
        self._interpreter = Interpreter()
        self.current: RenderingInstance | None = None

    def note(self, call: Call) -> None:
        """Takes the creation of an object in."""
        if call.name.startswith(RENDERING_OBJECTS):
            list(self._interpreter.step(call))
            if call.name == "vkCreateImageView":
                self._contents.views[call.args["pView"]] = call.args["pCreateInfo"]

    def follow(self, call: Call) -> bool:
        """Takes a command in; whether it was one that begins, advances or ends an instance, or clears in it."""
        name = main_name(call.name)
        if name.startswith("vkCmdBeginRenderPass"):
            self._begin_pass(call.args["pRenderPassBegin"])
        elif name.startswith(BEGINS_RENDERING):
            self._begin_rendering(call.args["pRenderingInfo"])
        elif name.startswith(NEXT_SUBPASS):
            self._next()
        elif name.startswith(ENDS_RENDERING):
            self._end()
        elif name == "vkCmdClearAttachments":
            self._clear_attachments(call.args)
        else:
            return False
        return True

    def format_of(self, attachment: Attachment) -> Format | None:
        """The format of the view of an attachment."""
        try:
            return format_of(self._contents.views[attachment.view.id]["format"])
        except (KeyError, UserError):
            return None

    # Instances of a VkRenderPass

    def _begin_pass(self, info: dict[str, Any]) -> None:
        objects = self._interpreter.objects
        render_pass = objects.get(RenderPass, info["renderPass"])
        framebuffer = objects.get(Framebuffer, info["framebuffer"])
        self.current = None
        if render_pass is None or framebuffer is None:
            self._contents.forget_images()
            return
        views = framebuffer.views
        if views is None:
            given = chained(info, VkStructureType.RENDER_PASS_ATTACHMENT_BEGIN_INFO)
            views = tuple((given or {}).get("pAttachments") or ())
        self.current = RenderingInstance(
            area_of(info["renderArea"]),
            attachments=[
                find_attachment(objects, views[at]) if at < len(views) else None
                for at in range(len(render_pass.attachments))
            ],
            render_pass=render_pass,
            framebuffer_layers=framebuffer.layers,
            clear_values=info["pClearValues"] or (),
            unfollowed=bool(render_pass.unmodelled) or _is_unfollowed(info),
        )
        self._enter(self.current, render_pass, 0)

    def _enter(self, now: RenderingInstance, render_pass: RenderPass, index: int) -> None:
        """Begins a subpass: its transitions, then its load operations."""
        now.subpass, subpass, work = index, render_pass.subpasses[index], render_pass.work[index]
        all_layers = layers_of(render_pass.views, now.framebuffer_layers)
        for change in work.changes:
            attachment = now.attachments[change.attachment]
            if change.old == VkImageLayout.UNDEFINED and attachment is not None:
                spans = attachment.only(change.aspects).subresources(all_layers)
                self._contents.undefine_spans(attachment.image.id, spans)
        for each in work.loads:
            attachment, described = now.attachments[each.attachment], render_pass.attachments[each.attachment]
            if attachment is not None:
                store = next(part.store for part in described.parts if part.aspect == each.aspect)
                layers = layers_of(each.views, now.framebuffer_layers)
                clear = now.clear_values[each.attachment] if each.attachment < len(now.clear_values) else None
                self._load(now, attachment.only(each.aspect), (each.operation, store), layers, clear)
        now.layers = layers_of(subpass.view_mask, now.framebuffer_layers)
        now.has_views = subpass.view_mask != ALL_VIEWS
        now.colors = [_referred(now, each) for each in subpass.colors]
        both = _referred(now, subpass.depth_stencil)
        now.depth, now.stencil = _only(both, VkImageAspect.DEPTH), _only(both, VkImageAspect.STENCIL)
        targets = [_referred(now, each) for each in subpass.resolves]
        now.resolves = _pairs(zip(now.colors, targets, strict=False))
        resolved = _referred(now, subpass.depth_stencil_resolve)
        if subpass.depth_resolve_mode != VkResolveMode.NONE:
            now.resolves += _pairs([(now.depth, _only(resolved, VkImageAspect.DEPTH))])
        if subpass.stencil_resolve_mode != VkResolveMode.NONE:
            now.resolves += _pairs([(now.stencil, _only(resolved, VkImageAspect.STENCIL))])
        now.stores = [
            StoreOperation(attachment.only(each.aspect), each.operation, layers_of(each.views, now.framebuffer_layers))
            for each in work.stores
            if (attachment := now.attachments[each.attachment]) is not None
        ]

    def _next(self) -> None:
        now = self.current
        if now is None or now.render_pass is None or now.subpass + 1 >= len(now.render_pass.subpasses):
            self._contents.forget_images()
            return
        self._leave(now)
        self._enter(now, now.render_pass, now.subpass + 1)

    # Dynamic rendering

    def _begin_rendering(self, info: dict[str, Any]) -> None:
        objects, resuming = self._interpreter.objects, bool(info["flags"] & VkRendering.RESUMING)
        before = self.current if resuming else None
        layers = layers_of(info["viewMask"] or ALL_VIEWS, info["layerCount"])
        suspends = bool(info["flags"] & VkRendering.SUSPENDING)
        now = RenderingInstance(area_of(info["renderArea"]), layers, bool(info["viewMask"]), suspends=suspends)
        now.unfollowed = _is_unfollowed(info)
        if before is not None:
            now.written, now.undefined = before.written, before.undefined
        uses = [(each, VkImageAspect.COLOR) for each in info["pColorAttachments"] or ()]
        uses += [(info["pDepthAttachment"], VkImageAspect.DEPTH), (info["pStencilAttachment"], VkImageAspect.STENCIL)]
        found: list[Attachment | None] = []
        for each, aspect in uses:
            attachment = find_attachment(objects, each["imageView"], aspect) if each else None
            found.append(attachment)
            if attachment is None or not each:
                continue
            if not resuming:
                self._load(now, attachment, (each["loadOp"], each["storeOp"]), layers, each["clearValue"])
            now.stores.append(StoreOperation(attachment, stored_as(each["loadOp"], each["storeOp"]), layers))
            if each["resolveMode"] != VkResolveMode.NONE:
                target = find_attachment(objects, each["resolveImageView"], aspect)
                now.resolves += _pairs([(attachment, target)])
        now.colors, now.depth, now.stencil = found[:-2], found[-2], found[-1]
        self.current = now

    # Common to both

    def _load(
        self,
        now: RenderingInstance,
        attachment: Attachment,
        operations: tuple[int, int],
        layers: Sequence[int],
        clear: Mapping[str, Any] | None,
    ) -> None:
        """A load operation; the store operation decides what NONE leaves."""
        load, store = operations
        if load == VkAttachmentLoadOp.CLEAR:
            words = clear["color"]["uint32"] if clear else NO_WORDS
            clear_area(self._contents, attachment, layers, now.area, self.format_of(attachment), words)
        elif load == VkAttachmentLoadOp.NONE and store == VkAttachmentStoreOp.NONE:
            aspects = () if self._contents.takes_undefined else attachment.image.split_aspects(attachment.aspects)
            now.undefined |= {(attachment.image.id, aspect) for aspect in aspects}
        elif load != VkAttachmentLoadOp.LOAD:
            undefine_area(self._contents, attachment, layers, now.area)

    def _leave(self, now: RenderingInstance) -> None:
        """Ends a subpass: resolves, then store operations."""
        for source, target in now.resolves:
            resolve_area(self._contents, source, target, now.layers, now.area)
        for each in now.stores:
            kept = each.operation == VkAttachmentStoreOp.STORE
            if each.operation == VkAttachmentStoreOp.NONE:
                kept = each.attachment.image.id not in now.written
            if not kept:
                undefine_area(self._contents, each.attachment, each.layers, now.area)

    def _end(self) -> None:
        now = self.current
        if now is None:
            self._contents.forget_images()
            return
        if now.suspends:
            return
        self._leave(now)
        self.current = None
        if now.unfollowed:
            for each in now.all_attachments:
                self._contents.forget_image(each.image.id)

    def _clear_attachments(self, args: dict[str, Any]) -> None:
        now = self.current
        if now is None:
            self._contents.forget_images()
            return
        for each in args["pAttachments"] or ():
            for attachment in _cleared(now, each["aspectMask"], each["colorAttachment"]):
                now.written.add(attachment.image.id)
                words = each["clearValue"]["color"]["uint32"]
                for rect in args["pRects"] or ():
                    first, count = rect["baseArrayLayer"], rect["layerCount"]
                    layers = now.layers if now.has_views else range(first, first + count)
                    area = area_of(rect["rect"])
                    clear_area(self._contents, attachment, layers, area, self.format_of(attachment), words)


def _is_unfollowed(info: dict[str, Any]) -> bool:
    return any(chained(info, each) for each in UNFOLLOWED_PARTS)


def _cleared(now: RenderingInstance, aspects: int, index: int) -> Iterator[Attachment]:
    color = now.colors[index] if index < len(now.colors) else None
    chosen = ((VkImageAspect.COLOR, color), (VkImageAspect.DEPTH, now.depth), (VkImageAspect.STENCIL, now.stencil))
    return (each for aspect, each in chosen if aspects & aspect and each is not None)


def _referred(now: RenderingInstance, reference: Reference | None) -> Attachment | None:
    return None if reference is None else now.attachments[reference.attachment]


def _only(attachment: Attachment | None, aspect: int) -> Attachment | None:
    """One aspect of an attachment; None where it lacks it."""
    if attachment is None or attachment.is_color or not attachment.aspects & aspect:
        return None
    return attachment.only(aspect)


def _pairs(several: Iterable[tuple[Attachment | None, Attachment | None]]) -> list[tuple[Attachment, Attachment]]:
    return [(source, target) for source, target in several if source is not None and target is not None]
