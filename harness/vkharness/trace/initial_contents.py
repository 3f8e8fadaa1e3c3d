"""Contents of buffers and images where a capture begins that does not hold the program's first calls.

The bytes of a buffer are contents of its memory. Those of an image are put there by a copy that is made up: a staging
buffer, one submit, and a wait until the queue is idle. So the image has its layout, too, and nothing that follows can
conflict with the copy. Objects that are made up have ids from `FIRST_ID` on.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from vkharness.spec.enums import (
    VK_QUEUE_FAMILY_IGNORED,
    VK_WHOLE_SIZE,
    VkAccess2,
    VkBufferUsage,
    VkImageAspect,
    VkImageLayout,
    VkImageTiling,
    VkPipelineStage2,
    VkStructureType,
)
from vkharness.spec.formats import format_of
from vkharness.trace.calls import Block, Call, HostWrite
from vkharness.trace.found_writes import FoundWrites
from vkharness.trace.lines import Corrupt

FIRST_ID = 1 << 47
NO_CONTENTS = (VkImageLayout.UNDEFINED, VkImageLayout.PREINITIALIZED)
"""Layouts of images that no command has given contents."""
_NO_PLANES = VkImageAspect.COLOR | VkImageAspect.DEPTH | VkImageAspect.STENCIL


class LaidOut(NamedTuple):
    """A part of an image, and the VkImageLayout that it is in where the capture begins."""

    layout: int
    aspects: int
    level: int = 0
    levels: int | None = None
    """None: all."""
    layer: int = 0
    layers: int | None = None


class ImageStart(NamedTuple):
    """The parts of an image where the capture begins, and the queue family that owns it; None where none is known."""

    parts: Sequence[LaidOut]
    family: int | None = None


class Texels(NamedTuple):
    """Where in the contents of an image those of a level lie, of some of its layers one after the other."""

    offset: int
    aspect: int
    level: int
    layer: int = 0
    layers: int | None = None


class InitialContents:
    """The buffers, images and queues of one capture, as far as they are needed to give resources their contents."""

    def __init__(self, memory: FoundWrites) -> None:
        self._memory = memory
        self._places: dict[int, tuple[int, int]] = {}
        self._images: dict[int, dict[str, Any]] = {}
        self._queues: dict[int, dict[int, int]] = {}
        """The first queue of each family, by device."""
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
        elif name == "vkGetDeviceQueue" and args["pQueue"]:
            self._queues.setdefault(args["device"], {}).setdefault(args["queueFamilyIndex"], args["pQueue"])
        elif name == "vkGetDeviceQueue2" and args["pQueue"] and args["pQueueInfo"]:
            families = self._queues.setdefault(args["device"], {})
            families.setdefault(args["pQueueInfo"]["queueFamilyIndex"], args["pQueue"])

    def buffer(self, index: int, buffer: int, data: bytes) -> Iterator[Block]:
        """Yields the contents of a buffer by block `index`, as contents of its memory."""
        place = self._places.get(buffer)
        if place is None:
            raise Corrupt(f"contents of the buffer {buffer}, which has no memory")
        yield self._memory.contents(index, *place, data)

    def image_info(self, image: int) -> dict[str, Any] | None:
        """The VkImageCreateInfo of an image that was created."""
        return self._images.get(image)

    def families(self, device: int) -> Iterable[int]:
        """The queue families of which the program has queues."""
        return self._queues.get(device, {})

    def linear(self, index: int, image: int, data: bytes) -> Iterator[Block]:
        """Yields the contents of a linear image as contents of its memory; nothing for another one."""
        info, place = self._images.get(image), self._places.get(image)
        if info is not None and place is not None and info["tiling"] == VkImageTiling.LINEAR:
            yield self._memory.contents(index, *place, data)

    def image(
        self, index: int, device: int, image: int, start: ImageStart, texels: Sequence[Texels], data: bytes
    ) -> Iterator[Block]:
        """Yields the blocks that give an image its contents and layouts by block `index`. Without texels, and for those
        of several samples, these are its layouts alone."""
        info, queues = self._images.get(image), self._queues.get(device)
        if info is None or not queues:
            return
        family = start.family if start.family in queues else next(iter(queues))
        queue = queues[family], family
        known = [part for part in start.parts if part.layout not in NO_CONTENTS]
        if not texels or not data or info["samples"] > 1:
            if known:
                laid_out = [(part, 0, part.layout) for part in known]
                yield from self._submitted(index, device, queue, [_transitions(image, info, laid_out)])
            return
        staging, memory = self._new(), self._new()
        yield from _staging_buffer(index, device, staging, memory, data)
        target = VkImageLayout.TRANSFER_DST_OPTIMAL
        whole = LaidOut(target, _aspects(each.aspect for each in texels))
        regions = [_region(info, each) for each in texels]
        copy: dict[str, Any] = {"srcBuffer": staging, "dstImage": image, "dstImageLayout": target}
        copy |= {"regionCount": len(regions), "pRegions": regions}
        before = _transitions(image, info, [(whole, 0, target)])
        after = _transitions(image, info, [(part, target, part.layout) for part in known or [whole]])
        filled = [before, ("vkCmdCopyBufferToImage", copy), after]
        yield from self._submitted(index, device, queue, filled)
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


def _aspects(several: Iterable[int]) -> int:
    """VkImageAspectFlags of single bits; of planes, the whole image's."""
    found = functools.reduce(operator.or_, several, 0)
    return VkImageAspect.COLOR if found & ~_NO_PLANES else found


def _region(info: dict[str, Any], texels: Texels) -> dict[str, Any]:
    """A VkBufferImageCopy."""
    extent = tuple(max(1, info["extent"][name] >> texels.level) for name in ("width", "height", "depth"))
    if texels.aspect & ~_NO_PLANES:
        extent = format_of(info["format"]).aspect_extent(texels.aspect, extent)
    return {
        "bufferOffset": texels.offset,
        "bufferRowLength": 0,
        "bufferImageHeight": 0,
        "imageSubresource": {
            "aspectMask": texels.aspect,
            "mipLevel": texels.level,
            "baseArrayLayer": texels.layer,
            "layerCount": info["arrayLayers"] if texels.layers is None else texels.layers,
        },
        "imageOffset": {"x": 0, "y": 0, "z": 0},
        "imageExtent": dict(zip(("width", "height", "depth"), extent, strict=True)),
    }


def _transitions(
    image: int, info: dict[str, Any], several: Iterable[tuple[LaidOut, int, int]]
) -> tuple[str, dict[str, Any]]:
    """Transitions of parts of an image, each from one layout to another, that nothing else can run beside."""
    barriers = [_barrier(image, info, *each) for each in several]
    return "vkCmdPipelineBarrier", {
        "srcStageMask": VkPipelineStage2.ALL_COMMANDS,
        "dstStageMask": VkPipelineStage2.ALL_COMMANDS,
        "dependencyFlags": 0,
        "memoryBarrierCount": 0,
        "pMemoryBarriers": None,
        "bufferMemoryBarrierCount": 0,
        "pBufferMemoryBarriers": None,
        "imageMemoryBarrierCount": len(barriers),
        "pImageMemoryBarriers": barriers,
    }


def _barrier(image: int, info: dict[str, Any], part: LaidOut, old: int, new: int) -> dict[str, Any]:
    """A VkImageMemoryBarrier."""
    everything = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE
    return _struct(
        "IMAGE_MEMORY_BARRIER",
        srcAccessMask=everything,
        dstAccessMask=everything,
        oldLayout=old,
        newLayout=new,
        srcQueueFamilyIndex=VK_QUEUE_FAMILY_IGNORED,
        dstQueueFamilyIndex=VK_QUEUE_FAMILY_IGNORED,
        image=image,
        subresourceRange={
            "aspectMask": part.aspects,
            "baseMipLevel": part.level,
            "levelCount": info["mipLevels"] if part.levels is None else part.levels,
            "baseArrayLayer": part.layer,
            "layerCount": info["arrayLayers"] if part.layers is None else part.layers,
        },
    )


def _struct(kind: str, **members: Any) -> dict[str, Any]:
    return {"sType": getattr(VkStructureType, kind), "pNext": None, **members}


def _made(index: int, name: str, **args: Any) -> Call:
    """A call that succeeded."""
    return Call(index, name, args, 0)
