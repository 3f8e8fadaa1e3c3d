"""Draws that differ from others in numbers alone are known natively, and as where each call is heard of."""

from __future__ import annotations

import struct as packing
from collections import Counter
from functools import partial
from typing import Any

import pytest

from hunts.shader_frames import GRAPHICS, ShaderFrames
from tests.record.test_open_vertices_natively import counted_records, told
from vkharness import native
from vkharness.commands.contents.at_submit import MemoryContents
from vkharness.commands.flat_reaches import Writes, moved_plan
from vkharness.commands.open_numbers import INDICES
from vkharness.fuzz.filled_calls import struct
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.effects import Access, EffectPlan

pytestmark = pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")
DRAWS = ("vkCmdDraw", "vkCmdDrawIndexed")
READ = ACCESS_KIND["SYNC_VERTEX_ATTRIBUTE_INPUT_VERTEX_ATTRIBUTE_READ"].index


class Drawn(ShaderFrames):
    """A program of draws with one pipeline and two vertex buffers."""

    changes = freshness = (0,)
    pipeline = 1
    """In programs of some seeds, the one of which the shaders do not ask which invocations run."""

    def _begin_rendering(self) -> None:
        info = struct("VkRenderingInfo", renderArea=struct("VkRect2D"), layerCount=1)
        self._command("BeginRendering", pRenderingInfo=info)
        self._command("BindPipeline", pipelineBindPoint=GRAPHICS, pipeline=self._graphics[self.pipeline])
        self._command("BindVertexBuffers", bindingCount=2, pBuffers=self._buffers[:2], pOffsets=[0, 8])


class Numbered(Drawn):
    """A program that draws with other numbers each time: also none, and more than the buffers hold."""

    def _frames(self) -> None:
        for _ in range(12):
            self._record(self._primaries[0], [(self._drawn, 0)])
            self._submit()

    def _drawn(self) -> None:
        self._begin_rendering()
        self._command("BindIndexBuffer", buffer=self._buffers[-1], offset=0, indexType=1)
        for _ in range(20):
            first = {
                "firstInstance": self._random.choice((0, 1, 5)),
                "instanceCount": self._random.choice((0, 1, 1, 2)),
            }
            start, number = (
                self._random.choice((*(0, 1, 2, 7) * 2, 1 << 31)),
                self._random.choice((0, *(1, 3, 6) * 3, 40)),
            )
            self._command("Draw", vertexCount=number, firstVertex=start, **first)
            offset = self._random.choice((*(0, 3) * 4, -1))
            self._command("DrawIndexed", indexCount=number, firstIndex=start, vertexOffset=offset, **first)
        self._command("EndRendering")


class Culled(Numbered):
    """A program of which each draw comes in one of three states, in another order each time."""

    def _drawn(self) -> None:
        self._begin_rendering()
        for _ in range(40):
            self._command("SetCullMode", cullMode=self._random.randrange(3))
            self._command("Draw", vertexCount=3, instanceCount=1)
        self._command("EndRendering")


class Streamed(Drawn):
    """A program that draws other indices each time, which mean vertices without a gap in most draws."""

    def _frames(self) -> None:
        words = packing.pack("<24H", *range(12), *(0, 2, 4, 7) * 3)
        for frame in range(8):
            buffer, into = self._buffers[-1], self._primaries[0]
            self._record(into, [(partial(self._written, buffer, words), 0), (partial(self._drawn, frame), 0)])
            self._submit()

    def _written(self, buffer: Any, words: bytes) -> None:
        self._command("UpdateBuffer", dstBuffer=buffer, dstOffset=0, dataSize=len(words), pData=words)

    def _drawn(self, frame: int) -> None:
        self._begin_rendering()
        self._command("BindIndexBuffer", buffer=self._buffers[-1], offset=0, indexType=0)
        for at in range(20):
            first = {"firstInstance": frame, "instanceCount": 1 + at % 2}
            numbers = {"indexCount": 1 + (at + frame) % 9, "firstIndex": (at * 5 + frame) % 16, "vertexOffset": at % 3}
            self._command("DrawIndexed", **numbers, **first)
        self._command("EndRendering")


class Bound(Drawn):
    """A program that binds its indices elsewhere for each draw: also some that it wrote, and behind the end of the
    buffer. The vertices lie in one place. The draws of each third turn begin where those of the frame before did."""

    indirect = False

    def _frames(self) -> None:
        words = packing.pack("<24H", *range(12), *(0, 1, 2, 1) * 3)
        for frame in range(12):
            at = 16 * (frame % 3)
            update = partial(self._command, "UpdateBuffer", dstOffset=at, dataSize=len(words), pData=words)
            drawn = partial(self._drawn, frame)
            self._record(self._primaries[0], [(partial(update, dstBuffer=self._buffers[-1]), 0), (drawn, 0)])
            self._submit()

    def _drawn(self, frame: int) -> None:
        self._begin_rendering()
        for turn in range(20):
            offset = 2 * (turn if turn % 3 == 0 else (turn * 5 + frame * 7) % 90)
            self._command("BindIndexBuffer", buffer=self._buffers[-1], offset=offset, indexType=0)
            numbers = {"firstIndex": turn % 3, "vertexOffset": turn % 2, "instanceCount": 1}
            self._command("DrawIndexed", indexCount=1 + (turn + frame) % 6, **numbers)
            if self.indirect and turn % 4 == 0:
                self._command("DrawIndexedIndirect", buffer=self._buffers[-1], offset=16, drawCount=1, stride=20)
        self._command("EndRendering")


class BoundForIndirect(Bound):
    indirect = True


@pytest.mark.driver
@pytest.mark.parametrize("kind", (Bound, BoundForIndirect))
def test_indices_bound_where_nobody_bound_any_are_as_where_each_call_is_heard_of(
    kind: type[Bound], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = counted_records(monkeypatch)
    stream = kind(2)
    in_log = told(stream, False)
    drawn = sum(each["name"] == "vkCmdDrawIndexed" for each in stream.calls)
    assert drawn == 240 and counted["vkCmdDrawIndexed"] < drawn / 3, counted
    assert counted[INDICES] < drawn / 2, counted
    assert in_log == told(stream, True)
    assert any("index" in line.lower() for line in in_log), in_log


class Indirect(Drawn):
    """A program whose draws have their numbers elsewhere each time, in what it wrote before."""

    odd = False
    """Whether some draw nothing, some have numbers that nobody knows, and each frame writes them before."""

    def _frames(self) -> None:
        last = [(0, 1, 0, 0, 0), (2, 1, 0, 1, 0), (3, 0, 0, 0, 0)] if self.odd else [(1, 1, 1, 1, 1)] * 3
        rows = [(3, 1, 1 + at % 3, 1, 1) for at in range(12)] + last
        words = b"".join(packing.pack("<5I", *each) for each in rows)
        for frame in range(10):
            update = {"dstBuffer": self._buffers[-1], "dstOffset": 0, "dataSize": len(words), "pData": words}
            drawn = partial(self._drawn, frame)
            updated = [(partial(self._command, "UpdateBuffer", **update), 0)] * (frame == 0 or self.odd)
            self._record(self._primaries[0], [*updated, (drawn, 0)])
            self._submit()

    def _drawn(self, frame: int) -> None:
        self._begin_rendering()
        self._command("BindIndexBuffer", buffer=self._buffers[-1], offset=0, indexType=1)
        for turn in range(16):
            place = {
                "buffer": self._buffers[-1],
                "offset": 20 * ((turn + 5 * frame) % 15) + 4 * (self.odd and turn == 7),
                "stride": 20,
            }
            counter = {"countBuffer": self._buffers[-1], "countBufferOffset": 4 * ((turn * 3 + frame) % 20)}
            indexed = "Indexed" * (turn % 2)
            self._command(f"Draw{indexed}Indirect", **place, drawCount=1 + (self.odd and turn == 9))
            self._command(f"Draw{indexed}IndirectCount", **place, **counter, maxDrawCount=1)
        self._command("EndRendering")


class OddIndirect(Indirect):
    odd = True


@pytest.mark.driver
@pytest.mark.parametrize(("kind", "most"), [(Indirect, 0.5), (OddIndirect, 1)])
def test_numbers_in_memory_that_nobody_drew_before_are_as_where_each_call_is_heard_of(
    kind: type[Indirect], most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, executed = counted_records(monkeypatch), MemoryContents._executed

    def counts(self: MemoryContents, *given: Any) -> Any:
        counted["executed"] += 1
        return executed(self, *given)

    monkeypatch.setattr(MemoryContents, "_executed", counts)
    stream = kind(2)
    in_log = told(stream, False)
    drawn = sum("Indirect" in each["name"] for each in stream.calls)
    ran = sum(count for name, count in counted.items() if "Indirect" in name)
    assert drawn == 320 and ran < drawn / 3, counted
    assert counted["executed"] <= most * drawn, counted
    assert in_log == told(stream, True)


@pytest.mark.driver
@pytest.mark.parametrize("seed", (0, 2))
def test_numbers_that_nobody_said_before_are_as_where_each_call_is_heard_of(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = counted_records(monkeypatch)
    stream = Numbered(seed)
    in_log = told(stream, False)
    drawn = sum(each["name"] in DRAWS for each in stream.calls)
    assert drawn == 480 and sum(counted[each] for each in DRAWS) < drawn / 2, counted
    assert in_log == told(stream, True)


@pytest.mark.driver
def test_draws_of_several_states_have_plans_of_one_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan that Python made is held against a flat one by their effects, which have to be made for that."""
    counted, equal = Counter[bool](), EffectPlan.__eq__

    def counts(self: EffectPlan, other: object) -> bool:
        counted[type(self) is not type(other)] += 1
        return equal(self, other)

    monkeypatch.setattr(EffectPlan, "__eq__", counts)
    stream = Culled(2)
    in_log = told(stream, False)
    drawn = sum(each["name"] == "vkCmdDraw" for each in stream.calls)
    assert drawn == 480 and counted[True] < drawn / 4, counted
    assert in_log == told(stream, True)


@pytest.mark.driver
def test_indices_that_nobody_drew_before_are_looked_at_natively(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python is asked for the vertices of draws whose indices leave gaps, and of those in the first frames."""
    counted, executed = Counter[str](), MemoryContents._executed

    def counts(self: MemoryContents, *given: Any) -> Any:
        counted["executed"] += 1
        return executed(self, *given)

    monkeypatch.setattr(MemoryContents, "_executed", counts)
    stream = Streamed(2)
    in_log = told(stream, False)
    drawn = sum(each["name"] in DRAWS for each in stream.calls)
    natively = drawn - counted["executed"]
    assert drawn == 160 and natively > drawn / 3, counted
    assert in_log == told(stream, True)
    assert any("vertex" in line.lower() for line in in_log), in_log


def test_a_number_moves_what_is_read_and_another_one_makes_it_longer() -> None:
    """Three numbers of 4 bytes each: how many, the first, and one that others may not have."""
    part = (Access(READ, 0, (), 0), 0, Writes.NOTHING, ((0, 1),))
    ranges, terms = ((2, 1, 9), (10, 0, 99), (5, 5, 5)), ((0, 1, 4, 4), (0, 0, 0, 4))
    moved = moved_plan([part], ((3, 9, 140, 7),), ranges, terms, ((0, 160),))
    spans = {said: moved.plan(said) for said in ((2, 10, 5), (1, 0, 5), (5, 10, 5), (6, 10, 5), (0, 10, 5), (2, 10, 6))}
    found = {said: None if plan is None else [each.spans for each in plan.effects] for said, plan in spans.items()}
    assert found == {
        (2, 10, 5): [((140, 148),)], (1, 0, 5): [((100, 104),)], (5, 10, 5): [((140, 160),)],
        (6, 10, 5): None, (0, 10, 5): None, (2, 10, 6): None,
    }  # fmt: skip
    assert moved.plan((2, 10)) is None and moved.plan((2, -1, 5)) is None
    assert moved_plan([part], ((3, 9, 140, 7),), ranges, ((0, 1, 1 << 30, 4),), ()) is None, "that leads too far"
    assert moved_plan([part] * 2, ((3, 9, 140, 7),), ranges, terms, ()) is None, "two ranges would get longer"
