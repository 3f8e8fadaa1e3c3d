"""Records and submits command buffers of the replay itself, through which the executor issues everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vkharness.replay.objects.encode import Encoder, Handles
from vkharness.replay.objects.queue_mapping import QueuePlace
from vkharness.replay.objects.target import ReplayDevice
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VK_WHOLE_SIZE, VkAccess2, VkPipelineStage2, VkStructureType
from vkharness.spec.shapes import new_struct

MEMORY_READ_WRITE = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE
HOST_READ_WRITE = VkAccess2.HOST_READ | VkAccess2.HOST_WRITE
"""VkAccessFlags for reads and writes of the host."""
FOREVER = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class ImageTransition:
    """One image barrier of the replay: raw image, (aspects, base mip, mips, base layer, layers), old and new layout."""

    image: int
    range: tuple[int, int, int, int, int]
    old: int
    new: int


class ReplayRecorder:
    """Records into one command buffer and submits it; everything recorded has finished when `finish` returns."""

    def __init__(self, device: ReplayDevice, handles: Handles, place: QueuePlace | None = None) -> None:
        """`place`: the queue that it submits to, if not the device's own."""
        self.device = device
        self.handles = handles
        self.family, self.queue = (device.family, device.queue) if place is None else (place[0], device.queue_at(place))
        self._ffi = device.target.ffi
        self._pool = self._create("vkCreateCommandPool", "VkCommandPool", self._pool_info())
        self._fence = self._create("vkCreateFence", "VkFence", new_struct(self._ffi, "VkFenceCreateInfo"))
        self._commands = self._allocate()
        self._encoder = Encoder(self._ffi, handles)
        self._full = new_struct(
            self._ffi, "VkMemoryBarrier", srcAccessMask=MEMORY_READ_WRITE, dstAccessMask=MEMORY_READ_WRITE
        )
        self._to_host = new_struct(
            self._ffi,
            "VkMemoryBarrier",
            srcAccessMask=MEMORY_READ_WRITE | HOST_READ_WRITE,
            dstAccessMask=MEMORY_READ_WRITE | HOST_READ_WRITE,
        )
        self.is_open = False
        self.encoder_skips: set[int] = set()

    def begin(self) -> Any:
        """The command buffer, in the recording state."""
        if not self.is_open:
            info = new_struct(self._ffi, "VkCommandBufferBeginInfo", flags=1)
            self._check("vkBeginCommandBuffer", self._commands, info)
            self.is_open = True
            self._barrier(self._to_host, VkPipelineStage2.ALL_COMMANDS | VkPipelineStage2.HOST)
        return self._commands

    def issue(self, name: str, args: Mapping[str, Any], where: str) -> None:
        """Records one command of a trace; its `commandBuffer` is replaced by ours."""
        commands = self.begin()
        translated = self.handles.addresses.translated(args)
        encoded = self._encoder.call(name, translated, where, {"commandBuffer": commands})
        self.device.function(name, where)(*encoded.arguments)

    def call(self, name: str, *arguments: Any) -> None:
        """Records one command with ready C arguments (after the command buffer)."""
        commands = self.begin()
        self.device.function(name)(commands, *arguments)

    def full_barrier(self) -> None:
        """Records a barrier that orders all earlier commands before all later ones, and makes all
        their writes visible."""
        self.begin()
        self._barrier(self._full, VkPipelineStage2.ALL_COMMANDS)

    def change_layouts(self, changes: list[ImageTransition]) -> None:
        """Records layout transitions, with a full barrier."""
        if not changes:
            return
        commands = self.begin()
        barriers = self._ffi.new("VkImageMemoryBarrier[]", len(changes))
        for barrier, change in zip(barriers, changes, strict=True):
            self._describe(barrier, change)
        self.device.function("vkCmdPipelineBarrier")(
            commands,
            VkPipelineStage2.ALL_COMMANDS,
            VkPipelineStage2.ALL_COMMANDS,
            0,
            1,
            self._full,
            0,
            self._ffi.NULL,
            len(changes),
            barriers,
        )

    def pass_on(self, buffers: list[int], images: list[ImageTransition], families: tuple[int, int]) -> None:
        """Records the half of a queue family ownership transfer that this recorder's family has to make, with a full
        barrier: of whole buffers (raw), and of images."""
        ffi, null = self._ffi, self._ffi.NULL
        of_buffers = ffi.new("VkBufferMemoryBarrier[]", len(buffers))
        for barrier, raw in zip(of_buffers, buffers, strict=True):
            barrier.sType = VkStructureType.BUFFER_MEMORY_BARRIER
            barrier.srcAccessMask = barrier.dstAccessMask = MEMORY_READ_WRITE
            barrier.srcQueueFamilyIndex, barrier.dstQueueFamilyIndex = families
            barrier.buffer, barrier.size = ffi.cast("VkBuffer", raw), VK_WHOLE_SIZE
        of_images = ffi.new("VkImageMemoryBarrier[]", len(images))
        for barrier, change in zip(of_images, images, strict=True):
            self._describe(barrier, change)
            barrier.srcQueueFamilyIndex, barrier.dstQueueFamilyIndex = families
        self.begin()
        everything = (VkPipelineStage2.ALL_COMMANDS, VkPipelineStage2.ALL_COMMANDS, 0, 1, self._full)
        counted = (len(buffers), of_buffers or null, len(images), of_images or null)
        self.device.function("vkCmdPipelineBarrier")(self._commands, *everything, *counted)

    def take(self) -> Any:
        """Ends the command buffer, which the caller submits itself, once, to this recorder's queue. The next one is a
        new one, and `finish` is not called before that submit has run."""
        taken = self._end()
        self._commands = self._allocate()
        return taken

    def finish(self) -> None:
        """Submits what was recorded, if anything, and waits for it. UserError when the device fails."""
        if not self.is_open:
            return
        self._end()
        buffers = self._ffi.new("VkCommandBuffer[1]", [self._commands])
        info = new_struct(self._ffi, "VkSubmitInfo", commandBufferCount=1, pCommandBuffers=buffers)
        fences = self._ffi.new("VkFence[1]", [self._fence])
        handle = self.device.handle
        self._check("vkQueueSubmit", self.queue, 1, info, self._fence)
        self._check("vkWaitForFences", handle, 1, fences, 1, FOREVER)
        self._check("vkResetFences", handle, 1, fences)
        self._check("vkResetCommandPool", handle, self._pool, 0)
        self.encoder_skips |= self._encoder.skipped
        self._encoder = Encoder(self._ffi, self.handles)

    def _end(self) -> Any:
        self._barrier(self._to_host, VkPipelineStage2.ALL_COMMANDS | VkPipelineStage2.HOST)
        self.is_open = False
        self._check("vkEndCommandBuffer", self._commands)
        return self._commands

    def close(self) -> None:
        """Destroys what the recorder made; nothing of it may be pending."""
        null = self._ffi.NULL
        self.device.function("vkDestroyFence")(self.device.handle, self._fence, null)
        self.device.function("vkDestroyCommandPool")(self.device.handle, self._pool, null)

    def _describe(self, barrier: Any, change: ImageTransition) -> None:
        barrier.sType = 45
        barrier.srcAccessMask = barrier.dstAccessMask = MEMORY_READ_WRITE
        barrier.oldLayout, barrier.newLayout = change.old, change.new
        barrier.srcQueueFamilyIndex = barrier.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED
        barrier.image = self._ffi.cast("VkImage", change.image)
        where = barrier.subresourceRange
        where.aspectMask, where.baseMipLevel, where.levelCount = change.range[:3]
        where.baseArrayLayer, where.layerCount = change.range[3:]

    def _barrier(self, barrier: Any, stages: int) -> None:
        null = self._ffi.NULL
        self.device.function("vkCmdPipelineBarrier")(self._commands, stages, stages, 0, 1, barrier, 0, null, 0, null)

    def _pool_info(self) -> Any:
        return new_struct(self._ffi, "VkCommandPoolCreateInfo", flags=1, queueFamilyIndex=self.family)

    def _create(self, function: str, kind: str, info: Any) -> Any:
        out = self._ffi.new(f"{kind} *")
        self._check(function, self.device.handle, info, self._ffi.NULL, out)
        return out[0]

    def _allocate(self) -> Any:
        info = new_struct(self._ffi, "VkCommandBufferAllocateInfo", commandPool=self._pool, commandBufferCount=1)
        out = self._ffi.new("VkCommandBuffer *")
        self._check("vkAllocateCommandBuffers", self.device.handle, info, out)
        return out[0]

    def _check(self, name: str, *arguments: Any) -> None:
        self.device.check(self.device.function(name)(*arguments), name)
