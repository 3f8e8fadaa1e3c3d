"""Advice on waits of the host: for what is known to be complete, and for what is not touched before the next wait."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream, struct, two_buffers
from vkharness.advising.advise import Advising, advise
from vkharness.report.advice import AdviceKind
from vkharness.spec.enums import VkStructureType


def advised(stream: Stream) -> Advising:
    found = advise(stream.blocks, seconds=300)
    assert found.done == found.dependencies
    return found


def waits(found: Advising, kind: AdviceKind) -> list[tuple[int, ...]]:
    return [each.origins for each in found.advice if each.kind is kind]


def work(stream: Stream, buffer: int, fence: int = 0) -> int:
    """A submit of a fill of a buffer, on which nothing waits."""
    stream.begin()
    stream.fill(buffer, 1, size=16)
    stream.end()
    batch = struct("VkSubmitInfo", pCommandBuffers=[stream.commands])
    return stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[batch], fence=fence)


def fence_of(stream: Stream) -> int:
    return stream.make("vkCreateFence", "pFence", struct("VkFenceCreateInfo"))


def wait_for(stream: Stream, fence: int) -> int:
    return stream.call("vkWaitForFences", device=stream.device, pFences=[fence], waitAll=1)


def test_a_fence_of_work_before_known_work_waits_for_nothing() -> None:
    stream, a, b = two_buffers(64)
    early, late = fence_of(stream), fence_of(stream)
    work(stream, a, early)
    work(stream, b, late)
    wait_for(stream, late)
    again = wait_for(stream, early)
    assert waits(advised(stream), AdviceKind.WAITS_FOR_NOTHING) == [(again,)]


def test_a_fence_of_later_work_is_waited_for() -> None:
    stream, a, b = two_buffers(64)
    early, late = fence_of(stream), fence_of(stream)
    work(stream, a, early)
    wait_for(stream, early)
    work(stream, b, late)
    wait_for(stream, late)
    assert waits(advised(stream), AdviceKind.WAITS_FOR_NOTHING) == []


def test_a_value_of_a_timeline_that_was_reached_is_not_waited_for_again() -> None:
    stream, a, _ = two_buffers(64)
    kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=1)
    semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=kind))
    stream.begin()
    stream.fill(a, 1, size=16)
    stream.end()
    values = struct("VkTimelineSemaphoreSubmitInfo", pSignalSemaphoreValues=[2])
    assert values["sType"] == VkStructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO
    batch = struct("VkSubmitInfo", pNext=values, pCommandBuffers=[stream.commands], pSignalSemaphores=[semaphore])
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[batch])
    made = []
    for value in (2, 1):
        info = struct("VkSemaphoreWaitInfo", pSemaphores=[semaphore], pValues=[value])
        made.append(stream.call("vkWaitSemaphores", device=stream.device, pWaitInfo=info))
    assert waits(advised(stream), AdviceKind.WAITS_FOR_NOTHING) == [(made[1],)]


def test_a_wait_directly_before_one_for_the_same_work_waits_for_nothing() -> None:
    stream, a, b = two_buffers(64)
    fence = fence_of(stream)
    work(stream, a, fence)
    work(stream, b)
    first = wait_for(stream, fence)
    stream.call("vkDeviceWaitIdle", device=stream.device)
    assert waits(advised(stream), AdviceKind.WAITS_FOR_NOTHING) == [(first,)]


def test_a_wait_for_one_device_says_nothing_of_another() -> None:
    stream, a, _ = two_buffers(64)
    other = stream.id()
    stream.call("vkCreateDevice", physicalDevice=0, pCreateInfo=struct("VkDeviceCreateInfo"), pDevice=other)
    work(stream, a)
    stream.call("vkDeviceWaitIdle", device=other)
    stream.call("vkQueueWaitIdle", queue=stream.queue)
    origins = [origin for each in advised(stream).advice for origin in each.origins]
    assert len(stream.blocks) not in origins


def test_waits_between_submits_that_need_no_host_are_advised_against() -> None:
    """Each submit fills a buffer of its own; the host waits after each, and touches nothing."""
    stream = Stream()
    made = []
    for _ in range(4):
        work(stream, stream.buffer(64))
        made.append(stream.call("vkQueueWaitIdle", queue=stream.queue))
    found = advised(stream)
    assert waits(found, AdviceKind.NEEDLESS_WAIT) == [tuple(made[:-1])]
    [advice] = found.advice
    assert advice.lines == (f"the host touches nothing of that work before call {made[1]}, which waits for it, too",)
    assert advice.serializes is not None and advice.serializes.pairs > 0


@pytest.mark.parametrize("how", ["reads", "frees", "records", "maps"])
def test_a_wait_on_which_the_host_relies_stays(how: str) -> None:
    stream = Stream()
    memory = stream.memory(64)
    a = stream.buffer(64, memory)
    if how == "maps":
        stream.call("vkMapMemory", device=stream.device, memory=memory, size=64)
    work(stream, a)
    stream.call("vkQueueWaitIdle", queue=stream.queue)
    buffers = [stream.commands]
    if how == "reads":
        stream.host_write(stream.memory(64), 0, b"1234")
    elif how == "frees":
        stream.call("vkFreeCommandBuffers", device=stream.device, commandPool=stream.pool, pCommandBuffers=buffers)
    elif how == "records":
        stream.call("vkBeginCommandBuffer", commandBuffer=buffers[0], pBeginInfo=struct("VkCommandBufferBeginInfo"))
        stream.call("vkEndCommandBuffer", commandBuffer=buffers[0])
    work(stream, stream.buffer(64))
    stream.call("vkDeviceWaitIdle", device=stream.device)
    assert waits(advised(stream), AdviceKind.NEEDLESS_WAIT) == []


def test_a_wait_that_orders_memory_stays() -> None:
    stream, a, b = two_buffers(64)
    work(stream, a)
    stream.call("vkQueueWaitIdle", queue=stream.queue)
    stream.begin()
    stream.copy(a, b, 16)
    stream.submit()
    assert waits(advised(stream), AdviceKind.NEEDLESS_WAIT) == []
