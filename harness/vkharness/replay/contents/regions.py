"""The part of one resource that a finding is about: read, changed and put back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vkharness.findings import Box, Finding, UserError
from vkharness.replay.contents.aspects import write_apart
from vkharness.replay.contents.contents import Content, Contents, StagingImage
from vkharness.replay.objects.creation import Resources
from vkharness.replay.objects.device_addresses import Bytes
from vkharness.trace.resources import Image

POISON = 0xCD
"""The byte that stands for undefined contents."""
WORD = 4
Pieces = list[Content | None]
"""The contents of each piece of a region: of the byte range, or of each box. None stands for a box without contents."""
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Region:
    """Either byte ranges, as (buffer, offset, size), or boxes of one image."""

    spans: tuple[tuple[int, int, int], ...] = ()
    image: int = 0
    boxes: tuple[Box, ...] = ()

    def read(self, contents: Contents) -> Pieces:
        """The present contents of the region."""
        pieces: Pieces = [contents.read_buffer(*span) for span in self.spans]
        for box in self.boxes:
            pieces.append(contents.read_box(self.image, box) if contents.readable(self.image, box) else None)
        return pieces

    def write(self, contents: Contents, pieces: Pieces) -> None:
        """Makes the region hold `pieces`; a None leaves its box alone."""
        for (buffer, offset, _), piece in zip(self.spans, pieces, strict=False):
            if isinstance(piece, np.ndarray):
                _put(contents, buffer, offset, piece)
        for box, piece in zip(self.boxes, pieces[len(self.spans) :], strict=True):
            if piece is not None and contents.readable(self.image, box):
                write_apart(contents, self.image, box, piece)

    def poison(self, contents: Contents) -> None:
        """Fills the region with a byte that stands for undefined contents."""
        for buffer, offset, size in self.spans:
            _put(contents, buffer, offset, np.full(size, POISON, np.uint8))
        for box in self.boxes:
            if not contents.readable(self.image, box):
                continue
            if contents.resources.images[self.image].image.samples > 1:
                contents.clear_box(self.image, box, POISON)
            else:
                held = contents.read_box(self.image, box)
                assert isinstance(held, np.ndarray)
                contents.write_box(self.image, box, np.full_like(held, POISON))


def _put(contents: Contents, buffer: int, offset: int, data: Bytes) -> None:
    """Puts bytes into a buffer. UserError when a shader would go through a device address of no buffer then: no outcome
    is defined, and a driver may not survive it."""
    if contents.resources.handles.addresses.is_lost(buffer, offset, data):
        raise UserError("a shader would use bytes as a descriptor that the device did not give for one")
    lost = contents.resources.handles.addresses.lost(buffer, offset, data)
    if lost is not None:
        raise UserError(f"a shader would load {lost:#x} as a device address, and no buffer of the trace is there")
    contents.write_buffer(buffer, offset, data)


def region_of(finding: Finding, contents: Contents) -> Region:
    """The region of a finding, clipped to its resource. UserError when the trace has no such resource."""
    resource, resources = finding.resource, contents.resources
    if resource in resources.buffers:
        ranges = finding.ranges or ((0, resources.buffers[resource].size),)
        spans = [_clipped_span(resources, resource, *span) for span in ranges]
    elif resource in resources.images:
        image = resources.images[resource].image
        boxes = finding.boxes or tuple(_whole(image, contents, resource))
        reason = contents.why_unreadable(resource)
        if reason:
            raise UserError(reason)
        return Region(image=resource, boxes=tuple(_clipped(image, box) for box in boxes))
    elif resource in resources.memories.by_memory:
        spans = [
            _clipped_span(resources, buffer, offset - start, size)
            for offset, size in finding.ranges
            for buffer, start in _buffers_of(resources, resource)
        ]
    else:
        raise UserError(f"the finding names resource {resource}, which is no bound buffer or image of the trace")
    found = tuple(span for span in spans if span is not None)
    if not found:
        raise UserError(f"the finding's ranges {finding.ranges} lie outside every buffer of resource {resource}")
    return Region(found)


def _buffers_of(resources: Resources, memory: int) -> list[tuple[int, int]]:
    """(buffer, offset in the original memory object) of the buffers bound to a memory."""
    return [
        (resource, allocation.group.base + offset)
        for allocation in resources.memories.by_memory[memory]
        for resource, offset in allocation.group.offsets.items()
        if resource in resources.buffers
    ]


def _clipped_span(resources: Resources, buffer: int, offset: int, size: int) -> tuple[int, int, int] | None:
    begin, end = max(0, offset), min(resources.buffers[buffer].size, offset + size)
    return (buffer, begin, end - begin) if begin < end else None


def _whole(image: Image, contents: Contents, resource: int) -> list[Box]:
    return [
        Box(aspect, mip, layer, (0, 0, 0), image.texels(aspect, mip))
        for aspect, mip, layer in contents.layouts.subresources(resource)
    ]


def _clipped(image: Image, box: Box) -> Box:
    if box.aspect not in image.aspects or not 0 <= box.mip < image.mips or not 0 <= box.layer < image.layers:
        raise UserError(f"the finding names {box.to_dict()}, which image {image.id} does not have")
    texels = image.texels(box.aspect, box.mip)
    low = tuple(min(max(0, start), size - 1) for start, size in zip(box.offset, texels, strict=True))
    ends = zip(box.offset, box.extent, texels, low, strict=True)
    extent = tuple(max(1, min(start + length, size) - first) for start, length, size, first in ends)
    return Box(box.aspect, box.mip, box.layer, (low[0], low[1], low[2]), (extent[0], extent[1], extent[2]))


def changed(before: Content, after: Content) -> Mask | None:
    """A mask of the units (words of a buffer, texel blocks of an image) that differ; None if that is unknown."""
    if isinstance(before, StagingImage) or isinstance(after, StagingImage):
        return None
    if before.ndim == 1:
        return _word_mask(before != after)
    different: Mask = np.any(before != after, axis=-1)
    return different


def covered(box: Box, boxes: Iterable[Box]) -> Mask:
    """The texels of a box that lie in any of the boxes, as a (depth, height, width) mask."""
    mask = np.zeros(tuple(reversed(box.extent)), np.bool_)
    for other in boxes:
        if (other.aspect, other.mip, other.layer) == (box.aspect, box.mip, box.layer):
            low = [max(0, there - here) for there, here in zip(other.offset, box.offset, strict=True)]
            ends = zip(other.offset, other.extent, box.offset, strict=True)
            high = [max(0, start + size - here) for start, size, here in ends]
            mask[low[2] : high[2], low[1] : high[1], low[0] : high[0]] = True
    return mask


def _word_mask(different: Mask) -> Mask:
    """A mask of bytes, widened to whole 32-bit words from the start of the range: no write is smaller in practice."""
    padded = np.pad(different, (0, -len(different) % WORD)).reshape(-1, WORD)
    wide: Mask = np.repeat(padded.any(axis=1), WORD)[: len(different)]
    return wide


def choose(mask: Mask | None, where_set: Content, elsewhere: Content) -> Content:
    """`where_set` in the units of the mask, and `elsewhere` in the others. Without a mask all of `where_set`."""
    if mask is None or isinstance(where_set, StagingImage) or isinstance(elsewhere, StagingImage):
        return where_set
    wide = mask if where_set.ndim == 1 else mask[..., np.newaxis]
    return np.where(wide, where_set, elsewhere)
