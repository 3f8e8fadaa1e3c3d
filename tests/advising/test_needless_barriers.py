"""Barriers that articles warn against: what need not be made available, and what submits and semaphores do anyway."""

from __future__ import annotations

from tests.support.advice import advised, only
from tests.support.streams import Stream, struct, two_buffers
from vkharness.report.advice import AdviceKind
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.trace.barrier_calls import SECOND, BarrierCommand, BarrierEntry, Masks

COPY, CLEAR, HOST = VkPipelineStage2.COPY, VkPipelineStage2.CLEAR, VkPipelineStage2.HOST
READ, WRITE, HOST_WRITE = VkAccess2.TRANSFER_READ, VkAccess2.TRANSFER_WRITE, VkAccess2.HOST_WRITE


def barrier(stream: Stream, masks: Masks) -> int:
    """vkCmdPipelineBarrier2 of one global barrier."""
    call = BarrierCommand(stream.commands, (BarrierEntry(masks),)).call(SECOND)
    return stream.call(SECOND, **call.args)


def test_reads_need_not_be_made_available() -> None:
    stream, a, b = two_buffers(64)
    c = stream.buffer(64)
    stream.begin()
    stream.copy(a, b, 64)
    barrier(stream, Masks(COPY, READ | WRITE, COPY, READ))
    stream.copy(b, c, 64)
    stream.submit()
    advice = only(advised(stream))
    assert advice.lines == (
        "pDependencyInfo.pMemoryBarriers[0].srcAccessMask: TRANSFER_READ|TRANSFER_WRITE -> TRANSFER_WRITE",
    )


def test_a_write_after_a_read_needs_no_access() -> None:
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.copy(a, b, 64)
    barrier(stream, Masks(COPY, READ, CLEAR, WRITE))
    stream.fill(a, 1, size=64)
    stream.submit()
    advice = only(advised(stream))
    assert advice.narrow is not None
    [entry] = BarrierCommand.of(advice.narrow).entries
    assert entry.masks == Masks(COPY, 0, CLEAR, 0)


def test_a_submit_shows_what_the_host_wrote() -> None:
    stream, _, b = two_buffers(64)
    memory = stream.memory(64)
    staging = stream.buffer(64, memory)
    stream.host_write(memory, 0, bytes(range(64)))
    stream.begin()
    made = barrier(stream, Masks(HOST, HOST_WRITE, COPY, READ))
    stream.copy(staging, b, 64)
    stream.submit()
    advice = only(advised(stream))
    assert (advice.kind, advice.origins) == (AdviceKind.ORDERS_NOTHING, (made,))


def test_a_semaphore_needs_no_barrier_beside_it() -> None:
    stream, a, b = two_buffers(64)
    semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    stream.begin()
    stream.fill(a, 1, size=64)
    stream.end()
    first = struct(
        "VkSubmitInfo", pCommandBuffers=[stream.commands], signalSemaphoreCount=1, pSignalSemaphores=[semaphore]
    )
    stream.begin()
    made = barrier(stream, Masks(CLEAR, WRITE, COPY, READ))
    stream.copy(a, b, 64)
    stream.end()
    second = struct(
        "VkSubmitInfo",
        pCommandBuffers=[stream.commands],
        waitSemaphoreCount=1,
        pWaitSemaphores=[semaphore],
        pWaitDstStageMask=[VkPipelineStage2.ALL_TRANSFER],
    )
    for batch in (first, second):
        stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[batch], submitCount=1)
    advice = only(advised(stream))
    assert (advice.kind, advice.origins) == (AdviceKind.ORDERS_NOTHING, (made,))
