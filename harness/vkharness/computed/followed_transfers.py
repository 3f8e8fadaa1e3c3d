"""Writes of transfer commands, followed byte by byte ("Copy Commands", "Clear Commands").

Each function takes the contents so far and the arguments of its command in normal form. It writes known bytes, or
forgets the bytes that it cannot compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vkharness.computed.clear_values import cleared_color, cleared_depth
from vkharness.computed.known_cells import Bytes, Cells
from vkharness.computed.sampled_images import Sampler
from vkharness.computed.scaled_copies import blit
from vkharness.findings import UserError
from vkharness.shader.execution.outside import Allowance
from vkharness.spans import Span
from vkharness.spec.enums import VkImageAspect, VkImageLayout, VkImageType
from vkharness.trace.resources import Buffer, Image

MOST_INSTRUCTIONS = 1 << 24
"""Of all shaders of a trace together."""
Box = tuple[slice, slice, slice]
SubresourceKey = tuple[int, int, int, int]
"""(image, aspect, mip, layer)."""


@dataclass(slots=True)
class KnownContents:
    """Contents of all memory and images of a trace; addresses of a buffer are those of its memory."""

    buffers: dict[int, Buffer] = field(default_factory=dict)
    memory: dict[int, Cells] = field(default_factory=dict)
    images: dict[int, Image] = field(default_factory=dict)
    texels: dict[SubresourceKey, Cells] = field(default_factory=dict)
    names: dict[int, int] = field(default_factory=dict)
    """Images that hold the texels of another image, which interprets the same memory alike."""
    addresses: dict[int, int] = field(default_factory=dict)
    """Buffers by the device address of their first byte."""
    views: dict[int, dict[str, Any]] = field(default_factory=dict)
    """VkImageViewCreateInfo or VkBufferViewCreateInfo by view."""
    samplers: dict[Sampler, None] = field(default_factory=dict)
    """All samplers of the trace."""
    doubts: dict[str, None] = field(default_factory=dict)
    """Why some of what the command in progress writes is not known, each reason once."""
    instructions: Allowance = field(default_factory=lambda: Allowance(MOST_INSTRUCTIONS, "the trace"))
    takes_undefined: bool = False
    """Whether texels that the specification leaves undefined count as known: what is then known beside what is known
    anyway depends on them."""

    def cells(self, buffer: int) -> tuple[Cells, int, int]:
        """(memory, where the buffer begins in it, bytes of the buffer)."""
        held = self.buffers[buffer]
        return self.memory[held.space], held.offset, held.size

    def word(self, buffer: int, offset: int) -> int | None:
        """The 32-bit word at an offset of a buffer; None where it is not known."""
        if buffer not in self.buffers or self.buffers[buffer].space not in self.memory:
            return None
        cells, base, size = self.cells(buffer)
        found = cells.take(base + offset, 4)
        return int(found.data.view("<u4")[0]) if offset + 4 <= size and found.known.all() else None

    def name(self, image: int) -> int:
        """The image under which texels are kept."""
        return self.names.get(image, image)

    def texels_of(self, image: int) -> Iterator[Cells]:
        """Texel blocks of each subresource of an image that anything is known of."""
        name = self.name(image)
        return (cells for key, cells in self.texels.items() if key[0] == name)

    def subresource(self, image: int, aspect: int, mip: int, layer: int) -> Cells | None:
        """Texel blocks of a subresource; None where texels of that image are not followed."""
        held = self.images.get(image)
        if held is None or not is_followed(held):
            return None
        key = (self.name(image), aspect, mip, layer)
        if key not in self.texels:
            self.texels[key] = Cells.of_texels(held.blocks(aspect, mip), held.format.aspect_bytes(aspect))
            if held.info.get("initialLayout") != VkImageLayout.PREINITIALIZED:
                self.undefine(self.texels[key])
        return self.texels[key]

    def range(self, where: dict[str, int], image: int) -> Iterator[tuple[int, Cells]]:
        """(aspect, texel blocks) of each subresource of a VkImageSubresourceRange that is followed."""
        held = self.images.get(image)
        if held is None:
            return
        for aspect in held.split_aspects(where["aspectMask"]):
            for mip in held.level_range(where["baseMipLevel"], where["levelCount"]):
                for layer in held.layer_range(where["baseArrayLayer"], where["layerCount"]):
                    found = self.subresource(image, aspect, mip, layer)
                    if found is not None:
                        yield aspect, found

    def undefine(self, cells: Cells, box: Box = (slice(None), slice(None), slice(None))) -> None:
        """The specification leaves open what these texels hold from now on."""
        cells.known[box] = self.takes_undefined

    def forget_image(self, image: int) -> None:
        """Nothing of an image is known any more."""
        for cells in self.texels_of(image):
            cells.known[...] = False

    def forget_images(self) -> None:
        """Nothing of any image is known any more."""
        for cells in self.texels.values():
            cells.known[...] = False

    def forget_spans(self, image: int, spans: Iterable[Span]) -> None:
        """These addresses of an image, in its idealized space, are not known any more."""
        for cells, box in self._boxes(image, spans):
            cells.known[box] = False

    def undefine_spans(self, image: int, spans: Iterable[Span]) -> None:
        """The specification leaves open what is at these addresses of an image from now on."""
        for cells, box in self._boxes(image, spans):
            self.undefine(cells, box)

    def _boxes(self, image: int, spans: Iterable[Span]) -> Iterator[tuple[Cells, Box]]:
        held = self.images.get(image)
        for each in () if held is None else (box for span in spans for box in held.boxes(span)):
            cells = self.texels.get((self.name(image), each.aspect, each.mip, each.layer))
            if cells is not None:
                (x, y, z), (width, height, depth) = each.offset, each.extent
                yield cells, (slice(z, z + depth), slice(y, y + height), slice(x, x + width))


def is_followed(image: Image) -> bool:
    """Whether an image has one plane and a format whose texels have defined bytes. A texel with several samples is
    known where all of them hold the same."""
    return not (image.format.compressed or image.format.planes or "D24" in image.format.name)


def fill_buffer(contents: KnownContents, args: dict[str, Any]) -> None:
    """vkCmdFillBuffer: whole words; VK_WHOLE_SIZE rounds down to a multiple of 4."""
    cells, base, size = contents.cells(args["dstBuffer"])
    offset = args["dstOffset"]
    count = min(args["size"], size - offset) // 4
    cells.put(base + offset, np.full(count, args["data"], "<u4").view(np.uint8))


def update_buffer(contents: KnownContents, args: dict[str, Any]) -> None:
    """vkCmdUpdateBuffer."""
    cells, base, _ = contents.cells(args["dstBuffer"])
    cells.put(base + args["dstOffset"], np.frombuffer(bytes(args["pData"]), np.uint8)[: args["dataSize"]])


def copy_buffer(contents: KnownContents, args: dict[str, Any]) -> None:
    """vkCmdCopyBuffer: all regions read what was there before the command. Raises `UserError` where they write more
    bytes than the buffer has, since regions must not overlap."""
    source, source_base, _ = contents.cells(args["srcBuffer"])
    target, target_base, room = contents.cells(args["dstBuffer"])
    taken = []
    for each in args["pRegions"] or ():
        size = max(0, min(each["size"], len(target.data) - target_base - each["dstOffset"]))
        room -= size
        if room < 0:
            raise UserError("vkCmdCopyBuffer writes more bytes than its buffer has: bytes are not computed")
        taken.append((target_base + each["dstOffset"], source.take(source_base + each["srcOffset"], size)))
    for place, found in taken:
        target.put(place, found.data, found.known)


def clear_color_image(contents: KnownContents, args: dict[str, Any]) -> None:
    """vkCmdClearColorImage."""
    image = contents.images.get(args["image"])
    for each in args["pRanges"] or ():
        for _, cells in contents.range(each, args["image"]):
            texel = None if image is None else cleared_color(image.format, args["pColor"]["uint32"])
            cells.known[...] = texel is not None
            if texel is not None:
                cells.data[...] = texel


def clear_depth_image(contents: KnownContents, args: dict[str, Any]) -> None:
    """vkCmdClearDepthStencilImage."""
    image, value = contents.images.get(args["image"]), args["pDepthStencil"]
    for each in args["pRanges"] or ():
        for aspect, cells in contents.range(each, args["image"]):
            texel: Bytes | None
            if aspect == VkImageAspect.STENCIL:
                texel = np.array([value["stencil"] & 0xFF], np.uint8)
            else:
                texel = None if image is None else cleared_depth(image.format, value["depth"])
            cells.known[...] = texel is not None
            if texel is not None:
                cells.data[...] = texel


def copy_buffer_to_image(contents: KnownContents, args: dict[str, Any]) -> None:
    """vkCmdCopyBufferToImage."""
    memory, base, size = contents.cells(args["srcBuffer"])
    for place in _places(contents, args["dstImage"], args["pRegions"]):
        found = memory.take(base, size)
        place.cells.data[place.box] = found.data[place.addresses]
        place.cells.known[place.box] = found.known[place.addresses].all(axis=-1)


def copy_image_to_buffer(contents: KnownContents, args: dict[str, Any]) -> None:
    """vkCmdCopyImageToBuffer."""
    memory, base, _ = contents.cells(args["dstBuffer"])
    for place in _places(contents, args["srcImage"], args["pRegions"]):
        memory.data[base + place.addresses] = place.cells.data[place.box]
        memory.known[base + place.addresses] = place.cells.known[place.box][..., None]


@dataclass(frozen=True, slots=True)
class _Place:
    """One layer of a region: its texel blocks, and the address in the buffer of each byte of them."""

    cells: Cells
    box: Box
    addresses: np.ndarray[tuple[int, ...], np.dtype[np.int64]]


def _places(contents: KnownContents, image: int, regions: Iterable[dict[str, Any]] | None) -> Iterator[_Place]:
    """The layers of VkBufferImageCopy structures ("Buffer and Image Addressing")."""
    for region in regions or ():
        where, extent = region["imageSubresource"], region["imageExtent"]
        row = region["bufferRowLength"] or extent["width"]
        height = region["bufferImageHeight"] or extent["height"]
        begin = region["bufferOffset"]
        for layer in contents.images[image].layer_range(where["baseArrayLayer"], where["layerCount"]):
            cells = contents.subresource(image, where["aspectMask"], where["mipLevel"], layer)
            assert cells is not None, "asked by `can_follow`"
            size = cells.data.shape[-1]
            z, y, x, byte = np.ogrid[: extent["depth"], : extent["height"], : extent["width"], :size]
            yield _Place(cells, _box(region["imageOffset"], extent), begin + ((z * height + y) * row + x) * size + byte)
            begin += row * height * extent["depth"] * size


def copy_image(contents: KnownContents, args: dict[str, Any]) -> None:
    """vkCmdCopyImage; the array layers of one image may become slices of another one."""
    taken = []
    for region in args["pRegions"] or ():
        read = _slices(contents, args["srcImage"], region, "src")
        written = _slices(contents, args["dstImage"], region, "dst")
        for (source, box), (target, into) in zip(read, written, strict=True):
            taken.append((target, into, (source.data[box].copy(), source.known[box].copy())))
    for target, box, (data, known) in taken:
        target.data[box] = data
        target.known[box] = known


def _slices(contents: KnownContents, image: int, region: dict[str, Any], which: str) -> Iterator[tuple[Cells, Box]]:
    """Each slice of one side of a VkImageCopy: of all its aspects, the layers, or the depth of a 3D image."""
    where, offset, extent = region[f"{which}Subresource"], region[f"{which}Offset"], region["extent"]
    held = contents.images[image]
    z, _, _ = box = _box(offset, extent)
    is_deep = held.type == VkImageType.TYPE_3D
    layers = [0] if is_deep else held.layer_range(where["baseArrayLayer"], where["layerCount"])
    for aspect in held.split_aspects(where["aspectMask"]):
        for layer in layers:
            cells = contents.subresource(image, aspect, where["mipLevel"], layer)
            assert cells is not None, "asked by `can_follow`"
            for at in range(z.start, z.stop) if is_deep else (0,):
                yield cells, (slice(at, at + 1), *box[1:])


def resolve_image(contents: KnownContents, args: dict[str, Any]) -> None:
    """vkCmdResolveImage: texels of which all samples are equal give this value. The formats are the same."""
    copy_image(contents, args)


def blit_image(contents: KnownContents, args: dict[str, Any]) -> None:
    """vkCmdBlitImage between images of one format; into another one nothing is known."""
    same = contents.images[args["srcImage"]].format_value == contents.images[args["dstImage"]].format_value
    for region, source, target in _pairs(contents, args):
        if same:
            blit(source, target, region, args["filter"])
        else:
            target.known[...] = False


def _pairs(contents: KnownContents, args: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Cells, Cells]]:
    """(region, layer of the source, layer of the target) of a command between two images."""
    for region in args["pRegions"] or ():
        source = _layers(contents, args["srcImage"], region["srcSubresource"])
        target = _layers(contents, args["dstImage"], region["dstSubresource"])
        yield from ((region, *layers) for layers in zip(source, target, strict=True))


def _layers(contents: KnownContents, image: int, where: dict[str, int]) -> list[Cells]:
    found = [
        contents.subresource(image, where["aspectMask"], where["mipLevel"], layer)
        for layer in contents.images[image].layer_range(where["baseArrayLayer"], where["layerCount"])
    ]
    return [each for each in found if each is not None]


def _box(offset: dict[str, int], extent: dict[str, int]) -> Box:
    return (
        slice(offset["z"], offset["z"] + extent["depth"]),
        slice(offset["y"], offset["y"] + extent["height"]),
        slice(offset["x"], offset["x"] + extent["width"]),
    )


Follower = Callable[[KnownContents, dict[str, Any]], None]
FOLLOWED: dict[str, tuple[str, Follower]] = {
    "vkCmdFillBuffer": ("", fill_buffer),
    "vkCmdUpdateBuffer": ("", update_buffer),
    "vkCmdCopyBuffer": ("pCopyBufferInfo", copy_buffer),
    "vkCmdClearColorImage": ("", clear_color_image),
    "vkCmdClearDepthStencilImage": ("", clear_depth_image),
    "vkCmdCopyBufferToImage": ("pCopyBufferToImageInfo", copy_buffer_to_image),
    "vkCmdCopyImageToBuffer": ("pCopyImageToBufferInfo", copy_image_to_buffer),
    "vkCmdCopyImage": ("pCopyImageInfo", copy_image),
    "vkCmdBlitImage": ("pBlitImageInfo", blit_image),
    "vkCmdResolveImage": ("pResolveImageInfo", resolve_image),
}
"""Command, without the 2 of its second form, to the structure of that form and the function that follows it."""


def can_follow(contents: KnownContents, args: dict[str, Any]) -> bool:
    """Whether all buffers and images that a transfer names are followed, and its regions have a shape that is."""
    buffers = [args[key] for key in ("srcBuffer", "dstBuffer") if key in args]
    images = [args[key] for key in ("image", "srcImage", "dstImage") if key in args]
    if not all(each in contents.buffers and contents.buffers[each].space in contents.memory for each in buffers):
        return False
    held = [contents.images.get(each) for each in images]
    if not all(each is not None and is_followed(each) for each in held):
        return False
    for region in args.get("pRegions") or ():
        if "extent" in region:
            continue  # a copy between images, by slices
        if len({each.type for each in held if each is not None}) > 1:
            return False
        masks = [value["aspectMask"] for key, value in region.items() if key.endswith("ubresource")]
        if any(mask & (mask - 1) for mask in masks):
            return False
    sizes = {each.format.aspect_bytes(each.aspects[0]) for each in held if each is not None}
    return len(sizes) <= 1
