"""Conditions of `differences.toml` about render pass instances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.commands.descriptors import chained
from harness.commands.renderpass_plan import MULTIVIEW_CREATE_INFO
from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.stream import Stream, Subject
from harness.trace.calls import Call

EXTERNAL = 0xFFFFFFFF
"""VK_SUBPASS_EXTERNAL."""

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
def in_dynamic_rendering(subject: Subject, stream: Stream, _: Version) -> bool:
    """The second command is recorded between vkCmdBeginRendering and its end."""
    own = stream.command(subject)
    if own is None or "commandBuffer" not in own.args:
        return False
    names = [call.name for call in stream.recorded(own.args["commandBuffer"], own.index)]
    edges = [name for name in names if name.startswith(("vkCmdBeginRender", "vkCmdEndRender"))]
    return bool(edges) and edges[-1].startswith("vkCmdBeginRendering")


@condition
def part_of_attachments(subject: Subject, stream: Stream, _: Version) -> bool:
    """One of the two accesses is made by rendering, and some command before the second
    renders to a part of some image only, or clears one."""
    own = stream.command(subject)
    limit = own.index if own is not None else subject.call
    if limit is None:
        return False
    infos = [call.args["pCreateInfo"] for call in stream.calls if call.name == "vkCreateImage" and call.succeeded]
    if not any(name.startswith(RENDERING) for name in subject.key[1:3]):
        return False
    calls = [call for call in stream.calls if call.index <= limit]
    extents = [(info["extent"]["width"], info["extent"]["height"]) for info in infos]
    layers = max((info["arrayLayers"] for info in infos), default=1)
    return any(_is_part(rect, extents) for call in calls for rect in _rects(call)) or any(
        call.args["pRenderingInfo"]["layerCount"] < layers for call in calls if "pRenderingInfo" in call.args
    )


def _rects(call: Call) -> Iterator[dict[str, Any]]:
    for member in ("pRenderPassBegin", "pRenderingInfo"):
        info = call.args.get(member)
        if info:
            yield info["renderArea"]
    if call.name == "vkCmdClearAttachments":
        yield from (each["rect"] for each in call.args.get("pRects") or ())


def _is_part(rect: dict[str, Any], extents: list[tuple[int, int]]) -> bool:
    x, y = rect["offset"]["x"], rect["offset"]["y"]
    width, height = rect["extent"]["width"], rect["extent"]["height"]
    return bool(x or y) or any(width < extent[0] or height < extent[1] for extent in extents)


@condition
def chained_through_a_pass(subject: Subject, stream: Stream, _: Version) -> bool:
    """Between the two accesses lies a whole render pass instance with dependencies from what is before it and to what
    is after it."""
    begun = [call for call in stream.window(subject) if call.name.startswith("vkCmdBeginRenderPass")]
    return any(_hands_on(stream, call.args["pRenderPassBegin"]["renderPass"]) for call in begun)


def _hands_on(stream: Stream, render_pass: int) -> bool:
    for call in stream.calls:
        if call.name.startswith("vkCreateRenderPass") and call.args.get("pRenderPass") == render_pass:
            dependencies = call.args["pCreateInfo"]["pDependencies"] or ()
            ends = {(each["srcSubpass"] == EXTERNAL, each["dstSubpass"] == EXTERNAL) for each in dependencies}
            return {(True, False), (False, True)} <= ends
    return False


@condition
def multiview(subject: Subject, stream: Stream, _: Version) -> bool:
    """Some rendering before, or this one, has a view mask."""
    limit = subject.call if subject.call is not None else float("inf")
    return any(call.index <= limit and any(_view_masks(call)) for call in stream.calls)


def _view_masks(call: Call) -> Iterator[int]:
    if call.name.startswith("vkCreateRenderPass"):
        info = call.args["pCreateInfo"]
        yield from (each.get("viewMask", 0) for each in info["pSubpasses"] or ())
        yield from (chained(info, MULTIVIEW_CREATE_INFO) or {}).get("pViewMasks") or ()
    elif call.name.startswith("vkCmdBeginRendering"):
        yield call.args["pRenderingInfo"]["viewMask"]
