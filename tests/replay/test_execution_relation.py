"""How the executions of two accesses lie to each other on a device, for streams over queues of several families."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.support.streams import ALL_COMMANDS, Stream, struct
from vkharness.check import Analysis
from vkharness.replay.native_strategies.execution_relation import BatchGraph, EndlessRunError, Relation, relation
from vkharness.replay.objects.queue_mapping import QueueFamily, map_queues, trace_queues
from vkharness.replay.observation.shader_notes import with_features
from vkharness.replay.outcomes.jobs import run_native
from vkharness.trace.calls import Call

H100 = [QueueFamily(0xF, 16), QueueFamily(0xC, 2), QueueFamily(0xE, 8)]
ONE_FAMILY = [QueueFamily(0x7, 2)]
ONE_QUEUE = [QueueFamily(0x7, 1)]


class TwoQueues(Stream):
    """A fill on the first queue, and a copy of what it filled, without a barrier."""

    def __init__(self) -> None:
        super().__init__()
        flags = [struct("VkQueueFamilyProperties", queueFlags=each.flags, queueCount=each.queues) for each in H100]
        self.call("vkGetPhysicalDeviceQueueFamilyProperties", pQueueFamilyProperties=flags)
        self.other = self.id()
        self.call("vkGetDeviceQueue", device=self.device, queueFamilyIndex=2, queueIndex=0, pQueue=self.other)
        self.source, self.target = self.buffer(64), self.buffer(64)
        self.semaphore = self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
        self.line = self.timeline()

    def filled(self) -> int:
        commands = self.begin()
        self.fill(self.source, 1)
        self.end()
        return commands

    def copied(self) -> int:
        commands = self.begin()
        self.copy(self.source, self.target, 64)
        self.end()
        return commands

    def give(
        self, queue: int, commands: int, wait: tuple[int, int] | None = None, signal: tuple[int, int] | None = None
    ) -> None:
        """One batch; `wait` and `signal` are a semaphore and a value, and the wait is at BOTTOM_OF_PIPE."""

        def infos(pair: tuple[int, int] | None, stages: int) -> list[object]:
            return [struct("VkSemaphoreSubmitInfo", semaphore=pair[0], value=pair[1], stageMask=stages)] if pair else []

        batch = struct(
            "VkSubmitInfo2",
            pCommandBufferInfos=[struct("VkCommandBufferSubmitInfo", commandBuffer=commands)],
            commandBufferInfoCount=1,
            pWaitSemaphoreInfos=infos(wait, 0x2000),
            waitSemaphoreInfoCount=int(wait is not None),
            pSignalSemaphoreInfos=infos(signal, ALL_COMMANDS),
            signalSemaphoreInfoCount=int(signal is not None),
        )
        self.call("vkQueueSubmit2", queue=queue, submitCount=1, pSubmits=[batch], fence=0)


def apart(stream: TwoQueues) -> None:
    fill, copy = stream.filled(), stream.copied()
    stream.give(stream.queue, fill)
    stream.give(stream.other, copy)


def one_queue(stream: TwoQueues) -> None:
    fill, copy = stream.filled(), stream.copied()
    stream.give(stream.other, fill)
    stream.give(stream.other, copy)


def one_submit(stream: TwoQueues) -> None:
    commands = stream.begin()
    stream.fill(stream.source, 1)
    stream.copy(stream.source, stream.target, 64)
    stream.end()
    stream.give(stream.queue, commands)


def binary(stream: TwoQueues) -> None:
    fill, copy = stream.filled(), stream.copied()
    stream.give(stream.queue, fill, signal=(stream.semaphore, 0))
    stream.give(stream.other, copy, wait=(stream.semaphore, 0))


def binary_before(stream: TwoQueues) -> None:
    """The signal comes before the fill, so that the copy does not wait for it."""
    fill, copy, empty = stream.filled(), stream.copied(), stream.begin()
    stream.end()
    stream.give(stream.queue, empty, signal=(stream.semaphore, 0))
    stream.give(stream.queue, fill)
    stream.give(stream.other, copy, wait=(stream.semaphore, 0))


def timeline(stream: TwoQueues) -> None:
    fill, copy = stream.filled(), stream.copied()
    stream.give(stream.queue, fill, signal=(stream.line, 2))
    stream.give(stream.other, copy, wait=(stream.line, 1))


def wait_before_signal(stream: TwoQueues) -> None:
    fill, copy = stream.filled(), stream.copied()
    stream.give(stream.other, copy, wait=(stream.line, 1))
    stream.give(stream.queue, fill, signal=(stream.line, 1))


def value_too_small(stream: TwoQueues) -> None:
    """The copy waits for the signal of an earlier batch."""
    fill, copy, empty = stream.filled(), stream.copied(), stream.begin()
    stream.end()
    stream.give(stream.queue, empty, signal=(stream.line, 1))
    stream.give(stream.queue, fill, signal=(stream.line, 2))
    stream.give(stream.other, copy, wait=(stream.line, 1))


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (apart, Relation.APART),
        (one_queue, Relation.QUEUE),
        (one_submit, Relation.SUBMIT),
        (binary, Relation.AFTER),
        (binary_before, Relation.APART),
        (timeline, Relation.AFTER),
        (wait_before_signal, Relation.AFTER),
        (value_too_small, Relation.APART),
    ],
)
def test_the_relation_follows_from_queues_and_semaphores(
    record: Callable[[TwoQueues], None], expected: Relation
) -> None:
    stream = TwoQueues()
    record(stream)
    findings = Analysis().follow(stream.blocks).findings
    assert findings
    graph, queues = BatchGraph(stream.blocks), trace_queues(stream.blocks)
    assert relation(graph, queues, findings, map_queues(queues, H100, 0)) == expected
    if expected in (Relation.APART, Relation.AFTER):
        assert relation(graph, queues, findings, map_queues(queues, ONE_FAMILY, 0)) == Relation.FAMILY
        assert relation(graph, queues, findings, map_queues(queues, ONE_QUEUE, 0)) == Relation.QUEUE


def test_what_the_host_waited_for_is_in_order() -> None:
    stream = TwoQueues()
    fill, copy = stream.filled(), stream.copied()
    stream.give(stream.queue, fill)
    first = len(stream.blocks)
    stream.call("vkQueueWaitIdle", queue=stream.queue)
    stream.give(stream.other, copy)
    assert BatchGraph(stream.blocks).in_order((first, 0), (len(stream.blocks), 0))
    queues = trace_queues(stream.blocks)
    assert relation(BatchGraph(stream.blocks), queues, [], map_queues(queues, H100, 0)) is None


def test_a_queue_that_the_trace_never_obtained_has_no_relation() -> None:
    stream = TwoQueues()
    fill, copy = stream.filled(), stream.copied()
    stream.give(stream.queue, fill)
    stream.give(12345, copy)
    findings = Analysis().follow(stream.blocks).findings
    assert findings
    queues = trace_queues(stream.blocks)
    assert relation(BatchGraph(stream.blocks), queues, findings, map_queues(queues, H100, 0)) is None


def test_a_wait_of_the_host_for_one_queue_orders_no_other() -> None:
    stream = TwoQueues()
    fill, copy = stream.filled(), stream.copied()
    stream.give(stream.queue, fill)
    first = len(stream.blocks)
    stream.call("vkQueueWaitIdle", queue=stream.other)
    stream.give(stream.other, copy)
    assert not BatchGraph(stream.blocks).in_order((first, 0), (len(stream.blocks), 0))


def test_a_timeline_may_count_down_where_nothing_orders_its_signals() -> None:
    stream = TwoQueues()
    first, second = stream.filled(), stream.copied()
    stream.give(stream.queue, first, signal=(stream.line, 1))
    stream.give(stream.other, second, wait=(stream.line, 1), signal=(stream.line, 2))
    assert BatchGraph(stream.blocks).endless() == ""
    stream.give(stream.queue, stream.filled(), signal=(stream.line, 3))
    assert "count down" in BatchGraph(stream.blocks).endless(), "the third may come before the second"


def test_a_binary_semaphore_may_be_signaled_twice_where_no_wait_lies_between() -> None:
    stream, twice = TwoQueues(), "signaled twice"
    done = (stream.semaphore, 0)
    stream.give(stream.queue, stream.filled(), signal=done)
    stream.give(stream.queue, stream.filled(), wait=done, signal=done)
    assert BatchGraph(stream.blocks).endless() == "", "one batch waits first and signals then"
    stream.give(stream.other, stream.copied(), wait=done)
    before = list(stream.blocks)
    stream.give(stream.other, stream.filled(), signal=done)
    assert BatchGraph(stream.blocks).endless() == "", "the queue that waited signals"
    stream.blocks[:] = before
    stream.give(stream.queue, stream.filled(), signal=done)
    assert twice in BatchGraph(stream.blocks).endless(), "nothing lets this queue wait for that wait"
    fresh = TwoQueues()
    for _ in range(2):
        fresh.give(fresh.queue, fresh.filled(), signal=(fresh.semaphore, 0))
    assert twice in BatchGraph(fresh.blocks).endless()


def test_a_bind_is_a_batch_of_the_order() -> None:
    stream = TwoQueues()
    values = struct("VkTimelineSemaphoreSubmitInfo", signalSemaphoreValueCount=1, pSignalSemaphoreValues=[2])
    signals = {"signalSemaphoreCount": 1, "pSignalSemaphores": [stream.line]}
    bind = struct("VkBindSparseInfo", pNext=values, **signals)
    stream.call("vkQueueBindSparse", queue=stream.queue, bindInfoCount=1, pBindInfo=[bind], fence=0)
    bound = len(stream.blocks)
    stream.give(stream.other, stream.filled(), wait=(stream.line, 2))
    graph = BatchGraph(stream.blocks)
    assert graph.in_order((bound, 0), (len(stream.blocks), 0)) and graph.endless() == ""


def test_a_wait_that_nothing_ends_is_named() -> None:
    assert BatchGraph(_with(binary).blocks).unsignaled() == ""
    stream = _with(binary)
    stream.give(stream.other, stream.filled(), wait=(stream.semaphore, 0))
    assert (
        BatchGraph(stream.blocks).unsignaled()
        == f"nothing signals the semaphore {stream.semaphore} before a wait for it"
    )


def test_a_value_that_a_timeline_begins_with_needs_no_signal() -> None:
    stream = TwoQueues()
    stream.give(stream.other, stream.filled(), wait=(stream.line, 0))
    assert BatchGraph(stream.blocks).endless() == ""
    stream.give(stream.other, stream.filled(), wait=(stream.line, 1))
    assert BatchGraph(stream.blocks).endless() == f"nothing signals the value 1 of the semaphore {stream.line}"
    stream.call("vkSignalSemaphore", device=stream.device, pSignalInfo={"semaphore": stream.line, "value": 3})
    assert BatchGraph(stream.blocks).endless() == ""


def test_a_stream_that_waits_for_ever_is_not_given_to_a_driver() -> None:
    """The device is none: a driver would be asked only after the stream."""
    stream = TwoQueues()
    stream.give(stream.other, stream.filled(), wait=(stream.semaphore, 0))
    with pytest.raises(EndlessRunError, match="nothing signals the semaphore"):
        run_native(stream.blocks, "no such device")


def test_a_device_whose_call_could_not_be_read_is_instrumented_by_nobody() -> None:
    """A replay refuses the call, in one line."""
    made = Call(1, "vkCreateDevice", {}, 0, unread="t.jsonl:2: no arguments")
    assert with_features([made]) == [made]


def _with(record: Callable[[TwoQueues], None]) -> TwoQueues:
    stream = TwoQueues()
    record(stream)
    return stream


@pytest.mark.parametrize(
    ("flags", "result", "values", "told"),
    [
        (0, 0, (1, 5), "nothing signals the value 5"),
        (1, 0, (1, 5), ""),
        (1, 0, (4, 5), "nothing signals the value 4"),
        (0, 2, (1, 5), ""),
    ],
    ids=["all of them", "any of them", "none comes", "timed out"],
)
def test_a_wait_of_the_host_that_may_end_is_no_endless_one(
    flags: int, result: int, values: tuple[int, int], told: str
) -> None:
    stream = TwoQueues()
    other = stream.timeline()
    stream.give(stream.other, stream.filled(), signal=(stream.line, 1))
    info = struct("VkSemaphoreWaitInfo", flags=flags, pSemaphores=[stream.line, other], pValues=list(values))
    stream.call("vkWaitSemaphores", device=stream.device, pWaitInfo=info, timeout=1000)
    wait = stream.blocks[-1]
    assert isinstance(wait, Call)
    stream.blocks[-1] = replace(wait, result=result)
    reason = BatchGraph(stream.blocks).unsignaled()
    assert bool(reason) == bool(told) and reason.startswith(told)
