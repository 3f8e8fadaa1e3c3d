"""Smaller dispatches, draws, images and buffers: whole streams with one size changed, for the judge to accept.

A change keeps the stream valid: regions, render areas, viewports, framebuffers and descriptors shrink with what they
are about. Where that is not possible, nothing is offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from vkharness.reduction.render_pass_parts import fewer_attachments, fewer_subpasses
from vkharness.reduction.rendering_parts import fewer_rendering_attachments
from vkharness.spec.command_classes import is_recorded
from vkharness.trace.calls import Block, Call, HostWrite, edited
from vkharness.trace.references import references

Blocks = list[Block]

EDGES = (8, 16, 64, 256)
"""Widths and heights of images that are tried, in texels. Blocks of compressed formats fit from 16 on."""
BYTES = (16, 64, 256, 4096, 65536)
"""Sizes of buffers that are tried."""
_COUNTS = ("groupCountX", "groupCountY", "groupCountZ", "instanceCount", "drawCount", "vertexCount", "indexCount")
_FEW = {"vertexCount": 3, "indexCount": 3}
_TRANSFERS = (
    *("vkCmdFillBuffer", "vkCmdUpdateBuffer", "vkCmdCopyBuffer", "vkCmdCopyImage", "vkCmdPipelineBarrier"),
    *("vkCmdSetEvent", "vkCmdWaitEvents", "vkBindBufferMemory", "vkGetBufferMemoryRequirements", "vkDestroyBuffer"),
)
"""Calls whose ranges of buffers are known here."""


def smaller_counts(blocks: Sequence[Block]) -> Iterator[Blocks]:
    """One workgroup, one instance, one triangle for each dispatch and draw."""
    for at, block in enumerate(blocks):
        if isinstance(block, Call) and is_recorded(block.name):
            least = {name: _FEW.get(name, 1) for name in _COUNTS if type(block.args.get(name)) is int}
            fewer = {name: count for name, count in least.items() if block.args[name] > count}
            if fewer:
                yield [*blocks[:at], replace(block, args={**block.args, **fewer}), *blocks[at + 1 :]]


class _NoFitError(Exception):
    """The stream cannot be made valid with that size."""


def smaller_images(blocks: Sequence[Block]) -> Iterator[Blocks]:
    """All images with at most so many texels in each direction, the smallest first."""
    widest = max((max(_edges(block)) for block in blocks), default=0)
    for edge in EDGES:
        if edge < widest:
            try:
                yield edited(blocks, partial(_clipped, edge=edge))
            except _NoFitError:
                continue


def _edges(block: Block) -> tuple[int, int]:
    info = (block.args.get("pCreateInfo") or {}) if isinstance(block, Call) else {}
    extent = info.get("extent") or info.get("imageExtent") if isinstance(info, dict) else None
    return (extent["width"], extent["height"]) if extent else (0, 0)


def _clipped(block: Block, edge: int) -> Block:
    if not isinstance(block, Call):
        return block
    args = _walk(block.args, edge)
    info = args.get("pCreateInfo")
    if block.name == "vkCreateImage" and info["mipLevels"] > max(info["extent"].values()).bit_length():
        raise _NoFitError
    if block.name == "vkCreateFramebuffer":
        args["pCreateInfo"] = {**info, "width": min(info["width"], edge), "height": min(info["height"], edge)}
    return replace(block, args=args)


def _walk(value: Any, edge: int) -> Any:
    """A value with every extent, rectangle, viewport and region clipped."""
    if isinstance(value, list):
        return [_walk(each, edge) for each in value]
    if not isinstance(value, dict):
        return value
    made = {name: _walk(each, edge) for name, each in value.items()}
    if "offset" in made and "extent" in made and "x" in (made["offset"] or {}):
        made["offset"], made["extent"] = _fitted(value["offset"], value["extent"], edge)
    elif made.keys() >= {"width", "height", "minDepth"}:
        made |= {"width": min(float(edge), made["width"]), "height": _towards(edge, made["height"])}
    elif "imageSubresource" in made and "imageExtent" in made:
        limit = max(1, edge >> made["imageSubresource"]["mipLevel"])
        made["imageOffset"], made["imageExtent"] = _fitted(value["imageOffset"], value["imageExtent"], limit)
    elif "srcSubresource" in made and "extent" in made:
        limit = max(1, edge >> max(made[f"{side}Subresource"]["mipLevel"] for side in ("src", "dst")))
        for side in ("srcOffset", "dstOffset"):
            made[side], made["extent"] = _fitted(value[side], made["extent"], limit)
    elif "srcOffsets" in made:
        for side in ("src", "dst"):
            limit = max(1, edge >> made[f"{side}Subresource"]["mipLevel"])
            made[f"{side}Offsets"] = [{**each, **_least(each, limit)} for each in value[f"{side}Offsets"]]
            if made[f"{side}Offsets"][0] == made[f"{side}Offsets"][1]:
                raise _NoFitError
    else:
        for name in ("extent", "imageExtent"):
            if isinstance(made.get(name), dict) and "width" in made[name]:
                made[name] = {**made[name], **_least(made[name], edge)}
    return made


def _least(value: Mapping[str, int], limit: int) -> dict[str, int]:
    return {name: min(value[name], limit) for name in ("x", "y", "width", "height") if name in value}


def _towards(edge: int, height: float) -> float:
    """A viewport's height, which may be negative."""
    return max(-float(edge), min(float(edge), height))


def _fitted(offset: Mapping[str, int], extent: Mapping[str, int], limit: int) -> tuple[dict[str, int], dict[str, int]]:
    """A rectangle or box inside `limit` texels. What lies outside altogether moves to the beginning."""
    x, y = (offset[name] if offset[name] < limit else 0 for name in ("x", "y"))
    width, height = min(extent["width"], limit - x), min(extent["height"], limit - y)
    return {**offset, "x": x, "y": y}, {**extent, "width": width, "height": height}


def smaller_buffers(blocks: Sequence[Block]) -> Iterator[Blocks]:
    """One buffer with fewer bytes, the fewest first. Only buffers of transfers, since shaders, draws and queries may
    access what their buffers lack then."""
    busy = {
        reference.id
        for block in blocks
        if isinstance(block, Call) and not block.name.startswith(_TRANSFERS)
        for reference in references(block)
        if reference.type == "VkBuffer" and not reference.made
    }
    for block in blocks:
        if isinstance(block, Call) and block.name == "vkCreateBuffer" and block.args["pBuffer"] not in busy:
            for size in BYTES:
                if size < block.args["pCreateInfo"]["size"]:
                    try:
                        yield edited(blocks, partial(_with_buffer, buffer=block.args["pBuffer"], size=size))
                    except _NoFitError:
                        continue


def _with_buffer(block: Block, buffer: int, size: int) -> Block:
    if not isinstance(block, Call):
        return block
    args = block.args
    if block.name == "vkCreateBuffer" and args["pBuffer"] == buffer:
        return replace(block, args={**args, "pCreateInfo": {**args["pCreateInfo"], "size": size}})
    return replace(block, args=_ranges(args, buffer, size))


def _ranges(value: Any, buffer: int, size: int) -> Any:
    """A value with the ranges of a buffer clipped to its new size."""
    if isinstance(value, list):
        return [_ranges(each, buffer, size) for each in value]
    if not isinstance(value, dict):
        return value
    made = {name: _ranges(each, buffer, size) for name, each in value.items()}
    for name, begin, length in (("dstBuffer", "dstOffset", "size"), ("dstBuffer", "dstOffset", "dataSize"),
                                ("buffer", "offset", "size"), ("buffer", "offset", "range")):  # fmt: skip
        if made.get(name) == buffer and begin in made and length in made:
            made[length] = _fewer(made[begin], made[length], size)
            if length == "dataSize" and made.get("pData"):
                made["pData"] = made["pData"][: made["dataSize"]]
    for side in ("src", "dst"):
        if made.get(f"{side}Buffer") == buffer and made.get("pRegions"):
            made["pRegions"] = [_region(each, side, size) for each in made["pRegions"]]
    return made


def _region(region: dict[str, Any], side: str, size: int) -> dict[str, Any]:
    if "size" in region:
        return {**region, "size": _fewer(region[f"{side}Offset"], region["size"], size)}
    if "imageExtent" not in region:
        raise _NoFitError
    extent = region["imageExtent"]
    width = max(extent["width"], region["bufferRowLength"])
    height = max(extent["height"], region["bufferImageHeight"])
    widest_texel = 16
    if region["bufferOffset"] + widest_texel * width * height * extent["depth"] > size:
        raise _NoFitError
    return region


def _fewer(begin: int, length: int, size: int) -> int:
    """The length of a range that ends with the buffer. Raises `_NoFitError` for one that begins behind it."""
    if begin >= size:
        raise _NoFitError
    return length if length > 1 << 62 else min(length, size - begin)


def smaller_host_writes(blocks: Sequence[Block]) -> Iterator[Blocks]:
    """Writes of the host with fewer bytes."""
    for at, block in enumerate(blocks):
        if isinstance(block, HostWrite):
            for size in BYTES:
                if size < len(block.data):
                    yield [*blocks[:at], replace(block, data=block.data[:size]), *blocks[at + 1 :]]


SIZES: tuple[tuple[str, Callable[[Sequence[Block]], Iterator[Blocks]]], ...] = (
    ("fewer attachments", fewer_attachments),
    ("fewer attachments", fewer_rendering_attachments),
    ("fewer subpasses", fewer_subpasses),
    ("smaller dispatches and draws", smaller_counts),
    ("smaller images", smaller_images),
    ("smaller buffers", smaller_buffers),
    ("fewer bytes of the host", smaller_host_writes),
)
"""Kinds of smaller streams, in the order in which they are tried."""
