"""Mending of traces written by hand: what is changed, where, and that nothing of it is too much."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.streams import DST, SRC, UNDEFINED, Stream, struct, two_buffers
from vkharness.check import Analysis
from vkharness.mending.mend import Mending, mend
from vkharness.mending.pieces import pieces
from vkharness.mending.proof import is_clean, judge
from vkharness.report.mends import summary
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.spec.masks import scope
from vkharness.trace.barrier_calls import BarrierCommand, BufferPart, Masks
from vkharness.trace.calls import Call
from vkharness.trace.edits import Edit, EditedTrace

IGNORED = 0xFFFFFFFF
WHOLE = 0xFFFFFFFFFFFFFFFF


def masks(src: str, dst: str) -> Masks:
    return Masks(*scope(src), *scope(dst))


def mended(stream: Stream) -> Mending:
    """The stream mended: clean for both judges, and no piece of a change can be left out."""
    found = mend(stream.blocks)
    assert found.complete, [each.reason for each in found.groups]
    for trace in (found.trace, found.applied):
        assert judge(trace).findings == []
        several = list(pieces(trace))
        assert several or not list(trace.edits())
        for piece in several:
            assert not is_clean(piece.without(trace), (), by_model=True), piece.what
    return found


def only_edit(trace: EditedTrace) -> Edit:
    [edit] = trace.edits()
    return edit


def memory_barrier(stream: Stream, src: str, dst: str, **part: int) -> int:
    (src_stages, src_access), (dst_stages, dst_access) = scope(src), scope(dst)
    accesses = {"srcAccessMask": src_access, "dstAccessMask": dst_access}
    stages = {"srcStageMask": src_stages, "dstStageMask": dst_stages}
    if part:
        families = {"srcQueueFamilyIndex": IGNORED, "dstQueueFamilyIndex": IGNORED}
        held = struct("VkBufferMemoryBarrier", **accesses, **families, **part)
        return stream.cmd("PipelineBarrier", **stages, pBufferMemoryBarriers=[held])
    return stream.cmd("PipelineBarrier", **stages, pMemoryBarriers=[struct("VkMemoryBarrier", **accesses)])


def test_a_barrier_of_the_very_range_is_inserted_before_the_later_command() -> None:
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 1)
    copy = stream.copy(a, b, 16, from_=32)
    stream.submit()
    found = mended(stream)
    edit = only_edit(found.trace)
    assert edit.before is None and found.trace.origins[edit.position + 1] == copy
    [entry] = BarrierCommand.of(edit.after).entries
    assert entry.masks == masks("CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
    assert entry.part == BufferPart(a, 32, 16)
    own = only_edit(found.applied).after
    assert own.name == "vkCmdPipelineBarrier", "the program knows no second form"
    assert own.args["srcStageMask"] == own.args["dstStageMask"] == VkPipelineStage2.ALL_TRANSFER


def test_a_write_after_a_read_needs_no_memory_dependency() -> None:
    stream, a, b = two_buffers()
    stream.begin()
    stream.copy(a, b, 16)
    stream.fill(a, 1)
    stream.submit()
    [entry] = BarrierCommand.of(only_edit(mended(stream).trace).after).entries
    assert (entry.masks, entry.part) == (masks("COPY", "CLEAR"), None)


@pytest.mark.parametrize(
    ("src", "dst", "member", "new"),
    [
        ("TOP_OF_PIPE", "ALL_TRANSFER/TRANSFER_READ", "srcStageMask", VkPipelineStage2.ALL_TRANSFER),
        ("ALL_TRANSFER/TRANSFER_WRITE", "BOTTOM_OF_PIPE", "dstStageMask", VkPipelineStage2.ALL_TRANSFER),
        ("ALL_TRANSFER/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_READ", "dstStageMask", 0x1800),
    ],
)
def test_a_barrier_that_is_nearly_right_is_edited(src: str, dst: str, member: str, new: int) -> None:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 1)
    barrier = memory_barrier(stream, src, dst)
    stream.copy(a, b, 16)
    stream.submit()
    edit = only_edit(mended(stream).trace)
    assert edit.before is not None and edit.before.index == barrier
    assert edit.after.args[member] == new


def test_a_barrier_of_the_resource_that_orders_nothing_gets_other_scopes() -> None:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 1)
    barrier = memory_barrier(
        stream, "VERTEX_SHADER/SHADER_READ", "COMPUTE_SHADER/SHADER_READ", buffer=a, offset=0, size=WHOLE
    )
    stream.copy(a, b, 16)
    stream.submit()
    edit = only_edit(mended(stream).trace)
    assert edit.before is not None and edit.before.index == barrier
    assert edit.after.args["srcStageMask"] == edit.after.args["dstStageMask"] == VkPipelineStage2.ALL_TRANSFER
    [held] = edit.after.args["pBufferMemoryBarriers"]
    assert (held["srcAccessMask"], held["dstAccessMask"]) == (VkAccess2.TRANSFER_WRITE, VkAccess2.TRANSFER_READ)


def test_a_range_that_is_too_short_is_edited() -> None:
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 1)
    barrier = memory_barrier(
        stream, "ALL_TRANSFER/TRANSFER_WRITE", "ALL_TRANSFER/TRANSFER_READ", buffer=a, offset=0, size=16
    )
    stream.copy(a, b, 64)
    stream.submit()
    edit = only_edit(mended(stream).trace)
    assert edit.before is not None and edit.before.index == barrier
    [held] = edit.after.args["pBufferMemoryBarriers"]
    assert (held["offset"], held["size"]) == (0, 64)


def test_a_transition_waits_for_what_was_written_before() -> None:
    stream = Stream()
    image = stream.image((4, 4, 1))
    buffer = stream.buffer(64)
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    stream.clear(image, (1, 0, 0, 1))
    span = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
    barrier = struct(
        "VkImageMemoryBarrier",
        dstAccessMask=VkAccess2.TRANSFER_READ,
        oldLayout=DST,
        newLayout=SRC,
        srcQueueFamilyIndex=IGNORED,
        dstQueueFamilyIndex=IGNORED,
        image=image,
        subresourceRange=span,
    )
    index = stream.cmd("PipelineBarrier", srcStageMask=1, dstStageMask=0x1000, pImageMemoryBarriers=[barrier])
    stream.image_to_buffer(image, buffer, (4, 4, 1))
    stream.submit()
    found = mended(stream)
    edit = only_edit(found.trace)
    assert edit.before is not None and edit.before.index == index
    assert (edit.before.args["srcStageMask"], edit.after.args["srcStageMask"]) == (0x1, 0x1000)
    lines = list(summary(found.trace, found.applied, found.outcomes, ("C",)))
    assert "    srcStageMask: TOP_OF_PIPE -> TRANSFER" in lines


def test_one_barrier_before_a_command_serves_all_that_it_needs() -> None:
    stream = Stream()
    a, b, c = (stream.buffer(16) for _ in range(3))
    stream.begin()
    stream.fill(a, 1)
    stream.copy(c, b, 16)
    stream.copy(a, b, 16)
    stream.submit()
    found = mended(stream)
    entries = BarrierCommand.of(only_edit(found.trace).after).entries
    assert {each.part for each in entries} == {BufferPart(a, 0, 16), BufferPart(b, 0, 16)}


def test_a_clean_stream_is_left_as_it_is() -> None:
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 1)
    stream.barrier()
    stream.copy(a, b, 16)
    stream.submit()
    found = mend(stream.blocks)
    assert found.groups == [] and list(found.trace.edits()) == []
    assert [block.args for block in found.applied.blocks if isinstance(block, Call)] == [
        block.args for block in stream.blocks if isinstance(block, Call)
    ]


def test_blocks_keep_the_numbers_that_the_trace_gave_them() -> None:
    """A capture numbers other things, too, so that indices have gaps."""
    stream, a, b = two_buffers()
    stream.begin()
    stream.fill(a, 1)
    stream.copy(a, b, 16)
    stream.submit()
    blocks = [replace(block, index=10 * block.index) for block in stream.blocks]
    wanted = Analysis().follow(blocks).findings
    found = mend(blocks, wanted)
    assert [each.findings[0].place.call for each in found.groups] == [wanted[0].place.call]
    [line] = [each for each in summary(found.trace, found.applied, found.outcomes, ()) if each.startswith("change 1")]
    assert f"(call {wanted[0].place.call})" in line


def test_only_the_findings_that_are_wanted_are_mended() -> None:
    stream = Stream()
    a, b, c = (stream.buffer(16) for _ in range(3))
    stream.begin()
    stream.fill(a, 1)
    stream.copy(a, b, 16)
    stream.fill(c, 1)
    stream.copy(c, b, 16, to=0)
    stream.submit()
    everything = judge(EditedTrace.of(stream.blocks)).findings
    found = mend(stream.blocks, everything[:1])
    left = judge(found.trace).findings
    assert len(found.groups) == 1
    assert {(each.resource, str(each.hazard)) for each in everything[1:]} == {
        (each.resource, str(each.hazard)) for each in left
    }
