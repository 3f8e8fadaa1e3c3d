"""A semaphore that is signaled again too early: the hazards of memory that follow, and what a replay shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.streams import ALL_COMMANDS, Stream, struct
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import Finding, Hazard
from vkharness.judged_replay import NOTHING_LOST
from vkharness.lost_order import LostOrder, lost_orders
from vkharness.trace.calls import Call
from vkharness.trace.codec import save

SIZE = 64


class TwoQueues(Stream):
    """Two queues; the first fills a buffer, the second copies it, and a binary semaphore is all that orders them."""

    def __init__(self, second_form: bool = False, *, shared: bool = True) -> None:
        super().__init__()
        self._made(second_form)
        a, b, c = self.buffer(SIZE), self.buffer(SIZE), self.buffer(SIZE)
        self.give(self.queue, self.filled(b, 1), signal=True)
        self.give(self.other, 0, wait=True)
        self.give(self.queue, self.filled(a, 2), signal=True)
        self.begin()
        self.copy(a if shared else b, c, SIZE)
        self.end()
        self.give(self.other, self.commands, wait=True)

    def _made(self, second_form: bool) -> None:
        self.second_form, self.other = second_form, self.id()
        self.call("vkGetDeviceQueue", device=self.device, queueIndex=1, pQueue=self.other)
        self.semaphore = self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))

    def filled(self, buffer: int, value: int) -> int:
        """A command buffer that fills a buffer."""
        self.begin()
        self.fill(buffer, value)
        self.end()
        return self.commands

    def give(self, queue: int, commands: int, *, wait: bool = False, signal: bool = False) -> None:
        """A submit of commands that waits for the semaphore, or signals it."""
        self.give_several(queue, self.batch(commands, wait=wait, signal=signal))

    def give_several(self, queue: int, *several: dict[str, Any]) -> None:
        """A submit of batches."""
        self.call("vkQueueSubmit2" if self.second_form else "vkQueueSubmit", queue=queue, pSubmits=[*several])

    def batch(self, commands: int, *, wait: bool = False, signal: bool = False) -> dict[str, Any]:
        """Commands that wait for the semaphore, or signal it."""
        if self.second_form:
            use = [struct("VkSemaphoreSubmitInfo", semaphore=self.semaphore, stageMask=ALL_COMMANDS)]
            several = [struct("VkCommandBufferSubmitInfo", commandBuffer=commands)] if commands else []
            return struct(
                "VkSubmitInfo2",
                pWaitSemaphoreInfos=use if wait else [],
                pCommandBufferInfos=several,
                pSignalSemaphoreInfos=use if signal else [],
            )
        return struct(
            "VkSubmitInfo",
            pWaitSemaphores=[self.semaphore] if wait else [],
            pWaitDstStageMask=[ALL_COMMANDS] if wait else [],
            pCommandBuffers=[commands] if commands else [],
            pSignalSemaphores=[self.semaphore] if signal else [],
        )


class ReusedSemaphore(TwoQueues):
    """The same two queues and semaphore; the wait for the first signal may not be over when the second one comes."""

    def __init__(self, second_form: bool = False) -> None:
        Stream.__init__(self)
        self._made(second_form)
        self.a, self.b, self.c = (self.buffer(SIZE) for _ in range(3))
        self.filled_a, self.copied = self.filled(self.a, 2), self.copies(self.a)

    def copies(self, buffer: int) -> int:
        """A command buffer that copies a buffer."""
        self.begin()
        self.copy(buffer, self.c, SIZE)
        self.end()
        return self.commands

    def early(self) -> None:
        """A signal, and a wait on the other queue that nothing else orders."""
        self.give(self.queue, 0, signal=True)
        self.give(self.other, 0, wait=True)

    def ordered(self) -> None:
        """A fill of one queue and a copy of the other in order by the semaphore alone."""
        self.give(self.queue, self.filled_a, signal=True)
        self.give(self.other, self.copied, wait=True)


def found_in_use(stream: Stream) -> list[Finding]:
    """The findings about the semaphore."""
    return [each for each in Analysis().follow(stream.blocks).findings if each.hazard is Hazard.SEMAPHORE_IN_USE]


def followed(stream: Stream) -> tuple[Finding, LostOrder]:
    """The finding about the semaphore, and what follows from it."""
    (finding,) = found_in_use(stream)
    (lost,) = lost_orders(stream.blocks, [finding])
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
    assert [*lost_orders(stream.blocks, [finding])] == [None]


@pytest.mark.parametrize("second_form", [False, True])
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_batches_of_one_call_are_as_those_of_several(calls: int, second_form: bool) -> None:
    """A wait of the same call takes the signal, and the copy's wait takes another one."""
    stream = ReusedSemaphore(second_form)
    stream.early()
    several = [stream.batch(0, signal=True), stream.batch(0, wait=True), stream.batch(stream.filled_a, signal=True)]
    for first, end in {1: [(0, 3)], 2: [(0, 1), (1, 3)], 3: [(0, 1), (1, 2), (2, 3)]}[calls]:
        stream.give_several(stream.queue, *several[first:end])
    stream.give(stream.other, stream.copied, wait=True)
    _, lost = followed(stream)
    assert pairs(lost) == []
    assert [str(each.hazard) for each in Analysis().follow(lost.blocks).findings] == ["semaphore-in-use"]


def test_a_wait_that_took_nothing_is_not_the_one_that_took_the_signal() -> None:
    """The driver refused a submit: the rest of the stream would have a wait without a signal."""
    stream = ReusedSemaphore()
    stream.early()
    stream.give(stream.queue, stream.filled_a, signal=True)
    stream.give(stream.other, 0, wait=True)
    refused = stream.blocks[-1]
    assert isinstance(refused, Call)
    stream.blocks[-1] = replace(refused, result=-1)
    stream.give(stream.other, stream.copied, wait=True)
    assert [*lost_orders(stream.blocks, found_in_use(stream))] == [None]


def test_a_hazard_of_a_later_execution_is_another_one() -> None:
    """Both command buffers are submitted twice: in order by the semaphore, and then in no order at all."""
    stream = ReusedSemaphore()
    stream.early()
    stream.ordered()
    ordered = stream.blocks[-1].index
    stream.call("vkDeviceWaitIdle", device=stream.device)
    stream.give(stream.queue, stream.filled_a)
    stream.give(stream.other, stream.copied)
    (lost,) = lost_orders(stream.blocks, found_in_use(stream))
    assert lost is not None
    assert pairs(lost) == [("READ_RACING_WRITE", "vkCmdCopyBuffer", "vkCmdFillBuffer")]
    assert [(each.place.submit, each.prior.submit) for each in lost.findings] == [(ordered, ordered - 1)]


def witnessed_on_lavapipe(stream: Stream, findings: list[Finding], path: Path) -> dict[str, Any]:
    """What a replay shows of the first of these findings that has an outcome."""
    save(path, stream.blocks)
    arguments = {"trace": str(path), "mode": "witness", "device": "lavapipe"}
    with Worker(find_driver("lavapipe")) as worker:
        told = [each.to_dict() for each in findings]
        answer = worker.call("vkharness.judged_replay:replay_job", {**arguments, "finding": told})
    assert isinstance(answer, dict)
    return answer


def test_a_replay_looks_for_a_finding_from_which_something_follows(tmp_path: Path) -> None:
    stream = ReusedSemaphore()
    stream.early()
    stream.early()
    stream.ordered()
    findings = found_in_use(stream)
    assert len(findings) == 2
    answer = witnessed_on_lavapipe(stream, findings, tmp_path / "t.jsonl")
    assert (answer["shown"], answer["at"], answer["reason"]) == (True, 1, "")
    assert answer["follows"].startswith("READ_RACING_WRITE")


@pytest.mark.parametrize("hazard_first", [False, True])
def test_a_hazard_that_is_shown_has_no_reason(hazard_first: bool, tmp_path: Path) -> None:
    """The first finding in order that has an outcome is executed: the hazard of memory, or what follows."""
    stream = ReusedSemaphore()
    stream.early()
    stream.early()
    stream.begin()
    stream.fill(stream.b, 1)
    stream.copy(stream.b, stream.c, SIZE)
    stream.submit()
    in_use = found_in_use(stream)
    hazards = [each for each in Analysis().follow(stream.blocks).findings if each not in in_use]
    assert [str(each.hazard) for each in hazards] == ["READ_AFTER_WRITE"]
    findings = [*hazards, *in_use] if hazard_first else [*in_use, *hazards]
    answer = witnessed_on_lavapipe(stream, findings, tmp_path / "t.jsonl")
    assert (answer["shown"], answer["at"], answer["reason"]) == (True, findings.index(hazards[0]), "")
    assert "follows" not in answer


@pytest.mark.parametrize("shared", [True, False])
def test_a_replay_shows_what_follows(shared: bool, tmp_path: Path) -> None:
    stream = TwoQueues(shared=shared)
    finding, _ = followed(stream)
    answer = witnessed_on_lavapipe(stream, [finding], tmp_path / "t.jsonl")
    assert answer["shown"] is shared
    assert answer["reason"] == ("" if shared else NOTHING_LOST)
    assert answer.get("follows", "").startswith("READ_RACING_WRITE") is shared
