"""Subresources of an image for a barrier that leaves them in their layout.

The layout is known where the later command names it, or where the same recording has brought the image into it.
"""

from __future__ import annotations

from vkharness.findings import Finding, UserError
from vkharness.mending.recordings import OPEN, CommandRecording
from vkharness.spec.enums import VK_REMAINING_ARRAY_LAYERS, VK_REMAINING_MIP_LEVELS, VkImageAspect
from vkharness.spec.formats import format_of
from vkharness.trace.barrier_calls import BarrierCommand, ImagePart, is_barrier
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace

DEPTH_STENCIL = VkImageAspect.DEPTH | VkImageAspect.STENCIL
NAMED = (("image", "imageLayout"), ("srcImage", "srcImageLayout"), ("dstImage", "dstImageLayout"))
"""The members in which a command names an image and its layout."""


def image_part(
    trace: EditedTrace,
    recording: CommandRecording,
    site: int,
    finding: Finding,
    earlier: CommandRecording | None = None,
) -> ImagePart | None:
    """The subresources of a finding in their present layout: the one in which the recording of the `earlier` command
    left them, where nothing else says it. None where that or the image's aspects are not known."""
    boxes = finding.boxes
    aspects = _whole_aspects(trace, finding.resource)
    layout = _named_layout(trace.call(finding.place.call - 1), finding.resource)
    mips = _run([box.mip for box in boxes])
    layers = _run([box.layer for box in boxes])
    if layout is None:
        layout = _recorded_layout(trace, recording, site, finding.resource, mips, layers)
    if layout is None and earlier is not None:
        layout = _recorded_layout(trace, earlier, OPEN, finding.resource, mips, layers)
    if aspects is None or layout is None:
        return None
    return ImagePart(finding.resource, aspects, mips, layers, layout, layout)


def _run(numbers: list[int]) -> tuple[int, int]:
    return min(numbers), max(numbers) - min(numbers) + 1


def _whole_aspects(trace: EditedTrace, image: int) -> int | None:
    """The aspects that a barrier names: all of the format, but not those of planes."""
    for block in trace.blocks:
        if isinstance(block, Call) and block.name == "vkCreateImage" and block.args.get("pImage") == image:
            try:
                aspects = format_of(block.args["pCreateInfo"]["format"]).aspects
            except UserError:
                return None
            return aspects if aspects in (VkImageAspect.COLOR, aspects & DEPTH_STENCIL) else None
    return VkImageAspect.COLOR  # of a swapchain


def _named_layout(call: Call, image: int) -> int | None:
    """The layout that a command gives for an image."""
    levels = [call.args, *(value for value in call.args.values() if isinstance(value, dict))]
    found = {args[layout] for args in levels for name, layout in NAMED if args.get(name) == image and layout in args}
    return found.pop() if len(found) == 1 else None


def _recorded_layout(
    trace: EditedTrace,
    recording: CommandRecording,
    site: int,
    image: int,
    mips: tuple[int, int],
    layers: tuple[int, int],
) -> int | None:
    """The layout into which the last barrier of the recording brought all of the subresources. None where a render pass
    instance came after it, which may have brought them into another one."""
    for position in reversed(recording.positions):
        call = trace.call(position)
        if position >= site or not is_barrier(call):
            if position < site and recording.instance_at(position) is not None:
                return None
            continue
        for entry in BarrierCommand.of(call).entries:
            part = entry.part
            if isinstance(part, ImagePart) and part.image == image:
                covers = _covers(part.mips, mips, VK_REMAINING_MIP_LEVELS)
                covers = covers and _covers(part.layers, layers, VK_REMAINING_ARRAY_LAYERS)
                return part.new_layout if covers else None
    return None


def _covers(outer: tuple[int, int], inner: tuple[int, int], remaining: int) -> bool:
    end = 1 << 32 if outer[1] == remaining else outer[0] + outer[1]
    return outer[0] <= inner[0] and inner[0] + inner[1] <= end
