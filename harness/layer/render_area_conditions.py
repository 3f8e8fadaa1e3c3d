"""Conditions of `differences.toml` about render areas, and about what layers do not record while rendering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harness.layer.conditions import condition
from harness.layer.manifest import Version
from harness.layer.messages import plain_command
from harness.layer.rendering_conditions import RENDERING
from harness.layer.stream import Stream, Subject, common
from harness.trace.calls import Call
from harness.trace.chain import chained

ATTACHMENT_BEGIN_INFO = 1000108003
"""VK_STRUCTURE_TYPE_RENDER_PASS_ATTACHMENT_BEGIN_INFO."""


@condition
def rendered_in_part(subject: Subject, stream: Stream, _: Version) -> bool:
    """One of the two accesses is made by rendering, and some command before the second renders to a part only of an
    image that it touches, or clears one."""
    own = stream.command(subject)
    limit = own.index if own is not None else subject.call
    if limit is None or not any(name.startswith(RENDERING) for name in subject.key[1:3]):
        return False
    calls = [call for call in stream.calls if call.index <= limit]
    return bool(_in_part(calls, stream) & _images_of(subject, stream))


@condition
def rendered_part_before(subject: Subject, stream: Stream, _: Version) -> bool:
    """Some command between the two renders to a part only of an image that the second touches, or clears one."""
    begun = [call for call in stream.calls if call.index < (subject.call or 0)]
    between = {call.index for call in stream.window(subject)}
    return bool(_in_part(begun, stream, between) & _images_of(subject, stream))


def _images_of(subject: Subject, stream: Stream) -> set[int]:
    own = stream.command(subject)
    if subject.finding is not None:
        return {subject.finding.resource}
    if own is not None and "commandBuffer" in own.args:
        return {touch.resource for touch in stream.touches(own)}
    return {call.args["pImage"] for call in stream.calls if call.name == "vkCreateImage"}


def _in_part(calls: list[Call], stream: Stream, only: set[int] | None = None) -> set[int]:
    """Images whose views some of these calls render to, or clear, in part; with `only`, those calls by index."""
    images = {call.args["pImage"]: call.args["pCreateInfo"] for call in calls if call.name == "vkCreateImage"}
    found: set[int] = set()
    for call, info in _targets(calls):
        if only is None or call.index in only:
            image = images[info["image"]]
            layers = info["subresourceRange"]["layerCount"]
            mip = info["subresourceRange"]["baseMipLevel"]
            extent = (image["extent"]["width"] >> mip, image["extent"]["height"] >> mip)
            if any(_is_part(rect, [extent]) for rect in _rects(call)) or _layers(call, layers) < layers:
                found.add(info["image"])
    return found


def _targets(calls: list[Call]) -> Iterator[tuple[Call, dict[str, Any]]]:
    """Commands that begin rendering or clear attachments, with the VkImageViewCreateInfo of each attachment."""
    views = {call.args["pView"]: call.args["pCreateInfo"] for call in calls if call.name == "vkCreateImageView"}
    frames = {
        call.args["pFramebuffer"]: call.args["pCreateInfo"] for call in calls if call.name == "vkCreateFramebuffer"
    }
    targets: dict[int, set[int]] = {}
    for call in calls:
        buffer = call.args.get("commandBuffer", 0)
        if "pRenderingInfo" in call.args or "pRenderPassBegin" in call.args:
            targets[buffer] = _views_of(call, frames)
        elif call.name != "vkCmdClearAttachments":
            continue
        yield from ((call, views[view]) for view in targets.get(buffer, set()) & views.keys())


@condition
def cleared_in_later_layer(subject: Subject, stream: Stream, _: Version) -> bool:
    """The second command, or one before it, clears an attachment that the second touches, through a view that begins
    at another layer than the first."""
    for second, before in stream.seconds(subject):
        mine = stream.touches(second)
        clears = {call.index for call in (*before, second) if call.name == "vkCmdClearAttachments"}
        calls = [call for call in stream.calls if call.index <= second.index or call.index in clears]
        for call, info in _targets(calls):
            later = info["subresourceRange"]["baseArrayLayer"] > 0
            if later and call.index in clears and common(stream.touches(call), mine):
                return True
    return False


def _views_of(call: Call, frames: dict[int, dict[str, Any]]) -> set[int]:
    if "pRenderingInfo" in call.args:
        info = call.args["pRenderingInfo"]
        attached = [*(info["pColorAttachments"] or ()), info["pDepthAttachment"], info["pStencilAttachment"]]
        pairs = ((each["imageView"], each["resolveImageView"]) for each in attached if each)
        return {view for pair in pairs for view in pair}
    begin = call.args["pRenderPassBegin"]
    given = chained(begin, ATTACHMENT_BEGIN_INFO) or frames.get(begin["framebuffer"]) or {}
    return set(given.get("pAttachments") or ())


def _layers(call: Call, usual: int) -> int:
    """How many layers a rendering without views has; `usual` for everything else."""
    info = call.args.get("pRenderingInfo")
    return usual if info is None or info["viewMask"] else int(info["layerCount"])


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
def read_in_silence_before(subject: Subject, stream: Stream, _: Version) -> bool:
    """A command before the second reads what that one writes, and layers do not record it. Which one the second is,
    today's layer does not say at submit: then any of its name in that submit."""
    own = stream.command(subject)
    if own is not None and "commandBuffer" in own.args:
        seconds, before = [own], [step.call for step in stream.steps(subject)]
    else:
        held = [buffer for batch in stream.executed(stream.at(subject.call)) for buffer in batch]
        commands = [call for buffer in held for call in stream.recorded(buffer, subject.call or 0)]
        seconds = [call for call in commands if plain_command(call.name) == subject.key[1]]
        before = [call for call in stream.calls if call.index < (subject.call or 0)]
    reads = [touch for call in before for touch in stream.touches(call) if touch.silent]
    return any(common(reads, [touch for touch in stream.touches(call) if touch.write]) for call in seconds)


@condition
def reported_for_other_aspect(subject: Subject, _: Stream, __: Version) -> bool:
    """In the same call the layer reported another depth or stencil access of this command, at the same stage."""
    command, access = subject.key[1], subject.key[3]
    stage = access.partition("_DEPTH_STENCIL")[0]
    return any(
        plain_command(message.command) == command and message.access.startswith(stage) and message.access != access
        for message in subject.messages
    )
