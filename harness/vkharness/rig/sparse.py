"""Sparse buffers and images, and vkQueueBindSparse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vkharness.device.headless import DeviceQueue
from vkharness.rig.buffers_images import RESIDENCY, SPARSE_FEATURES, TRANSFER_USAGE, BuffersImages
from vkharness.rig.core import COLOR_FORMAT, RigBuffer, RigImage
from vkharness.rig.queues import SemaphoreUse, Submits, timeline_values
from vkharness.spec.enums import VkImageAspect, VkImageCreate

FEATURES = (*SPARSE_FEATURES.values(), RESIDENCY[-1], RESIDENCY[1])
"""The features that scenarios with sparse resources require of a device."""
FLAGS = VkImageCreate.SPARSE_BINDING | VkImageCreate.SPARSE_RESIDENCY | VkImageCreate.SPARSE_ALIASED
"""Of every sparse resource: VkBufferCreateFlags have the same values."""


@dataclass(frozen=True, slots=True)
class SparseBlock:
    """One sparse block of a buffer, or of the first mip level of an image (blocks are counted along its rows), and the
    block of a memory object that it is bound to. `memory` None unbinds it."""

    resource: RigBuffer | RigImage
    block: int
    memory: Any = None
    memory_block: int = 0


class SparseResources(BuffersImages, Submits):
    """Sparse resources of one device. Sizes and offsets are given in sparse blocks."""

    def sparse_block(self) -> int:
        """The bytes of a sparse block of a buffer: the larger of VkMemoryRequirements::alignment and 64 KiB."""
        self.require(*FEATURES)
        return 1 << 16

    def sparse_buffer(self, blocks: int = 2) -> RigBuffer:
        """A sparse buffer with residency, of which nothing is bound."""
        return self.buffer(blocks * self.sparse_block(), flags=FLAGS)

    def sparse_image(self, blocks: tuple[int, int] = (2, 1)) -> RigImage:
        """A sparse image with residency, of which nothing is bound; its size in blocks, of one mip level."""
        self.sparse_block()
        width, height = blocks[0] * 128, blocks[1] * 128  # the standard block of 32-bit texels
        return self.image(COLOR_FORMAT, (width, height, 1), usage=TRANSFER_USAGE, flags=FLAGS)

    def sparse_memory(self, resource: RigBuffer | RigImage, blocks: int = 1) -> Any:
        """A memory object of some blocks for a sparse resource."""
        image = isinstance(resource, RigImage)
        ask = self.vk.vkGetImageMemoryRequirements if image else self.vk.vkGetBufferMemoryRequirements
        needs = ask(self.device, resource.handle)
        return self.memory(blocks * self.sparse_block(), needs.memoryTypeBits, 0)

    def bind_sparse(
        self,
        *binds: SparseBlock,
        queue: DeviceQueue | None = None,
        waits: Sequence[SemaphoreUse] = (),
        signals: Sequence[SemaphoreUse] = (),
        fence: Any = None,
    ) -> None:
        """One vkQueueBindSparse of one batch, to the given queue or else to the first that can bind."""
        vk, size = self.vk, self.sparse_block()
        target = queue or next(each for each in self.queues if each.flags & 0x8)
        by_resource: dict[Any, list[SparseBlock]] = {}
        for each in binds:
            by_resource.setdefault(each.resource.handle, []).append(each)
        buffers, images = [], []
        for handle, several in by_resource.items():
            if isinstance(several[0].resource, RigImage):
                made = [_image_bind(vk, each, size) for each in several]
                images.append(vk.VkSparseImageMemoryBindInfo(image=handle, bindCount=len(made), pBinds=made))
            else:
                made = [
                    vk.VkSparseMemoryBind(
                        resourceOffset=each.block * size,
                        size=size,
                        memory=each.memory,
                        memoryOffset=each.memory_block * size,
                    )
                    for each in several
                ]
                buffers.append(vk.VkSparseBufferMemoryBindInfo(buffer=handle, bindCount=len(made), pBinds=made))
        info = vk.VkBindSparseInfo(
            pNext=timeline_values(vk, waits, signals),
            waitSemaphoreCount=len(waits),
            pWaitSemaphores=[each.semaphore for each in waits],
            bufferBindCount=len(buffers),
            pBufferBinds=buffers,
            imageBindCount=len(images),
            pImageBinds=images,
            signalSemaphoreCount=len(signals),
            pSignalSemaphores=[each.semaphore for each in signals],
        )
        vk.vkQueueBindSparse(target.handle, 1, [info], fence)


def _image_bind(vk: Any, each: SparseBlock, size: int) -> Any:
    across = each.resource.extent[0] // 128 if isinstance(each.resource, RigImage) else 1
    return vk.VkSparseImageMemoryBind(
        subresource=vk.VkImageSubresource(aspectMask=VkImageAspect.COLOR, mipLevel=0, arrayLayer=0),
        offset=vk.VkOffset3D(each.block % across * 128, each.block // across * 128, 0),
        extent=vk.VkExtent3D(128, 128, 1),
        memory=each.memory,
        memoryOffset=each.memory_block * size,
    )
