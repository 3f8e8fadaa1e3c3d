"""First contents: each resource starts with its own pattern (`vkharness.trace.first_bytes`)."""

from __future__ import annotations

import numpy as np

from vkharness.findings import Box
from vkharness.replay.contents.contents import Contents, Where, clear_subresources
from vkharness.replay.objects.creation import BufferResource, ImageResource
from vkharness.replay.objects.recorder import ImageTransition
from vkharness.replay.schedule.layouts import PREINITIALIZED, TRANSFER_DST, UNDEFINED
from vkharness.spec.enums import VkImageAspect, VkImageUsage
from vkharness.trace.first_bytes import first_byte, pattern_of
from vkharness.trace.resources import PLANES


def fill_all(contents: Contents) -> list[str]:
    """Fills every bound resource. Returns a line for each resource that could not be filled.

    Aliased resources overwrite one another in the order of their ids.
    """
    notes = []
    for buffer in contents.resources.buffers.values():
        if buffer.bound:
            _fill_buffer(contents, buffer)
    for image in contents.resources.images.values():
        if image.bound and not _fill_image(contents, image):
            notes.append(f"image {image.id} starts with unknown contents: {contents.why_unreadable(image.id)}")
    contents.recorder.finish()
    return notes


def _fill_buffer(contents: Contents, buffer: BufferResource) -> None:
    value = first_byte(buffer.id, buffer.usage)
    if buffer.view is not None:
        buffer.view[:] = bytes([value]) * buffer.size
    else:
        contents.write_buffer(buffer.id, 0, np.full(buffer.size, value, np.uint8))


def _fill_image(contents: Contents, image: ImageResource) -> bool:
    value = pattern_of(image.id)
    if image.initial == PREINITIALIZED:
        # A transition would lose the layout that the trace expects.
        if image.view is not None:
            image.view[:] = bytes([value]) * len(image.view)
        return image.view is not None
    whole = filled_by_device(image)
    if whole is None:
        return False
    recorder, shape = contents.recorder, image.image
    recorder.change_layouts([ImageTransition(image.raw, whole, UNDEFINED, TRANSFER_DST)])
    if shape.format.compressed or shape.format.aspects & PLANES:
        return _fill_by_copy(contents, image, value)
    clear_subresources(recorder, image, whole, value)
    recorder.full_barrier()
    return True


def filled_by_device(image: ImageResource) -> Where | None:
    """The subresources that the fill leaves in TRANSFER_DST: all, or None where the device does not fill the image."""
    if image.initial == PREINITIALIZED or not image.usage & VkImageUsage.TRANSFER_DST:
        return None
    shape = image.image
    return (shape.format.aspects if not shape.format.planes else VkImageAspect.COLOR, 0, shape.mips, 0, shape.layers)


def _fill_by_copy(contents: Contents, image: ImageResource, value: int) -> bool:
    """Fills an image of a compressed or multi-planar format, which cannot be cleared."""
    for aspect, mip, layer in contents.layouts.subresources(image.id):
        box = Box(aspect, mip, layer, (0, 0, 0), image.image.texels(aspect, mip))
        contents.fill_box(image.id, box, value)
    return True
