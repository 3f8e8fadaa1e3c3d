"""Ranges of barriers: the bytes of a buffer, the mip levels and array layers of an image, and less of them.

Aspects stay: without separateDepthStencilLayouts a barrier has to name both of an image with depth and stencil
("VkImageMemoryBarrier"). So does the range of a layout transition or of a transfer of ownership.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from harness.mending.scope_sites import Path
from harness.spec.enums import VK_REMAINING_ARRAY_LAYERS, VK_WHOLE_SIZE, VkImageType
from harness.trace.calls import Block, Call
from harness.trace.edits import value_at, with_value

Args = dict[str, Any]
Sizes = Mapping[int, tuple[int, int]]
"""Image to its mip levels and its array layers."""
_MEMBERS = {
    "bytes": ("offset", "size"),
    "levels": ("baseMipLevel", "levelCount"),
    "layers": ("baseArrayLayer", "layerCount"),
}
UNITS = {"bytes": 4, "levels": 1, "layers": 1}
"""What each range is cut in."""


class Range(NamedTuple):
    """One range of one barrier of a call."""

    path: Path
    """Of the struct that has it: a buffer barrier, or the subresource range of an image barrier."""
    what: str
    """`bytes`, `levels` or `layers`."""
    begin: int
    end: int


def image_sizes(blocks: Iterable[Block]) -> Sizes:
    """The images whose levels and layers the trace gives. Slices of a 3D image are not looked at."""
    infos = {
        block.args["pImage"]: block.args["pCreateInfo"]
        for block in blocks
        if isinstance(block, Call) and block.name == "vkCreateImage" and block.succeeded
    }
    return {
        image: (info["mipLevels"], info["arrayLayers"])
        for image, info in infos.items()
        if info["imageType"] != VkImageType.TYPE_3D
    }


def ranges(value: object, sizes: Sizes, path: Path = ()) -> Iterator[Range]:
    """The ranges in a call that can be less, with what VK_REMAINING_* stands for. One of VK_WHOLE_SIZE is left out."""
    if isinstance(value, dict):
        if {"buffer", "offset", "size"} <= value.keys():
            if value["size"] != VK_WHOLE_SIZE:
                yield Range(path, "bytes", value["offset"], value["offset"] + value["size"])
        elif value.get("image") in sizes and "subresourceRange" in value and _only_orders(value):
            size = dict(zip(("levels", "layers"), sizes[value["image"]], strict=True))
            for what in ("levels", "layers"):
                first, count = (value["subresourceRange"][member] for member in _MEMBERS[what])
                end = size[what] if count == VK_REMAINING_ARRAY_LAYERS else first + count
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
