"""Copies and layout transitions that the host makes itself (VK_EXT_host_image_copy).

They are host accesses of images during the call. No barrier orders them, but the waits of the host do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vkharness.commands.handlers import call
from vkharness.commands.object_state import ObjectState
from vkharness.commands.transfer import boxes_of, image_regions
from vkharness.spans import Span, merge
from vkharness.trace.calls import Call
from vkharness.trace.effects import StreamEvent
from vkharness.trace.host_effects import HostAccess
from vkharness.trace.resources import Image


@call("vkCopyMemoryToImageEXT")
def copy_memory_to_image(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host writes the boxes of the image. The memory that it reads belongs to the program."""
    info = call.args["pCopyMemoryToImageInfo"]
    image = objects.image(info["dstImage"])
    return _access(call, image, boxes_of(image, info["pRegions"] or ()), True)


@call("vkCopyImageToMemoryEXT")
def copy_image_to_memory(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host reads the boxes of the image."""
    info = call.args["pCopyImageToMemoryInfo"]
    image = objects.image(info["srcImage"])
    return _access(call, image, boxes_of(image, info["pRegions"] or ()), False)


@call("vkCopyImageToImageEXT")
def copy_image_to_image(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host reads the boxes of one image and writes those of the other."""
    info = call.args["pCopyImageToImageInfo"]
    source, target = objects.image(info["srcImage"]), objects.image(info["dstImage"])
    reads, writes = image_regions(source, target, info["pRegions"] or ())
    yield from _access(call, source, reads, False)
    yield from _access(call, target, writes, True)


@call("vkTransitionImageLayoutEXT")
def transition_image_layout(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host reads and writes the subresources. A transition between equal layouts does nothing."""
    for each in call.args["pTransitions"] or ():
        image = objects.image(each["image"])
        if image is not None and each["oldLayout"] != each["newLayout"]:
            yield from _access(call, image, _whole(image, each["subresourceRange"]), True)


def _whole(image: Image, part: dict[str, Any]) -> list[Span]:
    return list(
        image.barrier_spans(
            part["aspectMask"], part["baseMipLevel"], part["levelCount"], part["baseArrayLayer"], part["layerCount"]
        )
    )


def _access(call: Call, image: Image | None, spans: list[Span], write: bool) -> Iterator[StreamEvent]:
    merged = tuple(merge(spans))
    if image is not None and merged:
        yield HostAccess(call.index, call.name, call.site, image.id, merged, image.id, write=write)
