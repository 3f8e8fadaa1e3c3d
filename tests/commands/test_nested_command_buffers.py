"""Secondary command buffers that execute others (VK_EXT_nested_command_buffer), in both judges."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.streams import Stream, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.spec.enums import VkAccess2, VkCommandBufferUsage, VkPipelineStage2

FILL, COPY, EXECUTE = "vkCmdFillBuffer", "vkCmdCopyBuffer", "vkCmdExecuteCommands"
TRANSFER, WRITE, READ = VkPipelineStage2.ALL_TRANSFER, VkAccess2.TRANSFER_WRITE, VkAccess2.TRANSFER_READ


def recorded(stream: Stream, level: int, *commands: tuple[str, dict[str, Any]]) -> int:
    """A command buffer of a level (0: primary) with these commands."""
    made = stream.id()
    info = struct("VkCommandBufferAllocateInfo", commandPool=stream.pool, level=level, commandBufferCount=1)
    stream.call("vkAllocateCommandBuffers", device=stream.device, pAllocateInfo=info, pCommandBuffers=[made])
    inherited = struct("VkCommandBufferInheritanceInfo") if level else None
    flags = VkCommandBufferUsage.SIMULTANEOUS_USE
    begin = struct("VkCommandBufferBeginInfo", flags=flags, pInheritanceInfo=inherited)
    stream.call("vkBeginCommandBuffer", commandBuffer=made, pBeginInfo=begin)
    for name, args in commands:
        stream.call(name, commandBuffer=made, **args)
    stream.call("vkEndCommandBuffer", commandBuffer=made)
    return made


def executes(*buffers: int) -> tuple[str, dict[str, Any]]:
    return EXECUTE, {"commandBufferCount": len(buffers), "pCommandBuffers": list(buffers)}


@pytest.mark.parametrize(("ordered", "found"), [(True, []), (False, ["READ_AFTER_WRITE"])])
@pytest.mark.parametrize("depth", [1, 3])
def test_what_is_inside_stands_where_it_is_executed(depth: int, ordered: bool, found: list[str]) -> None:
    stream = Stream()
    one, other = stream.buffer(64), stream.buffer(64)
    buffer = recorded(stream, 1, (FILL, {"dstBuffer": one, "dstOffset": 0, "size": 64, "data": 1}))
    for _ in range(depth):
        buffer = recorded(stream, 1, executes(buffer))
    made = struct("VkMemoryBarrier", srcAccessMask=WRITE, dstAccessMask=READ)
    masks = {"srcStageMask": TRANSFER, "dstStageMask": TRANSFER}
    barrier = ("vkCmdPipelineBarrier", {**masks, "memoryBarrierCount": 1, "pMemoryBarriers": [made]})
    copy = (
        COPY,
        {"srcBuffer": one, "dstBuffer": other, "regionCount": 1, "pRegions": [struct("VkBufferCopy", size=64)]},
    )
    primary = recorded(stream, 0, executes(buffer), *([barrier] if ordered else []), copy)
    batch = struct("VkSubmitInfo", commandBufferCount=1, pCommandBuffers=[primary])
    stream.call("vkQueueSubmit", queue=stream.queue, submitCount=1, pSubmits=[batch])
    analysis = Analysis(keep_events=True).follow(stream.blocks)
    assert [each.hazard for each in analysis.findings] == found
    assert not analysis.unmodelled
    assert agreement(stream.blocks).disagreements == ()
