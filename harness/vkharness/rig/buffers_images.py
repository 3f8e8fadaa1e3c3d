"""Memory, buffers, images and views, and the host's reads and writes of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import vkharness
from vkharness.rig.core import COLOR_FORMAT, MemoryPlace, Placer, RigBuffer, RigDevice, RigImage
from vkharness.spec.enums import (
    VK_WHOLE_SIZE,
    VkBufferUsage,
    VkImageCreate,
    VkImageUsage,
    VkMemoryAllocate,
    VkMemoryProperty,
)
from vkharness.spec.formats import format_of
from vkharness.spec.names import enum_value

BUFFER_USAGE = 0x1FF
"""The usage of every buffer: TRANSFER_SRC, TRANSFER_DST, UNIFORM_TEXEL, STORAGE_TEXEL, UNIFORM, STORAGE, INDEX, VERTEX,
INDIRECT."""
DIRECT = VkMemoryProperty.HOST_VISIBLE | VkMemoryProperty.HOST_COHERENT
SHADER_USAGE = VkImageUsage.SAMPLED | VkImageUsage.STORAGE
TRANSFER_USAGE = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST
TEXEL_USAGE = VkBufferUsage.UNIFORM_TEXEL_BUFFER | VkBufferUsage.STORAGE_TEXEL_BUFFER
"""Usage that drivers need not have for sparse buffers."""
SPARSE_FEATURES = {
    VkImageCreate.SPARSE_BINDING: "sparseBinding",
    VkImageCreate.SPARSE_ALIASED: "sparseResidencyAliased",
}
"""The features that flags of any sparse resource need. VkBufferCreateFlags have the same values."""
RESIDENCY = {-1: "sparseResidencyBuffer", 1: "sparseResidencyImage2D", 2: "sparseResidencyImage3D"}
"""That of SPARSE_RESIDENCY, by the VkImageType, and of buffers."""


def _attached(aspects: int, samples: int) -> int:
    """The usage that a multisample image must have: as an attachment of some kind."""
    if samples == 1:
        return 0
    return VkImageUsage.COLOR_ATTACHMENT if aspects == 1 else VkImageUsage.DEPTH_STENCIL_ATTACHMENT


def _usage(aspects: int, samples: int) -> int:
    """The usage of an image where nobody says."""
    shaders = SHADER_USAGE if samples == 1 and aspects == 1 else 0
    return TRANSFER_USAGE | shaders | _attached(aspects, samples)


class BuffersImages(RigDevice):
    """Resources of one device. Each has a memory object of its own unless the scenario gives one."""

    def memory(
        self,
        size: int,
        allowed: int = 0xFFFFFFFF,
        wanted: int = DIRECT,
        *,
        dedicated: Mapping[str, Any] | None = None,
        chain: Any = None,
    ) -> Any:
        """A memory object of `size` bytes in an allowed type with the wanted properties. `chain` is its pNext chain.

        `dedicated` has the `buffer` or `image` that it is for alone. Memory that is to be seen by the host is cleared:
        an indirect dispatch of what a driver left there could run for ever.
        """
        vk = self.vk
        index = self.gpu.memory_type(allowed, wanted)
        # Each named, to live until the call.
        following = alone = chain if dedicated is None else vk.VkMemoryDedicatedAllocateInfo(pNext=chain, **dedicated)
        if self.extension_usage & VkBufferUsage.SHADER_DEVICE_ADDRESS:
            # The package's own name for it is None.
            following = vk.VkMemoryAllocateFlagsInfo(pNext=alone, flags=VkMemoryAllocate.DEVICE_ADDRESS)
        info = vk.VkMemoryAllocateInfo(pNext=following, allocationSize=size, memoryTypeIndex=index)
        handle = vk.vkAllocateMemory(self.device, info, None)
        self.gpu.cleanup.callback(vk.vkFreeMemory, self.device, handle, None)
        if wanted & VkMemoryProperty.HOST_VISIBLE:
            vk.vkMapMemory(self.device, handle, 0, size, 0)[:] = bytes(size)
            vk.vkUnmapMemory(self.device, handle)
        return handle

    def buffer(
        self,
        size: int = 256,
        memory: Any = None,
        offset: int = 0,
        *,
        data: bytes = b"",
        exclusive: bool = False,
        flags: int = 0,
        placed: Placer | None = None,
    ) -> RigBuffer:
        """A buffer for every use that a scenario has, in memory of its own, at `offset` of the memory given, or where
        it is `placed`. To one that is sparse by its VkBufferCreateFlags nothing is bound.

        The host writes `data` to its beginning. Raises `LacksError` where the device has no such sparse buffers.
        """
        vk = self.vk
        is_sparse = self._is_sparse(flags, -1)
        usage = (BUFFER_USAGE & ~TEXEL_USAGE if is_sparse else BUFFER_USAGE) | self.extension_usage
        info = vk.VkBufferCreateInfo(flags=flags, size=size, usage=usage, **self.sharing(exclusive))
        handle = vk.vkCreateBuffer(self.device, info, None)
        if is_sparse:
            return RigBuffer(self.own("Buffer", handle), size, None)
        place = MemoryPlace(memory, offset) if placed is None else placed(handle)
        if place.memory is None:
            needs = vk.vkGetBufferMemoryRequirements(self.device, handle)
            place = MemoryPlace(self.memory(needs.size, needs.memoryTypeBits), offset)
        self.own("Buffer", handle)  # after its memory, so that it is destroyed before
        vk.vkBindBufferMemory(self.device, handle, place.memory, place.offset)
        buffer = RigBuffer(handle, size, place.memory, place.offset, place.mapped)
        if data:
            self.host_write(buffer, data)
        return buffer

    def _is_sparse(self, flags: int, kind: int) -> bool:
        """Whether flags make a buffer (`kind` -1), or an image of a VkImageType, sparse. Raises `LacksError` where the
        device has no such resources."""
        resident = [RESIDENCY.get(kind, "sparseResidencyImage1D")] if flags & VkImageCreate.SPARSE_RESIDENCY else []
        self.require(*(name for flag, name in SPARSE_FEATURES.items() if flags & flag), *resident)
        return bool(flags & VkImageCreate.SPARSE_BINDING)

    def address(self, buffer: RigBuffer) -> tuple[int, int]:
        """vkGetBufferDeviceAddress, as its low and its high word."""
        info = self.vk.VkBufferDeviceAddressInfo(buffer=buffer.handle)
        # The package's own function takes the address for a result code.
        value = self.vk.lib.vkGetBufferDeviceAddress(self.device, self.vk.ffi.addressof(info))
        return value & 0xFFFFFFFF, value >> 32

    def address_bytes(self, buffer: RigBuffer, offset: int = 0) -> bytes:
        """The device address of a byte of a buffer, as the 8 bytes that a shader reads."""
        low, high = self.address(buffer)
        return ((high << 32 | low) + offset).to_bytes(8, "little")

    def image(
        self,
        format: str = "VK_FORMAT_R8G8B8A8_UNORM",
        extent: tuple[int, int, int] = (16, 16, 1),
        *,
        mips: int = 1,
        layers: int = 1,
        samples: int = 1,
        usage: int | None = None,
        exclusive: bool = False,
        memory: Any = None,
        flags: int = 0,
        placed: Placer | None = None,
        chain: Any = None,
    ) -> RigImage:
        """An optimally tiled image, in memory of its own, at the start of the given memory, or where it is `placed`.

        Its type follows from the extent, in texels. To one that is sparse by its VkImageCreateFlags nothing is bound.
        `chain` is its pNext chain. Raises `LacksError` where the device has no such sparse images.
        """
        vk = self.vk
        value = enum_value("VkFormat", format)
        aspects = format_of(value).aspects
        kind = 2 if extent[2] > 1 else 1 if extent[1] > 1 else 0
        is_sparse = self._is_sparse(flags, kind)
        usage = _usage(aspects, samples) if usage is None else usage | _attached(aspects, samples)
        info = vk.VkImageCreateInfo(
            pNext=chain,
            flags=flags,
            imageType=kind,
            format=value,
            extent=vk.VkExtent3D(*extent),
            mipLevels=mips,
            arrayLayers=layers,
            samples=samples,
            usage=usage,
            initialLayout=vk.VK_IMAGE_LAYOUT_UNDEFINED,
            **self.sharing(exclusive),
        )
        handle = vk.vkCreateImage(self.device, info, None)
        if is_sparse:
            vk.vkGetImageMemoryRequirements(self.device, handle)
            vk.vkGetImageSparseMemoryRequirements(self.device, handle)
            return RigImage(self.own("Image", handle), value, extent, mips, layers, kind, aspects, None, usage)
        place = self._image_place(handle, memory) if placed is None else placed(handle)
        self.own("Image", handle)
        vk.vkBindImageMemory(self.device, handle, place.memory, place.offset)
        return RigImage(handle, value, extent, mips, layers, kind, aspects, place.memory, usage)

    def _image_place(self, handle: Any, memory: Any) -> MemoryPlace:
        """The beginning of some memory, or of memory of its own for an image."""
        needs = self.vk.vkGetImageMemoryRequirements(self.device, handle)
        return MemoryPlace(self.memory(needs.size, needs.memoryTypeBits, 0) if memory is None else memory)

    def target(
        self,
        format: str = COLOR_FORMAT,
        extent: tuple[int, int, int] = (16, 16, 1),
        *,
        layers: int = 1,
        mips: int = 1,
        samples: int = 1,
    ) -> RigImage:
        """An image to render to, as colour or depth/stencil by its format. It can be an input attachment, sampled and
        copied, too."""
        color = format_of(enum_value("VkFormat", format)).aspects == 1
        usage = (
            TRANSFER_USAGE
            | VkImageUsage.INPUT_ATTACHMENT
            | (VkImageUsage.SAMPLED if samples == 1 else 0)
            | (VkImageUsage.COLOR_ATTACHMENT if color else VkImageUsage.DEPTH_STENCIL_ATTACHMENT)
        )
        return self.image(format, extent, mips=mips, layers=layers, samples=samples, usage=usage)

    def view(
        self, image: RigImage, *, aspect: int = 1, mips: tuple[int, int] = (0, 1), layers: tuple[int, int] = (0, 1)
    ) -> Any:
        """An image view of `mips` and `layers` as (first, count)."""
        vk = self.vk
        part = vk.VkImageSubresourceRange(
            aspectMask=aspect, baseMipLevel=mips[0], levelCount=mips[1], baseArrayLayer=layers[0], layerCount=layers[1]
        )
        kind = image.type + 4 if layers[1] > 1 else image.type
        info = vk.VkImageViewCreateInfo(image=image.handle, viewType=kind, format=image.format, subresourceRange=part)
        return self.own("ImageView", vk.vkCreateImageView(self.device, info, None))

    def buffer_view(self, buffer: RigBuffer, format: str, offset: int = 0, size: int = VK_WHOLE_SIZE) -> Any:
        """A texel buffer view. Offset and size are bytes."""
        vk = self.vk
        info = vk.VkBufferViewCreateInfo(
            buffer=buffer.handle, format=enum_value("VkFormat", format), offset=offset, range=size
        )
        return self.own("BufferView", vk.vkCreateBufferView(self.device, info, None))

    def sampler(self) -> Any:
        """A nearest-neighbour sampler."""
        return self.own("Sampler", self.vk.vkCreateSampler(self.device, self.vk.VkSamplerCreateInfo(), None))

    def host_read(self, buffer: RigBuffer, offset: int = 0, size: int | None = None) -> bytes:
        """Reads through a mapping of the buffer's memory, and declares the read to the recorder."""
        size = buffer.size - offset if size is None else size
        if buffer.mapped is not None:
            begin = buffer.offset + offset
            vkharness.host_read(buffer.mapped, begin, size)
            return bytes(buffer.mapped[begin : begin + size])
        mapped = self.vk.vkMapMemory(self.device, buffer.memory, buffer.offset + offset, size, 0)
        vkharness.host_read(mapped)
        data = bytes(mapped)
        self.vk.vkUnmapMemory(self.device, buffer.memory)
        return data

    def host_write(self, buffer: RigBuffer, data: bytes, offset: int = 0) -> None:
        """Writes through a mapping of the buffer's memory."""
        if buffer.mapped is not None:
            begin = buffer.offset + offset
            buffer.mapped[begin : begin + len(data)] = data
            return
        mapped = self.vk.vkMapMemory(self.device, buffer.memory, buffer.offset, buffer.size, 0)
        mapped[offset : offset + len(data)] = data
        self.vk.vkUnmapMemory(self.device, buffer.memory)
