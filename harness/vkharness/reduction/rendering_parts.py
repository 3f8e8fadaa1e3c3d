"""Dynamic rendering with one attachment or one resolve less: whole streams, for the judge to accept.

An attachment is left out with a VkImageView of VK_NULL_HANDLE, so that the others keep their numbers. Pipelines and
secondaries must have no format for it then (VUID-vkCmdDraw-dynamicRenderingUnusedAttachments-08912). So an instance in
which nothing is drawn is changed alone, and all others are changed together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from vkharness.spec.command_classes import BEGINS_RENDERING, ENDS_RENDERING
from vkharness.spec.enums import VkRendering, VkStructureType
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call
from vkharness.trace.chain import rebuilt

Blocks = list[Block]
Struct = dict[str, Any]
_COLORS = "pColorAttachments"
_OTHERS = {"pDepthAttachment": "depthAttachmentFormat", "pStencilAttachment": "stencilAttachmentFormat"}
_NO_RESOLVE = {"resolveMode": 0, "resolveImageView": 0}
_GONE = {"imageView": 0, **_NO_RESOLVE}
_FORMATS = (VkStructureType.PIPELINE_RENDERING_CREATE_INFO, VkStructureType.COMMAND_BUFFER_INHERITANCE_RENDERING_INFO)
_DEPENDS = ("vkCmdDraw", "vkCmdExecuteCommands")
"""Commands that bring calls into it which name the formats of the attachments."""


@dataclass(slots=True)
class _Rendering:
    """Instances that change together, by the positions of their begins."""

    begins: list[int] = field(default_factory=list)
    depends: bool = False
    """Whether pipelines or secondaries depend on the attachments."""
    clears: bool = False
    """Whether vkCmdClearAttachments names attachments by their numbers."""


def fewer_rendering_attachments(blocks: Sequence[Block]) -> Iterator[Blocks]:
    """Instances of dynamic rendering without one of their attachments, or with one that is not resolved."""
    if any(isinstance(block, Call) and block.name.startswith("vkCmdSetRendering") for block in blocks):
        return  # what maps attachments to locations and input indices names them, too
    several = _instances(blocks)
    together = _Rendering([begin for each in several if each.depends for begin in each.begins], True)
    for rendering in [each for each in several if not each.depends] + [together]:
        infos = [_info(blocks[begin]) for begin in rendering.begins]
        for at in range(max((len(info[_COLORS] or ()) for info in infos), default=0)):
            held = [info[_COLORS][at] for info in infos if at < len(info[_COLORS] or ())]
            if any(each["imageView"] for each in held):
                yield _edited(blocks, rendering, partial(_with_color, at, _GONE), _COLORS, at)
            if any(each["resolveMode"] for each in held):
                yield _edited(blocks, rendering, partial(_with_color, at, _NO_RESOLVE))
        for member in _OTHERS:
            if any(info[member] for info in infos):
                yield _edited(blocks, rendering, partial(_without, member), member)
            if any((info[member] or {}).get("resolveMode") for info in infos):
                yield _edited(blocks, rendering, partial(_unresolved, member))


def _instances(blocks: Sequence[Block]) -> list[_Rendering]:
    """The instances of a stream; what resumes one belongs to it."""
    found: list[_Rendering] = []
    now: dict[int, _Rendering] = {}
    suspended: dict[int, _Rendering] = {}
    for position, block in enumerate(blocks):
        name = main_name(block.name) if isinstance(block, Call) else ""
        if not isinstance(block, Call) or "commandBuffer" not in block.args:
            continue
        buffer = block.args["commandBuffer"]
        if name.startswith(BEGINS_RENDERING) and block.args.get("pRenderingInfo"):
            flags = block.args["pRenderingInfo"]["flags"]
            resumed = suspended.pop(buffer, None) if flags & VkRendering.RESUMING else None
            now[buffer] = resumed or _Rendering()
            found += [] if resumed else [now[buffer]]
            now[buffer].begins.append(position)
            # Rendering that resumes no part in this command buffer has its first part in another one.
            now[buffer].depends |= bool(flags & VkRendering.RESUMING and not resumed)
            if flags & VkRendering.SUSPENDING:
                suspended[buffer] = now[buffer]
        elif name.startswith(ENDS_RENDERING):
            now.pop(buffer, None)
        elif buffer in now:
            now[buffer].depends |= name.startswith(_DEPENDS)
            now[buffer].clears |= name == "vkCmdClearAttachments"
    for each in suspended.values():
        each.depends = True
    return found


def _info(block: Block) -> Struct:
    assert isinstance(block, Call)
    info: Struct = block.args["pRenderingInfo"]
    return info


def _edited(
    blocks: Sequence[Block], rendering: _Rendering, edit: Callable[[Struct], Struct], member: str = "", at: int = 0
) -> Blocks:
    """The stream with edited instances. Where others depend on it, they have no format for the attachment `at` of a
    member of VkRenderingInfo."""
    made = list(blocks)
    for begin in rendering.begins:
        block = made[begin]
        assert isinstance(block, Call)
        info = edit(_info(block))
        if not rendering.depends and not rendering.clears:
            info = _shortened(info)
        made[begin] = replace(block, args={**block.args, "pRenderingInfo": info})
    return [_without_format(block, member, at) for block in made] if rendering.depends and member else made


def _with_color(at: int, change: Struct, info: Struct) -> Struct:
    several = [{**each, **change} if place == at else each for place, each in enumerate(info[_COLORS] or ())]
    return {**info, _COLORS: several}


def _without(member: str, info: Struct) -> Struct:
    return {**info, member: None}


def _unresolved(member: str, info: Struct) -> Struct:
    return {**info, member: info[member] and {**info[member], **_NO_RESOLVE}}


def _shortened(info: Struct) -> Struct:
    """Without colour attachments at the end that are none."""
    kept = list(info[_COLORS] or ())
    while kept and not kept[-1]["imageView"]:
        kept.pop()
    return {**info, _COLORS: kept or None, "colorAttachmentCount": len(kept)}


def _without_format(block: Block, member: str, at: int) -> Block:
    """A pipeline, or the begin of a secondary, with VK_FORMAT_UNDEFINED for an attachment."""
    if not isinstance(block, Call):
        return block

    def change(link: Struct) -> Struct:
        if link["sType"] not in _FORMATS:
            return link
        if member != _COLORS:
            return {**link, _OTHERS[member]: 0}
        formats = link["pColorAttachmentFormats"] or ()
        return {**link, "pColorAttachmentFormats": [0 if place == at else each for place, each in enumerate(formats)]}

    if main_name(block.name) == "vkCreateGraphicsPipelines":
        infos = [{**info, "pNext": rebuilt(info, change)} for info in block.args["pCreateInfos"] or ()]
        return replace(block, args={**block.args, "pCreateInfos": infos})
    if block.name == "vkBeginCommandBuffer" and (inherited := block.args["pBeginInfo"].get("pInheritanceInfo")):
        info = {**block.args["pBeginInfo"], "pInheritanceInfo": {**inherited, "pNext": rebuilt(inherited, change)}}
        return replace(block, args={**block.args, "pBeginInfo": info})
    return block
