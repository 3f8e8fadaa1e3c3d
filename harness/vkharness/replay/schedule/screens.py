"""Rewrites a trace that presents into a trace that does not, so that any driver can replay it.

Swapchain images become ordinary images. Acquires and presents become submits that wait for and signal their semaphores.
Each also copies the image to its *screen*, an image of ours. The copy stands for the presentation engine, which reads
an image when it is presented, and may still read it until the semaphore or the fence of its next acquire is signaled
("vkAcquireNextImageKHR"). So a screen holds what is seen of a frame, and a witness of a hazard with the presentation
engine changes what the copy finds.

An image that was never presented is on no screen. Its first acquire copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from vkharness.commands.handlers import folded
from vkharness.spec.enums import (
    VK_QUEUE_FAMILY_IGNORED,
    VkImageAspect,
    VkImageLayout,
    VkImageUsage,
    VkPipelineStage2,
    VkResult,
    VkStructureType,
)
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, reading
from vkharness.trace.chain import chained

LAYOUTS = frozenset({"oldLayout", "newLayout", "initialLayout", "finalLayout", "layout", "imageLayout"})
"""Members that hold a VkImageLayout."""
OURS = 0
"""The id of the command buffer for commands that the rewrite adds. They run where they stand, without a submit."""
FIRST_ID = 1 << 48
"""Objects that the rewrite adds have ids from here on. No trace has such ids."""
FIRST_SCREEN = 1 << 49
"""The screen of image `id` has the id `FIRST_SCREEN + id`. No other object that the rewrite adds has such an id."""
OF_PRESENTATION = frozenset({"surface", "pSurface", "swapchain", "pSwapchain", "pSwapchains", "pReleaseInfo"})
"""Arguments that are a surface or a swapchain. A replay leaves out the calls that have one, since it has neither."""
SLEEPS = frozenset({"vkLatencySleepNV", "vkLatencySleepLegacyNV"})
"""Calls that signal a timeline when it is time for the next frame."""
TRANSFERS = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST


@dataclass(slots=True)
class _Shown:
    """The swapchains, images and screens of one trace."""

    swapchains: dict[int, dict[str, Any]] = field(default_factory=dict)
    """VkSwapchainCreateInfoKHR by swapchain."""
    images: dict[int, list[int]] = field(default_factory=dict)
    """Image ids by swapchain, in the order of their indices."""
    sizes: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Width and height of each image."""
    presented: set[int] = field(default_factory=set)
    device: int = 0
    queue: int = 0
    next: int = FIRST_ID


def without_presentation(blocks: list[Block]) -> list[Block]:
    """The trace without surfaces and swapchains. It is the same list when the trace has none. Raises `UserError`."""
    calls = (block for block in blocks if isinstance(block, Call))
    if not any(call.name in SLEEPS or not OF_PRESENTATION.isdisjoint(call.args) for call in calls):
        return blocks
    shown = _Shown()
    made: list[Block] = []
    for block in blocks:
        with reading(block):
            made += _block(shown, block) if isinstance(block, Call) else (block,)
    return made


def _block(shown: _Shown, call: Call) -> Iterator[Call]:
    args = call.args
    if call.name in ("vkGetDeviceQueue", "vkGetDeviceQueue2"):
        shown.device, shown.queue = args["device"], shown.queue or args["pQueue"]
    if call.name == "vkCreateSwapchainKHR" and call.succeeded:
        shown.swapchains[args["pSwapchain"]] = args["pCreateInfo"]
    if call.name == "vkGetSwapchainImagesKHR":
        yield from _images(shown, call)
    elif main_name(call.name).startswith("vkAcquireNextImage"):
        if call.succeeded and call.result in (VkResult.SUCCESS, VkResult.SUBOPTIMAL_KHR):
            yield from _acquired(shown, call)
    elif call.name == "vkQueuePresentKHR":
        yield from _presented(shown, call)
    elif call.name in SLEEPS:
        yield _woken(call)
    elif OF_PRESENTATION.isdisjoint(args):
        yield _with(call, _in_general(args))


def _with(call: Call, args: dict[str, Any]) -> Call:
    return replace(call, args=args)


def _in_general(value: Any) -> Any:
    """The arguments with PRESENT_SRC layouts replaced by GENERAL, since ordinary images have no such layout."""
    if isinstance(value, list):
        return [_in_general(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: VkImageLayout.GENERAL if key in LAYOUTS and each == VkImageLayout.PRESENT_SRC_KHR else _in_general(each)
        for key, each in value.items()
    }


def _call(at: Call, name: str, **args: Any) -> Call:
    """A call that the rewrite adds in place of a block of the trace."""
    return Call(at.index, name, args, 0, at.site, at.thread)


def _new(shown: _Shown) -> int:
    shown.next += 1
    return shown.next


def is_screen(resource: int) -> bool:
    """Whether an id is that of a screen."""
    return resource >= FIRST_SCREEN


def in_trace(resource: int) -> int:
    """The id that the trace has for a resource: the image's, for its screen."""
    return resource - FIRST_SCREEN if is_screen(resource) else resource


def _images(shown: _Shown, call: Call) -> Iterator[Call]:
    """Makes each swapchain image once, with memory of its own, and its screen."""
    info = shown.swapchains.get(call.args["swapchain"])
    known = shown.images.setdefault(call.args["swapchain"], [])
    for id in call.args["pSwapchainImages"] or []:
        if info is None or id in known:
            continue
        known.append(id)
        if id in shown.sizes:  # a driver may give the image of a retired swapchain to the next one
            continue
        shown.sizes[id] = info["imageExtent"]["width"], info["imageExtent"]["height"]
        yield from _image(shown, call, info, id, info["imageUsage"] | TRANSFERS)
        yield from _image(shown, call, {**info, "imageArrayLayers": 1}, FIRST_SCREEN + id, TRANSFERS)
        yield from _black(call, FIRST_SCREEN + id)


def _image(shown: _Shown, call: Call, info: dict[str, Any], id: int, usage: int) -> Iterator[Call]:
    """Makes and binds an image like those of the swapchain that `info`, a VkSwapchainCreateInfoKHR, describes."""
    create = {
        "sType": VkStructureType.IMAGE_CREATE_INFO,
        "pNext": None,
        "flags": 0,
        "imageType": 1,
        "format": info["imageFormat"],
        "extent": {**info["imageExtent"], "depth": 1},
        "mipLevels": 1,
        "arrayLayers": info["imageArrayLayers"],
        "samples": 1,
        "tiling": 0,
        "usage": usage,
        "sharingMode": 0,
        "queueFamilyIndexCount": 0,
        "pQueueFamilyIndices": None,
        "initialLayout": 0,
    }
    yield _call(call, "vkCreateImage", device=shown.device, pCreateInfo=create, pAllocator=None, pImage=id)
    where = {"device": shown.device, "memory": _new(shown), "memoryOffset": 0}
    yield _call(call, "vkBindImageMemory", image=id, **where)


def _black(call: Call, screen: int) -> Iterator[Call]:
    """Makes a screen that shows nothing so far: zeros, in GENERAL."""
    whole = {"aspectMask": 1, "baseMipLevel": 0, "levelCount": 1, "baseArrayLayer": 0, "layerCount": 1}
    barrier = {
        "sType": VkStructureType.IMAGE_MEMORY_BARRIER,
        "pNext": None,
        "srcAccessMask": 0,
        "dstAccessMask": 0,
        "oldLayout": VkImageLayout.UNDEFINED,
        "newLayout": VkImageLayout.GENERAL,
        "srcQueueFamilyIndex": VK_QUEUE_FAMILY_IGNORED,
        "dstQueueFamilyIndex": VK_QUEUE_FAMILY_IGNORED,
        "image": screen,
        "subresourceRange": whole,
    }
    yield _call(
        call,
        "vkCmdPipelineBarrier",
        commandBuffer=OURS,
        srcStageMask=VkPipelineStage2.ALL_COMMANDS,
        dstStageMask=VkPipelineStage2.ALL_COMMANDS,
        dependencyFlags=0,
        memoryBarrierCount=0,
        pMemoryBarriers=None,
        bufferMemoryBarrierCount=0,
        pBufferMemoryBarriers=None,
        imageMemoryBarrierCount=1,
        pImageMemoryBarriers=[barrier],
    )
    yield _call(
        call,
        "vkCmdClearColorImage",
        commandBuffer=OURS,
        image=screen,
        imageLayout=VkImageLayout.GENERAL,
        pColor={"uint32": [0, 0, 0, 0]},
        rangeCount=1,
        pRanges=[whole],
    )


def _acquired(shown: _Shown, call: Call) -> Iterator[Call]:
    """The presentation engine reads the image that it showed last. Then the semaphore and the fence are signaled."""
    info = call.args.get("pAcquireInfo") or call.args
    images = shown.images.get(info["swapchain"], [])
    index = call.args["pImageIndex"]
    if index < len(images) and images[index] in shown.presented:
        yield _to_screen(shown, call, images[index])
    yield _submit(shown, call, [], [info["semaphore"]] if info["semaphore"] else [], info["fence"])


def _presented(shown: _Shown, call: Call) -> Iterator[Call]:
    """The presentation engine reads every image after the waits of the present. Then the fences of the present are
    signaled (VK_KHR_swapchain_maintenance1)."""
    info = call.args["pPresentInfo"]
    given = chained(info, VkStructureType.SWAPCHAIN_PRESENT_FENCE_INFO_KHR) or {}
    yield _submit(shown, call, info["pWaitSemaphores"] or [], [], 0)
    for swapchain, index in zip(info["pSwapchains"] or [], info["pImageIndices"] or [], strict=True):
        images = shown.images.get(swapchain, [])
        if index < len(images):
            shown.presented.add(images[index])
            yield _to_screen(shown, call, images[index])
    for fence in given.get("pFences") or []:
        if fence:
            yield _submit(shown, call, [], [], fence)


def _woken(call: Call) -> Call:
    """A sleep ends with a signal as one of the host, for which the program waits ("vkLatencySleepNV")."""
    slept = folded(call.args, "pSleepInfo")
    info = {
        "sType": VkStructureType.SEMAPHORE_SIGNAL_INFO,
        "pNext": None,
        "semaphore": slept.get("signalSemaphore", 0),
        "value": slept.get("value", 0),
    }
    return _call(call, "vkSignalSemaphore", device=call.args["device"], pSignalInfo=info)


def _submit(shown: _Shown, call: Call, waits: list[int], signals: list[int], fence: int) -> Call:
    info = {
        "sType": VkStructureType.SUBMIT_INFO,
        "pNext": None,
        "waitSemaphoreCount": len(waits),
        "pWaitSemaphores": waits,
        "pWaitDstStageMask": [VkPipelineStage2.ALL_COMMANDS] * len(waits),
        "commandBufferCount": 0,
        "pCommandBuffers": [],
        "signalSemaphoreCount": len(signals),
        "pSignalSemaphores": signals,
    }
    return _call(call, "vkQueueSubmit", queue=shown.queue, submitCount=1, pSubmits=[info], fence=fence)


def _to_screen(shown: _Shown, call: Call, image: int) -> Call:
    width, height = shown.sizes[image]
    layers = {"aspectMask": VkImageAspect.COLOR, "mipLevel": 0, "baseArrayLayer": 0, "layerCount": 1}
    corner = {"x": 0, "y": 0, "z": 0}
    region = {
        "srcSubresource": layers,
        "srcOffset": corner,
        "dstSubresource": layers,
        "dstOffset": corner,
        "extent": {"width": width, "height": height, "depth": 1},
    }
    return _call(
        call,
        "vkCmdCopyImage",
        commandBuffer=OURS,
        srcImage=image,
        srcImageLayout=VkImageLayout.GENERAL,
        dstImage=FIRST_SCREEN + image,
        dstImageLayout=VkImageLayout.GENERAL,
        regionCount=1,
        pRegions=[region],
    )
