"""Contents of buffers and images where a trimmed capture begins.

The bytes of a buffer are contents of its memory. Those of an image are put there by a copy that is made up: a staging
buffer, one submit, and a wait until the queue is idle. So the image has its layout, too, and nothing that follows can
conflict with the copy. Objects that are made up have ids from `FIRST_ID` on.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from vkharness.spec.enums import (
    VK_QUEUE_FAMILY_IGNORED,
    VK_WHOLE_SIZE,
    VkAccess2,
    VkBufferUsage,
    VkImageLayout,
    VkImageTiling,
    VkPipelineStage2,
    VkStructureType,
)
from vkharness.trace.calls import Block, Call, HostWrite
from vkharness.trace.found_writes import FoundWrites
from vkharness.trace.lines import Corrupt

FIRST_ID = 1 << 47
BUFFER_HEAD, IMAGE_HEAD = struct.Struct("<QQQ"), struct.Struct("<QQQIII")
"""Of the command for a buffer: device, buffer, size. For an image: device, image, size, aspect, layout, levels; then
the size of each level follows."""
MOST_LEVELS = 32
_UNKNOWN = (VkImageLayout.UNDEFINED, VkImageLayout.PREINITIALIZED)


class InitialContents:
    """The buffers, images and queues of one capture, as far as they are needed to give resources their contents."""

    def __init__(self, memory: FoundWrites) -> None:
        self._memory = memory
        self._places: dict[int, tuple[int, int]] = {}
        self._images: dict[int, dict[str, Any]] = {}
        self._queues: dict[int, tuple[int, int]] = {}
        self._next = FIRST_ID

    def follow(self, call: Call) -> None:
        """Takes note of what is created and bound."""
        name, args = call.name, call.args
        if name.startswith("vkBind"):
            for each in args.get("pBindInfos") or (args,):
                bound = each.get("buffer") or each.get("image")
                if bound and "memory" in each:
                    self._places[bound] = (each["memory"], each["memoryOffset"])
        elif name == "vkCreateImage":
            self._images[args["pImage"]] = args["pCreateInfo"] or {}
        elif name == "vkGetDeviceQueue":
            self._queues.setdefault(args["device"], (args["pQueue"], args["queueFamilyIndex"]))
        elif name == "vkGetDeviceQueue2" and args["pQueueInfo"]:
            self._queues.setdefault(args["device"], (args["pQueue"], args["pQueueInfo"]["queueFamilyIndex"]))

    def buffer(self, index: int, head: tuple[int, ...], data: bytes) -> Iterator[Block]:
        """Yields the contents of a buffer by block `index`, as contents of its memory."""
        _device, buffer, size = head
        place = self._places.get(buffer)
        if place is None:
            raise Corrupt(f"contents of the buffer {buffer}, which has no memory")
        yield self._memory.contents(index, *place, data[:size])

    def image(self, index: int, head: tuple[int, ...], levels: tuple[int, ...], data: bytes) -> Iterator[Block]:
        """Yields the blocks that give an aspect of an image its contents and layout by block `index`."""
        device, image, size, aspect, layout, _ = head
        info, queue = self._images.get(image), self._queues.get(device)
        if info is None or queue is None:
            return
        place = self._places.get(image)
        linear = info["tiling"] == VkImageTiling.LINEAR and place is not None
        if linear and place is not None:
            yield self._memory.contents(index, *place, data[:size])
        if linear or info["samples"] > 1 or not size:
            if layout not in _UNKNOWN:
                yield from self._submitted(index, device, queue, [_barrier(image, info, aspect, 0, layout)])
            return
        staging, memory = self._new(), self._new()
        yield from _staging_buffer(index, device, staging, memory, data[:size])
        target = VkImageLayout.TRANSFER_DST_OPTIMAL
        final = target if layout in _UNKNOWN else layout
        copy = {
            "srcBuffer": staging,
            "dstImage": image,
            "dstImageLayout": target,
            "regionCount": len(levels),
            "pRegions": _regions(info, aspect, levels),
        }
        yield from self._submitted(
            index,
            device,
            queue,
            [
                _barrier(image, info, aspect, 0, target),
                ("vkCmdCopyBufferToImage", copy),
                _barrier(image, info, aspect, target, final),
            ],
        )
        yield Call(index, "vkDestroyBuffer", {"device": device, "buffer": staging, "pAllocator": None})
        yield Call(index, "vkFreeMemory", {"device": device, "memory": memory, "pAllocator": None})

    def _new(self) -> int:
        self._next += 1
        return self._next

    def _submitted(
        self, index: int, device: int, queue: tuple[int, int], commands: list[tuple[str, dict[str, Any]]]
    ) -> Iterator[Block]:
        """A command buffer of its own, executed at once."""
        pool, commands_id = self._new(), self._new()
        create = _struct("COMMAND_POOL_CREATE_INFO", flags=0, queueFamilyIndex=queue[1])
        yield _made(index, "vkCreateCommandPool", device=device, pCreateInfo=create, pAllocator=None, pCommandPool=pool)
        info = _struct("COMMAND_BUFFER_ALLOCATE_INFO", commandPool=pool, level=0, commandBufferCount=1)
        yield _made(index, "vkAllocateCommandBuffers", device=device, pAllocateInfo=info, pCommandBuffers=[commands_id])
        begin = _struct("COMMAND_BUFFER_BEGIN_INFO", flags=1, pInheritanceInfo=None)
        yield _made(index, "vkBeginCommandBuffer", commandBuffer=commands_id, pBeginInfo=begin)
        for name, args in commands:
            yield Call(index, name, {"commandBuffer": commands_id, **args})
        yield _made(index, "vkEndCommandBuffer", commandBuffer=commands_id)
        submit = _struct(
            "SUBMIT_INFO",
            waitSemaphoreCount=0,
            pWaitSemaphores=None,
            pWaitDstStageMask=None,
            commandBufferCount=1,
            pCommandBuffers=[commands_id],
            signalSemaphoreCount=0,
            pSignalSemaphores=None,
        )
        yield _made(index, "vkQueueSubmit", queue=queue[0], submitCount=1, pSubmits=[submit], fence=0)
        yield _made(index, "vkQueueWaitIdle", queue=queue[0])
        yield Call(index, "vkDestroyCommandPool", {"device": device, "commandPool": pool, "pAllocator": None})


def _staging_buffer(index: int, device: int, buffer: int, memory: int, data: bytes) -> Iterator[Block]:
    """A buffer that holds `data`."""
    info = _struct(
        "BUFFER_CREATE_INFO",
        flags=0,
        size=len(data),
        usage=VkBufferUsage.TRANSFER_SRC,
        sharingMode=0,
        queueFamilyIndexCount=0,
        pQueueFamilyIndices=None,
    )
    yield _made(index, "vkCreateBuffer", device=device, pCreateInfo=info, pAllocator=None, pBuffer=buffer)
    allocate = _struct("MEMORY_ALLOCATE_INFO", allocationSize=len(data), memoryTypeIndex=0)
    yield _made(index, "vkAllocateMemory", device=device, pAllocateInfo=allocate, pAllocator=None, pMemory=memory)
    yield _made(index, "vkBindBufferMemory", device=device, buffer=buffer, memory=memory, memoryOffset=0)
    whole = {"device": device, "memory": memory, "offset": 0, "size": VK_WHOLE_SIZE, "flags": 0, "ppData": 0}
    yield Call(index, "vkMapMemory", whole, 0)
    yield HostWrite(index, memory, 0, data, None, True)


def _regions(info: dict[str, Any], aspect: int, levels: tuple[int, ...]) -> list[dict[str, Any]]:
    """One VkBufferImageCopy for each level, whose layers lie one after the other."""
    extent, offset, found = info["extent"], 0, []
    for level, size in enumerate(levels):
        found.append(
            {
                "bufferOffset": offset,
                "bufferRowLength": 0,
                "bufferImageHeight": 0,
                "imageSubresource": {
                    "aspectMask": aspect,
                    "mipLevel": level,
                    "baseArrayLayer": 0,
                    "layerCount": info["arrayLayers"],
                },
                "imageOffset": {"x": 0, "y": 0, "z": 0},
                "imageExtent": {name: max(1, value >> level) for name, value in extent.items()},
            }
        )
        offset += size
    return found


def _barrier(image: int, info: dict[str, Any], aspect: int, old: int, new: int) -> tuple[str, dict[str, Any]]:
    """A transition of an aspect of an image that nothing else can run beside."""
    everything = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE
    barrier = _struct(
        "IMAGE_MEMORY_BARRIER",
        srcAccessMask=everything,
        dstAccessMask=everything,
        oldLayout=old,
        newLayout=new,
        srcQueueFamilyIndex=VK_QUEUE_FAMILY_IGNORED,
        dstQueueFamilyIndex=VK_QUEUE_FAMILY_IGNORED,
        image=image,
        subresourceRange={
            "aspectMask": aspect,
            "baseMipLevel": 0,
            "levelCount": info["mipLevels"],
            "baseArrayLayer": 0,
            "layerCount": info["arrayLayers"],
        },
    )
    return "vkCmdPipelineBarrier", {
        "srcStageMask": VkPipelineStage2.ALL_COMMANDS,
        "dstStageMask": VkPipelineStage2.ALL_COMMANDS,
        "dependencyFlags": 0,
        "memoryBarrierCount": 0,
        "pMemoryBarriers": None,
        "bufferMemoryBarrierCount": 0,
        "pBufferMemoryBarriers": None,
        "imageMemoryBarrierCount": 1,
        "pImageMemoryBarriers": [barrier],
    }


def _struct(kind: str, **members: Any) -> dict[str, Any]:
    return {"sType": getattr(VkStructureType, kind), "pNext": None, **members}


def _made(index: int, name: str, **args: Any) -> Call:
    """A call that succeeded."""
    return Call(index, name, args, 0)
