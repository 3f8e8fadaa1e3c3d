"""Ranges of barriers: the bytes of a buffer, the mip levels and array layers of an image, and less of them.

Aspects stay: without separateDepthStencilLayouts a barrier has to name both of an image with depth and stencil
("VkImageMemoryBarrier"). So does the range of a layout transition or of a transfer of ownership.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from vkharness.mending.scope_sites import Path
from vkharness.spec.enums import VK_REMAINING_ARRAY_LAYERS, VK_WHOLE_SIZE, VkImageType
from vkharness.trace.calls import Block, Call
from vkharness.trace.edits import value_at, with_value

Args = dict[str, Any]
Sizes = Mapping[int, tuple[int, ...]]
"""Image to its mip levels and its array layers, buffer to its bytes."""
_MEMBERS = {
    "bytes": ("offset", "size"),
    "levels": ("baseMipLevel", "levelCount"),
    "layers": ("baseArrayLayer", "layerCount"),
}
UNITS = {"bytes": 4, "levels": 1, "layers": 1}
"""Units in which each range is cut."""


class Range(NamedTuple):
    """One range of one barrier of a call."""

    path: Path
    """Of the struct that has it: a buffer barrier, or the subresource range of an image barrier."""
    what: str
    """`bytes`, `levels` or `layers`."""
    begin: int
    end: int


def resource_sizes(blocks: Iterable[Block]) -> Sizes:
    """The sizes of buffers, and the levels and layers of images. Slices of a 3D image are not looked at."""
    found: dict[int, tuple[int, ...]] = {}
    for block in blocks:
        if not isinstance(block, Call) or not block.succeeded:
            continue
        if block.name == "vkCreateBuffer":
            found[block.args["pBuffer"]] = (block.args["pCreateInfo"]["size"],)
        elif block.name == "vkCreateImage":
            info = block.args["pCreateInfo"]
            if info["imageType"] != VkImageType.TYPE_3D:
                found[block.args["pImage"]] = (info["mipLevels"], info["arrayLayers"])
    return found


def ranges(value: object, sizes: Sizes, path: Path = ()) -> Iterator[Range]:
    """The ranges in a call that can be less, with what VK_WHOLE_SIZE and VK_REMAINING_* stand for."""
    if isinstance(value, dict):
        if {"buffer", "offset", "size"} <= value.keys():
            begin, size = value["offset"], value["size"]
            if size != VK_WHOLE_SIZE or value["buffer"] in sizes:
                yield Range(path, "bytes", begin, sizes[value["buffer"]][0] if size == VK_WHOLE_SIZE else begin + size)
        elif value.get("image") in sizes and {"subresourceRange", "oldLayout"} <= value.keys() and _only_orders(value):
            for what, whole in zip(("levels", "layers"), sizes[value["image"]], strict=True):
                first, count = (value["subresourceRange"][member] for member in _MEMBERS[what])
                end = whole if count == VK_REMAINING_ARRAY_LAYERS else first + count
                yield Range((*path, "subresourceRange"), what, first, end)
        for name, each in value.items():
            yield from ranges(each, sizes, (*path, name))
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield from ranges(each, sizes, (*path, at))


def _only_orders(barrier: Args) -> bool:
    same = barrier["oldLayout"] == barrier["newLayout"]
    return bool(same and barrier["srcQueueFamilyIndex"] == barrier["dstQueueFamilyIndex"])


def cut(args: Args, sizes: Sizes, path: Path, what: str, at_end: bool, many: int) -> Args | None:
    """Arguments in which a range has lost so much at one end; None where nothing would be left."""
    held = next((each for each in ranges(args, sizes) if each.path == path and each.what == what), None)
    if held is None or held.end - held.begin <= many:
        return None
    first, count = _MEMBERS[what]
    begin, end = (held.begin, held.end - many) if at_end else (held.begin + many, held.end)
    made: Args = with_value(args, path, {**value_at(args, path), first: begin, count: end - begin})
    return made
