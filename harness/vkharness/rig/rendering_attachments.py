"""Commands of render pass instances, and draws.

Clear values are words with one byte for each channel, 0 to 255, or (depth, stencil).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vkharness.rig.core import RigBuffer, RigCommandBuffer, layout
from vkharness.rig.render_passes import RigFramebuffer, RigRenderPass, load_op, resolve_mode, store_op
from vkharness.spec.names import enum_value

Rect = tuple[int, int, int, int]
"""x, y, width, height in texels."""
ClearValue = int | tuple[float, int]


@dataclass(frozen=True, slots=True)
class RenderingAttachment:
    """An attachment of dynamic rendering; names as in `RigAttachment`."""

    view: Any
    load: str = "CLEAR"
    store: str = "STORE"
    layout: str = "GENERAL"
    clear: ClearValue = 0
    resolve: Any = None
    """The image view that receives the resolve."""
    mode: str = "AVERAGE"
    resolve_layout: str = "GENERAL"


class RenderingCommands(RigCommandBuffer):
    """Commands of render passes and of dynamic rendering, and draws."""

    def begin_pass(
        self,
        render_pass: RigRenderPass,
        framebuffer: RigFramebuffer,
        *,
        area: Rect | None = None,
        clear: Sequence[ClearValue] = (),
        v2: bool = False,
        secondaries: bool = False,
    ) -> None:
        """vkCmdBeginRenderPass(2). `clear` maps attachments to clear values; the others are 0.

        The render area is all of the framebuffer by default. With `secondaries` the first subpass is recorded in
        secondary command buffers.
        """
        vk = self.vk
        values = [*clear, *[0] * len(render_pass.attachments)][: len(render_pass.attachments)]
        following = vk.VkRenderPassAttachmentBeginInfo(pAttachments=list(framebuffer.views))
        info = vk.VkRenderPassBeginInfo(
            pNext=following if framebuffer.imageless else None,
            renderPass=render_pass.handle,
            framebuffer=framebuffer.handle,
            renderArea=rect(vk, area or (0, 0, *framebuffer.extent)),
            clearValueCount=len(values),
            pClearValues=[clear_value(vk, each) for each in values],
        )
        if not v2:
            vk.vkCmdBeginRenderPass(self.handle, info, int(secondaries))
        else:
            vk.vkCmdBeginRenderPass2(self.handle, info, vk.VkSubpassBeginInfo(contents=int(secondaries)))

    def next_subpass(self, *, v2: bool = False, secondaries: bool = False) -> None:
        """vkCmdNextSubpass(2). With `secondaries` the subpass is recorded in secondary command buffers."""
        vk = self.vk
        if not v2:
            vk.vkCmdNextSubpass(self.handle, int(secondaries))
        else:
            begin = vk.VkSubpassBeginInfo(contents=int(secondaries))
            vk.vkCmdNextSubpass2(self.handle, begin, vk.VkSubpassEndInfo())

    def end_pass(self, *, v2: bool = False) -> None:
        """vkCmdEndRenderPass(2)."""
        vk = self.vk
        if not v2:
            vk.vkCmdEndRenderPass(self.handle)
        else:
            vk.vkCmdEndRenderPass2(self.handle, vk.VkSubpassEndInfo())

    def begin_rendering(
        self,
        *colors: RenderingAttachment | None,
        depth: RenderingAttachment | None = None,
        stencil: RenderingAttachment | None = None,
        area: Rect = (0, 0, 16, 16),
        layers: int = 1,
        views: int = 0,
        flags: int = 0,
    ) -> None:
        """vkCmdBeginRendering. None leaves a colour attachment out. `views` is a view mask."""
        vk = self.vk
        attached = [_attachment(vk, each) for each in (*colors, depth, stencil)]
        info = vk.VkRenderingInfo(
            flags=flags,
            renderArea=rect(vk, area),
            layerCount=layers,
            viewMask=views,
            pColorAttachments=attached[:-2],
            pDepthAttachment=attached[-2] if depth else None,
            pStencilAttachment=attached[-1] if stencil else None,
        )
        vk.vkCmdBeginRendering(self.handle, info)

    def end_rendering(self) -> None:
        """vkCmdEndRendering."""
        self.vk.vkCmdEndRendering(self.handle)

    def clear_attachments(
        self, *clears: tuple[int, int, ClearValue], rects: Sequence[tuple[Rect, int, int]] = (((0, 0, 16, 16), 0, 1),)
    ) -> None:
        """vkCmdClearAttachments of (aspects, colour attachment, value), in (rectangle, first layer, layers)."""
        vk = self.vk
        attachments = [
            vk.VkClearAttachment(aspectMask=aspects, colorAttachment=index, clearValue=clear_value(vk, value))
            for aspects, index, value in clears
        ]
        places = [
            vk.VkClearRect(rect=rect(vk, area), baseArrayLayer=first, layerCount=count) for area, first, count in rects
        ]
        vk.vkCmdClearAttachments(self.handle, len(attachments), attachments, len(places), places)

    def bind_vertices(self, *buffers: RigBuffer | tuple[RigBuffer, int], first: int = 0) -> None:
        """vkCmdBindVertexBuffers from binding `first`. Each buffer starts at its beginning or at an offset in bytes."""
        pairs = [each if isinstance(each, tuple) else (each, 0) for each in buffers]
        handles, offsets = [buffer.handle for buffer, _ in pairs], [offset for _, offset in pairs]
        self.vk.vkCmdBindVertexBuffers(self.handle, first, len(pairs), handles, offsets)

    def bind_indices(self, buffer: RigBuffer, offset: int = 0, kind: str = "UINT32") -> None:
        """vkCmdBindIndexBuffer. `kind` is a VkIndexType without VK_INDEX_TYPE_."""
        value = enum_value("VkIndexType", f"VK_INDEX_TYPE_{kind}")
        self.vk.vkCmdBindIndexBuffer(self.handle, buffer.handle, offset, value)

    def draw(self, vertices: int = 3, instances: int = 1, first_vertex: int = 0, first_instance: int = 0) -> None:
        """vkCmdDraw."""
        self.vk.vkCmdDraw(self.handle, vertices, instances, first_vertex, first_instance)

    def draw_indexed(
        self,
        indices: int = 3,
        instances: int = 1,
        first_index: int = 0,
        vertex_offset: int = 0,
        first_instance: int = 0,
    ) -> None:
        """vkCmdDrawIndexed."""
        self.vk.vkCmdDrawIndexed(self.handle, indices, instances, first_index, vertex_offset, first_instance)

    def draw_multi(self, *parts: tuple[int, int], instances: int = 1) -> None:
        """vkCmdDrawMultiEXT of (first vertex, vertices) each."""
        vk = self.vk
        infos = [vk.VkMultiDrawInfoEXT(firstVertex=first, vertexCount=count) for first, count in parts]
        size = vk.ffi.sizeof("VkMultiDrawInfoEXT")
        self.rig.function("vkCmdDrawMultiEXT")(self.handle, len(infos), infos, instances, 0, size)

    def draw_multi_indexed(self, *parts: tuple[int, int, int], instances: int = 1) -> None:
        """vkCmdDrawMultiIndexedEXT of (first index, indices, vertex offset) each."""
        vk = self.vk
        infos = [
            vk.VkMultiDrawIndexedInfoEXT(firstIndex=first, indexCount=count, vertexOffset=offset)
            for first, count, offset in parts
        ]
        size = vk.ffi.sizeof("VkMultiDrawIndexedInfoEXT")
        function = self.rig.function("vkCmdDrawMultiIndexedEXT")
        function(self.handle, len(infos), infos, instances, 0, size, None)

    def draw_indirect(
        self,
        buffer: RigBuffer,
        offset: int = 0,
        count: int = 1,
        stride: int | None = None,
        *,
        indexed: bool = False,
        counted: tuple[RigBuffer, int] | None = None,
    ) -> None:
        """vkCmdDraw(Indexed)Indirect, or with `counted` (buffer, offset) vkCmdDraw(Indexed)IndirectCount of at most
        `count` draws.

        Parameters are tightly packed unless a stride in bytes is given.
        """
        kind = "Indexed" if indexed else ""
        stride = (20 if indexed else 16) if stride is None else stride
        if counted is None:
            function = getattr(self.vk, f"vkCmdDraw{kind}Indirect")
            function(self.handle, buffer.handle, offset, count, stride)
            return
        function = getattr(self.vk, f"vkCmdDraw{kind}IndirectCount")
        function(self.handle, buffer.handle, offset, counted[0].handle, counted[1], count, stride)

    def set_state(self, name: str, *values: Any) -> None:
        """vkCmdSet<name> with ready arguments."""
        getattr(self.vk, f"vkCmdSet{name}")(self.handle, *values)


def _attachment(vk: Any, each: RenderingAttachment | None) -> Any:
    if each is None:
        return vk.VkRenderingAttachmentInfo()
    resolved: dict[str, Any] = {}
    if each.resolve is not None:
        resolved = {
            "resolveMode": resolve_mode(each.mode),
            "resolveImageView": each.resolve,
            "resolveImageLayout": layout(each.resolve_layout),
        }
    return vk.VkRenderingAttachmentInfo(
        imageView=each.view,
        imageLayout=layout(each.layout),
        loadOp=load_op(each.load),
        storeOp=store_op(each.store),
        clearValue=clear_value(vk, each.clear),
        **resolved,
    )


def rect(vk: Any, area: Rect) -> Any:
    """A VkRect2D."""
    x, y, width, height = area
    return vk.VkRect2D(offset=vk.VkOffset2D(x=x, y=y), extent=vk.VkExtent2D(width=width, height=height))


def clear_value(vk: Any, value: ClearValue) -> Any:
    """A VkClearValue."""
    if isinstance(value, tuple):
        return vk.VkClearValue(depthStencil=vk.VkClearDepthStencilValue(depth=value[0], stencil=value[1]))
    channels = [(value >> shift & 0xFF) / 255 for shift in (0, 8, 16, 24)]
    return vk.VkClearValue(color=vk.VkClearColorValue(float32=channels))
