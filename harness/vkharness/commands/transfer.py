"""Copies, blits, resolves and clears of images (rules.md#transfer-commands-and-their-ranges)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vkharness.commands.handlers import command, folded
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.findings import Certainty
from vkharness.spans import Span, merge, subtract
from vkharness.spec.enums import VkFilter, VkImageType, VkStructureType, VkSurfaceTransform
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.chain import chained
from vkharness.trace.effects import Access, Effect, Unmodelled
from vkharness.trace.resources import Buffer, Extent, Image
from vkharness.trace.work_budget import spend

COPY_READ = ACCESS_KIND["SYNC_COPY_TRANSFER_READ"].index
COPY_WRITE = ACCESS_KIND["SYNC_COPY_TRANSFER_WRITE"].index
CLEAR_WRITE = ACCESS_KIND["SYNC_CLEAR_TRANSFER_WRITE"].index
BLIT_READ = ACCESS_KIND["SYNC_BLIT_TRANSFER_READ"].index
BLIT_WRITE = ACCESS_KIND["SYNC_BLIT_TRANSFER_WRITE"].index
RESOLVE_READ = ACCESS_KIND["SYNC_RESOLVE_TRANSFER_READ"].index
RESOLVE_WRITE = ACCESS_KIND["SYNC_RESOLVE_TRANSFER_WRITE"].index
QUARTER_TURNS = VkSurfaceTransform.ROTATE_90 | VkSurfaceTransform.ROTATE_270
"""Exchange the two axes of a blit."""


def buffer_access(access_kind: int, buffer: Buffer | None, spans: list[Span]) -> tuple[Effect, ...]:
    """An access of addresses of a buffer; none when the buffer is unknown or nothing is touched."""
    touched = _touched(spans)
    return (Access(access_kind, buffer.space, touched, buffer.id),) if buffer is not None and touched else ()


def image_access(
    access_kind: int, image: Image | None, spans: list[Span], certainty: Certainty = Certainty.EXACT
) -> tuple[Effect, ...]:
    """An access of addresses of an image; none when the image is unknown or nothing is touched."""
    touched = _touched(spans)
    if image is None or not touched:
        return ()
    return (Access(access_kind, image.id, touched, image.id, certainty=certainty),)


def _planned(
    objects: ObjectState, effects: tuple[Effect, ...], one: Buffer | Image | None, other: Buffer | Image | None
) -> Iterable[Effect]:
    """The plan of accesses that follow from what a command says and from its resources; without both of these, the
    accesses."""
    return effects if one is None or other is None else objects.plans.of(effects)


def _touched(spans: list[Span]) -> tuple[Span, ...]:
    if len(spans) == 1:
        return tuple(spans) if spans[0][0] < spans[0][1] else ()
    return tuple(merge(spans))


def _offset(value: dict[str, int]) -> Extent:
    return (value["x"], value["y"], value["z"])


def _extent(value: dict[str, int]) -> Extent:
    return (value["width"], value["height"], value["depth"])


def _region(image: Image | None, layers: dict[str, int], offset: Extent, extent: Extent) -> list[Span]:
    """Addresses of VkImageSubresourceLayers and a box; a 3D image has slices, every other kind has layers."""
    if image is None:
        return []
    if image.type == VkImageType.TYPE_3D:
        chosen = range(1)
    else:
        chosen = image.layer_range(layers["baseArrayLayer"], layers["layerCount"])
        offset, extent = (offset[0], offset[1], 0), (extent[0], extent[1], 1)
    return list(image.region(layers["aspectMask"], layers["mipLevel"], chosen, offset, extent))


def _target_extent(extent: Extent, source: Image | None, target: Image | None, region: dict[str, Any]) -> Extent:
    """The extent in the destination's texels: copies between block sizes count blocks."""
    if source is None or target is None:
        return extent
    read = source.block_extent(region["srcSubresource"]["aspectMask"])
    write = target.block_extent(region["dstSubresource"]["aspectMask"])
    blocks = tuple(-(-extent[i] // read[i]) * write[i] for i in range(3))
    depth = blocks[2]
    if target.type == VkImageType.TYPE_3D and source.type != VkImageType.TYPE_3D:
        depth = max(depth, region["srcSubresource"]["layerCount"])
    return (blocks[0], blocks[1], depth)


def image_regions(
    source: Image | None, target: Image | None, regions: Iterable[dict[str, Any]]
) -> tuple[list[Span], list[Span]]:
    """Addresses that copies or resolves between two images read and write."""
    reads: list[Span] = []
    writes: list[Span] = []
    for region in regions:
        extent = _extent(region["extent"])
        reads += _region(source, region["srcSubresource"], _offset(region["srcOffset"]), extent)
        extent = _target_extent(extent, source, target, region)
        writes += _region(target, region["dstSubresource"], _offset(region["dstOffset"]), extent)
    return reads, writes


def _image_to_image(objects: ObjectState, info: dict[str, Any], access_kinds: tuple[int, int]) -> Iterable[Effect]:
    """Copies and resolves share the shape of their regions."""
    source, target = objects.image(info["srcImage"]), objects.image(info["dstImage"])
    reads, writes = image_regions(source, target, info["pRegions"] or ())
    effects = image_access(access_kinds[0], source, reads) + image_access(access_kinds[1], target, writes)
    return _planned(objects, effects, source, target)


@command("vkCmdCopyImage", "vkCmdCopyImage2", by_arguments=True)
def copy_image(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads and writes the boxes of the regions."""
    return _image_to_image(objects, folded(args, "pCopyImageInfo"), (COPY_READ, COPY_WRITE))


@command("vkCmdResolveImage", "vkCmdResolveImage2", by_arguments=True)
def resolve_image(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads and writes the boxes of the regions, in the RESOLVE stage."""
    return _image_to_image(objects, folded(args, "pResolveImageInfo"), (RESOLVE_READ, RESOLVE_WRITE))


@command("vkCmdBlitImage", "vkCmdBlitImage2", by_arguments=True)
def blit_image(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads and writes the boxes between the corner pairs, which may be given in any order. A filter may read texels
    beside the box.

    Rule: rules.md#a-filter-may-read-beside-the-region-of-a-blit.
    """
    info = folded(args, "pBlitImageInfo")
    source, target = objects.image(info["srcImage"]), objects.image(info["dstImage"])
    reads: list[Span] = []
    around: list[Span] = []
    writes: list[Span] = []
    for region in info["pRegions"] or ():
        low, extent = _corners(region["srcOffsets"])
        reads += _region(source, region["srcSubresource"], low, extent)
        beside = _beside(info, region)
        if any(beside):
            x, y, z = (max(0, at - more) for at, more in zip(low, beside, strict=True))
            wide, high, deep = (low[i] + extent[i] + beside[i] for i in range(3))
            around += _region(source, region["srcSubresource"], (x, y, z), (wide - x, high - y, deep - z))
        writes += _region(target, region["dstSubresource"], *_corners(region["dstOffsets"]))
    effects = image_access(BLIT_READ, source, reads)
    effects += image_access(BLIT_READ, source, subtract(merge(around), merge(reads)), Certainty.DECLARED)
    return _planned(objects, effects + image_access(BLIT_WRITE, target, writes), source, target)


def _beside(info: dict[str, Any], region: dict[str, Any]) -> tuple[int, ...]:
    """How many texels beside its box in the source a blit may read, on either side, by axis.

    A destination texel i is filtered around u = (i + 1/2) * scale, from the edge of the box: around half a scale at
    first. A linear filter begins at floor(u - 1/2), which is outside where the scale is below 1. A cubic one begins at
    floor(u - 3/2): one texel outside where it is below 3, and two where it is below 1. At a scale of 1 the texels
    outside have the weight 0, but for kernels that an extension chooses.
    Specification: "Image Blits With Scaling and Rotation", "Texel Filtering".
    """
    source, target = (_corners(region[name])[1] for name in ("srcOffsets", "dstOffsets"))
    if _turned(region) & QUARTER_TURNS:
        target = (target[1], target[0], target[2])
    if info["filter"] == VkFilter.LINEAR:
        return tuple(int(read < written) for read, written in zip(source, target, strict=True))
    if info["filter"] != VkFilter.CUBIC_EXT:
        return (0, 0, 0)
    kernel = chained(info, VkStructureType.BLIT_IMAGE_CUBIC_WEIGHTS_INFO_QCOM) is not None
    return tuple(
        (read < written) + (read < 3 * written and (read != written or kernel))
        for read, written in zip(source, target, strict=True)
    )


def _turned(region: dict[str, Any]) -> int:
    """The VkSurfaceTransformFlagBitsKHR of a region; 0 where it is not turned."""
    chain = chained(region, VkStructureType.COPY_COMMAND_TRANSFORM_INFO_QCOM) or {"transform": 0}
    return int(chain["transform"]) & ~VkSurfaceTransform.IDENTITY


def _corners(offsets: list[dict[str, int]]) -> tuple[Extent, Extent]:
    one, other = _offset(offsets[0]), _offset(offsets[1])
    low = (min(one[0], other[0]), min(one[1], other[1]), min(one[2], other[2]))
    return low, (abs(one[0] - other[0]), abs(one[1] - other[1]), abs(one[2] - other[2]))


@command("vkCmdCopyBufferToImage", "vkCmdCopyBufferToImage2", by_arguments=True)
def copy_buffer_to_image(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the rows of texel blocks from the buffer, writes the boxes of the image."""
    info = folded(args, "pCopyBufferToImageInfo")
    buffer, image = objects.buffer(info["srcBuffer"]), objects.image(info["dstImage"])
    regions = info["pRegions"] or ()
    effects = buffer_access(COPY_READ, buffer, rows_of(buffer, image, regions))
    effects += image_access(COPY_WRITE, image, boxes_of(image, regions))
    if any(map(_turned, regions)):
        effects += (Unmodelled("vkCmdCopyBufferToImage2 (a region that is turned)"),)
    return _planned(objects, effects, buffer, image)


@command("vkCmdCopyImageToBuffer", "vkCmdCopyImageToBuffer2", by_arguments=True)
def copy_image_to_buffer(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the boxes of the image, writes the rows of texel blocks to the buffer."""
    info = folded(args, "pCopyImageToBufferInfo")
    image, buffer = objects.image(info["srcImage"]), objects.buffer(info["dstBuffer"])
    regions = info["pRegions"] or ()
    effects = image_access(COPY_READ, image, boxes_of(image, regions))
    effects += buffer_access(COPY_WRITE, buffer, rows_of(buffer, image, regions))
    return _planned(objects, effects, image, buffer)


def boxes_of(image: Image | None, regions: Iterable[dict[str, Any]]) -> list[Span]:
    """Addresses of the image boxes of regions between an image and a buffer or host memory."""
    return [
        span
        for region in regions
        for span in _region(
            image, region["imageSubresource"], _offset(region["imageOffset"]), _extent(region["imageExtent"])
        )
    ]


def rows_of(buffer: Buffer | None, image: Image | None, regions: Iterable[dict[str, Any]]) -> list[Span]:
    """Bytes of each row of each region; rows that touch join, so that a tightly packed copy is one span."""
    if buffer is None or image is None:
        return []
    spans: list[Span] = []
    for region in regions:
        part = region["imageSubresource"]
        aspect = part["aspectMask"]
        block = image.block_extent(aspect)
        size = image.format.aspect_bytes(aspect)
        extent = _extent(region["imageExtent"])
        across, down = -(-extent[0] // block[0]), -(-extent[1] // block[1])
        pitch = -(-(region["bufferRowLength"] or extent[0]) // block[0]) * size
        slice_rows = -(-(region["bufferImageHeight"] or extent[1]) // block[1])
        layers = (
            1
            if image.type == VkImageType.TYPE_3D
            else len(image.layer_range(part["baseArrayLayer"], part["layerCount"]))
        )
        parts = layers * -(-extent[2] // block[2])
        spend(parts if pitch == across * size else parts * down, "rows of a buffer")
        for index in range(parts):
            first = region["bufferOffset"] + index * slice_rows * pitch
            if pitch == across * size:
                spans.append(buffer.span(first, down * pitch))
            else:
                spans += [buffer.span(first + row * pitch, across * size) for row in range(down)]
    return merge(spans)


@command("vkCmdClearColorImage", "vkCmdClearDepthStencilImage", by_arguments=True)
def clear_image(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes whole subresources, in the CLEAR stage; depth and stencil are apart."""
    image = objects.image(args["image"])
    spans: list[Span] = []
    if image is not None:
        for part in args["pRanges"] or ():
            spans += image.subresources(
                part["aspectMask"], part["baseMipLevel"], part["levelCount"], part["baseArrayLayer"], part["layerCount"]
            )
    return _planned(objects, image_access(CLEAR_WRITE, image, spans), image, image)
