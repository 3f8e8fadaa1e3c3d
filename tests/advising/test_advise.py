"""Advice on traces written by hand: what is too much of each dependency, and that all advice together is legal."""

from __future__ import annotations

import pytest

from tests.support.advice import advised, only
from tests.support.streams import DST, SRC, UNDEFINED, Stream, struct, two_buffers
from vkharness.advising.advise import advise
from vkharness.report.advice import AdviceKind, advice_text
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.trace.barrier_calls import SECOND, BarrierCommand, BarrierEntry, BufferPart, Masks
from vkharness.trace.calls import Call

COPY_MASKS = Masks(
    VkPipelineStage2.CLEAR, VkAccess2.TRANSFER_WRITE, VkPipelineStage2.COPY, VkAccess2.TRANSFER_READ
)  # fmt: skip


def second_form(stream: Stream, *entries: BarrierEntry) -> int:
    call = BarrierCommand(stream.commands, entries).call(SECOND)
    return stream.call(SECOND, **call.args)


def test_a_barrier_that_orders_nothing_can_be_left_out() -> None:
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 1, size=64)
    barrier = stream.barrier()
    stream.fill(b, 1, size=64)
    stream.submit()
    advice = only(advised(stream))
    assert advice.kind is AdviceKind.ORDERS_NOTHING and advice.origins == (barrier,)
    assert advice.narrow is None
    assert advice.serializes is not None and advice.serializes.pairs == 1
    assert advice.serializes.before == (("vkCmdFillBuffer", barrier - 1),)
    assert advice.serializes.after == (("vkCmdFillBuffer", barrier + 1),)


def test_a_full_barrier_is_narrowed_to_what_is_needed() -> None:
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 1)
    stream.barrier()
    stream.copy(a, b, 16)
    stream.submit()
    advice = only(advised(stream))
    assert advice.kind is AdviceKind.WIDER and advice.narrow is not None
    [entry] = BarrierCommand.of(advice.narrow).entries
    transfer = VkPipelineStage2.ALL_TRANSFER
    assert entry.masks == Masks(transfer, VkAccess2.TRANSFER_WRITE, transfer, VkAccess2.TRANSFER_READ)
    assert "    srcStageMask: ALL_COMMANDS -> TRANSFER" in list(advice_text(1, advice, ("C",)))


def test_an_exact_barrier_is_left_alone() -> None:
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 1, size=64)
    second_form(stream, BarrierEntry(COPY_MASKS, BufferPart(a, 0, 64)))
    stream.copy(a, b, 64)
    stream.submit()
    assert advised(stream).advice == []


def test_the_range_of_a_buffer_is_narrowed() -> None:
    stream, a, b = two_buffers(256)
    stream.begin()
    stream.fill(a, 1, size=256)
    second_form(stream, BarrierEntry(COPY_MASKS, BufferPart(a, 0, 256)))
    stream.copy(a, b, 16, from_=32)
    stream.submit()
    advice = only(advised(stream))
    assert advice.lines == ("pDependencyInfo.pBufferMemoryBarriers[0]: bytes [0, 256) -> [32, 48)",)


def test_two_adjacent_barriers_could_be_one() -> None:
    stream, a, b = two_buffers(64)
    target = stream.buffer(128)
    stream.begin()
    stream.fill(a, 1, size=64)
    stream.fill(b, 1, size=64)
    first = second_form(stream, BarrierEntry(COPY_MASKS, BufferPart(a, 0, 64)))
    second = second_form(stream, BarrierEntry(COPY_MASKS, BufferPart(b, 0, 64)))
    stream.copy(a, target, 64)
    stream.copy(b, target, 64, to=64)
    stream.submit()
    advice = only(advised(stream))
    assert advice.kind is AdviceKind.COULD_BE_ONE and advice.origins == (second,)
    assert advice.lines == (f"the other is call {first}",)
    assert advice.narrow is not None and len(BarrierCommand.of(advice.narrow).entries) == 2


def test_a_layout_transition_stays() -> None:
    stream = Stream()
    image = stream.image((4, 4, 1))
    stream.begin()
    transition = stream.transition(image, UNDEFINED, DST)
    stream.clear(image, (0, 0, 0, 0))
    stream.transition(image, DST, SRC)
    stream.submit()
    found = advised(stream)
    assert all(each.kind is AdviceKind.WIDER for each in found.advice)
    assert found.trace is not None
    names = [block.name for block in found.trace.blocks if isinstance(block, Call)]
    assert names.count("vkCmdPipelineBarrier") == 2 and transition in found.trace.origins


def test_the_same_barrier_of_every_frame_is_one_advice() -> None:
    stream, a, b = two_buffers(64)
    barriers = []
    for _ in range(3):
        stream.begin()
        stream.fill(a, 1)
        barriers.append(stream.barrier())
        stream.copy(a, b, 16)
        stream.submit()
    advice = only(advised(stream))
    assert advice.origins == tuple(barriers)
    assert ", and 2 more alike: wider than needed" in next(advice_text(1, advice, ()))


def test_what_one_of_several_frames_needs_is_left_alone() -> None:
    stream, a, b = two_buffers(64)
    for source in (a, b):
        stream.begin()
        stream.fill(a, 1, size=64)
        second_form(stream, BarrierEntry(COPY_MASKS, BufferPart(a, 0, 64)))
        stream.copy(source, b if source == a else a, 16, from_=0 if source == a else 32, to=0)
        stream.submit()
    kinds = {each.kind for each in advised(stream).advice}
    assert AdviceKind.ORDERS_NOTHING not in kinds


def test_a_second_wait_for_an_idle_queue_waits_for_nothing() -> None:
    stream, a, _ = two_buffers(64)
    stream.begin()
    stream.fill(a, 1)
    stream.submit(wait=False)
    wait = stream.call("vkDeviceWaitIdle", device=stream.device)
    again = stream.call("vkQueueWaitIdle", queue=stream.queue)
    advice = only(advised(stream))
    assert advice.kind is AdviceKind.WAITS_FOR_NOTHING and advice.origins == (again,) and wait < again


def test_a_barrier_that_is_never_submitted_is_not_judged() -> None:
    stream, a, _ = two_buffers(64)
    stream.begin()
    stream.fill(a, 1)
    stream.barrier()
    stream.end()
    assert advised(stream).dependencies == 0


def test_stages_of_a_semaphore_are_narrowed() -> None:
    stream, a, b = two_buffers(64)
    semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    for number, (source, target) in enumerate(((a, b), (b, a))):
        stream.begin()
        stream.copy(source, target, 16)
        stream.end()
        batch = struct("VkSubmitInfo", pCommandBuffers=[stream.commands])
        if number == 0:
            batch |= {"signalSemaphoreCount": 1, "pSignalSemaphores": [semaphore]}
        else:
            stages = [VkPipelineStage2.ALL_COMMANDS]
            batch |= {"waitSemaphoreCount": 1, "pWaitSemaphores": [semaphore], "pWaitDstStageMask": stages}
        stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[batch], submitCount=1)
    advice = only(advised(stream))
    assert advice.lines == ("pSubmits[0].pWaitDstStageMask[0]: ALL_COMMANDS -> TRANSFER",)


def test_time_that_is_over_is_said() -> None:
    stream, a, b = two_buffers(64)
    stream.begin()
    stream.fill(a, 1)
    stream.barrier()
    stream.copy(a, b, 16)
    stream.submit()
    found = advise(stream.blocks, seconds=0)
    assert found.done == 0
    assert "the time or the work was over before the rest (--seconds, --work)" in found.notes


@pytest.mark.parametrize("seconds", [0.0, 60.0])
def test_the_last_line_says_what_the_advice_is_about(seconds: float) -> None:
    assert advise(Stream().blocks, seconds).notes[-1].startswith("advice is about this trace only")


def test_a_struct_that_orders_nothing_is_left_out_and_the_others_keep_their_names() -> None:
    stream, a, b = two_buffers(64)
    wide = Masks(COPY_MASKS.src_stages, COPY_MASKS.src_accesses, VkPipelineStage2.ALL_COMMANDS, VkAccess2.MEMORY_READ)
    stream.begin()
    stream.fill(a, 1, size=64)
    second_form(stream, BarrierEntry(COPY_MASKS, BufferPart(b, 0, 64)), BarrierEntry(wide, BufferPart(a, 0, 64)))
    stream.copy(a, b, 64)
    stream.submit()
    assert only(advised(stream)).lines == (
        "pDependencyInfo.pBufferMemoryBarriers[0] orders nothing",
        "pDependencyInfo.pBufferMemoryBarriers[1].dstAccessMask: MEMORY_READ -> TRANSFER_READ",
        "pDependencyInfo.pBufferMemoryBarriers[1].dstStageMask: ALL_COMMANDS -> COPY",
    )
