"""A semaphore that is signaled again too early: the hazards of memory that follow, and what a replay shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.streams import ALL_COMMANDS, Stream, struct
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.findings import Finding, Hazard
from vkharness.judged_replay import NOTHING_LOST
from vkharness.lost_order import LostOrder, lost_order
from vkharness.trace.codec import save

SIZE = 64


class TwoQueues(Stream):
    """Two queues; the first fills a buffer, the second copies it, and a binary semaphore is all that orders them."""

    def __init__(self, second_form: bool = False, *, shared: bool = True) -> None:
        super().__init__()
        self.second_form = second_form
        other = self.id()
        self.call("vkGetDeviceQueue", device=self.device, queueIndex=1, pQueue=other)
        kind = struct("VkSemaphoreCreateInfo")
        self.semaphore = self.make("vkCreateSemaphore", "pSemaphore", kind)
        a, b, c = self.buffer(SIZE), self.buffer(SIZE), self.buffer(SIZE)
        self.give(self.queue, self.filled(b, 1), signal=True)
        self.give(other, 0, wait=True)
        self.give(self.queue, self.filled(a, 2), signal=True)
        self.begin()
        self.copy(a if shared else b, c, SIZE)
        self.end()
        self.give(other, self.commands, wait=True)

    def filled(self, buffer: int, value: int) -> int:
        """A command buffer that fills a buffer."""
        self.begin()
        self.fill(buffer, value)
        self.end()
        return self.commands

    def give(self, queue: int, commands: int, *, wait: bool = False, signal: bool = False) -> None:
        """A submit of commands that waits for the semaphore, or signals it."""
        if self.second_form:
            use = [struct("VkSemaphoreSubmitInfo", semaphore=self.semaphore, stageMask=ALL_COMMANDS)]
            several = [struct("VkCommandBufferSubmitInfo", commandBuffer=commands)] if commands else []
            batch = struct(
                "VkSubmitInfo2",
                pWaitSemaphoreInfos=use if wait else [],
                pCommandBufferInfos=several,
                pSignalSemaphoreInfos=use if signal else [],
            )
            self.call("vkQueueSubmit2", queue=queue, pSubmits=[batch])
            return
        batch = struct(
            "VkSubmitInfo",
            pWaitSemaphores=[self.semaphore] if wait else [],
            pWaitDstStageMask=[ALL_COMMANDS] if wait else [],
            pCommandBuffers=[commands] if commands else [],
            pSignalSemaphores=[self.semaphore] if signal else [],
        )
        self.call("vkQueueSubmit", queue=queue, pSubmits=[batch])


def followed(stream: Stream) -> tuple[Finding, LostOrder]:
    """The finding about the semaphore, and what follows from it."""
    (finding,) = Analysis().follow(stream.blocks).findings
    assert finding.hazard is Hazard.SEMAPHORE_IN_USE
    lost = lost_order(stream.blocks, finding)
    assert lost is not None
    return finding, lost


def pairs(lost: LostOrder) -> list[tuple[str, str, str]]:
    return [(str(each.hazard), each.place.command, each.prior.command) for each in lost.findings]


@pytest.mark.parametrize("second_form", [False, True])
def test_the_wait_may_take_the_signal_before(second_form: bool) -> None:
    stream = TwoQueues(second_form)
    _, lost = followed(stream)
    assert pairs(lost) == [("READ_RACING_WRITE", "vkCmdCopyBuffer", "vkCmdFillBuffer")]
    assert [each.index for each in lost.blocks] == [each.index for each in stream.blocks]
    assert not [each for each in Analysis().follow(lost.blocks).findings if "semaphore" in each.hazard]


def test_where_the_signal_orders_nothing_nothing_follows() -> None:
    _, lost = followed(TwoQueues(shared=False))
    assert lost.findings == []


def test_a_hazard_of_memory_is_none_of_these() -> None:
    stream = Stream()
    a, b = stream.buffer(SIZE), stream.buffer(SIZE)
    stream.begin()
    stream.fill(a, 1)
    stream.copy(a, b, SIZE)
    stream.submit()
    (finding,) = Analysis().follow(stream.blocks).findings
    assert lost_order(stream.blocks, finding) is None


@pytest.mark.parametrize("shared", [True, False])
def test_a_replay_shows_what_follows(shared: bool, tmp_path: Path) -> None:
    stream = TwoQueues(shared=shared)
    finding, _ = followed(stream)
    save(tmp_path / "t.jsonl", stream.blocks)
    with Worker(find_driver("lavapipe")) as worker:
        arguments = {"mode": "witness", "device": "lavapipe", "finding": [finding.to_dict()]}
        answer = worker.call("vkharness.judged_replay:replay_job", {"trace": str(tmp_path / "t.jsonl"), **arguments})
    assert not isinstance(answer, Died)
    assert answer["shown"] is shared
    assert answer["reason"] == ("" if shared else NOTHING_LOST)
    assert answer.get("follows", "").startswith("READ_RACING_WRITE") is shared
