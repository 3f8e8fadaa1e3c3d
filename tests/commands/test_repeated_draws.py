"""Draws that come again in each frame: what they do is known, with what their shaders write and what memory decides."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.support import drawing
from tests.support.ring import BYTES, Ring
from tests.support.said_calls import Listener
from tests.support.said_jobs import call_by_call
from tests.support.streams import struct, words
from vkharness.check import Analysis
from vkharness.native import core

STORAGE = 7
FRAMES = 8


class Frames:
    """A program that records the same into one command buffer in each frame, and submits it."""

    def __init__(self) -> None:
        self.ring = Ring()
        self.ring.host_write(self.ring.index_memory, 0, words(0, 1, 2, 63))
        self.ring.host_write(self.ring.parameter_memory, 0, words(3, 1, 0, 0, 0, 3, 1, 0, 0, 0))
        self.ring.begin()

    def play(self, record: Callable[[int], None], one_by_one: bool = False) -> tuple[Analysis, list[int]]:
        """Judges the program, which must give the same call by call. Returns the analysis, and for how many commands of
        each frame it was not known what they do."""
        ring, listener, asked, heard = self.ring, Listener(one_by_one), list[int](), 0
        for number in range(FRAMES):
            begin = struct("VkCommandBufferBeginInfo")
            ring.call("vkBeginCommandBuffer", commandBuffer=ring.commands, pBeginInfo=begin)
            record(number)
            ring.submit()
            listener.listen(ring.blocks[heard:])
            heard = len(ring.blocks)
            asked.append(listener.heard - listener.known)
        found, wanted = listener.analysis, call_by_call(ring.blocks)
        for each in (found, wanted):
            each.finish()
        assert list(map(told, found.findings)) == list(map(told, wanted.findings))
        assert found.unmodelled == wanted.unmodelled
        assert found.unjudged.left_out == wanted.unjudged.left_out
        return found, [asked[0], *(after - before for before, after in pairwise(asked))]


def told(finding: object) -> str:
    """All that is said of a finding."""
    return f"{finding} {finding.message} {finding.place} {finding.prior}"  # type: ignore[attr-defined]


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("name", ["DrawIndirect", "DrawIndexedIndirect", "DrawIndexedIndirectCount"])
def test_what_parameters_decide_is_asked_of_each_draw_that_is_known(name: str, one_by_one: bool) -> None:
    """The host and the command buffer itself change the parameters, so that draws run nothing, or read other vertices
    than a copy writes."""
    frames = Frames()
    ring = frames.ring
    ring.host_write(ring.parameter_memory, 256, words(2))
    place = {"buffer": ring.parameters, "offset": 0, "stride": 20}
    counter = {"countBuffer": ring.parameters, "countBufferOffset": 256}
    counts = counter | {"maxDrawCount": 2} if name.endswith("Count") else {"drawCount": 2}
    last = 63 if name == "DrawIndirect" else 3
    changes = {3: words(0, 1, 0, 0, 0, 0), 4: words(3, 1, 0, 0, 0, 3, 1, 0, 0, 0), 5: words(1, 1, last, 0, 0)}

    def record(number: int) -> None:
        if number in changes:
            ring.host_write(ring.parameter_memory, 0, changes[number])
        ring.copy(ring.source, ring.vertices, 8, to=63 * 8)
        ring.draws(name, **place, **counts)
        ring.barrier()
        data = words(3, number // 6, 0, 0, 0, 0)
        ring.cmd("UpdateBuffer", dstBuffer=ring.parameters, dstOffset=512, dataSize=len(data), pData=data)
        ring.barrier()
        ring.draws(name, **place | {"offset": 512}, **counts)
        ring.copy(ring.source, ring.vertices, 8, to=63 * 8)
        ring.barrier()

    found, asked = frames.play(record, one_by_one)
    assert asked[3:6] == [0] * 3, "updates say other bytes from the seventh frame on"
    assert [each.hazard for each in found.findings] == ["READ_AFTER_WRITE"] * 3, "from the sixth frame on"


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("name", ["Draw", "DrawIndexed"])
def test_what_fragments_store_is_known_and_makes_contents_unknown(name: str, one_by_one: bool) -> None:
    frames = Frames()
    ring = frames.ring
    target = ring.buffer(BYTES)
    several = [drawing.descriptors(ring, (STORAGE, each)) for each in (target, ring.indices)]
    storing = drawing.pipeline(ring, "store_words.frag", vertex="fullscreen.vert", layout=several[0][1])
    count = {"vertexCount": 3} if name == "Draw" else {"indexCount": 3}

    def record(number: int) -> None:
        drawing.render(ring)
        drawing.bind(ring, storing)
        drawing.bind_indices(ring, ring.indices, kind=1)
        sets = {"pDescriptorSets": [several[number >= 6][0]], "pDynamicOffsets": []}
        ring.cmd("BindDescriptorSets", pipelineBindPoint=0, layout=several[0][1], firstSet=0, **sets)
        ring.cmd(name, **count, instanceCount=1)
        ring.cmd("EndRendering")
        ring.barrier()
        ring.draws(indexCount=3, instanceCount=1)
        ring.barrier()

    found, asked = frames.play(record, one_by_one)
    natively = core is not None or one_by_one  # in Python alone nobody knows of several commands which sets are bound
    expected = 0 if natively else 2
    assert asked[3:6] == [expected] * 3 and found.findings == []
    assert found.unjudged.left_out == {"vertices through indices whose contents are unknown": 2}, "of the last frames"


@pytest.mark.parametrize("one_by_one", [False, True])
@pytest.mark.parametrize("by_update", [False, True])
def test_draws_that_are_foreseen_to_run_nothing_meet_nothing(by_update: bool, one_by_one: bool) -> None:
    """Two draws store to one buffer without a barrier between them. The host gives the parameters, or an update."""
    frames = Frames()
    ring = frames.ring
    held, layout = drawing.descriptors(ring, (STORAGE, ring.buffer(BYTES)))
    storing = drawing.pipeline(ring, "store_words.frag", vertex="fullscreen.vert", layout=layout)

    def record(number: int) -> None:
        data = words(3, number % 4 // 3, 0, 0)
        if by_update:
            ring.cmd("UpdateBuffer", dstBuffer=ring.parameters, dstOffset=0, dataSize=len(data), pData=data)
            ring.barrier()
        else:
            ring.host_write(ring.parameter_memory, 0, data)
        drawing.render(ring)
        drawing.bind(ring, storing)
        sets = {"pDescriptorSets": [held], "pDynamicOffsets": []}
        ring.cmd("BindDescriptorSets", pipelineBindPoint=0, layout=layout, firstSet=0, **sets)
        for _ in range(2):
            ring.cmd("DrawIndirect", buffer=ring.parameters, offset=0, drawCount=1, stride=16)
        ring.cmd("EndRendering")

    found, asked = frames.play(record, one_by_one)
    assert asked[6] <= (0 if core is not None or one_by_one else 3)
    assert [each.hazard for each in found.findings] == ["WRITE_AFTER_WRITE"] * 2, "of the fourth and the eighth frame"
