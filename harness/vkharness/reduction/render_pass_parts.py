"""Render passes with one attachment or one subpass less: whole streams, for the judge to accept.

References to the rest follow: those of subpasses, dependencies, framebuffers, clear values, pipelines and the
secondaries that continue a subpass. Render passes whose chains count attachments or subpasses are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from vkharness.replay.schedule.steps import StepKind, kind_of
from vkharness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING, NEXT_SUBPASS, is_recorded
from vkharness.spec.enums import VK_ATTACHMENT_UNUSED
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, edited, reading

Blocks = list[Block]
Struct = dict[str, Any]


class _NoFitError(Exception):
    """The stream cannot be made valid without that part."""


def fewer_attachments(blocks: Sequence[Block]) -> Iterator[Blocks]:
    """One render pass without one of its attachments."""
    yield from _fewer(blocks, "pAttachments", 0, _without_attachment)


def fewer_subpasses(blocks: Sequence[Block]) -> Iterator[Blocks]:
    """One render pass without one of its subpasses, in which nothing is drawn or cleared."""
    yield from _fewer(blocks, "pSubpasses", 1, _without_subpass)


def _fewer(
    blocks: Sequence[Block], array: str, least: int, edit: Callable[[Sequence[Block], int, int], Blocks]
) -> Iterator[Blocks]:
    for call in blocks:
        if isinstance(call, Call) and call.name.startswith("vkCreateRenderPass"):
            info = call.args["pCreateInfo"]
            parts = len(info[array] or ())
            chains = [info, *(info["pSubpasses"] or ()), *(info["pAttachments"] or ())]
            if parts <= least or any(each.get("pNext") for each in chains):
                continue
            for at in range(parts):
                try:
                    yield edit(blocks, call.args["pRenderPass"], at)
                except _NoFitError:
                    continue


# -- attachments -------------------------------------------------------------------------------------------------------


def _without_attachment(blocks: Sequence[Block], render_pass: int, at: int) -> Blocks:
    framebuffers = {
        block.args["pFramebuffer"]
        for block in blocks
        if isinstance(block, Call)
        and block.name == "vkCreateFramebuffer"
        and block.args["pCreateInfo"]["renderPass"] == render_pass
    }
    return edited(blocks, partial(_edit_attachment, render_pass=render_pass, framebuffers=framebuffers, at=at))


def _edit_attachment(block: Block, render_pass: int, framebuffers: set[int], at: int) -> Block:
    if not isinstance(block, Call):
        return block
    args = block.args
    if block.name.startswith("vkCreateRenderPass") and args["pRenderPass"] == render_pass:
        info = args["pCreateInfo"]
        several = [_subpass_without(each, at) for each in info["pSubpasses"] or ()]
        left = _left(info, "pAttachments", "attachmentCount", at) | {"pSubpasses": several}
        return replace(block, args={**args, "pCreateInfo": {**info, **left}})
    if block.name == "vkCreateFramebuffer" and args["pFramebuffer"] in framebuffers:
        info = args["pCreateInfo"]
        if info["pNext"] or len(info["pAttachments"] or ()) <= at:
            raise _NoFitError  # an imageless one
        return replace(
            block, args={**args, "pCreateInfo": {**info, **_left(info, "pAttachments", "attachmentCount", at)}}
        )
    if main_name(block.name).startswith("vkCmdBeginRenderPass"):
        info = args["pRenderPassBegin"]
        if info["framebuffer"] in framebuffers and info["renderPass"] != render_pass:
            raise _NoFitError
        if info["renderPass"] == render_pass:
            if info["framebuffer"] not in framebuffers or info["pNext"]:
                raise _NoFitError
            if len(info["pClearValues"] or ()) > at:
                left = _left(info, "pClearValues", "clearValueCount", at)
                return replace(block, args={**args, "pRenderPassBegin": {**info, **left}})
    return block


def _left(info: Struct, array: str, count: str, at: int) -> Struct:
    kept = [each for place, each in enumerate(info[array]) if place != at]
    return {array: kept, count: len(kept)}


def _subpass_without(subpass: Struct, at: int) -> Struct:
    """A subpass in which the attachment is unused, and those behind it have the number before."""
    if any(each["attachment"] == at for each in subpass["pInputAttachments"] or ()):
        raise _NoFitError  # shaders read it
    made = dict(subpass)
    gone = {place for place, each in enumerate(subpass["pColorAttachments"] or ()) if each["attachment"] == at}
    for array in ("pInputAttachments", "pColorAttachments", "pResolveAttachments"):
        if subpass[array]:
            follows = gone if array == "pResolveAttachments" else set()
            made[array] = [_moved(each, at, unused=place in follows) for place, each in enumerate(subpass[array])]
    depth = subpass["pDepthStencilAttachment"]
    made["pDepthStencilAttachment"] = depth and _moved(depth, at)
    kept = [each - (each > at) for each in subpass["pPreserveAttachments"] or () if each != at]
    return {**made, "pPreserveAttachments": kept or None, "preserveAttachmentCount": len(kept)}


def _moved(reference: Struct, at: int, *, unused: bool = False) -> Struct:
    number = reference["attachment"]
    if number == VK_ATTACHMENT_UNUSED or (number < at and not unused):
        return reference
    return {**reference, "attachment": VK_ATTACHMENT_UNUSED if unused or number == at else number - 1}


# -- subpasses ---------------------------------------------------------------------------------------------------------


def _without_subpass(blocks: Sequence[Block], render_pass: int, at: int) -> Blocks:
    made: Blocks = []
    inside: dict[int, int] = {}
    """Command buffers in an instance of the render pass, with the subpass that they are in."""
    begins: dict[int, int] = {}
    """Command buffers to the place, in `made`, of what began their instance."""
    for block in blocks:
        if not isinstance(block, Call):
            made.append(block)
            continue
        buffer = block.args.get("commandBuffer", 0)
        name = main_name(block.name)
        if name.startswith(BEGINS_RENDERING) and block.args.get("pRenderPassBegin"):
            if block.args["pRenderPassBegin"]["renderPass"] == render_pass:
                inside[buffer], begins[buffer] = 0, len(made)
        elif name.startswith(NEXT_SUBPASS) and buffer in inside:
            inside[buffer] += 1
            if inside[buffer] == max(at, 1):
                if at == 0:
                    _begin_with(made, begins[buffer], block)
                continue
        elif name.startswith(ENDS_RENDERING):
            inside.pop(buffer, None)
        elif inside.get(buffer) == at and is_recorded(name) and kind_of(name) is not StepKind.STATE:
            raise _NoFitError
        with reading(block):
            made.append(_edit_subpass(block, render_pass, at))
    return made


def _begin_with(made: Blocks, place: int, following: Call) -> None:
    """The instance begins with the contents of its second subpass."""
    begin = made[place]
    assert isinstance(begin, Call)
    for key in ("contents", "pSubpassBeginInfo"):
        if (key in begin.args) != (key in following.args):
            raise _NoFitError
    kept: Struct = {key: following.args[key] for key in ("contents", "pSubpassBeginInfo") if key in following.args}
    made[place] = replace(begin, args={**begin.args, **kept})


def _edit_subpass(block: Call, render_pass: int, at: int) -> Call:
    args = block.args
    if block.name.startswith("vkCreateRenderPass") and args["pRenderPass"] == render_pass:
        info = args["pCreateInfo"]
        several = [each for each in info["pDependencies"] or () if at not in (each["srcSubpass"], each["dstSubpass"])]
        moved = [{**each, **{key: _number(each[key], at) for key in ("srcSubpass", "dstSubpass")}} for each in several]
        left = _left(info, "pSubpasses", "subpassCount", at)
        if _used(info["pSubpasses"]) != _used(left["pSubpasses"]):
            raise _NoFitError  # attachments go first
        left |= {"pDependencies": moved, "dependencyCount": len(moved)}
        return replace(block, args={**args, "pCreateInfo": {**info, **left}})
    if block.name == "vkCreateGraphicsPipelines":
        infos = [_in_subpass(each, render_pass, at) for each in args["pCreateInfos"] or ()]
        return replace(block, args={**args, "pCreateInfos": infos})
    if block.name == "vkBeginCommandBuffer" and (inherited := args["pBeginInfo"].get("pInheritanceInfo")):
        info = {**args["pBeginInfo"], "pInheritanceInfo": _in_subpass(inherited, render_pass, at)}
        return replace(block, args={**args, "pBeginInfo": info})
    return block


def _used(subpasses: Sequence[Struct]) -> set[int]:
    """The attachments that subpasses read or write."""
    several = [
        reference
        for each in subpasses
        for array in ("pInputAttachments", "pColorAttachments", "pResolveAttachments")
        for reference in each[array] or ()
    ]
    several += [each["pDepthStencilAttachment"] for each in subpasses if each["pDepthStencilAttachment"]]
    return {each["attachment"] for each in several} - {VK_ATTACHMENT_UNUSED}


def _in_subpass(info: Struct, render_pass: int, at: int) -> Struct:
    """A pipeline or an inheritance with the number that its subpass has now."""
    if info["renderPass"] != render_pass:
        return info
    if info["subpass"] == at:
        raise _NoFitError
    return {**info, "subpass": _number(info["subpass"], at)}


def _number(subpass: int, at: int) -> int:
    """VK_SUBPASS_EXTERNAL stays."""
    return subpass - 1 if at < subpass < 1 << 31 else subpass
