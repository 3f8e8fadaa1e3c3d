"""Conditions of `differences.toml` about render pass instances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.stream import Stream, Subject
from harness.trace.calls import Call

RENDERING = ("vkCmdBeginRender", "vkCmdNextSubpass", "vkCmdEndRender", "vkCmdDraw", "vkCmdClearAttachments")


@condition
def in_one_instance(subject: Subject, stream: Stream, _: Version) -> bool:
    """Both accesses are in one render pass instance."""
    own, finding = stream.command(subject), subject.finding
    if own is None or finding is None or "commandBuffer" not in own.args:
        return False
    between = [
        call for call in stream.recorded(own.args["commandBuffer"], own.index) if call.index > finding.prior.call
    ]
    return finding.prior.call <= own.index and not any(call.name.startswith("vkCmdEndRender") for call in between)


@condition
def part_of_attachments(subject: Subject, stream: Stream, _: Version) -> bool:
    """One of the two accesses is made by rendering, and some command before the second
    has a render area or a rectangle that is only a part of an image."""
    own = stream.command(subject)
    limit = own.index if own is not None else subject.call
    if limit is None:
        return False
    extents = [tuple(call.args["pCreateInfo"]["extent"].values())[:2] for call in _images(stream)]
    if not any(name.startswith(RENDERING) for name in subject.key[1:3]):
        return False
    return any(call.index <= limit and any(_is_part(rect, extents) for rect in _rects(call)) for call in stream.calls)


def _images(stream: Stream) -> Iterator[Call]:
    return (call for call in stream.calls if call.name == "vkCreateImage" and call.succeeded)


def _rects(call: Call) -> Iterator[dict[str, Any]]:
    for member in ("pRenderPassBegin", "pRenderingInfo"):
        info = call.args.get(member)
        if info:
            yield info["renderArea"]
    if call.name == "vkCmdClearAttachments":
        yield from (each["rect"] for each in call.args.get("pRects") or ())


def _is_part(rect: dict[str, Any], extents: list[tuple[int, ...]]) -> bool:
    x, y = rect["offset"]["x"], rect["offset"]["y"]
    width, height = rect["extent"]["width"], rect["extent"]["height"]
    return bool(x or y) or any(width < extent[0] or height < extent[1] for extent in extents)
