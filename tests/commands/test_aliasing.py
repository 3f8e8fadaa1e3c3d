"""Resources in the same memory (specification: "Memory Aliasing"): what overlaps, and what orders uses of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.streams import COLOR, DST, GENERAL, SRC, TRANSFER, UNDEFINED, Stream, extent, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.commands.interpret import Interpreter
from vkharness.findings import Finding
from vkharness.layer.silence import ALIASES, reason_for_silence
from vkharness.layer.stream import Stream as RecordedStream
from vkharness.report.sentences import explain
from vkharness.spec.enums import VkAccess2, VkImageCreate, VkPipelineStage2
from vkharness.trace.barrier_calls import SECOND, BarrierCommand, BarrierEntry, Masks
from vkharness.trace.calls import HostRead
from vkharness.trace.effects import Barrier, Command, Recorded

SIDE = (4, 4, 1)
TEXELS = 4 * 4 * 4
"""Bytes of an image's texels."""
MEMORY = 256
"""Bytes that its requirements say."""
TRANSFER_READ, TRANSFER_WRITE = VkAccess2.TRANSFER_READ, VkAccess2.TRANSFER_WRITE
ALIAS_BIT = VkImageCreate.ALIAS
CLEAR_TO_COPY = Masks(VkPipelineStage2.CLEAR, TRANSFER_WRITE, VkPipelineStage2.COPY, TRANSFER_WRITE)


class Aliased(Stream):
    """A stream with one memory object for everything."""

    def __init__(self, page: int = 1) -> None:
        super().__init__()
        limits = struct("VkPhysicalDeviceLimits", bufferImageGranularity=page)
        properties = struct("VkPhysicalDeviceProperties", limits=limits)
        self.call("vkGetPhysicalDeviceProperties", physicalDevice=0, pProperties=properties)
        self.shared = self.memory(4096)

    def placed_image(self, offset: int = 0, size: int = MEMORY, flags: int = 0, mips: int = 1, tiling: int = 0) -> int:
        """An image at an offset of the memory; `size` is what its requirements say, 0 when nobody asks."""
        info = struct(
            "VkImageCreateInfo",
            imageType=1,
            format=37,
            extent=extent(SIDE),
            mipLevels=mips,
            arrayLayers=1,
            samples=1,
            usage=3,
            flags=flags,
            tiling=tiling,
        )
        made = self.make("vkCreateImage", "pImage", info)
        if size:
            needs = struct("VkMemoryRequirements", size=size)
            self.call("vkGetImageMemoryRequirements", device=self.device, image=made, pMemoryRequirements=needs)
        self.call("vkBindImageMemory", device=self.device, image=made, memory=self.shared, memoryOffset=offset)
        return made

    def placed_buffer(self, offset: int = 0, size: int = 64) -> int:
        """A buffer there."""
        return self.buffer(size, self.shared, offset)

    def upload(self, source: int, image: int) -> int:
        """vkCmdCopyBufferToImage of all of an image of `SIDE`."""
        region = struct(
            "VkBufferImageCopy",
            imageSubresource=struct("VkImageSubresourceLayers", aspectMask=COLOR, layerCount=1),
            imageExtent=extent(SIDE),
        )
        return self.cmd("CopyBufferToImage", srcBuffer=source, dstImage=image, dstImageLayout=DST, pRegions=[region])

    def ordered(self, stages: tuple[int, int] = (TRANSFER, TRANSFER), **barriers: list[dict[str, Any]]) -> int:
        """vkCmdPipelineBarrier of one kind of barriers: memory, buffer or image."""
        names = {"memory": "pMemoryBarriers", "buffer": "pBufferMemoryBarriers", "image": "pImageMemoryBarriers"}
        given = {names[kind]: several for kind, several in barriers.items()}
        return self.cmd("PipelineBarrier", srcStageMask=stages[0], dstStageMask=stages[1], **given)

    def found(self) -> list[Finding]:
        """Submits; what is found."""
        self.submit()
        return Analysis().follow(self.blocks).findings


def kinds(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(f.hazard, f.place.command, f.prior.command) for f in findings]


def image_barrier(
    image: int,
    accesses: tuple[int, int] = (TRANSFER_WRITE, TRANSFER_READ | TRANSFER_WRITE),
    layouts: tuple[int, int] = (GENERAL, GENERAL),
    mips: int = 0xFFFFFFFF,
) -> dict[str, Any]:
    part = struct("VkImageSubresourceRange", aspectMask=COLOR, levelCount=mips, layerCount=1)
    src, dst = accesses
    return struct(
        "VkImageMemoryBarrier",
        srcAccessMask=src,
        dstAccessMask=dst,
        oldLayout=layouts[0],
        newLayout=layouts[1],
        srcQueueFamilyIndex=0xFFFFFFFF,
        dstQueueFamilyIndex=0xFFFFFFFF,
        image=image,
        subresourceRange=part,
    )


def buffer_barrier(buffer: int, offset: int = 0, size: int = 0xFFFFFFFFFFFFFFFF) -> dict[str, Any]:
    return struct(
        "VkBufferMemoryBarrier",
        srcAccessMask=TRANSFER_WRITE,
        dstAccessMask=TRANSFER_READ | TRANSFER_WRITE,
        srcQueueFamilyIndex=0xFFFFFFFF,
        dstQueueFamilyIndex=0xFFFFFFFF,
        buffer=buffer,
        offset=offset,
        size=size,
    )


MEMORY_BARRIER = struct("VkMemoryBarrier", srcAccessMask=TRANSFER_WRITE, dstAccessMask=TRANSFER_READ | TRANSFER_WRITE)


# -- what overlaps -----------------------------------------------------------------------------------------------------


def test_a_buffer_and_an_image_in_one_memory_conflict() -> None:
    stream = Aliased()
    buffer, image, out = stream.placed_buffer(), stream.placed_image(), stream.buffer(256)
    stream.begin()
    stream.fill(buffer, 1)
    stream.image_to_buffer(image, out, SIDE)
    found = stream.found()
    assert kinds(found) == [("READ_AFTER_WRITE", "vkCmdCopyImageToBuffer", "vkCmdFillBuffer")]
    assert reason_for_silence(found[0], RecordedStream(stream.blocks)) == ALIASES
    assert (found[0].resource, found[0].resource_type, found[0].ranges) == (buffer, "VkBuffer", ((0, 64),))
    assert f"(through its alias {image})" in explain(found[0]).message


def test_and_the_other_way_round() -> None:
    stream = Aliased()
    buffer, image, data = stream.placed_buffer(), stream.placed_image(), stream.buffer(256)
    stream.begin()
    stream.upload(data, image)
    stream.fill(buffer, 1)
    found = stream.found()
    assert kinds(found) == [("WRITE_AFTER_WRITE", "vkCmdFillBuffer", "vkCmdCopyBufferToImage")]
    assert (found[0].resource, found[0].resource_type) == (image, "VkImage")
    assert reason_for_silence(found[0], RecordedStream(stream.blocks)) == ALIASES


def test_a_write_after_a_read_through_an_alias_needs_an_execution_dependency() -> None:
    stream = Aliased()
    buffer, image, out = stream.placed_buffer(), stream.placed_image(), stream.buffer(256)
    stream.begin()
    stream.image_to_buffer(image, out, SIDE)
    stream.fill(buffer, 1)
    assert kinds(stream.found()) == [("WRITE_AFTER_READ", "vkCmdFillBuffer", "vkCmdCopyImageToBuffer")]
    stream = Aliased()
    buffer, image, out = stream.placed_buffer(), stream.placed_image(), stream.buffer(256)
    stream.begin()
    stream.image_to_buffer(image, out, SIDE)
    stream.ordered()
    stream.fill(buffer, 1)
    assert stream.found() == []


def test_two_images_in_one_memory_conflict_wherever_they_are_touched() -> None:
    stream = Aliased()
    one, other = stream.placed_image(), stream.placed_image(offset=128)
    stream.begin()
    stream.clear(one, (1, 1, 1, 1))
    stream.clear(other, (0, 0, 0, 0))
    found = stream.found()
    assert kinds(found) == [("WRITE_AFTER_WRITE", "vkCmdClearColorImage", "vkCmdClearColorImage")]
    assert reason_for_silence(found[0], RecordedStream(stream.blocks)) == ALIASES


@pytest.mark.parametrize(("offset", "overlaps"), [(MEMORY - 64, True), (MEMORY, False)])
def test_an_image_takes_what_its_requirements_say(offset: int, overlaps: bool) -> None:
    stream = Aliased()
    image, buffer = stream.placed_image(), stream.placed_buffer(offset)
    stream.begin()
    stream.clear(image, (1, 1, 1, 1))
    stream.fill(buffer, 1)
    assert bool(stream.found()) == overlaps


@pytest.mark.parametrize(("offset", "overlaps"), [(TEXELS - 4, True), (TEXELS, False)])
def test_an_image_that_nobody_asked_about_takes_its_texels(offset: int, overlaps: bool) -> None:
    stream = Aliased()
    image, buffer = stream.placed_image(size=0), stream.placed_buffer(offset)
    stream.begin()
    stream.clear(image, (1, 1, 1, 1))
    stream.fill(buffer, 1)
    assert bool(stream.found()) == overlaps


@pytest.mark.parametrize(("page", "tiling", "overlaps"), [(1, 0, False), (512, 0, True), (512, 1, False)])
def test_linear_and_other_resources_do_not_share_a_page(page: int, tiling: int, overlaps: bool) -> None:
    stream = Aliased(page)
    image, buffer = stream.placed_image(tiling=tiling), stream.placed_buffer(MEMORY, 1024)
    stream.begin()
    stream.fill(buffer, 1, 512 - MEMORY, 64)
    stream.fill(buffer, 1, 0, 512 - MEMORY)
    stream.clear(image, (1, 1, 1, 1))
    found = stream.found()
    assert [each.ranges for each in found] == ([((0, 512 - MEMORY),)] if overlaps else [])


def test_only_bytes_of_a_buffer_that_the_image_shares_count() -> None:
    stream = Aliased()
    image, buffer = stream.placed_image(offset=512), stream.placed_buffer(0, 1024)
    stream.begin()
    stream.clear(image, (1, 1, 1, 1))
    stream.fill(buffer, 1, 0, 512)
    stream.fill(buffer, 1, 512 + MEMORY, 64)
    assert stream.found() == []
    stream = Aliased()
    image, buffer = stream.placed_image(offset=512), stream.placed_buffer(0, 1024)
    stream.begin()
    stream.fill(buffer, 1)
    stream.clear(image, (1, 1, 1, 1))
    found = stream.found()
    assert found[0].ranges == ((512, MEMORY),)


def test_identical_alias_images_overlap_address_by_address() -> None:
    stream = Aliased()
    one, other = (stream.placed_image(flags=ALIAS_BIT, mips=2) for _ in range(2))
    stream.begin()
    stream.clear(one, (1, 1, 1, 1), mip=0)
    stream.clear(other, (0, 0, 0, 0), mip=1)
    stream.clear(other, (0, 0, 0, 0), mip=0)
    found = stream.found()
    assert kinds(found) == [("WRITE_AFTER_WRITE", "vkCmdClearColorImage", "vkCmdClearColorImage")]
    assert [box.mip for box in found[0].boxes] == [0]
    assert reason_for_silence(found[0], RecordedStream(stream.blocks)) == ""


@pytest.mark.parametrize("end", ["image", "memory"])
def test_what_is_destroyed_overlaps_nothing(end: str) -> None:
    stream = Aliased()
    image, buffer = stream.placed_image(), stream.placed_buffer()
    if end == "image":
        stream.call("vkDestroyImage", device=stream.device, image=image)
    else:
        stream.call("vkFreeMemory", device=stream.device, memory=stream.shared)
    stream.begin()
    stream.fill(buffer, 1)
    interpreter = Interpreter()
    stream_events = [each for block in stream.blocks for each in interpreter.step(block)]
    (command,) = [each.command for each in stream_events if isinstance(each, Recorded)]
    assert command.effects[0].aliases == ()  # type: ignore[union-attr]
    assert not interpreter.objects.aliasing


def test_buffers_side_by_side_in_the_memory_of_an_image_do_not_conflict() -> None:
    stream = Aliased()
    one, other, image = stream.placed_buffer(), stream.placed_buffer(64), stream.placed_image()
    stream.begin()
    stream.fill(one, 1)
    stream.fill(other, 2)
    stream.ordered(memory=[MEMORY_BARRIER])
    stream.clear(image, (1, 1, 1, 1))
    assert stream.found() == [] and not agreement(stream.blocks).disagreements


@pytest.mark.parametrize("last", ["other bytes", "image"])
def test_what_was_done_through_one_alias_stays_beside_what_another_wrote(last: str) -> None:
    stream = Aliased()
    buffer, other, image = stream.placed_buffer(), stream.placed_buffer(64), stream.placed_image()
    source = stream.buffer(64)
    stream.begin()
    cleared = stream.clear(image, (1, 1, 1, 1))
    to_copies = BarrierCommand(stream.commands, (BarrierEntry(CLEAR_TO_COPY),)).call(SECOND)
    stream.call(SECOND, **to_copies.args)
    copied = stream.copy(source, buffer, 64)
    if last == "image":
        again = stream.clear(image, (0, 0, 0, 0))
        expected = {(again, cleared), (again, copied)}
    else:
        again = stream.fill(other, 2)
        expected = {(again, cleared)}
    assert {(each.place.call, each.prior.call) for each in stream.found()} == expected
    assert not agreement(stream.blocks).disagreements


@pytest.mark.parametrize("end", ["Buffer", "Image"])
def test_what_is_destroyed_takes_its_accesses_out_of_its_aliases(end: str) -> None:
    stream = Aliased()
    buffer, image = stream.placed_buffer(), stream.placed_image()
    stream.begin()
    if end == "Buffer":
        stream.fill(buffer, 1)
    else:
        stream.clear(image, (1, 1, 1, 1))
    stream.submit(wait=False)
    gone = buffer if end == "Buffer" else image
    stream.call(f"vkDestroy{end}", device=stream.device, **{end.lower(): gone})
    stream.begin()
    if end == "Buffer":
        stream.clear(image, (1, 1, 1, 1))
    else:
        stream.fill(buffer, 1)
    assert stream.found() == [] and not agreement(stream.blocks).disagreements


READ_TOO_EARLY = [("READ_AFTER_WRITE", "host read", "vkCmdClearColorImage")]


def read_by_the_host(tiling: int = 1, mips: int = 1, waits: bool = True, shown: bool = True) -> list[Finding]:
    """A clear of an image, a barrier to the host and a wait if so wanted, and a read of mapped memory."""
    stream = Aliased()
    image = stream.placed_image(tiling=tiling, mips=mips)
    stream.begin()
    stream.clear(image, (1, 1, 1, 1))
    if shown:
        to_host = struct("VkMemoryBarrier", srcAccessMask=TRANSFER_WRITE, dstAccessMask=VkAccess2.HOST_READ)
        stream.ordered((TRANSFER, VkPipelineStage2.HOST), memory=[to_host])
    stream.submit(wait=waits)
    stream.blocks.append(HostRead(len(stream.blocks) + 1, stream.shared, 0, 64))
    found = Analysis().follow(stream.blocks).findings
    assert not agreement(stream.blocks).disagreements
    assert all(reason_for_silence(each, RecordedStream(stream.blocks)) for each in found)
    return found


def test_a_read_of_memory_is_one_of_the_linear_image_in_it() -> None:
    assert read_by_the_host() == []
    assert kinds(read_by_the_host(shown=False)) == READ_TOO_EARLY
    assert kinds(read_by_the_host(waits=False)) == READ_TOO_EARLY


def test_and_of_no_image_of_which_the_host_does_not_know_the_texels() -> None:
    assert read_by_the_host(tiling=0, shown=False) == []
    assert read_by_the_host(mips=2, shown=False) == []


# -- what orders -------------------------------------------------------------------------------------------------------


def through(kind: str, **more: Any) -> list[Finding]:
    """A fill of the buffer, one barrier, a clear of the image in the same memory."""
    stream = Aliased()
    buffer, image = stream.placed_buffer(), stream.placed_image(mips=2)
    stream.begin()
    stream.fill(buffer, 1)
    if kind == "memory":
        stream.ordered(memory=[MEMORY_BARRIER])
    elif kind == "buffer":
        stream.ordered(buffer=[buffer_barrier(buffer, **more)])
    else:
        stream.ordered(image=[image_barrier(image, **more)])
    stream.clear(image, (1, 1, 1, 1))
    return stream.found()


def test_a_global_barrier_orders_aliases() -> None:
    assert through("memory") == []


def test_a_barrier_for_one_alias_must_contain_all_that_overlaps() -> None:
    assert through("buffer") == []
    assert through("image") == []
    assert kinds(through("buffer", size=32)) == [("WRITE_AFTER_WRITE", "vkCmdClearColorImage", "vkCmdFillBuffer")]
    assert kinds(through("image", mips=1)) == [("WRITE_AFTER_WRITE", "vkCmdClearColorImage", "vkCmdFillBuffer")]


def test_a_transition_of_an_alias_is_a_write() -> None:
    discard = (UNDEFINED, DST)
    assert through("image", layouts=discard) == []
    found = through("image", layouts=discard, accesses=(0, TRANSFER_WRITE))
    assert ("WRITE_AFTER_WRITE", "vkCmdPipelineBarrier", "vkCmdFillBuffer") in kinds(found)
    stream = Aliased()
    buffer, image = stream.placed_buffer(), stream.placed_image()
    stream.begin()
    stream.ordered(image=[image_barrier(image, (0, 0), (UNDEFINED, SRC))])
    stream.fill(buffer, 1)
    assert kinds(stream.found()) == [("WRITE_AFTER_WRITE", "vkCmdFillBuffer", "vkCmdPipelineBarrier")]


@pytest.mark.parametrize(("source", "met"), [(TRANSFER, []), (0x800, [("WRITE_AFTER_WRITE", "vkCmdWaitEvents")])])
def test_barriers_at_event_waits_reach_aliases_too(source: int, met: list[tuple[str, str]]) -> None:
    stream = Aliased()
    buffer, image = stream.placed_buffer(), stream.placed_image()
    event = stream.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))
    stream.begin()
    stream.fill(buffer, 1)
    stream.cmd("SetEvent", event=event, stageMask=source)
    stream.cmd(
        "WaitEvents",
        pEvents=[event],
        srcStageMask=source,
        dstStageMask=TRANSFER,
        pImageMemoryBarriers=[image_barrier(image, layouts=(UNDEFINED, DST))],
    )
    stream.clear(image, (1, 1, 1, 1))
    assert [each[:2] for each in kinds(stream.found())] == met


def test_submits_are_ordered_like_commands() -> None:
    stream = Aliased()
    buffer, image = stream.placed_buffer(), stream.placed_image()
    first = stream.begin()
    stream.fill(buffer, 1)
    stream.end()
    second = stream.begin()
    stream.clear(image, (1, 1, 1, 1))
    stream.end()
    info = struct("VkSubmitInfo", pCommandBuffers=[first, second])
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[info])
    found = Analysis().follow(stream.blocks).findings
    assert kinds(found) == [("WRITE_AFTER_WRITE", "vkCmdClearColorImage", "vkCmdFillBuffer")]


# -- what it costs -----------------------------------------------------------------------------------------------------


def test_resources_side_by_side_cost_nothing() -> None:
    stream = Aliased()
    buffer, image = stream.placed_buffer(MEMORY), stream.placed_image()
    stream.begin()
    stream.fill(buffer, 1)
    stream.transition(image, UNDEFINED, DST)
    interpreter = Interpreter()
    stream_events = [each for block in stream.blocks for each in interpreter.step(block)]
    assert not interpreter.objects.aliasing
    commands: list[Command] = [each.command for each in stream_events if isinstance(each, Recorded)]
    assert commands[0].effects[0].aliases == ()  # type: ignore[union-attr]
    (moved,) = commands[1].effects
    assert isinstance(moved, Barrier) and moved.ranges[0].aliases == ()
