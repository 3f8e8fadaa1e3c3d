"""Accesses of draws and dispatches that depend on the contents of memory: exact where these are known, left out and
counted where they are not, and a bound where that is asked for. The model agrees."""

from __future__ import annotations

import struct as packing
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.drawing import attribute, binding, vertex_input
from tests.support.ring import BYTES, HALVES, Ring
from tests.support.streams import Stream, struct, words
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.commands.contents.at_submit import MOST_BYTES_WAITING, MOST_WAITING, PATIENCE, MemoryContents
from vkharness.commands.contents.content_steps import Filled, Overwritten, Step, Updated
from vkharness.commands.resources.aliasing import Aliasing
from vkharness.findings import Certainty, Finding
from vkharness.spec.enums import VkIndexType
from vkharness.trace.calls import UNSEEN_WRITES, Call

UINT16, UINT32 = VkIndexType.UINT16, VkIndexType.UINT32
INDICES = "vertices through indices whose contents are unknown"
PARAMETERS = "vertices or indices by parameters whose contents are unknown"
COUNT = "parameters up to a count whose contents are unknown"


def found(analysis: Analysis) -> list[tuple[str, Certainty, tuple[tuple[int, int], ...]]]:
    return [(str(each.hazard), each.certainty, each.ranges) for each in analysis.findings]


def exact(*ranges: tuple[int, int]) -> list[tuple[str, Certainty, tuple[tuple[int, int], ...]]]:
    return [("READ_AFTER_WRITE", Certainty.EXACT, ranges)]


def by_host(ring: Ring, data: bytes) -> None:
    """The host writes the indices."""
    ring.host_write(ring.index_memory, 0, data)


def by_update(ring: Ring, data: bytes) -> None:
    """A command holds the indices."""
    ring.begin()
    ring.cmd("UpdateBuffer", dstBuffer=ring.indices, dataSize=len(data), pData=data)
    ring.submit()


def by_copies(ring: Ring, data: bytes) -> None:
    """The indices are copied twice from where the host wrote them, in two pieces that cut through an index."""
    staging, between = ring.memory(BYTES), ring.buffer(BYTES)
    ring.host_write(staging, 7, data)
    ring.begin()
    ring.copy(ring.buffer(BYTES, staging), between, len(data), from_=7, to=32)
    ring.barrier()
    ring.copy(between, ring.indices, 3, from_=32)
    ring.copy(between, ring.indices, len(data) - 3, from_=35, to=3)
    ring.submit()


class TestIndices:
    @pytest.mark.parametrize("give", [by_host, by_update, by_copies])
    def test_a_ring_of_vertices_is_clean_and_vertices_that_are_written_are_exact(
        self, give: Callable[[Ring, bytes], None]
    ) -> None:
        for part, expected in (HALVES[0], []), (HALVES[1], exact((512 + 80, 24))):
            ring = Ring()
            give(ring, words(74, 76, 75))
            analysis = ring.overwrites(part).draws(indexCount=3, instanceCount=1).judged()
            assert (found(analysis), dict(analysis.unjudged.left_out)) == (expected, {})

    def test_vertices_between_those_that_are_meant_are_not_read(self) -> None:
        ring = Ring()
        by_host(ring, words(0, 127, 2))
        analysis = ring.overwrites((24, 900)).draws(indexCount=3, instanceCount=1).judged()
        assert found(analysis) == []

    def test_only_the_indices_that_are_drawn_count_with_their_offset(self) -> None:
        ring = Ring()
        by_host(ring, packing.pack("<4H", 0, 100, 101, 0))
        ring.overwrites(HALVES[0])
        ring.draws(kind=UINT16, indexCount=2, instanceCount=1, firstIndex=1, vertexOffset=-60)
        assert found(ring.judged()) == exact((320, 16))

    def test_a_fill_means_one_vertex(self) -> None:
        ring = Ring()
        ring.begin()
        ring.fill(ring.indices, 0x00030003)
        ring.submit()
        analysis = ring.overwrites(HALVES[0]).draws(kind=UINT16, indexCount=64, instanceCount=1).judged()
        assert found(analysis) == exact((24, 8))

    @pytest.mark.parametrize(("restart", "expected"), [(True, []), (False, exact((65535 * 8, 8)))])
    def test_an_index_that_restarts_the_primitive_means_no_vertex(self, restart: bool, expected: Any) -> None:
        assembly = struct("VkPipelineInputAssemblyStateCreateInfo", primitiveRestartEnable=int(restart))
        ring = Ring(pInputAssemblyState=assembly)
        ring.vertices = ring.buffer(1 << 20)
        by_host(ring, packing.pack("<4H", 0, 1, 65535, 2))
        ring.begin()
        ring.fill(ring.vertices, 0, 65535 * 8, 64)
        assert found(ring.draws(kind=UINT16, indexCount=4, instanceCount=1).judged()) == expected

    def test_instances_are_exact_whatever_the_indices(self) -> None:
        ring = Ring(vertex_input([binding(0, 8, True)], [attribute()]))
        analysis = ring.overwrites(HALVES[1]).draws(indexCount=3, instanceCount=2, firstInstance=64).judged()
        assert (found(analysis), dict(analysis.unjudged.left_out)) == (exact((512, 16)), {})


class TestUnknown:
    def unknown(self) -> Ring:
        ring = Ring()
        ring.overwrites(HALVES[0])
        for _ in range(2):
            ring.draws(indexCount=3, instanceCount=1)
        return ring

    def test_vertices_behind_unknown_indices_are_left_out_and_counted(self) -> None:
        analysis = self.unknown().judged()
        assert (analysis.verdict, found(analysis)) == ("unknown", [])
        assert analysis.unjudged.left_out == {INDICES: 2}
        assert analysis.unmodelled == {
            f"what vkCmdDrawIndexed may read of VkBuffer {self.unknown().vertices} by contents that are unknown,"
            " in no order with vkCmdCopyBuffer (--bounds)": 2
        }

    def test_what_only_may_be_read_leaves_known_what_other_commands_write(self) -> None:
        """Else what the host writes meanwhile to other memory would be taken for the device's."""
        ring = self.unknown()
        ring.submit()
        memories = first, second, idle = [ring.memory(256) for _ in range(3)]
        dispatch = ring.begin()
        ring.compute("copy_words", [ring.buffer(256, each) for each in (first, second)]).run()
        ring.buffer(256, idle)
        analysis = ring.judged()
        assert analysis.unmodelled
        written = analysis.may_write([dispatch])
        assert [each in written for each in memories] == [False, True, False]

    @pytest.mark.parametrize("mapped", [False, True])
    @pytest.mark.parametrize("unseen", [False, True])
    def test_memory_that_is_mapped_is_unknown_where_the_host_is_not_seen(self, unseen: bool, mapped: bool) -> None:
        ring = Ring()
        if mapped:
            memory = {"memory": ring.index_memory, "offset": 0, "size": BYTES, "flags": 0, "ppData": 1}
            ring.call("vkMapMemory", device=ring.device, **memory)
            call = ring.blocks[-1]
            assert isinstance(call, Call)
            call.args[UNSEEN_WRITES] = int(unseen)
        by_update(ring, words(74, 76, 75))
        analysis = ring.overwrites(HALVES[1]).draws(indexCount=3, instanceCount=1).judged()
        if unseen and mapped:
            assert (found(analysis), analysis.unjudged.left_out) == ([], {INDICES: 1})
        else:
            assert (found(analysis), dict(analysis.unjudged.left_out)) == (exact((512 + 80, 24)), {})

    @pytest.mark.parametrize("source", [0x1000, 0])
    @pytest.mark.parametrize("destination", [0x4, 0x2])
    def test_what_may_be_read_is_clean_where_it_is_in_order(self, source: int, destination: int) -> None:
        ring = Ring().overwrites(HALVES[0])
        seen = struct("VkMemoryBarrier", srcAccessMask=source, dstAccessMask=destination)
        ring.cmd("PipelineBarrier", srcStageMask=0x1000, dstStageMask=0x4, pMemoryBarriers=[seen])
        analysis = ring.draws(indexCount=3, instanceCount=1).judged()
        is_ordered = source == 0x1000 and destination == 0x4
        assert (analysis.verdict, found(analysis)) == ("clean" if is_ordered else "unknown", [])
        assert analysis.unjudged.left_out == {INDICES: 1}

    @pytest.mark.parametrize("waits", [False, True])
    def test_the_host_may_write_what_may_be_read_once_it_waited(self, waits: bool) -> None:
        ring = Ring()
        memory = ring.memory(BYTES)
        ring.vertices = ring.buffer(BYTES, memory)
        ring.begin()
        ring.draws(indexCount=3, instanceCount=1).submit(wait=waits)
        ring.host_write(memory, HALVES[1][0], bytes(8))
        analysis = Analysis().follow(ring.blocks)
        assert (analysis.verdict, found(analysis)) == ("clean" if waits else "unknown", [])
        assert any("in no order with host write" in each for each in analysis.unmodelled) is not waits

    def test_a_write_after_what_may_be_read_needs_an_order(self) -> None:
        for waits in False, True:
            ring = Ring()
            ring.begin()
            ring.draws(indexCount=3, instanceCount=1)
            if waits:
                ring.cmd("PipelineBarrier", srcStageMask=0x4, dstStageMask=0x1000)
            ring.copy(ring.source, ring.vertices, 16)
            assert ring.judged().verdict == ("clean" if waits else "unknown")

    def test_a_finding_of_the_same_command_says_it(self) -> None:
        """The draw reads parameters too early for sure, and perhaps the vertices: one dependency is missing."""
        ring = Ring().overwrites(HALVES[0])
        ring.copy(ring.source, ring.parameters, 16, to=0)
        analysis = ring.draws("DrawIndirect", buffer=ring.parameters, drawCount=1).judged()
        assert (analysis.verdict, analysis.unmodelled, len(analysis.possible)) == ("hazards", {}, 1)

    def test_a_recorded_draw_is_counted_once_however_often_it_runs(self) -> None:
        ring = self.unknown()
        ring.end()
        for _ in range(3):
            ring.submit(ring.commands)
        assert Analysis().follow(ring.blocks).unjudged.left_out == {INDICES: 2}

    def test_bounds_show_them(self) -> None:
        analysis = self.unknown().judged(bounds=True)
        assert found(analysis) == [("READ_AFTER_WRITE", Certainty.BOUND, (HALVES[0],))] * 2
        assert (analysis.verdict, dict(analysis.unjudged.left_out)) == ("hazards", {})

    def test_a_bound_stands_in_the_way_of_no_other_finding(self) -> None:
        """A read of unknown vertices between two writes would be enough for the second, if it happened."""
        ring = Ring()
        ring.overwrites(HALVES[0])
        seen = struct("VkMemoryBarrier", srcAccessMask=0x1000, dstAccessMask=0x4)
        ring.cmd("PipelineBarrier", srcStageMask=0x1000, dstStageMask=0x4, pMemoryBarriers=[seen])
        ring.draws(indexCount=3, instanceCount=1)
        ring.cmd("PipelineBarrier", srcStageMask=0x4, dstStageMask=0x1000)
        ring.copy(ring.source, ring.vertices, 16)
        ring.submit()
        for bounds in False, True:
            analysis = Analysis(bounds=bounds).follow(ring.blocks)
            assert found(analysis) == [("WRITE_AFTER_WRITE", Certainty.EXACT, ((0, 16),))]

    @pytest.mark.parametrize("spoil", ["copy", "atomic", "unknown command", "unknown call"])
    def test_whatever_else_writes_makes_contents_unknown(self, spoil: str) -> None:
        ring = Ring()
        by_host(ring, words(0, 1, 2))
        ring.begin()
        if spoil == "copy":
            ring.copy(ring.buffer(64), ring.indices, 4, to=8)
        elif spoil == "atomic":
            ring.cmd("WriteBufferMarkerAMD", pipelineStage=0x1000, dstBuffer=ring.indices, dstOffset=4, marker=1)
        elif spoil == "unknown command":
            ring.cmd("CuLaunchKernelNVX")
        elif spoil == "unknown call":
            ring.call("vkQueueBindSparse", queue=ring.queue)
        ring.submit()
        analysis = ring.overwrites(HALVES[0]).draws(indexCount=3, instanceCount=1).judged()
        assert (found(analysis), dict(analysis.unjudged.left_out)) == ([], {INDICES: 1})

    def test_nothing_is_known_while_a_batch_waits_for_a_signal_to_come(self) -> None:
        ring = Ring()
        kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=1)
        semaphore = ring.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=kind))
        by_host(ring, words(0, 1, 2))
        ring.overwrites(HALVES[0]).draws(indexCount=3, instanceCount=1).end()
        values = struct("VkTimelineSemaphoreSubmitInfo", pWaitSemaphoreValues=[1])
        waiting = struct(
            "VkSubmitInfo",
            pNext=values,
            pWaitSemaphores=[semaphore],
            pWaitDstStageMask=[0x10000],
            pCommandBuffers=[ring.commands],
        )
        ring.call("vkQueueSubmit", queue=ring.queue, pSubmits=[waiting])
        ring.call("vkSignalSemaphore", pSignalInfo=struct("VkSemaphoreSignalInfo", semaphore=semaphore, value=1))
        analysis = Analysis().follow(ring.blocks)
        assert (found(analysis), dict(analysis.unjudged.left_out)) == ([], {INDICES: 1})


INDEXED = packing.Struct("<3IiI")


class TestIndirect:
    def parameters(self, *values: bytes) -> Ring:
        ring = Ring()
        ring.host_write(ring.parameter_memory, 0, b"".join(values))
        return ring

    @pytest.mark.parametrize(("part", "expected"), [(HALVES[0], []), (HALVES[1], exact((512, 24), (560, 8)))])
    def test_known_parameters_say_which_vertices_are_read(self, part: tuple[int, int], expected: Any) -> None:
        ring = self.parameters(words(3, 1, 64, 0), words(1, 1, 70, 0), words(5, 0, 0, 0)).overwrites(part)
        ring.draws("DrawIndirect", buffer=ring.parameters, drawCount=3, stride=16)
        assert found(ring.judged()) == expected

    def test_parameters_lead_to_indices_and_these_to_vertices(self) -> None:
        ring = self.parameters(INDEXED.pack(2, 1, 1, 10, 0))
        by_host(ring, words(0, 70, 80, 0))
        ring.overwrites(HALVES[1]).draws("DrawIndexedIndirect", buffer=ring.parameters, drawCount=1)
        assert found(ring.judged()) == exact((640, 8), (720, 8))

    def test_indices_that_parameters_do_not_name_are_not_read(self) -> None:
        ring = self.parameters(INDEXED.pack(2, 1, 1, 0, 0))
        by_host(ring, words(0, 0, 0, 0))
        ring.begin()
        ring.fill(ring.indices, 0, 12, 16)
        ring.draws("DrawIndexedIndirect", buffer=ring.parameters, drawCount=1)
        assert found(ring.judged()) == []

    @pytest.mark.parametrize(("number", "expected"), [(1, []), (2, exact((512, 24))), (99, exact((512, 24)))])
    def test_a_known_number_limits_the_draws(self, number: int, expected: Any) -> None:
        ring = self.parameters(words(3, 1, 0, 0), words(3, 1, 64, 0), words(number))
        ring.overwrites(HALVES[1])
        ring.draws(
            "DrawIndirectCount",
            buffer=ring.parameters,
            countBuffer=ring.parameters,
            countBufferOffset=32,
            maxDrawCount=2,
            stride=16,
        )
        assert found(ring.judged()) == expected

    @pytest.mark.parametrize(
        ("name", "more", "what"),
        [
            ("DrawIndirect", {"drawCount": 1}, PARAMETERS),
            ("DrawIndexedIndirect", {"drawCount": 2, "stride": 20}, PARAMETERS),
            ("DrawIndirectCount", {"maxDrawCount": 2, "stride": 16}, COUNT),
        ],
    )
    def test_unknown_parameters_are_counted_and_bounds_show_them(
        self, name: str, more: dict[str, Any], what: str
    ) -> None:
        for bounds, expected in (False, []), (True, [Certainty.BOUND]):
            ring = Ring()
            more |= {"countBuffer": ring.source} if "Count" in name else {}
            analysis = ring.overwrites(HALVES[0]).draws(name, buffer=ring.parameters, **more).judged(bounds)
            assert [each.certainty for each in analysis.findings] == expected
            assert analysis.unjudged.left_out == ({} if bounds else {what: 1})

    def test_too_many_parameters_are_not_looked_at(self) -> None:
        ring = Ring()
        memory = ring.memory(1 << 20)
        ring.host_write(memory, 0, bytes(1 << 20))
        ring.overwrites(HALVES[0])
        ring.draws("DrawIndirect", buffer=ring.buffer(1 << 20, memory), drawCount=60_000, stride=16)
        assert ring.judged().unjudged.left_out == {PARAMETERS: 1}


class TestDispatch:
    def dispatched(self, groups: tuple[int, int, int], by: str) -> list[Finding]:
        """A dispatch, with known numbers of workgroups, of a shader that writes a buffer that was just filled."""
        stream = Stream()
        memory = stream.memory(64)
        parameters, target = stream.buffer(64, memory), stream.buffer(64)
        shader = stream.compute("fill_words", [target], words(1))
        if by == "host":
            stream.host_write(memory, 0, words(*groups))
        stream.begin()
        if by == "update":
            stream.cmd("UpdateBuffer", dstBuffer=parameters, dataSize=12, pData=words(*groups))
            stream.barrier()
        stream.fill(target, 0)
        stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=shader.pipeline)
        stream.cmd("BindDescriptorSets", pipelineBindPoint=1, layout=shader.layout, pDescriptorSets=[shader.set])
        stream.cmd("DispatchIndirect", buffer=parameters)
        stream.submit()
        assert agreement(stream.blocks).disagreements == ()
        return Analysis().follow(stream.blocks).findings

    @pytest.mark.parametrize("by", ["host", "update", "nobody"])
    def test_workgroups_write_and_no_workgroups_write_nothing(self, by: str) -> None:
        assert [each.hazard for each in self.dispatched((1, 1, 1), by)] == ["WRITE_AFTER_WRITE"]
        empty = [each.hazard for each in self.dispatched((1, 0, 1), by)]
        assert empty == (["WRITE_AFTER_WRITE"] if by == "nobody" else [])


class TestChangesBeforeAnybodyAsks:
    """They wait, and count as if each had been made at once."""

    PART = (0, 4)

    def contents(self) -> MemoryContents:
        return MemoryContents(Aliasing())

    def test_they_are_made_in_order_for_whoever_asks(self) -> None:
        contents = self.contents()
        contents.change((Filled(1, (0, 8), 7), Updated(1, 0, b"abcd")))
        contents.change((Overwritten(((1, (4, 8)),)),))
        assert contents.memory.read(1, self.PART) == b"abcd" and contents.memory.read(1, (0, 8)) is None

    def test_what_is_forgotten_is_forgotten_with_them(self) -> None:
        contents = self.contents()
        contents.change((Filled(1, (0, 8), 7),))
        contents.forget_all()
        contents.change((Updated(2, 0, b"abcd"),))
        assert contents.memory.read(1, self.PART) is None and contents.memory.read(2, self.PART) == b"abcd"

    def test_steps_that_a_command_buffer_gets_later_are_none_of_them(self) -> None:
        contents, steps = self.contents(), list[Step]([Filled(1, (0, 8), 7)])
        contents.change(steps)
        steps.append(Filled(1, (0, 8), 9))
        assert contents.memory.read(1, self.PART) == words(7)

    def test_no_more_than_patience_allows_are_followed(self) -> None:
        contents = self.contents()
        contents.change((Filled(1, (0, 8), 7),) * PATIENCE)
        assert contents.memory.read(1, self.PART) is None
        contents.needed()
        contents.change((Filled(1, (0, 8), 7),))
        assert contents.memory.read(1, self.PART) == words(7)

    def test_no_more_than_a_bound_wait(self) -> None:
        contents = self.contents()
        for at in range(3 * MOST_WAITING):
            contents.change((Filled(1, (0, 8), at),))
            assert len(contents._waiting) <= MOST_WAITING
        assert contents.memory.read(1, self.PART) == words(at)

    def test_bytes_that_wait_are_bounded(self) -> None:
        contents, held = self.contents(), bytearray(MOST_BYTES_WAITING // 4)
        for at in range(64):
            contents.change((Updated(1, 0, bytes(held)),))
            waiting = [step.data for each in contents._waiting for step in each if isinstance(step, Updated)]
            assert sum(map(len, waiting)) <= MOST_BYTES_WAITING, at
