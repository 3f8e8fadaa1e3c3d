"""Flat plans are executed as plans with the same effects are."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from tests.support.streams import Stream, struct
from vkharness import native
from vkharness.check import Analysis
from vkharness.commands.object_state import CommandBuffer
from vkharness.findings import Finding
from vkharness.trace.calls import Block

pytestmark = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
BYTES = 128


class FreshTransfers:
    """A random program that copies, fills and updates other parts of a few buffers in each frame. Some buffers share a
    memory object. Barriers are rare, and buffers come and go."""

    def __init__(self, seed: int) -> None:
        self._random, self._stream = random.Random(seed), Stream()
        self._memory = self._stream.memory()
        self._buffers = [self._stream.buffer(BYTES, self._memory, BYTES * at) for at in range(3)]
        self._buffers += [self._stream.buffer(BYTES) for _ in range(2)]

    def blocks(self, frames: int) -> list[Block]:
        """Some frames, each recorded into the same command buffer and submitted."""
        stream, chosen = self._stream, self._random
        stream.begin()
        for frame in range(frames):
            if frame:
                begin = struct("VkCommandBufferBeginInfo")
                stream.call("vkBeginCommandBuffer", commandBuffer=stream.commands, pBeginInfo=begin)
            for _ in range(chosen.randrange(1, 12)):
                self._step()
            stream.submit(wait=chosen.random() < 0.5)
            if chosen.random() < 0.2:
                self._change()
        return stream.blocks

    def _change(self) -> None:
        at = self._random.randrange(3)
        self._stream.call("vkDestroyBuffer", device=self._stream.device, buffer=self._buffers[at])
        self._buffers[at] = self._stream.buffer(BYTES, self._memory, self._random.choice((BYTES * at, BYTES * 4)))

    def _step(self) -> None:
        stream, chosen, pick = self._stream, self._random, self._random.choice
        what, target = chosen.random(), pick(self._buffers)
        offset, size = 4 * chosen.randrange(BYTES // 4), 4 * chosen.randrange(1, 5)
        if what < 0.15:
            stream.barrier()
        elif what < 0.3:
            stream.cmd("FillBuffer", dstBuffer=target, dstOffset=offset, size=pick((size, (1 << 64) - 1)), data=7)
        elif what < 0.45:
            stream.cmd("UpdateBuffer", dstBuffer=target, dstOffset=offset, dataSize=size, pData=bytes(size))
        else:
            regions = [self._region(size) for _ in range(pick((1, 1, 1, 2, 3)))]
            args = {"srcBuffer": pick(self._buffers), "dstBuffer": target, "pRegions": regions}
            if what < 0.8:
                stream.cmd("CopyBuffer", **args)
            else:
                stream.cmd("CopyBuffer2", pCopyBufferInfo=struct("VkCopyBufferInfo2", **args))

    def _region(self, size: int) -> dict[str, Any]:
        begin, to = (4 * self._random.randrange(BYTES // 4) for _ in range(2))
        return {"srcOffset": begin, "dstOffset": to, "size": size}


def told(finding: Finding) -> tuple[Any, ...]:
    return finding.message, finding.place, finding.prior, repr(finding)


def test_random_transfers_meet_what_plans_of_effects_meet() -> None:
    counts = Counter[str]()
    for seed in range(40):
        blocks = FreshTransfers(seed).blocks(12)
        flat, reference = Analysis(), Analysis()
        reference._interpreter._flat = reference._interpreter.objects.plans.flat = None
        said = list(map(told, Analysis().follow(blocks).findings))
        for block in blocks:
            found = [list(map(told, each.step(block))) for each in (flat, reference)]
            assert found[0] == found[1], f"seed {seed}"
            counts["findings"] += len(found[0])
            if getattr(block, "name", "") == "vkEndCommandBuffer":
                _compare(flat, reference, counts)
        assert said == [told(each) for each in (*flat.findings, *flat.finish())], f"seed {seed}"
    assert counts["flat"] > 1500 and counts["others"] > 400 and counts["findings"] > 500, counts


def _compare(flat: Analysis, reference: Analysis, counts: Counter[str]) -> None:
    """Compares the commands of two command buffers, and what they may write."""
    held = [next(iter(each._interpreter.objects.every(CommandBuffer))) for each in (flat, reference)]
    assert list(held[0].commands) == list(held[1].commands)
    assert flat.may_write([held[0].id]) == reference.may_write([held[1].id])
    steps = [[getattr(step, "writes", step) for step in each.steps.all()] for each in held]
    assert steps[0] == steps[1]
    assert native.core is not None
    are_flat = sum(type(plan) is native.core.FlatPlan for plan in held[0].commands.plans)
    counts["flat"] += are_flat
    counts["others"] += len(held[0].commands) - are_flat
