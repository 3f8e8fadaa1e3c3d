"""Draws that are executed on the host, held against texels worked out by hand."""

from __future__ import annotations

import struct as packing
from typing import Any

import numpy as np
import pytest

from tests.support.drawing import (
    ALWAYS,
    GREATER,
    KEEP,
    LESS,
    REPLACE,
    SIZE,
    attribute,
    bind,
    bind_descriptors,
    bind_indices,
    bind_vertices,
    binding,
    blend,
    color_target,
    depth_target,
    depth_tests,
    draw,
    face,
    pipeline,
    vertex_input,
)
from tests.support.passes import CLEAR, LOAD, NONE_LOAD, NONE_STORE, STORE, attached, begin_rendering, rect
from tests.support.streams import COLOR, DEPTH, STENCIL, Stream, struct, words
from vkharness.computed.covered_pixels import WindowVertex, covered_by_points, covered_by_triangles
from vkharness.computed.expected_bytes import ComputedBytes, compute
from vkharness.spec.enums import VkCullMode, VkDescriptorType, VkDynamicState, VkPrimitiveTopology

BLACK = {"color": {"uint32": [0, 0, 0, 0]}}
HALF = {"color": {"uint32": [0x3F000000, 3, 0, 0]}}
FULL = "fullscreen.vert"
POINTS = VkPrimitiveTopology.POINT_LIST
STRIP = VkPrimitiveTopology.TRIANGLE_STRIP


def shape(samples: int = 1, clip: tuple[int, int, int, int] = (0, 0, *SIZE)) -> dict[str, Any]:
    """Viewport, scissor and multisample state for 8 by 8 pixels."""
    viewport = {"x": 0.0, "y": 0.0, "width": 8.0, "height": 8.0, "minDepth": 0.0, "maxDepth": 1.0}
    scissor = rect(clip[2:], clip[:2])
    return {
        "pViewportState": struct("VkPipelineViewportStateCreateInfo", pViewports=[viewport], pScissors=[scissor]),
        "pMultisampleState": struct("VkPipelineMultisampleStateCreateInfo", rasterizationSamples=samples),
    }


def made(stream: Stream, fragment: str | None = "gradient.frag", **more: Any) -> int:
    """A pipeline that draws all over, unless a vertex shader is named."""
    return pipeline(stream, fragment, **{"vertex": FULL, **shape(), **more})


def begin(stream: Stream, view: int, depth: int = 0, area: dict[str, Any] | None = None) -> None:
    """Rendering to a colour attachment of zeros, and to a depth of 0.5 and a stencil of 3."""
    both = attached(depth, CLEAR, clearValue=HALF) if depth else None
    begin_rendering(stream, area or rect(SIZE), [attached(view, CLEAR, clearValue=BLACK)], both, both)


def end(stream: Stream) -> ComputedBytes:
    """Ends rendering, submits, and returns the computed bytes."""
    stream.cmd("EndRendering")
    stream.submit()
    return compute(stream.blocks)


def texels(computed: ComputedBytes, image: int, aspect: int = COLOR) -> list[list[int | None]]:
    """The texels by row, as numbers; None where they are not known."""
    cells = computed.cells[image, (aspect, 0, 0)]
    weights = 256 ** np.arange(cells.data.shape[-1])
    values = (cells.data[0].astype(np.int64) * weights).sum(axis=-1).tolist()
    known = cells.known[0].tolist()
    return [
        [value if sure else None for value, sure in zip(*row, strict=True)] for row in zip(values, known, strict=True)
    ]


def gradient(x: int, y: int) -> int:
    """The texel that gradient.frag gives: column, row, 64 and 255."""
    return x | y << 8 | 64 << 16 | 255 << 24


def where(inside: Any) -> list[list[int]]:
    """The gradient where `inside(x, y)`, and 0 elsewhere."""
    return [[gradient(x, y) if inside(x, y) else 0 for x in range(8)] for y in range(8)]


def floats(*values: float) -> bytes:
    return packing.pack(f"<{len(values)}f", *values)


def vertices(stream: Stream, *values: float) -> int:
    """A buffer with floats that the host wrote."""
    memory = stream.memory(256)
    stream.host_write(memory, 0, floats(*values))
    return stream.buffer(256, memory)


TWO_FLOATS = vertex_input([binding()], [attribute()])
QUAD = (-1.0, -1.0, 0.0, -1.0, -1.0, 0.0, 0.0, 0.0)
"""The quarter above on the left, as a strip; the edge that its triangles share goes through centres of pixels."""


def test_a_draw_all_over_stays_in_render_area_and_scissor() -> None:
    stream = Stream()
    image, view = color_target(stream)
    stream.begin()
    begin(stream, view, area=rect((6, 8)))
    bind(stream, made(stream, **shape(clip=(1, 2, 7, 3))))
    draw(stream)
    computed = end(stream)
    expected = where(lambda x, y: 1 <= x < 6 and 2 <= y < 5)
    assert [row[:6] for row in texels(computed, image)] == [row[:6] for row in expected]
    assert not computed.reasons


def test_triangles_that_share_an_edge_cover_what_lies_on_it() -> None:
    stream = Stream()
    image, view = color_target(stream)
    buffer = vertices(stream, *QUAD)
    stream.begin()
    begin(stream, view)
    bind(stream, made(stream, vertex="vertex_position.vert", input=TWO_FLOATS, topology=STRIP))
    bind_vertices(stream, buffer)
    draw(stream, 4)
    assert texels(end(stream), image) == where(lambda x, y: x < 4 and y < 4)


def test_what_lies_on_an_edge_alone_is_unknown() -> None:
    stream = Stream()
    image, view = color_target(stream)
    buffer = vertices(stream, *QUAD[:6])
    stream.begin()
    begin(stream, view)
    bind(stream, made(stream, vertex="vertex_position.vert", input=TWO_FLOATS))
    bind_vertices(stream, buffer)
    draw(stream)
    on_edge = [(x, 3 - x) for x in range(4)]
    below = where(lambda x, y: x + y < 3)
    computed = end(stream)
    assert texels(computed, image) == [[None if (x, y) in on_edge else below[y][x] for x in range(8)] for y in range(8)]
    assert list(computed.reasons) == ["vkCmdDraw: whether a primitive covers a pixel at its edge is left open"]


@pytest.mark.parametrize(("cull", "shown"), [(VkCullMode.FRONT, True), (VkCullMode.BACK, False)])
def test_a_face_is_culled_as_it_turns(cull: int, shown: bool) -> None:
    """fullscreen.vert turns clockwise, which is the back where counter-clockwise is the front."""
    stream = Stream()
    image, view = color_target(stream)
    stream.begin()
    begin(stream, view)
    bind(stream, made(stream, cull=cull))
    draw(stream)
    assert texels(end(stream), image) == where(lambda x, y: shown)


def test_points_lie_at_the_indices_of_vertices() -> None:
    stream = Stream()
    image, view = color_target(stream)
    memory = stream.memory(256)
    stream.host_write(memory, 0, packing.pack("<3H", 0, 1, 16))
    indices = stream.buffer(256, memory)
    stream.begin()
    begin(stream, view)
    viewport = {"x": 0.0, "y": 0.0, "width": 16.0, "height": 16.0, "minDepth": 0.0, "maxDepth": 1.0}
    large = struct("VkPipelineViewportStateCreateInfo", pViewports=[viewport], pScissors=[rect(SIZE)])
    points = {**shape(), "pViewportState": large}
    bind(stream, pipeline(stream, "gradient.frag", vertex="point_by_index.vert", topology=POINTS, **points))
    bind_indices(stream, indices)
    stream.cmd("DrawIndexed", indexCount=3, instanceCount=1, firstIndex=0, vertexOffset=1, firstInstance=0)
    assert texels(end(stream), image) == where(lambda x, y: (x, y) in ((1, 0), (2, 0), (1, 1)))


def test_parameters_come_from_buffers_and_may_be_unknown() -> None:
    stream = Stream()
    image, view = color_target(stream)
    memory = stream.memory(256)
    stream.host_write(memory, 0, words(3, 0, 0, 0))
    parameters = stream.buffer(256, memory)
    stream.begin()
    begin(stream, view)
    bind(stream, made(stream))
    stream.cmd("DrawIndirect", buffer=parameters, offset=0, drawCount=1, stride=16)
    assert texels(end(stream), image) == where(lambda x, y: False)


@pytest.mark.parametrize(("compare", "passes"), [(LESS, True), (GREATER, False), (ALWAYS, True)])
def test_depth_and_stencil_are_tested_and_written(compare: int, passes: bool) -> None:
    """The depth of fullscreen.vert is 0, against 0.5."""
    stream = Stream()
    (image, view), (deep, depth_view) = color_target(stream), depth_target(stream)
    stencil = {**face(fail=KEEP, passed=REPLACE, depth_fail=KEEP, compare=ALWAYS), "reference": 9}
    tests = depth_tests(depth=True, write=True, compare=compare, stencil=stencil, back={**stencil, "writeMask": 0x0A})
    stream.begin()
    begin(stream, view, depth_view)
    bind(stream, made(stream, depth_stencil=tests))
    draw(stream)
    computed = end(stream)
    assert texels(computed, image) == where(lambda x, y: passes)
    assert texels(computed, deep, DEPTH) == [[0 if passes else 0x3F000000] * 8] * 8
    assert texels(computed, deep, STENCIL) == [[3 & ~0x0A | 9 & 0x0A if passes else 3] * 8] * 8


def test_dynamic_state_takes_the_place_of_the_pipelines() -> None:
    stream = Stream()
    (image, view), (_, depth_view) = color_target(stream), depth_target(stream)
    stream.begin()
    begin(stream, view, depth_view)
    tests = depth_tests(depth=True, compare=GREATER)
    bind(stream, made(stream, depth_stencil=tests, dynamic=[VkDynamicState.DEPTH_COMPARE_OP]))
    stream.cmd("SetDepthCompareOp", depthCompareOp=LESS)
    draw(stream)
    assert texels(end(stream), image) == where(lambda x, y: True)


def test_blending_adds_and_masks_keep_components() -> None:
    stream = Stream()
    image, view = color_target(stream)
    stream.begin()
    begin(stream, view)
    bind(stream, made(stream))
    draw(stream)
    bind(stream, made(stream, colors=[blend(write=0b1101, enable=True)]))
    draw(stream)
    red, kept = 2, 1
    assert texels(end(stream), image) == [
        [x * red | y * kept << 8 | 128 << 16 | 255 << 24 for x in range(8)] for y in range(8)
    ]


def test_a_fragment_shader_stores_once_for_each_pixel_that_is_covered() -> None:
    stream = Stream()
    image, view = color_target(stream)
    buffer, target = vertices(stream, *QUAD), stream.buffer(32)
    stream.begin()
    stream.fill(target, 1)
    begin(stream, view)
    bind(
        stream,
        made(stream, "store_columns.frag", vertex="vertex_position.vert", input=TWO_FLOATS, topology=STRIP, colors=()),
    )
    bind_descriptors(stream, (7, target))
    bind_vertices(stream, buffer)
    draw(stream, 4)
    computed = end(stream)
    cells = computed.cells[target, None]
    assert cells.data.view("<u4").tolist() == [9] * 4 + [1] * 4
    assert cells.known.all()
    assert texels(computed, image) == where(lambda x, y: False)


def test_an_unknown_texel_makes_its_pixel_unknown_and_no_other() -> None:
    stream = Stream()
    (source, source_view), (image, view) = color_target(stream), color_target(stream)
    stream.begin()
    begin(stream, source_view, area=rect((2, 8)))
    bind(stream, made(stream))
    draw(stream)
    stream.cmd("EndRendering")
    begin(stream, view)
    bind(stream, made(stream, "sample_color.frag"))
    bind_descriptors(stream, (1, source_view))
    draw(stream)
    known = [[gradient(x, y) if x < 2 else None for x in range(8)] for y in range(8)]
    assert texels(end(stream), image) == known
    assert source != image


def test_a_draw_that_is_not_followed_makes_unknown_what_it_may_write() -> None:
    stream = Stream()
    image, view = color_target(stream)
    stream.begin()
    begin(stream, view)
    bind(stream, made(stream, topology=VkPrimitiveTopology.LINE_LIST))
    draw(stream)
    computed = end(stream)
    assert texels(computed, image) == [[None] * 8] * 8
    assert list(computed.reasons) == ["vkCmdDraw: lines are not followed"]


def test_pixels_of_several_samples_are_covered_as_a_whole_or_open() -> None:
    corners = [WindowVertex(x, y, 0.0, True) for x, y in ((0.0, 0.0), (4.0, 0.0), (0.0, 4.0), (4.0, 4.0))]
    first, second = (corners[0], corners[1], corners[2]), (corners[1], corners[3], corners[2])
    [alone] = covered_by_triangles([first], (0, 0, 4, 4), 4)
    assert alone.covered.tolist() == [[x + y < 3 for x in range(4)] for y in range(4)]
    assert alone.open.tolist() == [[x + y == 3 for x in range(4)] for y in range(4)]
    both = covered_by_triangles([first, second], (0, 0, 4, 4), 4)
    assert (both[0].covered ^ both[1].covered).all()
    assert not (both[0].open | both[1].open).any()


def test_a_vertex_beside_the_grid_leaves_a_margin() -> None:
    [point] = covered_by_points([(WindowVertex(1.5, 1.5, 0.0, False), 1.0)], (0, 0, 3, 3), 1)
    assert point.covered.tolist() == [[False] * 3, [False, True, False], [False] * 3]
    assert not point.open.any()
    [off] = covered_by_points([(WindowVertex(1.9375, 1.5, 0.0, False), 1.0)], (0, 0, 3, 3), 1)
    assert off.open.tolist()[1] == [False, True, True]


def test_load_keeps_what_a_draw_left() -> None:
    stream = Stream()
    image, view = color_target(stream)
    stream.begin()
    begin(stream, view)
    bind(stream, made(stream))
    draw(stream)
    stream.cmd("EndRendering")
    begin_rendering(stream, rect(SIZE), [attached(view, LOAD)])
    assert texels(end(stream), image) == where(lambda x, y: True)


@pytest.mark.parametrize("is_undefined", [True, False])
def test_what_a_test_against_undefined_depth_leaves_is_undefined(is_undefined: bool) -> None:
    """With the load operation NONE and the store operation NONE, depth is undefined inside of the instance."""
    stream = Stream()
    (image, view), (deep, depth_view) = color_target(stream), depth_target(stream)
    operations = (NONE_LOAD, NONE_STORE) if is_undefined else (LOAD, STORE)
    stream.begin()
    stream.clear_depth(deep, 0.5, 3, DEPTH | STENCIL)
    attachment = attached(depth_view, *operations)
    begin_rendering(stream, rect(SIZE), [attached(view, CLEAR, clearValue=BLACK)], attachment, None)
    bind(stream, made(stream, depth_stencil=depth_tests(depth=True, write=False, compare=LESS)))
    draw(stream)
    computed = end(stream)
    assert texels(computed, image) == ([[None] * 8] * 8 if is_undefined else where(lambda x, y: True))
    assert computed.undefined.get((image, (COLOR, 0, 0)), np.zeros(1)).all() == is_undefined


@pytest.mark.parametrize(("number", "texel"), [(0.2, 51), (0.5, None)])
def test_a_colour_between_two_values_of_its_format_is_told(number: float, texel: int | None) -> None:
    """The fragments of this shader give the same everywhere: they are executed once for all of them."""
    stream = Stream()
    image, view = color_target(stream)
    color = vertices(stream, number, number, number, number)
    stream.begin()
    begin(stream, view)
    bind(stream, made(stream, "uniform_color.frag"))
    bind_descriptors(stream, (VkDescriptorType.UNIFORM_BUFFER, color))
    draw(stream)
    computed = end(stream)
    told = "vkCmdDraw: a float lies between two normalized values; its rounding is not defined"
    assert texels(computed, image) == [[None if texel is None else texel * 0x01010101] * 8] * 8
    assert list(computed.reasons) == ([told] if texel is None else [])
