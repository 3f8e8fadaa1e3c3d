"""Conditions of `differences.toml` about render pass instances."""

from __future__ import annotations

from collections.abc import Iterator

from harness.commands.descriptors import chained
from harness.commands.renderpass_plan import MULTIVIEW_CREATE_INFO
from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.messages import plain_command
from harness.layer.stream import Stream, Subject, common
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
def loaded_before(subject: Subject, stream: Stream, _: Version) -> bool:
    """Between the two commands a load operation reads the same image."""
    finding = subject.finding
    loads = (call for call in stream.window(subject) if call.name.startswith(("vkCmdBeginRender", "vkCmdNextSubpass")))
    return finding is not None and any(finding.resource in stream.reads(call) for call in loads)


@condition
def part_of_attachments(subject: Subject, stream: Stream, _: Version) -> bool:
    """One of the two commands renders, and they touch the same image and no texel of it in common."""
    own, message = stream.command(subject), subject.message
    if own is None or message is None or not any(name.startswith(RENDERING) for name in subject.key[1:3]):
        return False
    mine = stream.touches(own)
    images = {touch.resource for touch in mine}
    priors = (call for call in stream.calls if call.index < own.index and plain_command(call.name) == subject.key[2])
    touched = [stream.touches(prior) for prior in priors]
    return any(images & {touch.resource for touch in each} and not common(each, mine) for each in touched)


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
