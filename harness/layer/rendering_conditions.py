"""Conditions of `differences.toml` about render pass instances."""

from __future__ import annotations

from collections.abc import Iterator

from harness.commands.rendering.render_pass_plan import MULTIVIEW_CREATE_INFO, SUBPASS_EXTERNAL
from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.messages import plain_command
from harness.layer.stream import Stream, Subject, common, scopes
from harness.trace.calls import Call
from harness.trace.chain import chained

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
    """Between the two accesses lies a whole render pass instance with a dependency to what is after it, and one from
    what is before it or a barrier before it; or with one from what is before it, and a barrier after it."""
    for second, before in stream.seconds(subject):
        window = [*_since_prior(subject, second, before, stream), second]
        for position, call in enumerate(window):
            if call.name.startswith("vkCmdBeginRenderPass"):
                if not any(each.name.startswith("vkCmdEndRenderPass") for each in window[position:-1]):
                    continue  # it is not over
                into, out = _ends(stream, call.args["pRenderPassBegin"]["renderPass"])
                earlier = into or any(True for each in window[:position] for _ in scopes(each))
                later = out or any(True for each in window[position:] for _ in scopes(each))
                if (into or out) and earlier and later:
                    return True
    return False


def _since_prior(subject: Subject, second: Call, before: list[Call], stream: Stream) -> list[Call]:
    """The commands after the last one so called as the first access that touches what the second command does."""
    mine = stream.touches(second)
    for position in range(len(before) - 1, -1, -1):
        if plain_command(before[position].name) == subject.key[2] and common(stream.touches(before[position]), mine):
            return before[position + 1 :]
    return before


def _ends(stream: Stream, render_pass: int) -> tuple[bool, bool]:
    """Whether a render pass has dependencies from what is before it, and to what is after it."""
    for call in stream.calls:
        if call.name.startswith("vkCreateRenderPass") and call.args.get("pRenderPass") == render_pass:
            dependencies = call.args["pCreateInfo"]["pDependencies"] or ()
            return any(each["srcSubpass"] == SUBPASS_EXTERNAL for each in dependencies), any(
                each["dstSubpass"] == SUBPASS_EXTERNAL for each in dependencies
            )
    return False, False


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
