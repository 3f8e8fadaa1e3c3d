"""Recordings that wait until they are executed: the findings are those of recordings that are judged when they end."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.support.streams import ALL_COMMANDS, READ_WRITE, Stream, struct, two_buffers
from vkharness.check import Analysis
from vkharness.findings import Finding
from vkharness.late_analysis import LateAnalysis
from vkharness.syncval.repeated_recordings import RecordingJudge
from vkharness.trace.calls import Block

SEEDS = 120
SIZE = 64


def told(found: list[Finding]) -> list[str]:
    """All that findings say, in order."""
    return [f"{each.message} {each.missing} {each.place} {each.prior} {each.ranges} {each.names}" for each in found]


def judged(blocks: list[Block], late: bool) -> Analysis:
    analysis = LateAnalysis() if late else Analysis()
    for block in blocks:
        analysis.step(block)
    analysis.finish()
    return analysis


class Program:
    """A random program over a few buffers and command buffers; many of its barriers are missing or too narrow."""

    def __init__(self, seed: int) -> None:
        self._pick = random.Random(seed)
        self.stream = Stream()
        self._buffers = [self.stream.buffer(SIZE) for _ in range(3)]
        self._image = self.stream.image((4, 4, 1))
        self._ended: list[int] = []
        self._timeline = self.stream.timeline()

    def make(self) -> list[Block]:
        """The calls of a few frames."""
        held = [self.stream.begin() for _ in range(2)]
        for each in held:
            self._record(each)
        for _ in range(6):
            self._submit(self._pick.choice(held))
            self._record(self._pick.choice(held))
        return self.stream.blocks

    def _record(self, commands: int) -> None:
        self.stream.commands = commands
        if self._pick.random() < 0.95:  # else it gets more commands after its end, without a right to
            begin = struct("VkCommandBufferBeginInfo")
            self.stream.call("vkBeginCommandBuffer", commandBuffer=commands, pBeginInfo=begin)
        for _ in range(self._pick.randrange(1, 6)):
            self._command()
        self.stream.end()

    def _command(self) -> None:
        stream, pick = self.stream, self._pick
        one, other = pick.choice(self._buffers), pick.choice(self._buffers)
        match pick.randrange(9):
            case 0 | 1:
                stream.fill(one, 7, pick.choice((0, 16)), 16)
            case 2 | 3 | 4:
                stream.copy(one, other, 16, pick.choice((0, 16)), pick.choice((32, 40)))
            case 5 | 6:
                stream.barrier()
            case 7:
                self._buffer_barrier(one, pick.choice(((0, 0), (0, 1), (1, 0))))
            case _ if pick.random() < 0.3:
                stream.transition(self._image, 0, 1)

    def _buffer_barrier(self, buffer: int, families: tuple[int, int]) -> None:
        masks = {"srcAccessMask": READ_WRITE, "dstAccessMask": READ_WRITE}
        family = {"srcQueueFamilyIndex": families[0], "dstQueueFamilyIndex": families[1]}
        barrier = struct("VkBufferMemoryBarrier", buffer=buffer, offset=0, size=SIZE, **masks, **family)
        stages = {"srcStageMask": ALL_COMMANDS, "dstStageMask": ALL_COMMANDS}
        self.stream.cmd("PipelineBarrier", **stages, pBufferMemoryBarriers=[barrier])

    def _submit(self, commands: int) -> None:
        stream, pick = self.stream, self._pick
        stream.commands = commands
        match pick.randrange(6):
            case 0:
                stream.submit_in_turn(self._timeline, pick.choice((0, 1, 2)))
            case 1:
                stream.submit(commands, commands, wait=False)
            case _:
                stream.submit(commands, wait=pick.random() < 0.5)


def test_findings_are_the_same_in_the_same_order(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Counter[str]()
    wait, executed = RecordingJudge.wait, RecordingJudge.executed

    def counted_wait(self: RecordingJudge, *given: Any) -> bool:
        waits = wait(self, *given)
        seen["waits" if waits else "is judged"] += 1
        return waits

    def counted_executed(self: RecordingJudge, command_buffer: int, *given: Any) -> None:
        before = self.waits(command_buffer)
        executed(self, command_buffer, *given)
        seen["met nothing"] += before and not self.waits(command_buffer)

    monkeypatch.setattr(RecordingJudge, "wait", counted_wait)
    monkeypatch.setattr(RecordingJudge, "executed", counted_executed)
    for seed in range(SEEDS):
        blocks = Program(seed).make()
        at_once, late = judged(blocks, late=False), judged(blocks, late=True)
        assert told(late.findings) == told(at_once.findings), seed
        assert late.verdict == at_once.verdict and late.unmodelled == at_once.unmodelled
        seen["findings"] += len(late.findings)
    assert seen["waits"] > 300 and seen["is judged"] > 100 and seen["met nothing"] > 50 and seen["findings"] > 500, seen


def test_who_asks_for_findings_gets_those_of_recordings_that_wait() -> None:
    stream, one, other = two_buffers()
    stream.begin()
    stream.fill(one, 7)
    stream.copy(one, other, 8)
    stream.end()
    analysis = LateAnalysis()
    assert not [found for block in stream.blocks for found in analysis.step(block)]
    assert [each.hazard for each in analysis.findings] == ["READ_AFTER_WRITE"]
    assert analysis.verdict == "hazards"
    stream.submit(stream.commands)
    for block in stream.blocks[-2:]:
        analysis.step(block)
    assert [each.hazard for each in analysis.findings] == ["READ_AFTER_WRITE"]


@pytest.mark.parametrize("change", ["vkDestroyBuffer", "vkBeginCommandBuffer", "vkResetCommandPool"])
def test_a_recording_that_waits_is_judged_before_it_or_what_it_uses_goes(change: str) -> None:
    stream, one, other = two_buffers()
    stream.begin()
    stream.fill(one, 7)
    stream.copy(one, other, 8)
    stream.end()
    match change:
        case "vkDestroyBuffer":
            stream.call(change, device=stream.device, buffer=one)
        case "vkBeginCommandBuffer":
            stream.call(change, commandBuffer=stream.commands, pBeginInfo=struct("VkCommandBufferBeginInfo"))
        case _:
            stream.call(change, device=stream.device, commandPool=stream.pool)
    analysis = LateAnalysis()
    for block in stream.blocks[:-1]:
        assert not analysis.step(block)
    assert [each.hazard for each in analysis.step(stream.blocks[-1])] == ["READ_AFTER_WRITE"]


def test_a_recording_that_waits_is_not_the_one_that_is_executed_before_it() -> None:
    """A batch that was held back has the commands of before, as many as the command buffer has now."""
    stream, one, other = two_buffers()
    timeline = stream.timeline()
    commands = stream.begin()
    stream.barrier()
    stream.barrier()
    stream.end()
    stream.submit_in_turn(timeline, 1)
    stream.call("vkBeginCommandBuffer", commandBuffer=commands, pBeginInfo=struct("VkCommandBufferBeginInfo"))
    stream.fill(one, 7)
    stream.copy(one, other, 8)
    stream.end()
    info = struct("VkSemaphoreSignalInfo", semaphore=timeline, value=1)
    stream.call("vkSignalSemaphore", device=stream.device, pSignalInfo=info)
    at_once, late = judged(stream.blocks, late=False), judged(stream.blocks, late=True)
    assert told(late.findings) == told(at_once.findings) and len(at_once.findings) == 1


def test_a_recording_waits_while_others_are_recorded_and_submitted() -> None:
    stream, one, other = two_buffers()
    first = stream.begin()
    stream.fill(one, 7)
    stream.end()
    stream.begin()
    stream.fill(other, 7)
    stream.submit()
    analysis = LateAnalysis()
    for block in stream.blocks:
        analysis.step(block)
    assert analysis.waits(first) and not analysis.waits(stream.commands)
    assert not analysis.findings and not analysis.waits(first)
