"""An allocator of device memory: resources in blocks of large memory objects, or in memory of their own.

The allocator decides where a resource lies and nothing else. Memory that is given back may be given again at once: what
still uses it must be ordered before, by whoever gives it back. `frame_contexts` gives it back late enough.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from vkharness.findings import LacksError
from vkharness.rig.buffers_images import BuffersImages
from vkharness.rig.core import MemoryPlace, RigBuffer, RigImage
from vkharness.rig.suballocators import BuddyAllocator
from vkharness.spec.enums import VkMemoryProperty

COHERENT = VkMemoryProperty.HOST_VISIBLE | VkMemoryProperty.HOST_COHERENT
"""The properties that every host domain requires, so that nothing has to be flushed or invalidated."""


class MemoryDomain(Enum):
    """Where a resource should lie: (required, preferred, unwanted) VkMemoryPropertyFlags."""

    DEVICE = (VkMemoryProperty.DEVICE_LOCAL, 0, 0)
    """Near the device. The host may or may not see it."""
    HOST = (COHERENT, 0, VkMemoryProperty.HOST_CACHED)
    """For uploads."""
    CACHED_HOST = (COHERENT, VkMemoryProperty.HOST_CACHED, 0)
    """For what the host reads back."""
    LINKED_DEVICE_HOST = (COHERENT | VkMemoryProperty.DEVICE_LOCAL, 0, 0)
    """Near the device, and written by the host directly."""
    TRANSIENT = (0, VkMemoryProperty.LAZILY_ALLOCATED, 0)
    """Attachments that live inside one render pass, perhaps in no memory at all."""


@dataclass(slots=True, eq=False)
class _Chunk:
    """A memory object that holds several resources."""

    memory: Any
    type: int
    optimal: bool
    mapped: Any
    blocks: BuddyAllocator


class MemoryAllocator:
    """Memory of one device. Sizes are bytes; `chunk` and `smallest` are powers of two.

    A resource gets memory of its own when the driver asks for that (VkMemoryDedicatedRequirements), when it is larger
    than a chunk, or when it is `dedicated`; with False there the driver is not asked. Buffers and images lie in
    different chunks, since bufferImageGranularity says how close they may be. Host memory stays mapped.
    """

    def __init__(self, rig: BuffersImages, chunk: int = 1 << 16, smallest: int = 256) -> None:
        self.rig, self.chunk, self.smallest = rig, chunk, smallest
        self._chunks: list[_Chunk] = []
        self._blocks: dict[Any, tuple[_Chunk, int]] = {}
        """The chunk and offset of each resource in one, by the resource's handle."""
        self.dedicated = 0
        """The number of memory objects that were allocated for one resource."""

    @property
    def chunks(self) -> int:
        """The number of memory objects that several resources share."""
        return len(self._chunks)

    def buffer(
        self, size: int, domain: MemoryDomain = MemoryDomain.DEVICE, *, data: bytes = b"", dedicated: bool | None = None
    ) -> RigBuffer:
        """A buffer as `BuffersImages.buffer` makes it, from this allocator. The host can write `data` where it sees the
        domain."""

        def place(handle: Any) -> MemoryPlace:
            return self._place("buffer", handle, domain, dedicated)

        return self.rig.buffer(size, placed=place, data=data)

    def image(
        self, *described: Any, domain: MemoryDomain = MemoryDomain.DEVICE, dedicated: bool | None = None, **more: Any
    ) -> RigImage:
        """An image as `BuffersImages.image` makes it, from this allocator."""

        def place(handle: Any) -> MemoryPlace:
            return self._place("image", handle, domain, dedicated)

        return self.rig.image(*described, placed=place, **more)

    def give_back(self, resource: RigBuffer | RigImage) -> None:
        """Lets other resources have the memory of this one. Memory of its own stays until the end of the scenario."""
        block = self._blocks.pop(resource.handle, None)
        if block is not None:
            block[0].blocks.give_back(block[1])

    def _place(self, kind: str, handle: Any, domain: MemoryDomain, dedicated: bool | None) -> MemoryPlace:
        needs, wanted = self._requirements(kind, handle)
        size, types = int(needs.size), int(needs.memoryTypeBits)
        index = memory_type(self.rig.gpu.memory_types, types, domain)
        if index is None:
            raise LacksError(f"cannot run here: {self.rig.gpu.device_name} has no memory for the domain {domain.name}")
        if (wanted if dedicated is None else dedicated) or max(size, int(needs.alignment)) > self.chunk:
            self.dedicated += 1
            memory = self.rig.memory(size, 1 << index, 0, dedicated={kind: handle})
            return MemoryPlace(memory, 0, self._mapped(memory, index, size))
        chunk, offset = self._blocks[handle] = self._block(size, int(needs.alignment), index, kind == "image")
        return MemoryPlace(chunk.memory, offset, chunk.mapped)

    def _requirements(self, kind: str, handle: Any) -> tuple[Any, bool]:
        """VkMemoryRequirements, and whether the driver asks for memory of the resource's own."""
        vk = self.rig.vk
        dedicated = vk.ffi.new("VkMemoryDedicatedRequirements *")
        dedicated.sType = vk.VK_STRUCTURE_TYPE_MEMORY_DEDICATED_REQUIREMENTS
        found = vk.ffi.new("VkMemoryRequirements2 *")
        found.sType, found.pNext = vk.VK_STRUCTURE_TYPE_MEMORY_REQUIREMENTS_2, dedicated
        info = getattr(vk, f"Vk{kind.title()}MemoryRequirementsInfo2")(**{kind: handle})
        getattr(vk, f"vkGet{kind.title()}MemoryRequirements2")(self.rig.device, info, found)
        needs = vk.ffi.new("VkMemoryRequirements *", found.memoryRequirements)
        return needs, bool(dedicated.prefersDedicatedAllocation or dedicated.requiresDedicatedAllocation)

    def _block(self, size: int, alignment: int, type: int, optimal: bool) -> tuple[_Chunk, int]:
        for chunk in self._chunks:
            if (chunk.type, chunk.optimal) == (type, optimal):
                offset = chunk.blocks.take(size, alignment)
                if offset is not None:
                    return chunk, offset
        memory = self.rig.memory(self.chunk, 1 << type, 0)
        mapped = self._mapped(memory, type, self.chunk)
        self._chunks.append(_Chunk(memory, type, optimal, mapped, BuddyAllocator(self.chunk, self.smallest)))
        return self._block(size, alignment, type, optimal)

    def _mapped(self, memory: Any, type: int, size: int) -> Any:
        """The bytes of memory that the host can see without flushes, cleared, and mapped until it is freed."""
        if COHERENT & ~self.rig.gpu.memory_types[type]:
            return None
        mapped = self.rig.vk.vkMapMemory(self.rig.device, memory, 0, size, 0)
        mapped[:] = bytes(size)
        return mapped

    def _check(self) -> None:
        for chunk in self._chunks:
            chunk.blocks._check()
        assert all(chunk in self._chunks for chunk, _ in self._blocks.values())


def memory_type(properties: tuple[int, ...], allowed: int, domain: MemoryDomain) -> int | None:
    """The memory type of a domain among the `allowed` ones (a bit each), out of the VkMemoryPropertyFlags of all.

    It has what the domain requires, then most of what it prefers, then least of what it does not want. A domain near
    the device may be anywhere when nothing allowed is near it. None when no type fits.
    """
    required, preferred, unwanted = domain.value
    several = [index for index in range(len(properties)) if allowed >> index & 1]
    fitting = [index for index in several if properties[index] & required == required]
    if domain is MemoryDomain.DEVICE:
        fitting = fitting or several
    if not fitting:
        return None

    def preference(index: int) -> tuple[int, int, int]:
        return -(properties[index] & preferred).bit_count(), (properties[index] & unwanted).bit_count(), index

    return min(fitting, key=preference)
