"""Swapchains, their images, and their exchange with the presentation engine (rules.md#presentation)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from vkharness.commands.handlers import ACTS_THOUGH, call
from vkharness.commands.object_state import ObjectState
from vkharness.spec.enums import VkImageType, VkPresentMode, VkResult, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import Acquired, Destroyed, PayloadShared, Presented, StreamEvent, UnmodelledCall
from vkharness.trace.ownership_effects import SharedResource
from vkharness.trace.resources import Image

FIRST_UNFETCHED, MOST_UNFETCHED = 1 << 56, 64
"""Images that a program never fetched have ids from here on, and so many of each swapchain. No trace has such ids."""


@dataclass(slots=True)
class Swapchain:
    """A VkSwapchainKHR: its create info, and its images by index. It has no images before the program asks for them."""

    id: int
    info: dict[str, Any]
    images: tuple[int, ...] = ()


@call("vkCreateSwapchainKHR")
def create_swapchain(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a swapchain. The images of the old swapchain, which retires, can still be presented."""
    objects.debug.frames.may_begin(call.index)
    objects.add(Swapchain(call.args["pSwapchain"], call.args["pCreateInfo"]))
    return ()


@call("vkCreateSharedSwapchainsKHR")
def create_shared_swapchains(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds several swapchains."""
    objects.debug.frames.may_begin(call.index)
    for id, info in zip(call.args["pSwapchains"] or (), call.args["pCreateInfos"] or (), strict=False):
        objects.add(Swapchain(id, info))
    return ()


@call("vkDestroySwapchainKHR")
def destroy_swapchain(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes a swapchain and its images."""
    swapchain = objects.get(Swapchain, call.args["swapchain"])
    if swapchain is not None:
        objects.remove(swapchain.id)
        yield from _removed(objects, (*swapchain.images, *_unfetched_of(swapchain)))


def _removed(objects: ObjectState, images: Iterable[int]) -> Iterator[StreamEvent]:
    for image in images:
        if objects.remove(image) is not None:
            yield Destroyed(image, resource=image)


@call("vkGetSwapchainImagesKHR")
def get_swapchain_images(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds the images of a swapchain, with one mip level each. VK_INCOMPLETE returned the first few only.

    Images that were acquired before have the program's ids from now on, and what was presented of them is left alone.
    """
    swapchain = objects.get(Swapchain, call.args["swapchain"])
    images = call.args["pSwapchainImages"]
    if swapchain is not None and images:
        yield from _removed(objects, _unfetched_of(swapchain))
        for id in images:
            if objects.image(id) is None:
                made = _image(id, swapchain.info)
                objects.add(made)
                if made.concurrent:
                    yield SharedResource(id)
        if len(images) >= len(swapchain.images):
            swapchain.images = tuple(images)


def _image(id: int, info: dict[str, Any]) -> Image:
    extent = (info["imageExtent"]["width"], info["imageExtent"]["height"], 1)
    layers = info["imageArrayLayers"]
    made = Image(id, VkImageType.TYPE_2D, info["imageFormat"], extent, 1, layers)
    made.info = {
        "imageType": VkImageType.TYPE_2D,
        "format": info["imageFormat"],
        "extent": {"width": extent[0], "height": extent[1], "depth": 1},
        "mipLevels": 1,
        "arrayLayers": layers,
        "samples": 1,
        "usage": info["imageUsage"],
        "sharingMode": info["imageSharingMode"],
        "flags": 0,
    }
    return made


@call("vkAcquireNextImageKHR")
def acquire_next_image(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """An acquire with vkAcquireNextImageKHR."""
    return _acquired(objects, call, call.args)


@call("vkAcquireNextImage2KHR")
def acquire_next_image2(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """An acquire with vkAcquireNextImage2KHR."""
    return _acquired(objects, call, call.args["pAcquireInfo"])


def _acquired(objects: ObjectState, call: Call, info: dict[str, Any]) -> Iterator[StreamEvent]:
    """The acquire of an image. A call that returned VK_TIMEOUT or VK_NOT_READY gave none."""
    if call.result not in (VkResult.SUCCESS, VkResult.SUBOPTIMAL_KHR):
        return
    image = _image_at(objects, info["swapchain"], call.args["pImageIndex"])
    if image is None:
        yield UnmodelledCall(f"{call.name} of a swapchain whose images were not seen")
        for payload in filter(None, (info["semaphore"], info["fence"])):  # somebody signals it
            yield PayloadShared(payload, outside=True)
        return
    yield Acquired(call.index, call.name, call.site, info["swapchain"], image, info["semaphore"], info["fence"])


ACTS_THOUGH["vkQueuePresentKHR"] = frozenset(
    {
        VkResult.ERROR_OUT_OF_DATE_KHR,
        VkResult.ERROR_SURFACE_LOST_KHR,
        VkResult.ERROR_FULL_SCREEN_EXCLUSIVE_MODE_LOST_EXT,
        VkResult.ERROR_PRESENT_TIMING_QUEUE_FULL_EXT,
    }
)
"""With these errors the images are given back and the semaphore waits execute all the same."""


SHARED = (VkPresentMode.SHARED_DEMAND_REFRESH, VkPresentMode.SHARED_CONTINUOUS_REFRESH)
"""The modes in which the program and the presentation engine access one image at the same time."""


@call("vkQueuePresentKHR")
def queue_present(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Presents images after all waits. A fence of each tells when these are over (VK_KHR_swapchain_maintenance1).

    A shared presentable image is not given away: it "may be concurrently accessed by the application and the
    presentation engine". Rule: rules.md#a-presented-image-belongs-to-the-engine.
    """
    info = call.args["pPresentInfo"]
    given = chained(info, VkStructureType.SWAPCHAIN_PRESENT_FENCE_INFO_KHR) or {}
    pairs = zip(info["pSwapchains"] or (), given.get("pFences") or (), strict=False)
    images: list[tuple[int, int]] = []
    for swapchain, index in zip(info["pSwapchains"] or (), info["pImageIndices"] or (), strict=False):
        image = _image_at(objects, swapchain, index)
        if image is None:
            yield UnmodelledCall(f"{call.name} of a swapchain whose images were not seen")
        elif _mode_of(objects, swapchain) not in SHARED:
            images.append((swapchain, image))
    objects.debug.frames.presented(call)
    waits, fences = tuple(info["pWaitSemaphores"] or ()), tuple((each, fence) for each, fence in pairs if fence)
    yield Presented(call.index, call.name, call.site, call.args["queue"], waits, tuple(images), fences=fences)


@call("vkReleaseSwapchainImagesKHR")
def release_swapchain_images(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Gives images back unpresented. All uses of them must be complete, so that it is a present that waits for nothing.

    Specification: "vkReleaseSwapchainImagesKHR". Rule: rules.md#a-present-waits-for-the-frame.
    """
    info = call.args["pReleaseInfo"]
    images: list[tuple[int, int]] = []
    for index in info["pImageIndices"] or ():
        image = _image_at(objects, info["swapchain"], index)
        if image is None:
            yield UnmodelledCall(f"{call.name} of a swapchain whose images were not seen")
        else:
            images.append((info["swapchain"], image))
    yield Presented(call.index, call.name, call.site, 0, (), tuple(images))


def _mode_of(objects: ObjectState, swapchain: int) -> int:
    """The VkPresentModeKHR with which a swapchain was created."""
    held = objects.get(Swapchain, swapchain)
    return int(held.info["presentMode"]) if held is not None else 0


def _image_at(objects: ObjectState, swapchain: int, index: int | None) -> int | None:
    held = objects.get(Swapchain, swapchain)
    if held is None or index is None:
        return None
    if not held.images and index < MOST_UNFETCHED:
        return _unfetched(objects, held, index)
    return held.images[index] if index < len(held.images) else None


def _unfetched_of(swapchain: Swapchain) -> range:
    """The ids of the images of a swapchain that a program never fetched."""
    first = FIRST_UNFETCHED + swapchain.id * MOST_UNFETCHED
    return range(first, first + MOST_UNFETCHED)


def _unfetched(objects: ObjectState, swapchain: Swapchain, index: int) -> int:
    """An image that the program never asked for, so that it can do nothing with it but present it."""
    id = _unfetched_of(swapchain)[index]
    if objects.image(id) is None:
        objects.add(_image(id, swapchain.info))
    return id
