"""Reads of draws: vertices, instances, indices, parameters, counters; resources of their shaders, stage by stage."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import drawing, passes
from tests.support.drawing import R32, attribute, binding, draw, executed, seen, vertex_input
from tests.support.interpreted import effects_of
from tests.support.streams import Stream, struct, two_buffers
from vkharness.check import Analysis
from vkharness.findings import Certainty, Finding
from vkharness.layer.silence import hides_vertices
from vkharness.layer.stream import Stream as RecordedStream
from vkharness.spec.enums import VkDynamicState, VkIndexType
from vkharness.trace.effects import Access

VERTEX_READ = "VERTEX_ATTRIBUTE_INPUT_VERTEX_ATTRIBUTE_READ"
INDEX_READ = "INDEX_INPUT_INDEX_READ"
INDIRECT_READ = "DRAW_INDIRECT_INDIRECT_COMMAND_READ"
BINDING_STRIDE, VERTEX_INPUT = VkDynamicState.VERTEX_INPUT_BINDING_STRIDE, VkDynamicState.VERTEX_INPUT_EXT
UINT8, UINT16, UINT32 = VkIndexType.UINT8, VkIndexType.UINT16, VkIndexType.UINT32
ONE = vertex_input([binding()], [attribute()])


def drawn(stream: Stream, input: dict[str, Any] | None = ONE, **more: Any) -> None:
    """Begins commands inside rendering to nothing, with a pipeline that writes no attachment."""
    made = drawing.pipeline(stream, None, input=input, colors=None, discard=True, **more)
    stream.begin()
    drawing.render(stream)
    drawing.bind(stream, made)


def drawn_from(size: int, input: dict[str, Any] | None = ONE, **more: Any) -> tuple[Stream, int]:
    """Begins as `drawn` does, in a stream of its own, with one vertex buffer bound."""
    stream = Stream()
    vertices = stream.buffer(size)
    drawn(stream, input, **more)
    drawing.bind_vertices(stream, vertices)
    return stream, vertices


def writes_storage(stream: Stream) -> int:
    """Binds what draws need whose vertex shader reads a buffer and writes one: the one that is written."""
    source, target = stream.buffer(64), stream.buffer(64)
    made = drawing.pipeline(
        stream, None, vertex=drawing.reads_uniform_writes_storage(drawing.VERTEX), colors=None, discard=True
    )
    stream.begin()
    drawing.render(stream)
    drawing.bind(stream, made)
    drawing.bind_descriptors(stream, (6, source), (7, target))
    return target


@pytest.mark.parametrize("order", [("Draw", "DrawIndexed"), ("DrawIndexed", "Draw")])
def test_how_sure_an_access_is_is_not_that_of_the_draw_before(order: tuple[str, str]) -> None:
    """The vertex shader reads and writes the same bytes, whichever vertices there are. Some are drawn for sure only
    where it is known which ones."""
    stream = Stream()
    target, indices = writes_storage(stream), stream.buffer(64)
    drawing.bind_indices(stream, indices)
    several = {
        name: stream.cmd(name, instanceCount=1, **{"vertexCount" if name == "Draw" else "indexCount": 3})
        for name in order
    }
    sure = {
        name: {
            each.certainty for each in effects_of(stream)[at] if isinstance(each, Access) and each.resource == target
        }
        for name, at in several.items()
    }
    assert sure == {"Draw": {Certainty.EXACT}, "DrawIndexed": {Certainty.DECLARED}}


class TestVertices:
    def test_a_draw_reads_its_vertices(self) -> None:
        stream = Stream()
        vertices = stream.buffer(256)
        drawn(stream)
        drawing.bind_vertices(stream, vertices, offset=16)
        assert seen(stream, draw(stream, 3, first=2)) == [(vertices, VERTEX_READ, ((32, 56),))]

    def test_bytes_before_the_first_and_after_the_last_attribute_are_not_read(self) -> None:
        stream, vertices = drawn_from(256, vertex_input([binding(0, 32)], [attribute(0, 4, R32), attribute(0, 12)]))
        assert seen(stream, draw(stream, 2)) == [(vertices, VERTEX_READ, ((4, 52),))]

    def test_a_buffer_that_several_bindings_share_is_one_access(self) -> None:
        stream = Stream()
        vertices = stream.buffer(256)
        drawn(stream, vertex_input([binding(0), binding(1)], [attribute(0), attribute(1, 64)]))
        drawing.bind_vertices(stream, vertices, vertices)
        assert seen(stream, draw(stream, 2)) == [(vertices, VERTEX_READ, ((0, 16), (64, 80)))]

    def test_a_binding_without_attributes_or_without_a_buffer_is_not_read(self) -> None:
        stream = Stream()
        vertices = stream.buffer(256)
        drawn(stream, vertex_input([binding(0), binding(1), binding(2)], [attribute(1), attribute(2)]))
        drawing.bind_vertices(stream, vertices, vertices, 0)
        assert seen(stream, draw(stream, 1)) == [(vertices, VERTEX_READ, ((0, 8),))]

    def test_reads_end_with_the_buffer(self) -> None:
        stream, vertices = drawn_from(20)
        assert seen(stream, draw(stream, 100)) == [(vertices, VERTEX_READ, ((0, 20),))]

    def test_a_stride_of_zero_repeats_one_element(self) -> None:
        stream, vertices = drawn_from(64, vertex_input([binding(0, 0)], [attribute(0, 8)]))
        assert seen(stream, draw(stream, 9, first=3)) == [(vertices, VERTEX_READ, ((8, 16),))]

    @pytest.mark.parametrize(("vertices", "instances"), [(0, 1), (3, 0)])
    def test_a_draw_of_nothing_touches_nothing(self, vertices: int, instances: int) -> None:
        stream, _ = drawn_from(64)
        assert seen(stream, draw(stream, vertices, instances)) == []

    def test_several_draws_in_one_command(self) -> None:
        stream, vertices = drawn_from(256)
        parts = [{"firstVertex": first, "vertexCount": count} for first, count in ((0, 2), (9, 0), (8, 1))]
        index = stream.cmd("DrawMultiEXT", drawCount=3, pVertexInfo=parts, instanceCount=1, stride=8)
        assert seen(stream, index) == [(vertices, VERTEX_READ, ((0, 16), (64, 72)))]

    def test_a_hazard_with_a_copy_names_both(self) -> None:
        stream, vertices, source = two_buffers(64)
        made = drawing.pipeline(stream, None, input=ONE, colors=None, discard=True)
        stream.begin()
        stream.copy(source, vertices, 8, to=16)
        drawing.render(stream)
        drawing.bind(stream, made)
        drawing.bind_vertices(stream, vertices)
        draw(stream, 2)
        draw(stream, 1, first=2)
        found = Analysis().follow(stream.blocks).findings
        assert [(each.hazard, each.access.removeprefix("SYNC_"), each.ranges) for each in found] == [
            ("READ_AFTER_WRITE", VERTEX_READ, ((16, 8),))
        ]


class TestInstances:
    @pytest.mark.parametrize(
        ("divisor", "expected"), [(1, ((32, 72),)), (2, ((32, 56),)), (3, ((32, 48),)), (0, ((32, 40),))]
    )
    def test_bindings_of_instance_rate_read_one_element_for_divisor_instances(
        self, divisor: int, expected: tuple[tuple[int, int], ...]
    ) -> None:
        stream, instances = drawn_from(256, vertex_input([binding(per_instance=True)], [attribute()], {0: divisor}))
        index = draw(stream, 100, 5, first_instance=4)
        assert seen(stream, index) == [(instances, VERTEX_READ, expected)]
        assert drawing.unrecorded(stream, index) == [True]

    def test_each_rate_has_its_own_elements(self) -> None:
        stream, vertices, instances = two_buffers(256)
        drawn(stream, vertex_input([binding(0), binding(1, 16, True)], [attribute(0), attribute(1)]))
        drawing.bind_vertices(stream, vertices, instances)
        assert seen(stream, draw(stream, 4, 2)) == [
            (vertices, VERTEX_READ, ((0, 32),)),
            (instances, VERTEX_READ, ((0, 24),)),
        ]


class TestDynamicVertexInput:
    def test_the_second_form_of_binding_limits_sizes_and_sets_strides(self) -> None:
        stream = Stream()
        vertices = stream.buffer(256)
        drawn(stream, dynamic=[BINDING_STRIDE])
        given = {"firstBinding": 0, "bindingCount": 1, "pBuffers": [vertices], "pOffsets": [32]}
        stream.cmd("BindVertexBuffers2", **given, pSizes=[40], pStrides=[16])
        assert seen(stream, draw(stream, 2)) == [(vertices, VERTEX_READ, ((32, 56),))]
        assert seen(stream, draw(stream, 20)) == [(vertices, VERTEX_READ, ((32, 72),))]

    def test_a_static_stride_stays(self) -> None:
        stream = Stream()
        vertices = stream.buffer(256)
        drawn(stream)
        given = {"firstBinding": 0, "bindingCount": 1, "pBuffers": [vertices], "pOffsets": [0]}
        stream.cmd("BindVertexBuffers2EXT", **given, pStrides=[64])
        assert seen(stream, draw(stream, 2)) == [(vertices, VERTEX_READ, ((0, 16),))]

    def test_bindings_and_attributes_set_by_a_command(self) -> None:
        stream, vertices = drawn_from(256, None, dynamic=[VERTEX_INPUT])
        stream.cmd(
            "SetVertexInputEXT",
            pVertexBindingDescriptions=[
                struct("VkVertexInputBindingDescription2EXT", stride=32, inputRate=1, divisor=2)
            ],
            pVertexAttributeDescriptions=[struct("VkVertexInputAttributeDescription2EXT", format=R32, offset=8)],
        )
        assert seen(stream, draw(stream, 9, 3)) == [(vertices, VERTEX_READ, ((8, 44),))]


class TestIndices:
    @pytest.mark.parametrize(
        ("kind", "expected", "reached"),
        [(UINT8, (12, 17), 256 * 8), (UINT16, (14, 24), 65536 * 8), (UINT32, (18, 38), 1 << 20)],
    )
    def test_indices_are_exact_and_vertices_are_what_an_index_can_mean(
        self, kind: int, expected: tuple[int, int], reached: int
    ) -> None:
        stream = Stream()
        vertices, indices = stream.buffer(1 << 20), stream.buffer(64)
        drawn(stream)
        drawing.bind_vertices(stream, vertices)
        drawing.bind_indices(stream, indices, 10, kind)
        index = stream.cmd("DrawIndexed", indexCount=5, instanceCount=1, firstIndex=2)
        read = (indices, INDEX_READ, (expected,))
        assert seen(stream, index) == [read]
        assert executed(stream, index, bounds=True) == [
            ((vertices, VERTEX_READ, ((0, reached),)), Certainty.BOUND),
            (read, Certainty.EXACT),
        ]
        assert drawing.unrecorded(stream, index) == [True, False]

    @pytest.mark.parametrize(("offset", "expected"), [(10, (80, 2128)), (-6, (0, 2000))])
    def test_a_vertex_offset_moves_what_is_reached(self, offset: int, expected: tuple[int, int]) -> None:
        stream = Stream()
        vertices, indices = stream.buffer(1 << 16), stream.buffer(64)
        drawn(stream)
        drawing.bind_vertices(stream, vertices)
        drawing.bind_indices(stream, indices, kind=UINT8)
        index = stream.cmd("DrawIndexed", indexCount=1, instanceCount=1, vertexOffset=offset)
        assert executed(stream, index, bounds=True)[0] == ((vertices, VERTEX_READ, (expected,)), Certainty.BOUND)

    def test_the_second_form_of_binding_limits_the_size(self) -> None:
        stream = Stream()
        indices = stream.buffer(64)
        drawn(stream, None)
        stream.cmd("BindIndexBuffer2KHR", buffer=indices, offset=8, size=12, indexType=UINT16)
        index = stream.cmd("DrawIndexed", indexCount=100, instanceCount=1, firstIndex=2)
        assert seen(stream, index) == [(indices, INDEX_READ, ((12, 20),))]

    @pytest.mark.parametrize(("shared", "expected"), [(None, ((0, 2048), (2056, 4104))), (1, ((8, 2056),))])
    def test_several_indexed_draws_in_one_command(self, shared: int | None, expected: tuple[Any, ...]) -> None:
        stream = Stream()
        vertices, indices = stream.buffer(1 << 16), stream.buffer(64)
        drawn(stream)
        drawing.bind_vertices(stream, vertices)
        drawing.bind_indices(stream, indices, kind=UINT8)
        parts = [
            {"firstIndex": first, "indexCount": count, "vertexOffset": offset}
            for first, count, offset in ((0, 4, 0), (7, 0, 99), (16, 2, 257))
        ]
        index = stream.cmd(
            "DrawMultiIndexedEXT", drawCount=3, pIndexInfo=parts, instanceCount=1, stride=12, pVertexOffset=shared
        )
        assert seen(stream, index) == [(indices, INDEX_READ, ((0, 4), (16, 18)))]
        assert executed(stream, index, bounds=True)[0] == ((vertices, VERTEX_READ, expected), Certainty.BOUND)


class TestIndirect:
    @pytest.mark.parametrize(
        ("name", "size", "read"), [("DrawIndirect", 16, ()), ("DrawIndexedIndirect", 20, (INDEX_READ,))]
    )
    def test_parameters_are_read_at_their_stride_and_all_that_is_bound_may_be_reached(
        self, name: str, size: int, read: tuple[str, ...]
    ) -> None:
        stream = Stream()
        vertices, indices, parameters = stream.buffer(512), stream.buffer(64), stream.buffer(256)
        drawn(stream)
        drawing.bind_vertices(stream, vertices, offset=8)
        drawing.bind_indices(stream, indices, 4)
        index = stream.cmd(name, buffer=parameters, offset=4, drawCount=3, stride=32)
        expected = tuple((4 + at * 32, 4 + at * 32 + size) for at in range(3))
        assert seen(stream, index) == [(parameters, INDIRECT_READ, expected)]
        assert executed(stream, index, bounds=True) == [
            *[((indices, each, ((4, 64),)), Certainty.BOUND) for each in read],
            ((vertices, VERTEX_READ, ((8, 512),)), Certainty.BOUND),
            ((parameters, INDIRECT_READ, expected), Certainty.EXACT),
        ]
        silent = drawing.unrecorded(stream, index)
        assert silent == [*[True for _ in silent[1:]], False]

    @pytest.mark.parametrize(
        ("count", "stride", "expected"),
        [(1, 4096, ((0, 16),)), (0, 16, None), (3, 16, ((0, 48),)), (9, 100, ((0, 16), (100, 116), (200, 216)))],
    )
    def test_structs(self, count: int, stride: int, expected: tuple[Any, ...] | None) -> None:
        stream = Stream()
        parameters = stream.buffer(256)
        drawn(stream, None)
        index = stream.cmd("DrawIndirect", buffer=parameters, drawCount=count, stride=stride)
        assert seen(stream, index) == ([(parameters, INDIRECT_READ, expected)] if expected else [])

    def test_more_structs_than_are_told_apart_are_read_as_one_range(self) -> None:
        stream = Stream()
        parameters = stream.buffer(1 << 30)
        drawn(stream, None)
        index = stream.cmd("DrawIndirect", buffer=parameters, drawCount=1 << 24, stride=32)
        assert seen(stream, index) == [(parameters, INDIRECT_READ, ((0, 32 * ((1 << 24) - 1) + 16),))]

    @pytest.mark.parametrize(
        ("name", "size"), [("DrawIndirectCount", 16), ("DrawIndexedIndirectCountKHR", 20), ("DrawIndirectCountAMD", 16)]
    )
    def test_the_number_is_read_from_its_buffer(self, name: str, size: int) -> None:
        stream = Stream()
        parameters, count = stream.buffer(256), stream.buffer(64)
        drawn(stream, None)
        index = stream.cmd(
            name, buffer=parameters, countBuffer=count, countBufferOffset=12, maxDrawCount=2, stride=size
        )
        assert executed(stream, index, bounds=True) == [
            ((parameters, INDIRECT_READ, ((0, 2 * size),)), Certainty.BOUND),
            ((count, INDIRECT_READ, ((12, 16),)), Certainty.EXACT),
        ]

    def test_a_transform_feedback_counter_says_how_many_vertices_there_are(self) -> None:
        stream = Stream()
        vertices, instances, counter = stream.buffer(256), stream.buffer(256), stream.buffer(64)
        drawn(stream, vertex_input([binding(0), binding(1, 8, True)], [attribute(0), attribute(1)]))
        drawing.bind_vertices(stream, vertices, instances)
        index = stream.cmd(
            "DrawIndirectByteCountEXT",
            instanceCount=2,
            firstInstance=1,
            counterBuffer=counter,
            counterBufferOffset=8,
            vertexStride=8,
        )
        assert executed(stream, index, bounds=True) == [
            ((vertices, VERTEX_READ, ((0, 256),)), Certainty.BOUND),
            ((instances, VERTEX_READ, ((8, 24),)), Certainty.EXACT),
            ((counter, INDIRECT_READ, ((8, 12),)), Certainty.EXACT),
        ]

    def test_mesh_draws_read_parameters_and_no_vertices(self) -> None:
        stream = Stream()
        parameters, count = stream.buffer(256), stream.buffer(64)
        drawn(stream)
        drawing.bind_vertices(stream, stream.buffer(64))
        plain = stream.cmd("DrawMeshTasksIndirectEXT", buffer=parameters, drawCount=2, stride=16)
        counted = stream.cmd(
            "DrawMeshTasksIndirectCountEXT", buffer=parameters, countBuffer=count, maxDrawCount=1, stride=16
        )
        assert seen(stream, plain) == [(parameters, INDIRECT_READ, ((0, 12), (16, 28)))]
        assert seen(stream, counted) == [(count, INDIRECT_READ, ((0, 4),))]
        assert executed(stream, counted, bounds=True)[0] == ((parameters, INDIRECT_READ, ((0, 12),)), Certainty.BOUND)


class TestShaders:
    def test_a_fragment_shader_uses_its_descriptors(self) -> None:
        stream = Stream()
        image, view = drawing.color_target(stream)
        target, rendered = drawing.color_target(stream)
        made = drawing.pipeline(stream, "sample_color.frag", vertex="fullscreen.vert")
        stream.begin()
        drawing.render(stream, rendered)
        drawing.bind(stream, made)
        drawing.bind_descriptors(stream, (1, view))
        assert seen(stream, draw(stream)) == [
            (image, "FRAGMENT_SHADER_SHADER_SAMPLED_READ", drawing.WHOLE_COLOR),
            (target, "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE", drawing.WHOLE_COLOR),
        ]

    @pytest.mark.parametrize(("store", "found"), [(passes.STORE, [Certainty.DECLARED]), (passes.NONE_STORE, [])])
    def test_a_read_beside_a_store_is_declared(self, store: int, found: list[Certainty]) -> None:
        """It is no data race where "the accessed samples match those covered by the fragment shader"."""
        stream = Stream()
        _, view = drawing.color_target(stream)
        made = drawing.pipeline(
            stream, "loaded_texel_color.frag", vertex="fullscreen.vert", colors=[drawing.blend(write=0)]
        )
        stream.begin()
        drawing.bind(stream, made)
        drawing.bind_descriptors(stream, (3, view))
        passes.begin_rendering(stream, passes.rect((8, 8)), [passes.attached(view, passes.NONE_LOAD, store)])
        draw(stream)
        stream.cmd("EndRendering")
        stream.submit()
        assert [each.certainty for each in Analysis().follow(stream.blocks).findings] == found

    @pytest.mark.parametrize(
        ("which", "name"),
        [
            (drawing.VERTEX, "VERTEX_SHADER"),
            (0x2, "TESSELLATION_CONTROL_SHADER"),
            (0x4, "TESSELLATION_EVALUATION_SHADER"),
            (0x8, "GEOMETRY_SHADER"),
            (0x40, "TASK_SHADER_EXT"),
            (0x80, "MESH_SHADER_EXT"),
        ],
    )
    def test_each_stage_has_its_accesses(self, which: int, name: str) -> None:
        stream, uniform, storage = two_buffers(64)
        shader = drawing.stage(stream, drawing.reads_uniform_writes_storage(which), which)
        vertex = () if which == drawing.VERTEX else (drawing.stage(stream, "fullscreen.vert", drawing.VERTEX),)
        drawn(stream, None, vertex=None, stages=[*vertex, shader])
        drawing.bind_descriptors(stream, (6, uniform), (7, storage))
        assert seen(stream, draw(stream)) == [
            (uniform, f"{name}_UNIFORM_READ", ((0, 4),)),
            (storage, f"{name}_SHADER_STORAGE_WRITE", ((0, 4),)),
        ]

    def test_the_fragment_shader_does_not_run_where_nothing_is_rasterized(self) -> None:
        stream = Stream()
        _, view = drawing.color_target(stream)
        made = drawing.pipeline(stream, "sample_color.frag", vertex="fullscreen.vert", discard=True)
        stream.begin()
        drawing.render(stream, view)
        drawing.bind(stream, made)
        drawing.bind_descriptors(stream, (1, view))
        assert seen(stream, draw(stream)) == []

    def test_a_draw_uses_what_is_bound_then(self) -> None:
        stream = Stream()
        (one, one_view), (other, other_view), (first, first_view), (second, second_view) = (
            drawing.color_target(stream) for _ in range(4)
        )
        made = drawing.pipeline(stream, "sample_color.frag", vertex="fullscreen.vert")
        stream.begin()
        found = []
        for target, source in ((first_view, one_view), (first_view, other_view), (second_view, other_view)):
            drawing.render(stream, target)
            drawing.bind(stream, made)
            drawing.bind_descriptors(stream, (1, source))
            found += [draw(stream), draw(stream)]
            stream.cmd("EndRendering")
        touched = [[resource for resource, *_ in seen(stream, each)] for each in found]
        assert touched == [[one, first]] * 2 + [[other, first]] * 2 + [[other, second]] * 2

    def test_a_pipeline_that_was_not_seen_is_named(self) -> None:
        stream = Stream()
        stream.begin()
        drawing.render(stream)
        drawing.bind(stream, stream.id())
        assert drawing.unmodelled(stream, draw(stream)) == ["a pipeline whose shaders were not seen"]

    def test_bindings_end_with_the_recording(self) -> None:
        stream, _ = drawn_from(64)
        draw(stream)
        stream.call("vkResetCommandBuffer", commandBuffer=stream.commands)
        drawing.render(stream)
        made = drawing.pipeline(stream, None, input=ONE, colors=None, discard=True)
        drawing.bind(stream, made)
        assert seen(stream, draw(stream)) == []


class TestLibraries:
    def test_a_pipeline_linked_from_libraries_has_the_state_of_each(self) -> None:
        stream = Stream()
        vertices = stream.buffer(256)
        target, view = drawing.color_target(stream)
        whole = {
            "input": ONE,
            "colors": [drawing.blend()],
            "depth_stencil": drawing.depth_tests(depth=True, write=True),
        }
        parts = [
            drawing.library(stream, 1, None, vertex=None, **whole),
            drawing.library(stream, 2, None, **whole),
            drawing.library(stream, 4, "constant_color.frag", vertex=None, **whole),
            drawing.library(stream, 8, None, vertex=None, **whole),
        ]
        made = drawing.linked(stream, parts)
        deep, depth_view = drawing.depth_target(stream)
        stream.begin()
        drawing.render(stream, view, depth=depth_view)
        drawing.bind(stream, made)
        drawing.bind_vertices(stream, vertices)
        assert seen(stream, draw(stream)) == [
            (vertices, VERTEX_READ, ((0, 24),)),
            (target, "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE", drawing.WHOLE_COLOR),
            (deep, "EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ", drawing.DEPTH_SPANS),
            (deep, "LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ", drawing.DEPTH_SPANS),
            (deep, "LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE", drawing.DEPTH_SPANS),
        ]

    def test_a_part_counts_only_in_the_library_that_is_for_it(self) -> None:
        stream = Stream()
        target, view = drawing.color_target(stream)
        fragment = drawing.library(stream, 4, "constant_color.frag", vertex=None, colors=[drawing.blend()])
        vertex = drawing.library(stream, 3, None, input=ONE)
        output = drawing.library(stream, 8, None, vertex=None, colors=[drawing.blend(write=0)])
        made = drawing.linked(stream, [fragment, vertex, output])
        stream.begin()
        drawing.render(stream, view)
        drawing.bind(stream, made)
        assert target and seen(stream, draw(stream)) == []


def test_states_that_change_no_access_are_handled_by_name() -> None:
    stream = Stream()
    drawn(stream, None)
    commands = [
        stream.cmd("SetViewport", pViewports=[struct("VkViewport")]),
        stream.cmd("SetLineWidth", lineWidth=1.0),
        stream.cmd("SetPrimitiveTopologyEXT", primitiveTopology=3),
        stream.cmd("SetCullMode", cullMode=0),
    ]
    assert [seen(stream, each) for each in commands] == [[]] * 4
    assert Analysis().follow(stream.blocks).unmodelled == {}


INDEXED = "the vertex buffers of indexed and indirect draws"


def untracked(stream: Stream, finding: Finding) -> bool:
    return hides_vertices(finding, RecordedStream(stream.blocks))


class TestWhatTheLayerDoesNotSee:
    def indexed(self, stream: Stream, vertices: int) -> None:
        drawing.bind_vertices(stream, vertices)
        memory = stream.memory(64)
        stream.host_write(memory, 0, bytes(64))
        drawing.bind_indices(stream, stream.buffer(64, memory))
        stream.cmd("DrawIndexed", indexCount=3, instanceCount=1)

    def test_a_hazard_of_an_access_that_it_does_not_record_says_so(self) -> None:
        stream = Stream()
        vertices = stream.buffer(64)
        made = drawing.pipeline(stream, None, input=ONE, colors=None, discard=True)
        stream.begin()
        stream.fill(vertices, 0)
        drawing.render(stream)
        drawing.bind(stream, made)
        self.indexed(stream, vertices)
        stream.submit()
        (found,) = Analysis().follow(stream.blocks).findings
        assert (found.hazard, untracked(stream, found)) == ("READ_AFTER_WRITE", True)

    def test_so_does_a_hazard_with_an_earlier_one(self) -> None:
        stream = Stream()
        vertices = stream.buffer(64)
        drawn(stream)
        self.indexed(stream, vertices)
        stream.cmd("EndRendering")
        stream.fill(vertices, 0)
        stream.submit()
        (found,) = Analysis().follow(stream.blocks).findings
        assert (found.hazard, untracked(stream, found)) == ("WRITE_AFTER_READ", True)

    def test_one_of_an_access_that_it_records_does_not(self) -> None:
        stream, vertices = drawn_from(64)
        draw(stream)
        stream.cmd("EndRendering")
        stream.fill(vertices, 0)
        (found,) = Analysis().follow(stream.blocks).findings
        assert (found.hazard, untracked(stream, found)) == ("WRITE_AFTER_READ", False)


class TestMovedBuffers:
    """A buffer that is bound to memory between two draws, without a right to: what later command buffers draw is not
    where it was."""

    def test_vertices_are_read_where_the_buffer_lies(self) -> None:
        stream, vertices = drawn_from(64)
        seen_at = []
        for frame in range(2):
            if frame:
                drawn(stream)
                drawing.bind_vertices(stream, vertices)
            for _ in range(2):
                seen_at.append(draw(stream))
                memory = stream.memory()
                stream.call(
                    "vkBindBufferMemory", device=stream.device, buffer=vertices, memory=memory, memoryOffset=256 * frame
                )
            seen_at.append(draw(stream))
        bases = [seen(stream, each)[0][2][0][0] for each in seen_at]
        assert bases == [0, 0, 0, 0, 256, 256]

    def test_shaders_reach_the_buffer_where_it_lies(self) -> None:
        stream = Stream()
        target = writes_storage(stream)
        before = draw(stream)
        stream.call("vkBindBufferMemory", device=stream.device, buffer=target, memory=stream.memory(), memoryOffset=256)
        after = draw(stream)
        found = {at: [each[2] for each in seen(stream, at) if each[0] == target] for at in (before, after)}
        assert found == {before: [((0, 4),)], after: [((256, 260),)]}
