"""The nearest dependency: which barrier is named, and what it is said to lack."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.streams import COLOR, COMPUTE, DST, READ_WRITE, TRANSFER, UNDEFINED, Stream, layers, struct
from vkharness.check import Analysis
from vkharness.findings import Finding, Lack
from vkharness.nearest_dependency import MOST_COMMANDS
from vkharness.report.nearest_text import nearest_text
from vkharness.report.text import finding_text
from vkharness.spec.enums import VkAccess2, VkDependency, VkPipelineStage2

WRITE, READ = VkAccess2.TRANSFER_WRITE, VkAccess2.TRANSFER_READ
FITS = {"srcAccessMask": WRITE, "dstAccessMask": READ}
HOST = VkPipelineStage2.HOST


def memory_barrier(stream: Stream, src: int = TRANSFER, dst: int = TRANSFER, **masks: int) -> int:
    barrier = struct("VkMemoryBarrier", **{**FITS, **masks})
    return stream.cmd("PipelineBarrier", srcStageMask=src, dstStageMask=dst, pMemoryBarriers=[barrier])


def buffer_barrier(stream: Stream, buffer: int, offset: int, size: int, **masks: int) -> int:
    ignored = {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
    part = struct("VkBufferMemoryBarrier", buffer=buffer, offset=offset, size=size, **{**FITS, **masks}, **ignored)
    return stream.cmd("PipelineBarrier", srcStageMask=TRANSFER, dstStageMask=TRANSFER, pBufferMemoryBarriers=[part])


def copied(*barriers: Any) -> tuple[Finding, list[int]]:
    """The finding of a copy out of what a fill has written, and the calls of the barriers between; each barrier is a
    function of the stream and the buffer."""
    stream = Stream()
    source, target = stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.fill(source, 7)
    calls = [each(stream, source) for each in barriers]
    stream.copy(source, target, 64)
    stream.end()
    (finding,) = Analysis().follow(stream.blocks).findings
    return finding, calls


@pytest.mark.parametrize(
    ("masks", "lacks"),
    [
        ({"dst": COMPUTE, "dstAccessMask": VkAccess2.SHADER_READ}, (Lack.SECOND_STAGES, Lack.SECOND_ACCESSES)),
        ({"dst": COMPUTE, "dstAccessMask": VkAccess2.MEMORY_READ}, (Lack.SECOND_STAGES,)),
        ({"src": COMPUTE, "srcAccessMask": VkAccess2.SHADER_WRITE}, (Lack.FIRST_STAGES, Lack.FIRST_ACCESSES)),
        ({"srcAccessMask": 0, "dstAccessMask": 0}, (Lack.FIRST_ACCESSES, Lack.SECOND_ACCESSES)),
        ({"srcAccessMask": READ}, (Lack.FIRST_ACCESSES,)),
        ({"dstAccessMask": VkAccess2.MEMORY_WRITE}, (Lack.SECOND_ACCESSES,)),
    ],
)
def test_a_scope_that_does_not_fit(masks: dict[str, int], lacks: tuple[Lack, ...]) -> None:
    finding, (call,) = copied(lambda stream, _: memory_barrier(stream, **masks))
    assert finding.nearest is not None
    assert (finding.nearest.call, finding.nearest.command) == (call, "vkCmdPipelineBarrier")
    assert finding.nearest.lacks == lacks


def test_bytes_that_a_barrier_leaves_out() -> None:
    finding, (call,) = copied(lambda stream, buffer: buffer_barrier(stream, buffer, 0, 60))
    assert finding.nearest is not None
    assert finding.nearest.lacks == (Lack.RANGE,)
    assert finding.nearest.uncovered == ((60, 4),)
    assert nearest_text(finding.nearest) == f"vkCmdPipelineBarrier (call {call}): it leaves out [60, 64)"
    assert f"\n  nearest: vkCmdPipelineBarrier (call {call})" in finding_text(finding).plain
    assert finding.to_dict()["nearest"]["uncovered"] == [{"offset": 60, "size": 4}]


def test_a_layer_that_a_barrier_leaves_out() -> None:
    stream = Stream()
    image, buffer = stream.image((4, 4, 1), array=2), stream.buffer(256)
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    stream.clear(image, (1, 1, 1, 1), layer=1)
    whole = struct("VkImageSubresourceRange", aspectMask=COLOR, levelCount=1, layerCount=1)
    families = {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
    part = struct(
        "VkImageMemoryBarrier", srcAccessMask=READ_WRITE, dstAccessMask=READ_WRITE, oldLayout=DST, newLayout=DST,
        image=image, subresourceRange=whole, **families,
    )  # fmt: skip
    call = stream.cmd("PipelineBarrier", srcStageMask=TRANSFER, dstStageMask=TRANSFER, pImageMemoryBarriers=[part])
    region = struct(
        "VkBufferImageCopy", imageSubresource=layers(layer=1), imageExtent={"width": 4, "height": 4, "depth": 1}
    )
    stream.cmd("CopyBufferToImage", srcBuffer=buffer, dstImage=image, dstImageLayout=DST, pRegions=[region])
    stream.end()
    (finding,) = [
        each for each in Analysis().follow(stream.blocks).findings if each.place.command != "vkCmdClearColorImage"
    ]
    assert finding.nearest is not None
    assert (finding.nearest.call, finding.nearest.lacks) == (call, (Lack.RANGE,))
    assert nearest_text(finding.nearest).endswith("it leaves out VK_IMAGE_ASPECT_COLOR_BIT mip 0 layer 1")


def test_the_one_that_lacks_least_and_of_equal_ones_the_nearest() -> None:
    finding, calls = copied(
        lambda stream, _: memory_barrier(stream, srcAccessMask=0, dstAccessMask=0),
        lambda stream, _: memory_barrier(stream, src=COMPUTE, srcAccessMask=VkAccess2.MEMORY_WRITE),
        lambda stream, _: memory_barrier(stream, dst=COMPUTE, dstAccessMask=VkAccess2.MEMORY_READ),
        lambda stream, _: memory_barrier(stream, dst=COMPUTE, dstAccessMask=VkAccess2.SHADER_READ),
    )
    assert finding.nearest is not None
    assert finding.nearest.call == calls[2]


def test_a_barrier_that_has_nothing_to_do_with_it_is_not_named() -> None:
    finding, _ = copied(
        lambda stream, _: memory_barrier(stream, src=HOST, dst=COMPUTE),
        lambda stream, buffer: buffer_barrier(stream, stream.buffer(64), 0, 64),
    )
    assert finding.nearest is None


def test_the_end_of_the_earlier_recording_is_looked_at() -> None:
    stream = Stream()
    source, target = stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.fill(source, 7)
    call = memory_barrier(stream, dstAccessMask=0)
    stream.submit(wait=False)
    stream.begin()
    stream.copy(source, target, 64)
    stream.submit()
    (finding,) = Analysis().follow(stream.blocks).findings
    assert finding.nearest is not None
    assert (finding.nearest.call, finding.nearest.lacks) == (call, (Lack.SECOND_ACCESSES,))


def test_a_dependency_by_region_is_named_where_all_else_fits() -> None:
    stream = Stream()
    source, target = stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.fill(source, 7)
    stream.cmd(
        "PipelineBarrier", srcStageMask=TRANSFER, dstStageMask=TRANSFER, dependencyFlags=VkDependency.BY_REGION,
        pMemoryBarriers=[struct("VkMemoryBarrier", srcAccessMask=READ, dstAccessMask=READ)],
    )  # fmt: skip
    stream.copy(source, target, 64)
    stream.end()
    (finding,) = Analysis().follow(stream.blocks).findings
    assert finding.nearest is not None
    assert finding.nearest.lacks == (Lack.FIRST_ACCESSES, Lack.REGION)


def test_a_command_buffer_that_is_executed_again_is_looked_at_from_end_to_begin() -> None:
    """The earlier access is of the execution before: what comes behind it in the recording lies between the two."""
    stream = Stream()
    source, target, other = (stream.buffer(64) for _ in range(3))
    stream.begin()
    stream.copy(source, target, 64)
    stream.fill(source, 7)
    call = memory_barrier(stream, dstAccessMask=0)
    stream.submit(wait=False)
    stream.submit()
    found = [each for each in Analysis().follow(stream.blocks).findings if each.hazard.reads]
    assert other and [(each.nearest and each.nearest.call) for each in found] == [call]


def test_a_barrier_whose_transition_is_the_earlier_access_is_named() -> None:
    stream = Stream()
    image, buffer = stream.image((4, 4, 1)), stream.buffer(256)
    stream.begin()
    call = stream.transition(image, UNDEFINED, DST, access=0)
    region = struct("VkBufferImageCopy", imageSubresource=layers(), imageExtent={"width": 4, "height": 4, "depth": 1})
    stream.cmd("CopyBufferToImage", srcBuffer=buffer, dstImage=image, dstImageLayout=DST, pRegions=[region])
    stream.end()
    (finding,) = Analysis().follow(stream.blocks).findings
    assert finding.nearest is not None
    assert (finding.nearest.call, finding.nearest.lacks) == (call, (Lack.SECOND_ACCESSES,))


def test_only_the_last_barriers_are_looked_at() -> None:
    """A finding costs the same however many there are."""
    near = [lambda stream, _: memory_barrier(stream, dstAccessMask=VkAccess2.MEMORY_WRITE)] * 2
    far = [lambda stream, _: memory_barrier(stream, src=HOST, dst=COMPUTE)] * (MOST_COMMANDS - 1)
    finding, calls = copied(*near, *far)
    assert finding.nearest is not None
    assert finding.nearest.call == calls[1]
    finding, _ = copied(near[0], *far, far[0])
    assert finding.nearest is None
