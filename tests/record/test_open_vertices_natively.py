"""Vertex buffers at fresh offsets are bound by the native core, and read as where each call is heard of."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from hunts.dense_frames import DenseFrames
from hunts.frame_programs import FrameStream
from hunts.front_programs import CallProgram, told_of_program
from hunts.shader_frames import GRAPHICS, ShaderFrames
from vkharness import native
from vkharness.commands.interpret import Interpreter
from vkharness.commands.open_numbers import VERTICES
from vkharness.fuzz.filled_calls import struct

pytestmark = [pytest.mark.driver, pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")]


def told(stream: FrameStream, keeps_trace: bool) -> list[str]:
    """The findings of a program, which is made of calls of `lib` alone."""
    program = CallProgram(stream.calls, stream.objects, 0, 0, keeps_trace)
    lines = told_of_program([(0, number) for number in range(len(stream.calls))], lambda _: program)
    return [line for line in lines if not line.startswith("Call(")]


def counted_records(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often Python records a command from here on, by its name."""
    counted, record = Counter[str](), Interpreter._record

    def recorded(self: Interpreter, index: int, name: str, *more: Any, **others: Any) -> Any:
        counted[name] += 1
        return record(self, index, name, *more, **others)

    monkeypatch.setattr(Interpreter, "_record", recorded)
    return counted


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    return counted_records(monkeypatch)


def test_many_binds_run_no_python(counts: Counter[str]) -> None:
    streams = [DenseFrames(seed) for seed in random.Random(7).sample(range(100), 4)]
    in_log = [told(stream, False) for stream in streams]
    binds = sum(each["name"] == VERTICES for stream in streams for each in stream.calls)
    natively = binds - counts[VERTICES]
    assert natively > binds / 10, (binds, counts)
    assert in_log == [told(stream, True) for stream in streams]
    assert min(map(len, in_log)) > 50


class Ring(ShaderFrames):
    """A program of which the vertices of a frame lie where those of another one lay so many frames before."""

    changes = freshness = (0,)
    period = 1

    def _frames(self) -> None:
        for frame in range(15):
            self._first = 160 * (frame % self.period)
            self._record(self._primaries[0], [(self._drawn, 0)])
            self._submit()

    def _drawn(self) -> None:
        info = struct("VkRenderingInfo", renderArea=struct("VkRect2D"), layerCount=1)
        self._command("BeginRendering", pRenderingInfo=info)
        self._command("BindPipeline", pipelineBindPoint=GRAPHICS, pipeline=self._graphics[0])
        for at in range(20):
            bound = {"pBuffers": self._buffers[:2], "pOffsets": [self._first + 8 * at] * 2}
            self._command("BindVertexBuffers", bindingCount=2, **bound)
            self._command("Draw", vertexCount=3, instanceCount=1)
        self._command("EndRendering")


class RingOfThree(Ring):
    period = 3


@pytest.mark.parametrize(("ring", "most"), [(Ring, 100), (RingOfThree, 80)])
def test_offsets_of_rings_cost_no_more_than_fresh_ones(ring: type[Ring], most: int, counts: Counter[str]) -> None:
    """Those that each frame binds are known, as all else that it repeats. Those that come again after some frames stay
    open: to know them costs more than it saves."""
    stream = ring(6)
    in_log = told(stream, False)
    assert sum(each["name"] == VERTICES for each in stream.calls) == 300
    assert counts[VERTICES] + counts["vkCmdDraw"] / 2 < most, counts
    assert in_log == told(stream, True)
