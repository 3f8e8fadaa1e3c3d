"""Effects of vkQueueBindSparse on later commands: which memory they access, and what must be in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import Stream, extent, layers, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.findings import Hazard
from vkharness.model import judge
from vkharness.report.conflicts import missing_text
from vkharness.report.sentences import explain
from vkharness.trace.codec import load

DATA = Path(__file__).resolve().parents[1] / "data" / "sparse"
BLOCK = 1 << 16
BINDING, RESIDENCY = 1, 3
RACE = Hazard.SPARSE_BINDING_RACE


class Sparse(Stream):
    """A trace with sparse resources."""

    def sparse_buffer(self, blocks: int = 2, flags: int = RESIDENCY) -> int:
        return self.make("vkCreateBuffer", "pBuffer", struct("VkBufferCreateInfo", flags=flags, size=blocks * BLOCK))

    def sparse_image(self, blocks: int = 2, flags: int = RESIDENCY) -> int:
        size = extent((128 * blocks, 128, 1))
        info = struct(
            "VkImageCreateInfo", flags=flags, imageType=1, format=37, extent=size, mipLevels=1, arrayLayers=1, samples=1
        )
        return self.make("vkCreateImage", "pImage", info)

    def semaphore(self) -> int:
        return self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))

    def bind(self, buffer: int, *blocks: tuple[int, int, int], **batch: Any) -> int:
        """Binds (block, memory, block of the memory) of a buffer."""
        binds = [
            struct("VkSparseMemoryBind", resourceOffset=at * BLOCK, size=BLOCK, memory=memory, memoryOffset=to * BLOCK)
            for at, memory, to in blocks
        ]
        info = struct("VkSparseBufferMemoryBindInfo", buffer=buffer, bindCount=len(binds), pBinds=binds)
        return self.bind_batch(pBufferBinds=[info], **batch)

    def bind_texels(self, image: int, *blocks: tuple[int, int, int], **batch: Any) -> int:
        """Binds (block, memory, block of the memory) of an image."""
        binds = [
            struct(
                "VkSparseImageMemoryBind",
                subresource=struct("VkImageSubresource", aspectMask=1),
                offset=struct("VkOffset3D", x=128 * at),
                extent=extent((128, 128, 1)),
                memory=memory,
                memoryOffset=to * BLOCK,
            )
            for at, memory, to in blocks
        ]
        info = struct("VkSparseImageMemoryBindInfo", image=image, bindCount=len(binds), pBinds=binds)
        return self.bind_batch(pImageBinds=[info], **batch)

    def bind_batch(
        self, waits: tuple[int, ...] = (), signals: tuple[int, ...] = (), fence: int = 0, **info: Any
    ) -> int:
        made = struct("VkBindSparseInfo", pWaitSemaphores=[*waits], pSignalSemaphores=[*signals], **info)
        return self.call("vkQueueBindSparse", queue=self.queue, bindInfoCount=1, pBindInfo=[made], fence=fence)

    def submit_after(self, *waits: int, signals: tuple[int, ...] = ()) -> int:
        """Ends the command buffer and submits it behind semaphores."""
        self.end()
        info = struct(
            "VkSubmitInfo",
            pWaitSemaphores=[*waits],
            pWaitDstStageMask=[0x10000] * len(waits),
            pCommandBuffers=[self.commands],
            pSignalSemaphores=[*signals],
        )
        return self.call("vkQueueSubmit", queue=self.queue, submitCount=1, pSubmits=[info], fence=0)

    def wait_idle(self) -> None:
        self.call("vkQueueWaitIdle", queue=self.queue)

    def found(self) -> list[Hazard]:
        """The hazards of syncval, with which the model must agree."""
        analysis = Analysis().follow(self.blocks)
        assert analysis.unmodelled == {}
        assert agreement(self.blocks).disagreements == ()
        return [each.hazard for each in analysis.findings]


def test_a_bind_and_an_access_need_a_semaphore() -> None:
    for ordered in (False, True):
        stream = Sparse()
        a, s = stream.sparse_buffer(), stream.semaphore()
        stream.bind(a, (0, stream.memory(BLOCK), 0), signals=(s,))
        stream.begin()
        stream.fill(a, 1, 0, 16)
        stream.submit_after(*([s] if ordered else []))
        assert stream.found() == ([] if ordered else [RACE])


def test_both_judges_name_the_queue_of_a_bind_and_what_is_missing() -> None:
    stream = Sparse()
    a = stream.sparse_buffer()
    stream.bind(a, (0, stream.memory(BLOCK), 0))
    stream.begin()
    stream.fill(a, 1, 0, 16)
    stream.submit_after()
    (finding,) = Analysis().follow(stream.blocks).findings
    (conflict,) = judge(stream.blocks).conflicts
    assert finding.prior.queue == conflict.prior.queue == stream.queue
    assert "the binding operation and the other" in missing_text(conflict)
    assert missing_text(conflict) == explain(finding).missing


def test_ranges_of_one_memory_are_the_same_bytes() -> None:
    stream = Sparse()
    a, memory = stream.sparse_buffer(), stream.memory(BLOCK)
    stream.bind(a, (0, memory, 0), (1, memory, 0))
    stream.wait_idle()
    stream.begin()
    stream.fill(a, 1, 0, 16)
    stream.fill(a, 2, BLOCK, 16)
    stream.fill(a, 3, BLOCK + 32, 16)
    stream.submit_after()
    assert stream.found() == [Hazard.WRITE_AFTER_WRITE]


def test_findings_name_the_range_of_the_buffer() -> None:
    stream = Sparse()
    a, memory = stream.sparse_buffer(), stream.memory(BLOCK)
    stream.bind(a, (1, memory, 0))
    stream.wait_idle()
    stream.begin()
    stream.fill(a, 1, BLOCK, 16)
    stream.fill(a, 2, BLOCK, 16)
    stream.submit_after()
    stream.bind(a, (1, memory, 0))
    found = Analysis().follow(stream.blocks).findings
    assert [(each.hazard, each.ranges) for each in found] == [
        (Hazard.WRITE_AFTER_WRITE, ((BLOCK, 16),)),
        (RACE, ((BLOCK, 16),)),
    ]


def test_a_barrier_for_a_range_covers_its_memory() -> None:
    stream = Sparse()
    a, b, memory = stream.sparse_buffer(), stream.buffer(16), stream.memory(BLOCK)
    plain = stream.buffer(BLOCK, memory)
    stream.bind(a, (1, memory, 0))
    stream.wait_idle()
    stream.begin()
    stream.fill(a, 1, BLOCK, 16)
    barrier = struct(
        "VkBufferMemoryBarrier2",
        srcStageMask=0x10000,
        srcAccessMask=0x10000,
        dstStageMask=0x10000,
        dstAccessMask=0x8000,
        srcQueueFamilyIndex=0xFFFFFFFF,
        dstQueueFamilyIndex=0xFFFFFFFF,
        buffer=a,
        offset=BLOCK,
        size=16,
    )
    info = struct("VkDependencyInfo", bufferMemoryBarrierCount=1, pBufferMemoryBarriers=[barrier])
    stream.cmd("PipelineBarrier2", pDependencyInfo=info)
    stream.copy(plain, b, 16)
    stream.submit_after()
    assert stream.found() == []


def test_writes_to_unbound_ranges_conflict_with_nothing() -> None:
    stream = Sparse()
    a = stream.sparse_buffer()
    stream.begin()
    stream.fill(a, 1, 0, 16)
    stream.fill(a, 2, 0, 16)
    stream.submit_after()
    assert stream.found() == []


def test_an_unbound_range_is_the_memory_that_it_gets() -> None:
    """A command buffer that was recorded before the bind accesses what is bound when it is submitted."""
    stream = Sparse()
    a, s = stream.sparse_buffer(), stream.semaphore()
    stream.begin()
    stream.fill(a, 1, 0, 16)
    stream.fill(a, 2, 0, 16)
    stream.bind(a, (0, stream.memory(BLOCK), 0), signals=(s,))
    stream.submit_after(s)
    assert stream.found() == [Hazard.WRITE_AFTER_WRITE]


@pytest.mark.parametrize("complete", [False, True])
def test_without_residency_all_of_a_buffer_is_bound_before_its_use(complete: bool) -> None:
    stream = Sparse()
    a, memory = stream.sparse_buffer(flags=BINDING), stream.memory(2 * BLOCK)
    stream.bind(a, (0, memory, 0), *([(1, memory, 1)] if complete else []))
    stream.wait_idle()
    stream.begin()
    stream.fill(a, 1, 0, 16)
    stream.submit_after()
    assert stream.found() == ([] if complete else [Hazard.SPARSE_NOT_BOUND])


def test_blocks_of_an_image_meet_binds_by_themselves() -> None:
    for block in (0, 1):
        stream = Sparse()
        image, b, memory = stream.sparse_image(), stream.buffer(4 * 16), stream.memory(2 * BLOCK)
        stream.bind_texels(image, (0, memory, 0), (1, memory, 1))
        stream.wait_idle()
        stream.begin()
        stream.image_to_buffer(image, b, (4, 4, 1))
        stream.submit_after()
        stream.bind_texels(image, (block, 0, 0))
        assert stream.found() == ([RACE] if block == 0 else [])


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(("flags", "block"), [(1, 0), (1, 1), (0, 0), (0, 1)])
def test_a_bind_of_metadata_meets_every_texel(flags: int, block: int, ordered: bool) -> None:
    """Metadata stand behind all of the image. An opaque range of no mip tail may hold any texel, too."""
    stream = Sparse()
    image, b, memory = stream.sparse_image(), stream.buffer(4 * 16), stream.memory(4 * BLOCK)
    stream.bind_texels(image, (0, memory, 0), (1, memory, 1))
    stream.wait_idle()
    stream.begin()
    copied = struct("VkOffset3D", x=128 * block)
    region = struct("VkBufferImageCopy", imageSubresource=layers(), imageOffset=copied, imageExtent=extent((4, 4, 1)))
    stream.cmd("CopyImageToBuffer", srcImage=image, dstBuffer=b, pRegions=[region])
    stream.submit_after()
    if ordered:
        stream.wait_idle()
    bind = struct(
        "VkSparseMemoryBind", resourceOffset=8 * BLOCK, size=BLOCK, memory=memory, memoryOffset=2 * BLOCK, flags=flags
    )
    info = struct("VkSparseImageOpaqueMemoryBindInfo", image=image, bindCount=1, pBinds=[bind])
    stream.bind_batch(pImageOpaqueBinds=[info])
    assert stream.found() == ([] if ordered else [RACE])


def test_two_images_on_one_memory_overlap_block_by_block() -> None:
    stream = Sparse()
    one, other, memory = stream.sparse_image(), stream.sparse_image(), stream.memory(2 * BLOCK)
    stream.bind_texels(one, (0, memory, 0), (1, memory, 1))
    stream.bind_texels(other, (0, memory, 1))
    stream.wait_idle()
    stream.begin()
    b = stream.buffer(64)
    for image in (one, other):
        stream.image_to_buffer(image, b, (4, 4, 1))
        stream.barrier()
    stream.clear(one, (0, 0, 0, 0))
    stream.image_to_buffer(other, b, (4, 4, 1))
    stream.submit_after()
    found = stream.found()
    assert Hazard.READ_AFTER_WRITE in found


def test_two_blocks_of_one_image_on_one_memory_overlap() -> None:
    stream = Sparse()
    image, b, memory = stream.sparse_image(), stream.buffer(64), stream.memory(BLOCK)
    stream.bind_texels(image, (0, memory, 0), (1, memory, 0))
    stream.wait_idle()
    stream.begin()
    for offset in (0, 128):
        region = struct(
            "VkBufferImageCopy",
            imageSubresource=layers(),
            imageOffset=struct("VkOffset3D", x=offset),
            imageExtent=extent((4, 4, 1)),
        )
        stream.cmd("CopyBufferToImage", srcBuffer=b, dstImage=image, dstImageLayout=1, regionCount=1, pRegions=[region])
    stream.submit_after()
    assert stream.found() == [Hazard.WRITE_AFTER_WRITE]


def test_binds_behind_a_signal_to_come_make_the_verdict_unknown() -> None:
    stream = Sparse()
    kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=1, initialValue=0)
    timeline = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=kind))
    a = stream.sparse_buffer()
    values = struct("VkTimelineSemaphoreSubmitInfo", waitSemaphoreValueCount=1, pWaitSemaphoreValues=[1])
    stream.bind(a, (0, stream.memory(BLOCK), 0), waits=(timeline,), pNext=values)
    analysis = Analysis().follow(stream.blocks)
    assert list(analysis.unmodelled) == ["sparse memory while a batch waits for a signal that is still to come"]


RECORDED = {
    "block_is_unbound_after_its_copy-without_the_wait_of_the_bind": [RACE],
    "fence_of_the_bind-the_wait_of_the_host_for_a_later_submit": [RACE],
    "fence_of_the_bind-whole": [],
    "memory_moves_to_another_range-whole": [],
    "memory_moves_to_another_range-without_the_wait_of_the_bind": [RACE],
    "two_blocks_of_one_memory-whole": [],
    "two_blocks_of_one_memory-without_first_before_second": [Hazard.WRITE_AFTER_WRITE],
}
"""Variants of scenarios/sparse as they were recorded on an NVIDIA H200, without its answers about features."""


@pytest.mark.parametrize("name", RECORDED)
def test_what_was_recorded_on_a_gpu_is_judged_from_the_trace(name: str) -> None:
    blocks = load(DATA / f"{name}.jsonl")
    analysis = Analysis().follow(blocks)
    assert analysis.unmodelled == {}
    assert agreement(blocks).disagreements == ()
    assert [each.hazard for each in analysis.findings] == RECORDED[name]


def test_each_recorded_trace_is_judged() -> None:
    assert sorted(path.stem for path in DATA.glob("*.jsonl")) == sorted(RECORDED)


def test_hostile_binds_are_passed_over() -> None:
    stream = Sparse()
    a = stream.sparse_buffer()
    stream.bind(12345, (0, stream.memory(BLOCK), 0))
    stream.bind_texels(a, (0, 77, 0))
    stream.bind_batch(pBufferBinds=[struct("VkSparseBufferMemoryBindInfo", buffer=a, pBinds=None)])
    Analysis().follow(stream.blocks)
