"""What descriptor sets, memory and images hold where the captured frame begins.

RenderDoc keeps the layouts of images as bytes of its own: a chunk without values. They are 32-bit words, of which an
image has some that describe it, and for each of its parts the layout and the queue family then and at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from vkharness.findings import UserError
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkDescriptorType, VkImageAspect, VkImageType, VkStructureType
from vkharness.spec.followed import BUFFERS, IMAGES, TEXEL_BUFFERS
from vkharness.spec.formats import Format, format_of
from vkharness.trace.calls import Block, Call
from vkharness.trace.chain import chained
from vkharness.trace.found_writes import FoundWrites
from vkharness.trace.initial_contents import NO_CONTENTS, ImageStart, InitialContents, LaidOut, Texels
from vkharness.trace.lines import Corrupt
from vkharness.trace.printed.printed_shapes import PrintedShapes
from vkharness.trace.printed.printed_values import PrintedValue
from vkharness.trace.renderdoc.byte_archive import decimal
from vkharness.trace.renderdoc.chunk_calls import object_number
from vkharness.trace.renderdoc.chunks import CaptureChunk
from vkharness.trace.work_budget import A_BLOCK, spend_reading

_IMAGE = struct.Struct("<QIIIIIIIIIIQ")
"""The image; its layers, levels, samples, extent, format, type, first layout, sharing; the number of its parts."""
_PART = struct.Struct("<IIIIIIIIIIII")
"""Aspects, first level, levels, first layer, layers, first slice, slices; families and layouts, each then and at the
end; how the frame uses it."""
_TRANSFERS = struct.Struct("<QQ")
"""Barriers of ownership that are halfway, then and at the end."""
_UNKNOWN = 0xFFFFFFFF
_ALIGNED = 4
"""Bytes to which each level is aligned in the contents of an image, or a texel block of a compressed format."""


_MOST_ASPECTS = 4
"""Of an image: three planes, and its color."""
_MOST_PARTS = 1 << 17
"""Parts of one image that are told. Levels of 2048 layers are 30,000."""


class _Slot(NamedTuple):
    """A descriptor of a set: where it is, and its members by name."""

    binding: int
    element: int
    members: dict[str, PrintedValue]


class FrameStart:
    """Gathers what objects hold, and makes the blocks that say so."""

    def __init__(self, shapes: PrintedShapes, types: dict[str, str], memory: FoundWrites) -> None:
        """`types`: the type of each object, by the text of its number."""
        self._shapes, self._types, self._memory = shapes, types, memory
        self._contents = InitialContents(memory)
        self._layouts: dict[int, list[dict[str, Any]]] = {}
        """The bindings of each set layout."""
        self._sets: dict[int, tuple[int, int, int | None]] = {}
        """The device and the layout of each set, and the number of its last descriptors where that is variable."""
        self._texels: dict[int, tuple[int, bytes]] = {}
        """The chunk and the contents of each image."""
        self._device = 0

    def follow(self, call: Call) -> None:
        """Takes note of what is created and bound."""
        args = call.args
        self._contents.follow(call)
        if call.name == "vkCreateDevice":
            self._device = args["pDevice"]
        elif call.name == "vkCreateDescriptorSetLayout":
            self._layouts[args["pSetLayout"]] = (args["pCreateInfo"] or {}).get("pBindings") or []
        elif call.name == "vkAllocateDescriptorSets":
            info = args["pAllocateInfo"]
            kind = VkStructureType.DESCRIPTOR_SET_VARIABLE_DESCRIPTOR_COUNT_ALLOCATE_INFO
            counts = (chained(info, kind) or {}).get("pDescriptorCounts") or [None]
            for made, layout in zip(args["pDescriptorSets"] or (), info["pSetLayouts"] or (), strict=False):
                self._sets[made] = args["device"], layout, counts[0]

    def held(self, chunk: CaptureChunk) -> Iterator[Block]:
        """What one object holds. Raises Corrupt where that is not understood."""
        if len(chunk.values) < 3:
            raise Corrupt("contents of nothing")
        kind = self._types.get(chunk.values[1].text, "")
        made = self._shapes.handles.table(kind).get(object_number(chunk.values[1])) if kind else None
        if made is None:
            return
        named = {each.name: each for each in chunk.values}
        data = named["Contents"].data if "Contents" in named else None
        if kind == "VkDescriptorSet" and "Bindings" in named:
            yield from self._written(chunk.number, made, named["Bindings"].parts)
        elif kind == "VkDeviceMemory" and data is not None:
            yield self._memory.contents(chunk.number, made, 0, data)
        elif kind == "VkImage" and data is not None:
            self._texels[made] = chunk.number, data

    def begin(self, index: int, data: bytes | None) -> Iterator[Block]:
        """The contents and layouts of images, where the frame begins. Raises Corrupt where `data` is not understood."""
        starts = self._starts(data) if data is not None else {}
        for image in {**starts, **self._texels}:
            info = self._contents.image_info(image)
            if info is None:
                continue
            start = starts.get(image, ImageStart([]))
            if image in starts and all(part.layout in NO_CONTENTS for part in start.parts):
                continue
            if (
                start.family is None
                and not info["sharingMode"]
                and len(list(self._contents.families(self._device))) > 1
            ):
                continue  # who owns it is not known: a copy by another family would be a hazard of ours
            number, contents = self._texels.get(image, (index, b""))
            texels = _texels(info, len(contents)) if contents and info["samples"] == 1 else []
            yield from self._contents.image(number, self._device, image, start, texels, contents)

    def _starts(self, data: bytes) -> dict[int, ImageStart]:
        """The layouts of images. Raises Corrupt."""
        found, at = {}, 4
        try:
            for _ in range(struct.unpack_from("<I", data)[0]):
                spend_reading(1, "images")
                number, *_about, count = _IMAGE.unpack_from(data, at)
                at += _IMAGE.size
                if _PART.size * count > len(data) - at:
                    raise struct.error
                image = self._shapes.handles.table("VkImage").get(number, 0)
                info = self._contents.image_info(image)
                if info is not None:
                    found[image] = _start(info, data, at, count)
                at += _PART.size * count
                if any(_TRANSFERS.unpack_from(data, at)):
                    raise Corrupt("layouts of images beside transfers of ownership that are halfway")
                at += _TRANSFERS.size
        except struct.error:
            raise Corrupt("layouts of images in another form than RenderDoc 1.24 writes") from None
        if at != len(data):
            raise Corrupt("layouts of images in another form than RenderDoc 1.24 writes")
        return found

    def _written(self, index: int, made: int, given: list[PrintedValue]) -> Iterator[Block]:
        """The writes that give a descriptor set what it holds."""
        device, layout, last = self._sets.get(made, (0, 0, None))
        slots = _slots(self._layouts.get(layout, []), last, given)
        writes = [write for slot in slots if (write := self._write(made, slot)) is not None]
        if writes:
            args = {"device": device, "descriptorWriteCount": len(writes), "pDescriptorWrites": writes}
            yield Call(index, "vkUpdateDescriptorSets", args | {"descriptorCopyCount": 0, "pDescriptorCopies": None})

    def _write(self, made: int, slot: _Slot) -> dict[str, Any] | None:
        """A VkWriteDescriptorSet; None for a descriptor that holds nothing, or what the capture does not have."""
        members = slot.members
        kind = _whole(members, "type")
        write: dict[str, Any] = {
            "sType": VkStructureType.WRITE_DESCRIPTOR_SET,
            "pNext": None,
            "dstSet": made,
            "dstBinding": slot.binding,
            "dstArrayElement": slot.element,
            "descriptorCount": 1,
            "descriptorType": kind,
            "pImageInfo": None,
            "pBufferInfo": None,
            "pTexelBufferView": None,
        }
        if kind in BUFFERS and (buffer := self._known(members, "resource", "VkBuffer")):
            place = {"offset": _whole(members, "offset"), "range": _whole(members, "range")}
            return write | {"pBufferInfo": [{"buffer": buffer, **place}]}
        if kind in TEXEL_BUFFERS and (view := self._known(members, "resource", "VkBufferView")):
            return write | {"pTexelBufferView": [view]}
        if kind in IMAGES:
            view, sampler = (
                self._known(members, "resource", "VkImageView"),
                self._known(members, "sampler", "VkSampler"),
            )
            if view or (kind == VkDescriptorType.SAMPLER and sampler):
                info = {"sampler": sampler, "imageView": view, "imageLayout": _whole(members, "imageLayout")}
                return write | {"pImageInfo": [info]}
        return None

    def _known(self, members: dict[str, PrintedValue], name: str, kind: str) -> int:
        """The object that a member names, if the capture has it; else 0."""
        value = members.get(name)
        if value is None or self._types.get(value.text) != kind:
            return 0
        return self._shapes.handles.table(kind).get(object_number(value), 0)


def _slots(bindings: list[dict[str, Any]], last: int | None, given: list[PrintedValue]) -> Iterator[_Slot]:
    """The descriptors of a set, which lie one after the other in the order of their bindings."""
    values = iter(given)
    ordered = sorted(bindings, key=lambda each: int(each["binding"]))
    for binding in ordered:
        count = binding["descriptorCount"]
        if last is not None and binding is ordered[-1]:
            count = last
        if binding["descriptorType"] == VkDescriptorType.INLINE_UNIFORM_BLOCK:
            count = 1
        for element, value in zip(range(count), values, strict=False):
            spend_reading(1, "descriptors")
            yield _Slot(binding["binding"], element, {each.name: each for each in value.parts})


def _start(info: dict[str, Any], data: bytes, at: int, count: int) -> ImageStart:
    """The layouts of one image, from the words at `at` that describe its parts. Raises Corrupt where these are more
    than the image has."""
    whole = _Subresources(info)
    if count > min(whole.count, _MOST_PARTS):
        raise Corrupt(_too_many(count, whole.count))
    spend_reading(A_BLOCK * count, "parts of images")
    parts, owners, described = dict[LaidOut, None](), set(), 0
    for each in range(count):
        words = _PART.unpack_from(data, at + _PART.size * each)
        aspects, level, levels, layer, layers, _slice, slices, family, _family, layout, *_ = words
        described += whole.of(aspects, levels, layers, slices)
        if layout != _UNKNOWN:
            parts[LaidOut(layout, aspects, level, levels, layer, layers)] = None
            owners.add(family)
    if described > whole.count:
        raise Corrupt(_too_many(described, whole.count))
    known = owners - {VK_QUEUE_FAMILY_IGNORED}
    return ImageStart(list(parts), known.pop() if len(owners) == 1 and known else None)


def _too_many(count: int, most: int) -> str:
    return f"layouts of {count} parts of an image that has at most {min(most, _MOST_PARTS)}"


class _Subresources:
    """How many parts with a layout an image can have: aspects of levels of layers, and of slices if it is 3D."""

    def __init__(self, info: dict[str, Any]) -> None:
        self._levels, self._layers = info["mipLevels"], info["arrayLayers"]
        self._slices = info["extent"]["depth"] if info["imageType"] == VkImageType.TYPE_3D else 1
        self.count = _MOST_ASPECTS * self._levels * self._layers * self._slices

    def of(self, aspects: int, levels: int, layers: int, slices: int) -> int:
        """How many of them a part is; VK_REMAINING_MIP_LEVELS and its like are all."""
        within: int = min(levels, self._levels) * min(layers, self._layers) * min(slices, self._slices)
        return max(1, aspects.bit_count() * within)


def _texels(info: dict[str, Any], size: int) -> list[Texels]:
    """Where the levels of an image lie in its contents of `size` bytes: layer by layer, depth in front of stencil. None
    for a format of several planes, and for contents that are less than the image has, or more levels than are told."""
    try:
        form = format_of(info["format"])
    except UserError:
        return []
    count = info["arrayLayers"] * info["mipLevels"]
    if form.planes or count > min(size, _MOST_PARTS):
        return []
    spend_reading(count, "levels of images")
    aligned = form.block_bytes if form.compressed else _ALIGNED
    found, offset = [], 0
    for layer in range(info["arrayLayers"]):
        for level in range(info["mipLevels"]):
            for aspect in form.aspect_list():
                offset = -(-offset // aligned) * aligned
                found.append(Texels(offset, aspect, level, layer, 1))
                offset += _level_bytes(info, form, aspect, level)
    return found if offset <= size else []


def _level_bytes(info: dict[str, Any], form: Format, aspect: int, level: int) -> int:
    blocks = 1
    for name, block in zip(("width", "height", "depth"), form.block_extent, strict=True):
        blocks *= -(-max(1, info["extent"][name] >> level) // block)
    whole = form.aspect_list() == (VkImageAspect.COLOR,)
    return blocks * (form.block_bytes if whole else form.aspect_bytes(aspect))


def _whole(members: dict[str, PrintedValue], name: str) -> int:
    return (decimal(members[name].text) or 0) if name in members else 0
