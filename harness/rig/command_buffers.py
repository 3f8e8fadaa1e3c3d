"""What a scenario records: one method a command, dependencies by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from harness.device.headless import DeviceQueue
from harness.rig import events as rig_events
from harness.rig import queries as rig_query
from harness.rig import rendering_attachments as rig_rendering
from harness.rig import secondaries as rig_secondary
from harness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VK_WHOLE_SIZE
from harness.spec.masks import scope
from harness.spec.names import enum_value

if TYPE_CHECKING:
    from harness.rig.rig import Rig, RigBuffer, RigDescriptorSet, RigImage, RigPipeline

GENERAL = "GENERAL"

Part = Mapping[str, Any] | Sequence[Mapping[str, Any]] | None
"""Where a region of an image lies: aspect, mip, layer, layers, offset, extent; several regions as a list of those."""

Amend = Callable[[str, Mapping[str, Any], Mapping[str, Mapping[str, Any]]], Mapping[str, Any] | None]
"""(name, the dependency as written, its weaker forms) -> what to record instead, None for nothing."""


def unamended(
    name: str, written: Mapping[str, Any], weaker: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Every dependency as it is written."""
    return written


@dataclass(slots=True)
class RigBarrier:
    """One barrier of a command that has several. Keywords are those of `Commands.barrier`."""

    src: str
    dst: str
    options: dict[str, Any]


def _several(part: Part) -> list[Mapping[str, Any]]:
    if part is None:
        return [{}]
    return [part] if isinstance(part, Mapping) else list(part)


def layout(name: str) -> int:
    """A VkImageLayout, named without VK_IMAGE_LAYOUT_."""
    return enum_value("VkImageLayout", f"VK_IMAGE_LAYOUT_{name}")


class Commands:
    """A command buffer in recording. Offsets and sizes in bytes, image offsets and extents in texels."""

    def __init__(self, rig: Rig, handle: Any) -> None:
        self.rig, self.vk, self.handle = rig, rig.vk, handle
        self.event_operations: list[rig_events.Operation] = []
        """What the commands recorded so far do to events, in order."""
        self.queue: DeviceQueue = rig.queues[0]
        """The queue that it is recorded for."""

    # -- transfer ------------------------------------------------------------------------------------------------------

    def fill(self, buffer: RigBuffer, value: int, offset: int = 0, size: int = VK_WHOLE_SIZE) -> None:
        """vkCmdFillBuffer."""
        self.vk.vkCmdFillBuffer(self.handle, buffer.handle, offset, size, value)

    def update(self, buffer: RigBuffer, data: bytes, offset: int = 0) -> None:
        """vkCmdUpdateBuffer."""
        pointer = self.vk.ffi.new("char[]", data)
        self.vk.vkCmdUpdateBuffer(self.handle, buffer.handle, offset, len(data), pointer)

    def copy(self, source: RigBuffer, target: RigBuffer, *regions: tuple[int, int, int], form: int = 1) -> None:
        """vkCmdCopyBuffer(2) of (source offset, target offset, size); all of the source without regions."""
        vk = self.vk
        parts = regions or ((0, 0, min(source.size, target.size)),)
        if form == 1:
            made = [vk.VkBufferCopy(srcOffset=s, dstOffset=d, size=n) for s, d, n in parts]
            vk.vkCmdCopyBuffer(self.handle, source.handle, target.handle, len(made), made)
            return
        made = [vk.VkBufferCopy2(srcOffset=s, dstOffset=d, size=n) for s, d, n in parts]
        info = vk.VkCopyBufferInfo2(
            srcBuffer=source.handle, dstBuffer=target.handle, regionCount=len(made), pRegions=made
        )
        vk.vkCmdCopyBuffer2(self.handle, info)

    def _layers(self, image: RigImage, at: Mapping[str, Any]) -> Any:
        return self.vk.VkImageSubresourceLayers(
            aspectMask=at.get("aspect", image.aspects),
            mipLevel=at.get("mip", 0),
            baseArrayLayer=at.get("layer", 0),
            layerCount=at.get("layers", 1),
        )

    def _region(self, image: RigImage, at: Mapping[str, Any]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        mip = at.get("mip", 0)
        whole = (
            max(1, image.extent[0] >> mip),
            max(1, image.extent[1] >> mip),
            max(1, image.extent[2] >> mip),
        )
        return at.get("offset", (0, 0, 0)), at.get("extent", whole)

    def copy_image(
        self,
        source: RigImage,
        target: RigImage,
        read: Part = None,
        write: Part = None,
        *,
        layouts: tuple[str, str] = (GENERAL, GENERAL),
        form: int = 1,
    ) -> None:
        """vkCmdCopyImage(2); the extent is that of `read`."""
        self._image_command("CopyImage", "ImageCopy", source, target, (read, write), layouts, form)

    def resolve(
        self,
        source: RigImage,
        target: RigImage,
        read: Part = None,
        write: Part = None,
        *,
        layouts: tuple[str, str] = (GENERAL, GENERAL),
        form: int = 1,
    ) -> None:
        """vkCmdResolveImage(2); the extent is that of `read`."""
        self._image_command("ResolveImage", "ImageResolve", source, target, (read, write), layouts, form)

    def _image_command(
        self,
        command: str,
        region: str,
        source: RigImage,
        target: RigImage,
        parts: tuple[Part, Part],
        layouts: tuple[str, str],
        form: int,
    ) -> None:
        vk, made = self.vk, []
        for read, write in zip(_several(parts[0]), _several(parts[1]), strict=True):
            offset, extent = self._region(source, read)
            target_offset, _ = self._region(target, write)
            one = getattr(vk, f"Vk{region}2" if form == 2 else f"Vk{region}")(
                srcSubresource=self._layers(source, read),
                srcOffset=vk.VkOffset3D(*offset),
                dstSubresource=self._layers(target, write),
                dstOffset=vk.VkOffset3D(*target_offset),
                extent=vk.VkExtent3D(*extent),
            )
            made.append(one)
        self._two_images(command, source, target, made, layouts, form)

    def _two_images(
        self,
        command: str,
        source: RigImage,
        target: RigImage,
        made: list[Any],
        layouts: tuple[str, str],
        form: int,
        **more: Any,
    ) -> None:
        old, new = layout(layouts[0]), layout(layouts[1])
        if form == 1:
            function = getattr(self.vk, f"vkCmd{command}")
            function(self.handle, source.handle, old, target.handle, new, len(made), made, *more.values())
            return
        info = getattr(self.vk, f"Vk{command}Info2")(
            srcImage=source.handle,
            srcImageLayout=old,
            dstImage=target.handle,
            dstImageLayout=new,
            regionCount=len(made),
            pRegions=made,
            **more,
        )
        getattr(self.vk, f"vkCmd{command}2")(self.handle, info)

    def blit(
        self,
        source: RigImage,
        target: RigImage,
        read: Part = None,
        write: Part = None,
        *,
        layouts: tuple[str, str] = (GENERAL, GENERAL),
        form: int = 1,
    ) -> None:
        """vkCmdBlitImage(2), nearest filter; `flipped` in a part gives its corners in the other order."""
        vk, made = self.vk, []
        for parts in zip(_several(read), _several(write), strict=True):
            corners = []
            for image, part in zip((source, target), parts, strict=True):
                offset, extent = self._region(image, part)
                far = tuple(low + size for low, size in zip(offset, extent, strict=True))
                pair = [vk.VkOffset3D(*offset), vk.VkOffset3D(*far)]
                if part.get("flipped"):
                    pair = [vk.VkOffset3D(far[0], far[1], offset[2]), vk.VkOffset3D(offset[0], offset[1], far[2])]
                corners.append(pair)
            one = getattr(vk, "VkImageBlit2" if form == 2 else "VkImageBlit")(
                srcSubresource=self._layers(source, parts[0]),
                srcOffsets=corners[0],
                dstSubresource=self._layers(target, parts[1]),
                dstOffsets=corners[1],
            )
            made.append(one)
        self._two_images("BlitImage", source, target, made, layouts, form, filter=0)

    def _buffer_regions(self, image: RigImage, parts: Part, form: int) -> list[Any]:
        vk, made = self.vk, []
        for part in _several(parts):
            offset, extent = self._region(image, part)
            one = getattr(vk, "VkBufferImageCopy2" if form == 2 else "VkBufferImageCopy")(
                bufferOffset=part.get("buffer_offset", 0),
                bufferRowLength=part.get("row_length", 0),
                bufferImageHeight=part.get("image_height", 0),
                imageSubresource=self._layers(image, part),
                imageOffset=vk.VkOffset3D(*offset),
                imageExtent=vk.VkExtent3D(*extent),
            )
            made.append(one)
        return made

    def buffer_to_image(
        self, source: RigBuffer, target: RigImage, part: Part = None, *, at: str = GENERAL, form: int = 1
    ) -> None:
        """vkCmdCopyBufferToImage(2); `part` also takes buffer_offset, row_length, image_height."""
        vk, made = self.vk, self._buffer_regions(target, part, form)
        if form == 1:
            vk.vkCmdCopyBufferToImage(self.handle, source.handle, target.handle, layout(at), len(made), made)
            return
        info = vk.VkCopyBufferToImageInfo2(
            srcBuffer=source.handle,
            dstImage=target.handle,
            dstImageLayout=layout(at),
            regionCount=len(made),
            pRegions=made,
        )
        vk.vkCmdCopyBufferToImage2(self.handle, info)

    def image_to_buffer(
        self, source: RigImage, target: RigBuffer, part: Part = None, *, at: str = GENERAL, form: int = 1
    ) -> None:
        """vkCmdCopyImageToBuffer(2)."""
        vk, made = self.vk, self._buffer_regions(source, part, form)
        if form == 1:
            vk.vkCmdCopyImageToBuffer(self.handle, source.handle, layout(at), target.handle, len(made), made)
            return
        info = vk.VkCopyImageToBufferInfo2(
            srcImage=source.handle,
            srcImageLayout=layout(at),
            dstBuffer=target.handle,
            regionCount=len(made),
            pRegions=made,
        )
        vk.vkCmdCopyImageToBuffer2(self.handle, info)

    def _range(self, image: RigImage, part: Mapping[str, Any]) -> Any:
        mips, layers = part.get("mips", (0, image.mips)), part.get("layers", (0, image.layers))
        return self.vk.VkImageSubresourceRange(
            aspectMask=part.get("aspects", image.aspects),
            baseMipLevel=mips[0],
            levelCount=mips[1],
            baseArrayLayer=layers[0],
            layerCount=layers[1],
        )

    def clear_color(self, image: RigImage, value: int = 0x40302010, *, at: str = GENERAL, **part: Any) -> None:
        """vkCmdClearColorImage of (first, count) `mips` and `layers`; each byte of `value` is a channel, 0 to 255."""
        vk = self.vk
        channels = [(value >> shift & 0xFF) / 255 for shift in (0, 8, 16, 24)]
        color = vk.VkClearColorValue(float32=channels)
        vk.vkCmdClearColorImage(self.handle, image.handle, layout(at), color, 1, [self._range(image, part)])

    def clear_depth_stencil(
        self, image: RigImage, depth: float = 0.5, stencil: int = 7, *, at: str = GENERAL, **part: Any
    ) -> None:
        """vkCmdClearDepthStencilImage; `aspects` chooses depth (2) or stencil (4)."""
        value = self.vk.VkClearDepthStencilValue(depth=depth, stencil=stencil)
        ranges = [self._range(image, part)]
        self.vk.vkCmdClearDepthStencilImage(self.handle, image.handle, layout(at), value, 1, ranges)

    # -- compute -------------------------------------------------------------------------------------------------------

    def bind(
        self, pipeline: RigPipeline, descriptors: RigDescriptorSet | None = None, offsets: tuple[int, ...] = ()
    ) -> None:
        """Binds a pipeline and its set, with dynamic offsets."""
        vk = self.vk
        point = pipeline.point
        vk.vkCmdBindPipeline(self.handle, point, pipeline.handle)
        if descriptors is not None:
            sets = [descriptors.handle]
            vk.vkCmdBindDescriptorSets(self.handle, point, pipeline.layout, 0, 1, sets, len(offsets), list(offsets))

    def push_descriptors(self, pipeline: RigPipeline, **held: Any) -> None:
        """vkCmdPushDescriptorSetKHR of `b<binding>=` resources, as in `Rig.descriptors`."""
        writes = [self.rig.write(pipeline, int(at[1:]), each) for at, each in held.items()]
        point = pipeline.point
        push = self.rig.function("vkCmdPushDescriptorSetKHR")
        push(self.handle, point, pipeline.layout, 0, len(writes), writes)

    def push_constants(self, pipeline: RigPipeline, *words: int) -> None:
        """32-bit words from offset 0."""
        values = self.vk.ffi.new("uint32_t[]", list(words))
        self.vk.vkCmdPushConstants(self.handle, pipeline.layout, pipeline.push_stages, 0, 4 * len(words), values)

    def dispatch(self, x: int = 1, y: int = 1, z: int = 1) -> None:
        """vkCmdDispatch."""
        self.vk.vkCmdDispatch(self.handle, x, y, z)

    def dispatch_base(self, base: tuple[int, int, int], count: tuple[int, int, int]) -> None:
        """vkCmdDispatchBase."""
        self.vk.vkCmdDispatchBase(self.handle, *base, *count)

    def dispatch_indirect(self, buffer: RigBuffer, offset: int = 0) -> None:
        """vkCmdDispatchIndirect."""
        self.vk.vkCmdDispatchIndirect(self.handle, buffer.handle, offset)

    # -- rendering -----------------------------------------------------------------------------------------------------

    begin_pass = rig_rendering.begin_pass
    next_subpass = rig_rendering.next_subpass
    end_pass = rig_rendering.end_pass
    begin_rendering = rig_rendering.begin_rendering
    end_rendering = rig_rendering.end_rendering
    clear_attachments = rig_rendering.clear_attachments
    bind_vertices = rig_rendering.bind_vertices
    bind_indices = rig_rendering.bind_indices
    draw = rig_rendering.draw
    draw_indexed = rig_rendering.draw_indexed
    draw_multi = rig_rendering.draw_multi
    draw_multi_indexed = rig_rendering.draw_multi_indexed
    draw_indirect = rig_rendering.draw_indirect
    set_state = rig_rendering.set_state

    # -- secondary command buffers -------------------------------------------------------------------------------------

    execute = rig_secondary.execute

    # -- events --------------------------------------------------------------------------------------------------------

    set_event = rig_events.set_event
    reset_event = rig_events.reset_event
    wait_events = rig_events.wait_events

    # -- queries, markers, conditional rendering, transform feedback ---------------------------------------------------

    reset_queries = rig_query.reset_queries
    query = rig_query.query
    copy_results = rig_query.copy_results
    write_marker = rig_query.write_marker
    begin_condition = rig_query.begin_condition
    end_condition = rig_query.end_condition
    bind_feedback = rig_query.bind_feedback
    begin_feedback = rig_query.begin_feedback
    end_feedback = rig_query.end_feedback
    draw_byte_count = rig_query.draw_byte_count

    # -- synchronization -----------------------------------------------------------------------------------------------

    def barrier(
        self, name: str, src: str, dst: str, *, weaker: Mapping[str, Mapping[str, Any]] | None = None, **options: Any
    ) -> None:
        """One named dependency, recorded as a command of its own unless a twin leaves it out.

        `src` and `dst` are scopes as text (`harness.spec.masks`). Options: `buffer` with `offset`, `size`; or `image`
        with `aspects`, `mips`, `layers`, `old`, `new` (layouts); `families` (from, to) of an ownership transfer of the
        resource; `form` 1 or 2 of the command; `flags` (VkDependencyFlags). Without a resource it is a global barrier;
        with no access masks and no resource, a pure execution dependency. `weaker` names sets of replaced options, for
        twins; `{"several": [...]}` there records those barriers, in one command, instead.
        """
        written = {"src": src, "dst": dst, **options}
        amended = self.rig.amend(name, written, weaker or {}) if name else written
        if amended is not None:
            self._record(amended.get("several", [amended]))

    def barriers(
        self, name: str, *several: Mapping[str, Any], weaker: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    ) -> None:
        """Several independent barriers in one command; a twin leaves out the command, or records those of `weaker`."""
        forms = {key: {"several": value} for key, value in (weaker or {}).items()}
        amended = self.rig.amend(name, {"several": several}, forms) if name else {"several": several}
        if amended is not None:
            self._record(amended["several"])

    def transition(
        self,
        image: RigImage,
        src: str = "NONE",
        dst: str = "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE",
        *,
        old: str = "UNDEFINED",
        new: str = GENERAL,
        **options: Any,
    ) -> None:
        """A layout transition that belongs to the scene, in every twin."""
        self._record([{"src": src, "dst": dst, "image": image, "old": old, "new": new, **options}])

    def _record(self, several: Sequence[Mapping[str, Any]]) -> None:
        if several:
            (self._record1 if several[0].get("form", 2) == 1 else self._record2)(several)

    def _record2(self, several: Sequence[Mapping[str, Any]]) -> None:
        self.vk.vkCmdPipelineBarrier2(self.handle, self.dependency_info(several))

    def dependency_info(self, several: Sequence[Mapping[str, Any]]) -> Any:
        """A VkDependencyInfo of barriers as `barrier` takes them."""
        vk = self.vk
        lists: dict[str, list[Any]] = {"Memory": [], "BufferMemory": [], "ImageMemory": []}
        for each in several:
            (src_stages, src_accesses), (dst_stages, dst_accesses) = scope(each["src"]), scope(each["dst"])
            masks = {
                "srcStageMask": src_stages,
                "srcAccessMask": src_accesses,
                "dstStageMask": dst_stages,
                "dstAccessMask": dst_accesses,
            }
            kind, more = self._target(each)
            lists[kind].append(getattr(vk, f"Vk{kind}Barrier2")(**masks, **more))
        return vk.VkDependencyInfo(
            dependencyFlags=several[0].get("flags", 0),
            memoryBarrierCount=len(lists["Memory"]),
            pMemoryBarriers=lists["Memory"],
            bufferMemoryBarrierCount=len(lists["BufferMemory"]),
            pBufferMemoryBarriers=lists["BufferMemory"],
            imageMemoryBarrierCount=len(lists["ImageMemory"]),
            pImageMemoryBarriers=lists["ImageMemory"],
        )

    def _record1(self, several: Sequence[Mapping[str, Any]]) -> None:
        src_stages, dst_stages = scope(several[0]["src"])[0], scope(several[0]["dst"])[0]
        flags = several[0].get("flags", 0)
        counted = self.counted_barriers(several)
        self.vk.vkCmdPipelineBarrier(self.handle, src_stages or 0x1, dst_stages or 0x2000, flags, *counted)

    def counted_barriers(self, several: Sequence[Mapping[str, Any]]) -> list[Any]:
        """Count and array of the memory, buffer and image barriers, as the commands of the first form take them."""
        vk = self.vk
        lists: dict[str, list[Any]] = {"Memory": [], "BufferMemory": [], "ImageMemory": []}
        for each in several:
            masks = {"srcAccessMask": scope(each["src"])[1], "dstAccessMask": scope(each["dst"])[1]}
            kind, more = self._target(each)
            if kind != "Memory" or any(masks.values()):
                lists[kind].append(getattr(vk, f"Vk{kind}Barrier")(**masks, **more))
        return [part for each in lists.values() for part in (len(each), each)]

    def _target(self, each: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
        buffer, image = each.get("buffer"), each.get("image")
        source, target = each.get("families", (VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED))
        families = {"srcQueueFamilyIndex": source, "dstQueueFamilyIndex": target}
        if buffer is not None:
            place = {"offset": each.get("offset", 0), "size": each.get("size", VK_WHOLE_SIZE)}
            return "BufferMemory", {"buffer": buffer.handle, **place, **families}
        if image is not None:
            layouts = {"oldLayout": layout(each.get("old", GENERAL)), "newLayout": layout(each.get("new", GENERAL))}
            part = self._range(image, each)
            return "ImageMemory", {"image": image.handle, "subresourceRange": part, **layouts, **families}
        return "Memory", {}
