"""Reads and writes the contents of buffers and images between steps.

Values are numpy arrays of bytes: one row of words for a buffer, (depth, height, width, bytes) in texel blocks for a box
of an image. Multisampled images cannot be copied to buffers, so that their contents are kept in a `StagingImage`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vkharness.findings import Box, UserError
from vkharness.replay.objects.allocations import DIRECT, choose_type
from vkharness.replay.objects.creation import ImageResource, Resources
from vkharness.replay.objects.encode import Encoder
from vkharness.replay.objects.recorder import ImageTransition, ReplayRecorder
from vkharness.replay.objects.target import ReplayDevice
from vkharness.replay.schedule.layouts import (
    PREINITIALIZED,
    TRANSFER_DST,
    TRANSFER_SRC,
    UNDEFINED,
    Layouts,
    Subresource,
)
from vkharness.spec.enums import VkBufferUsage, VkImageAspect, VkImageUsage, VkMemoryProperty
from vkharness.spec.shapes import new_struct
from vkharness.trace.resources import PLANES

Bytes = npt.NDArray[np.uint8]
Where = tuple[int, int, int, int, int]
"""(aspects, base mip, mips, base layer, layers)."""


@dataclass(slots=True)
class Staging:
    """A host-visible buffer of the replay."""

    raw: Any
    memory: Any
    size: int
    view: memoryview


@dataclass(frozen=True, slots=True)
class StagingImage:
    """The contents of a box of a multisampled image, kept in another image with an equal create info."""

    raw: Any
    memory: Any


Content = Bytes | StagingImage


@dataclass(slots=True)
class StagingImages:
    """Twin images with the device that they live on."""

    device: ReplayDevice
    made: list[StagingImage] = field(default_factory=list)

    def close(self) -> None:
        """Destroys them."""
        null, handle = self.device.target.ffi.NULL, self.device.handle
        for twin in self.made:
            self.device.function("vkDestroyImage")(handle, twin.raw, null)
            self.device.function("vkFreeMemory")(handle, twin.memory, null)
        self.made.clear()


class Contents:
    """Access to the contents of all resources of one replay. Nothing but the commands in `recorder` may be pending."""

    def __init__(self, resources: Resources, recorder: ReplayRecorder, layouts: Layouts) -> None:
        self.resources = resources
        self.recorder = recorder
        self.layouts = layouts
        self._device = recorder.device
        self._ffi = recorder.device.target.ffi
        self._staging: Staging | None = None
        self._twins = StagingImages(recorder.device)

    def close(self) -> None:
        """Destroys what was made for staging and saving."""
        null, handle = self._ffi.NULL, self._device.handle
        self._twins.close()
        if self._staging is not None:
            self._device.function("vkDestroyBuffer")(handle, self._staging.raw, null)
            self._device.function("vkFreeMemory")(handle, self._staging.memory, null)
            self._staging = None

    def keep_twins(self) -> StagingImages:
        """Hands over the twins made so far: they outlive these contents, and the caller closes them."""
        kept, self._twins = self._twins, StagingImages(self._device)
        return kept

    # Buffers

    def read_buffer(self, buffer: int, offset: int, size: int) -> Bytes:
        """Bytes [offset, offset + size) of a buffer."""
        resource = self.resources.buffers[buffer]
        self.recorder.finish()
        addresses = self.resources.handles.addresses
        if resource.view is not None:
            return addresses.of_trace(np.frombuffer(resource.view[offset : offset + size], np.uint8).copy(), offset)
        staging = self.stage(size)
        region = self._ffi.new("VkBufferCopy *", {"srcOffset": offset, "size": size})
        self.recorder.call("vkCmdCopyBuffer", self._buffer(resource.raw), staging.raw, 1, region)
        self.recorder.finish()
        return addresses.of_trace(np.frombuffer(staging.view[:size], np.uint8).copy(), offset)

    def write_buffer(self, buffer: int, offset: int, data: Bytes) -> None:
        """Puts bytes into a buffer at `offset`."""
        resource = self.resources.buffers[buffer]
        self.recorder.finish()
        raw = self.resources.handles.addresses.of_target(data, offset).tobytes()
        if resource.view is not None:
            resource.view[offset : offset + len(raw)] = raw
            return
        staging = self.stage(len(raw))
        staging.view[: len(raw)] = raw
        region = self._ffi.new("VkBufferCopy *", {"dstOffset": offset, "size": len(raw)})
        self.recorder.call("vkCmdCopyBuffer", staging.raw, self._buffer(resource.raw), 1, region)
        self.recorder.finish()

    # Images

    def why_unreadable(self, image: int) -> str:
        """Why an image's contents cannot be saved or restored by transfers; empty when they can."""
        resource = self.resources.images[image]
        missing = [
            name
            for bit, name in ((VkImageUsage.TRANSFER_SRC, "read"), (VkImageUsage.TRANSFER_DST, "written"))
            if not resource.usage & bit
        ]
        if missing:
            target = self._device.target.name
            return f"{resource.image.format.name} cannot be {' or '.join(missing)} by transfers on {target}"
        return ""

    def readable(self, image: int, box: Box) -> bool:
        """Whether a transfer can read a box, because its subresource has left its initial layout."""
        return self.layouts.of(image, (box.aspect, box.mip, box.layer)) not in (UNDEFINED, PREINITIALIZED)

    def read_box(self, image: int, box: Box) -> Content:
        """The contents of a box of an image. Its subresource must not be in the UNDEFINED layout."""
        resource = self.resources.images[image]
        if resource.image.samples > 1:
            return self._save_twin(resource, box)
        return self.read_boxes(image, [box])[0]

    def read_boxes(self, image: int, boxes: list[Box]) -> list[Bytes]:
        """The contents of boxes of a single-sampled image, read by one copy command."""
        resource = self.resources.images[image]
        shapes = [_shape(resource, box) for box in boxes]
        regions, size = self._regions(boxes, shapes)
        staging = self.stage(size)
        self.enter(resource, boxes, TRANSFER_SRC)
        raw = self._ffi.cast("VkImage", resource.raw)
        self.recorder.call("vkCmdCopyImageToBuffer", raw, TRANSFER_SRC, staging.raw, len(boxes), regions)
        self.leave(resource, boxes, TRANSFER_SRC)
        self.recorder.finish()
        found = []
        for region, shape, box in zip(regions, shapes, boxes, strict=True):
            start = int(region.bufferOffset)
            size = int(np.prod(shape))
            data = np.frombuffer(staging.view[start : start + size], np.uint8).copy().reshape(shape)
            found.append(_without_padding(resource, box, data))
        return found

    def write_box(self, image: int, box: Box, content: Content) -> None:
        """Puts contents into a box of an image; its subresource must not be in the UNDEFINED layout."""
        resource = self.resources.images[image]
        if isinstance(content, StagingImage):
            self._copy_twin(resource, box, content, back=True)
            return
        regions, size = self._regions([box], [content.shape])
        staging = self.stage(size)
        staging.view[:size] = content.tobytes()
        raw = self._ffi.cast("VkImage", resource.raw)
        self.enter(resource, [box], TRANSFER_DST)
        self.recorder.call("vkCmdCopyBufferToImage", staging.raw, raw, TRANSFER_DST, 1, regions)
        self.leave(resource, [box], TRANSFER_DST)
        self.recorder.finish()

    def clear_box(self, image: int, box: Box, value: int) -> None:
        """Clears the whole subresource of a box of a multisampled image. No part of it can be given a value alone."""
        resource = self.resources.images[image]
        self.enter(resource, [box], TRANSFER_DST)
        clear_subresources(self.recorder, resource, (box.aspect, box.mip, 1, box.layer, 1), value)
        self.leave(resource, [box], TRANSFER_DST)
        self.recorder.finish()

    def fill_box(self, image: int, box: Box, value: int) -> None:
        """Sets every byte of a box whose subresource is in TRANSFER_DST, whatever the step list says."""
        resource = self.resources.images[image]
        regions, size = self._regions([box], [_shape(resource, box)])
        staging = self.stage(size)
        staging.view[:size] = bytes([value]) * size
        raw = self._ffi.cast("VkImage", resource.raw)
        self.recorder.call("vkCmdCopyBufferToImage", staging.raw, raw, TRANSFER_DST, 1, regions)
        self.recorder.full_barrier()
        self.recorder.finish()

    def _regions(self, boxes: list[Box], shapes: list[tuple[int, ...]]) -> tuple[Any, int]:
        """VkBufferImageCopy array with tightly packed boxes at offsets that any format accepts; bytes needed."""
        regions = self._ffi.new("VkBufferImageCopy[]", len(boxes))
        at = 0
        for region, box, shape in zip(regions, boxes, shapes, strict=True):
            step = int(np.lcm(4, shape[-1]))
            at = -(-at // step) * step
            region.bufferOffset = at
            region.imageSubresource.aspectMask = box.aspect
            region.imageSubresource.mipLevel = box.mip
            region.imageSubresource.baseArrayLayer, region.imageSubresource.layerCount = box.layer, 1
            region.imageOffset.x, region.imageOffset.y, region.imageOffset.z = box.offset
            extent = region.imageExtent
            extent.width, extent.height, extent.depth = box.extent
            at += int(np.prod(shape))
        return regions, at

    def enter(self, resource: ImageResource, boxes: list[Box], layout: int) -> None:
        """Records transitions of the subresources under `boxes` from where the steps have them to `layout`."""
        self.recorder.full_barrier()
        self.recorder.change_layouts(self._changes(resource, boxes, layout, back=False))

    def leave(self, resource: ImageResource, boxes: list[Box], layout: int) -> None:
        """Records transitions back from `layout`."""
        self.recorder.change_layouts(self._changes(resource, boxes, layout, back=True))
        self.recorder.full_barrier()

    def _changes(self, resource: ImageResource, boxes: list[Box], layout: int, back: bool) -> list[ImageTransition]:
        """The transitions into `layout` from the layouts that the steps left, or with `back` the reverse."""
        changes = {}
        for aspect, mip, layer in dict.fromkeys((box.aspect, box.mip, box.layer) for box in boxes):
            now = self.layouts.of(resource.id, (aspect, mip, layer))
            old, new = (layout, now) if back else (now, layout)
            where = (self._barrier_aspects(resource, (aspect, mip, layer)), mip, 1, layer, 1)
            if old != new:
                # Keyed by range: aspects that share a barrier must not repeat it.
                changes[where] = ImageTransition(resource.raw, where, old, new)
        return list(changes.values())

    def _barrier_aspects(self, resource: ImageResource, subresource: Subresource) -> int:
        """The aspects that a barrier names for one aspect: COLOR for planes, and both depth and stencil while their
        layouts are equal."""
        aspect, mip, layer = subresource
        if aspect & PLANES:
            return VkImageAspect.COLOR
        layouts = {self.layouts.of(resource.id, (other, mip, layer)) for other in resource.image.aspects if aspect & 6}
        return resource.image.format.aspects if len(layouts) == 1 else aspect

    def held_in_layouts(self, image: int) -> list[ImageTransition]:
        """Transitions from the layout of each subresource to the same, without those that were never written."""
        resource, found = self.resources.images[image], {}
        for aspect, mip, layer in self.layouts.subresources(image):
            where = (self._barrier_aspects(resource, (aspect, mip, layer)), mip, 1, layer, 1)
            layout = self.layouts.of(image, (aspect, mip, layer))
            if layout not in (UNDEFINED, PREINITIALIZED):
                found[where] = ImageTransition(resource.raw, where, layout, layout)
        return list(found.values())

    # Twins

    def _save_twin(self, resource: ImageResource, box: Box) -> StagingImage:
        twin = self._create_twin(resource)
        self._copy_twin(resource, box, twin, back=False)
        return twin

    def _create_twin(self, resource: ImageResource) -> StagingImage:
        ffi, device = self._ffi, self._device
        encoder = Encoder(ffi, self.resources.handles)
        info = encoder.struct("VkImageCreateInfo", {**resource.info, "initialLayout": 0}, f"twin of {resource.id}")
        out = ffi.new("VkImage *")
        device.check(device.function("vkCreateImage")(device.handle, info, ffi.NULL, out), "vkCreateImage of a twin")
        needs = ffi.new("VkMemoryRequirements *")
        device.function("vkGetImageMemoryRequirements")(device.handle, out[0], needs)
        memory = self._allocate(needs, mapped=False)
        device.check(device.function("vkBindImageMemory")(device.handle, out[0], memory, 0), "vkBindImageMemory")
        twin = StagingImage(out[0], memory)
        self._twins.made.append(twin)
        return twin

    def _copy_twin(self, resource: ImageResource, box: Box, twin: StagingImage, back: bool) -> None:
        """Copies a box from an image to its twin, or back."""
        ffi = self._ffi
        region = ffi.new("VkImageCopy *")
        for where in (region.srcSubresource, region.dstSubresource):
            where.aspectMask, where.mipLevel = box.aspect, box.mip
            where.baseArrayLayer, where.layerCount = box.layer, 1
        for offset in (region.srcOffset, region.dstOffset):
            offset.x, offset.y, offset.z = box.offset
        region.extent.width, region.extent.height, region.extent.depth = box.extent
        layout = TRANSFER_DST if back else TRANSFER_SRC
        own = self._ffi.cast("VkImage", resource.raw)
        whole = (resource.image.format.aspects, 0, resource.image.mips, 0, resource.image.layers)
        address = int(ffi.cast("uintptr_t", twin.raw))
        self.enter(resource, [box], layout)
        if back:
            # A twin rests in TRANSFER_SRC, ready to be copied back.
            self.recorder.call("vkCmdCopyImage", twin.raw, TRANSFER_SRC, own, TRANSFER_DST, 1, region)
        else:
            self.recorder.change_layouts([ImageTransition(address, whole, UNDEFINED, TRANSFER_DST)])
            self.recorder.call("vkCmdCopyImage", own, TRANSFER_SRC, twin.raw, TRANSFER_DST, 1, region)
            self.recorder.change_layouts([ImageTransition(address, whole, TRANSFER_DST, TRANSFER_SRC)])
        self.leave(resource, [box], layout)
        self.recorder.finish()

    # Staging

    def _buffer(self, raw: int) -> Any:
        return self._ffi.cast("VkBuffer", raw)

    def stage(self, size: int) -> Staging:
        """The staging buffer, with at least `size` bytes. Waits for what was recorded before."""
        self.recorder.finish()
        if self._staging is not None and self._staging.size >= size:
            return self._staging
        ffi, device = self._ffi, self._device
        if self._staging is not None:
            device.function("vkDestroyBuffer")(device.handle, self._staging.raw, ffi.NULL)
            device.function("vkFreeMemory")(device.handle, self._staging.memory, ffi.NULL)
            self._staging = None
        size = max(size, 1 << 16)
        info = new_struct(
            ffi,
            "VkBufferCreateInfo",
            size=size,
            usage=VkBufferUsage.TRANSFER_SRC | VkBufferUsage.TRANSFER_DST | VkBufferUsage.STORAGE_BUFFER,
        )
        out = ffi.new("VkBuffer *")
        device.check(device.function("vkCreateBuffer")(device.handle, info, ffi.NULL, out), "vkCreateBuffer (staging)")
        needs = ffi.new("VkMemoryRequirements *")
        device.function("vkGetBufferMemoryRequirements")(device.handle, out[0], needs)
        memory = self._allocate(needs, mapped=True)
        device.check(device.function("vkBindBufferMemory")(device.handle, out[0], memory, 0), "vkBindBufferMemory")
        address = ffi.new("void **")
        device.check(device.function("vkMapMemory")(device.handle, memory, 0, needs.size, 0, address), "vkMapMemory")
        self._staging = Staging(out[0], memory, size, memoryview(ffi.buffer(address[0], size)))
        return self._staging

    def _allocate(self, needs: Any, mapped: bool) -> Any:
        types = self._device.target.memory_types
        index = choose_type(types, int(needs.memoryTypeBits), mapped)
        wanted = DIRECT if mapped else VkMemoryProperty.DEVICE_LOCAL
        if mapped and types[index].flags & wanted != wanted:
            raise UserError(f"{self._device.target.name} has no host-visible coherent memory")
        info = new_struct(self._ffi, "VkMemoryAllocateInfo", allocationSize=needs.size, memoryTypeIndex=index)
        out = self._ffi.new("VkDeviceMemory *")
        result = self._device.function("vkAllocateMemory")(self._device.handle, info, self._ffi.NULL, out)
        self._device.check(result, "vkAllocateMemory (staging)")
        return out[0]


def _shape(resource: ImageResource, box: Box) -> tuple[int, ...]:
    """(depth, height, width, bytes) of a box in texel blocks."""
    block = resource.image.block_extent(box.aspect)
    blocks = [-(-box.extent[axis] // block[axis]) for axis in range(3)]
    return (blocks[2], blocks[1], blocks[0], resource.image.format.aspect_bytes(box.aspect))


def _without_padding(resource: ImageResource, box: Box, data: Bytes) -> Bytes:
    """The bytes with the padding of 24-bit depth set to zero, since its value is undefined and would differ between
    runs."""
    name = resource.image.format.name
    if box.aspect == 2 and ("D24_" in name):
        data[..., 3] = 0
    return data


def clear_subresources(recorder: ReplayRecorder, resource: ImageResource, where: Where, value: int) -> None:
    """Records a clear of (aspect, base mip, mips, base layer, layers), which must be in TRANSFER_DST.

    `value` 0 to 255 picks a colour, depth or stencil that is exactly repeatable and tells values apart.
    """
    ffi = recorder.device.target.ffi
    if where[0] & 6:
        clear_depth_stencil(recorder, resource, where, (value + 1) / 512, value)
        return
    color = ffi.new("VkClearColorValue *")
    name = resource.image.format.name
    if "INT" in name:
        color.uint32 = [value & 0x7F] * 4
    else:
        color.float32 = [value / 256, 1 - value / 256, (value % 16) / 16, 1.0]
    raw = ffi.cast("VkImage", resource.raw)
    recorder.call("vkCmdClearColorImage", raw, TRANSFER_DST, color, 1, _span(ffi, where))


def clear_depth_stencil(
    recorder: ReplayRecorder, resource: ImageResource, where: Where, depth: float, stencil: int
) -> None:
    """Records a clear of (aspects, base mip, mips, base layer, layers), which must be in TRANSFER_DST."""
    ffi = recorder.device.target.ffi
    value = ffi.new("VkClearDepthStencilValue *", {"depth": depth, "stencil": stencil})
    raw = ffi.cast("VkImage", resource.raw)
    recorder.call("vkCmdClearDepthStencilImage", raw, TRANSFER_DST, value, 1, _span(ffi, where))


def _span(ffi: Any, where: Where) -> Any:
    span = ffi.new("VkImageSubresourceRange *")
    span.aspectMask, span.baseMipLevel, span.levelCount, span.baseArrayLayer, span.layerCount = where
    return span
