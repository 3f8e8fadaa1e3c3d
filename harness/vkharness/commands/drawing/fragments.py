"""Which fragments a draw can make, and in which stages these are tested.

Specification: "Basic Polygon Rasterization" (culling), "Stencil Test", "Fragment Operations";
rules.md#culled-polygons-make-no-fragments, rules.md#a-test-that-never-passes-discards-all,
rules.md#the-shader-decides-when-tests-happen.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from vkharness.commands.drawing import dynamic_state
from vkharness.commands.rendering.attachments import EARLY_READ, EARLY_WRITE, LATE_WRITE
from vkharness.shader.opcodes import ExecutionMode
from vkharness.spec.enums import VkCompareOp, VkCullMode, VkPrimitiveTopology, VkShaderStage
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.graphics_state import NO_FACE, DepthStencil, DrawState, GraphicsPipeline
from vkharness.trace.resources import Stage

if TYPE_CHECKING:
    from vkharness.shader.reflect import ReflectedEntryPoint

LATE_READ = ACCESS_KIND["SYNC_LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"].index

_POLYGONS = (
    VkPrimitiveTopology.TRIANGLE_LIST,
    VkPrimitiveTopology.TRIANGLE_STRIP,
    VkPrimitiveTopology.TRIANGLE_FAN,
    VkPrimitiveTopology.TRIANGLE_LIST_WITH_ADJACENCY,
    VkPrimitiveTopology.TRIANGLE_STRIP_WITH_ADJACENCY,
)
_NO_POLYGONS = {
    VkShaderStage.TESSELLATION_CONTROL: {ExecutionMode.PointMode, ExecutionMode.Isolines},
    VkShaderStage.TESSELLATION_EVALUATION: {ExecutionMode.PointMode, ExecutionMode.Isolines},
    VkShaderStage.GEOMETRY: {ExecutionMode.OutputPoints, ExecutionMode.OutputLineStrip},
    VkShaderStage.MESH_EXT: {ExecutionMode.OutputPoints, ExecutionMode.OutputLinesEXT},
}
"""The execution modes with which a stage makes points or lines."""

_GREATER = (VkCompareOp.GREATER, VkCompareOp.GREATER_OR_EQUAL)
_LESS = (VkCompareOp.LESS, VkCompareOp.LESS_OR_EQUAL)


def fragment_entry(pipeline: GraphicsPipeline) -> ReflectedEntryPoint | None:
    """The entry point of the fragment shader; None without such a shader."""
    for stage in pipeline.stages:
        if stage.stage == VkShaderStage.FRAGMENT:
            return _entry(stage)
    return None


def _entry(stage: Stage) -> ReflectedEntryPoint:
    from vkharness.shader.reflect import reflect  # a program without shaders does without it

    return reflect(stage.code, stage.entry, stage.specialization, stage.stage)


def makes_none(pipeline: GraphicsPipeline, drawing: DrawState) -> bool:
    """Whether nothing is rasterized: by rasterizer discard, or because every polygon is culled."""
    state = pipeline.state
    if dynamic_state.discards(state, drawing):
        return True
    return dynamic_state.cull_mode(state, drawing) == VkCullMode.FRONT_AND_BACK and _draws_polygons(pipeline, drawing)


def _draws_polygons(pipeline: GraphicsPipeline, drawing: DrawState) -> bool:
    """Whether the last stage before the rasterizer makes triangles. Points and lines face nowhere, and are not culled.

    The polygon mode comes after culling, and changes nothing here.
    """
    modes = {stage.stage: _entry(stage).modes for stage in pipeline.stages if stage.stage in _NO_POLYGONS}
    for last in (VkShaderStage.MESH_EXT, VkShaderStage.GEOMETRY):
        if last in modes:
            return not modes[last] & _NO_POLYGONS[last]
    if modes:  # the modes of tessellation may stand in either of its shaders
        return not any(found & _NO_POLYGONS[stage] for stage, found in modes.items())
    return dynamic_state.topology(pipeline.state, drawing) in _POLYGONS


def tests_of(pipeline: GraphicsPipeline, drawing: DrawState) -> DepthStencil:
    """The tests that apply to the fragments of a draw, without the stencil state of a face of which there are none."""
    tests = dynamic_state.depth_stencil(pipeline.state, drawing)
    if not tests.stencil_test:
        return tests
    culled = dynamic_state.cull_mode(pipeline.state, drawing)
    if not _draws_polygons(pipeline, drawing):
        culled = VkCullMode.BACK  # "the front stencil state when processing ... any other primitives"
    return replace(
        tests,
        front=NO_FACE if culled & VkCullMode.FRONT else tests.front,
        back=NO_FACE if culled & VkCullMode.BACK else tests.back,
    )


def attached_tests(tests: DepthStencil, depth: bool, stencil: bool) -> DepthStencil:
    """The tests that are not skipped, where there is a depth attachment, or a stencil attachment."""
    return replace(
        tests,
        depth_test=tests.depth_test and depth,
        depth_bounds=tests.depth_bounds and depth,
        stencil_test=tests.stencil_test and stencil,
    )


def shades_none(pipeline: GraphicsPipeline, drawing: DrawState, attached: tuple[bool, bool] | None) -> bool:
    """Whether no fragment is shaded: none is made, or no fragment passes tests that come before its shader.

    `attached` says whether there is a depth, and a stencil attachment. None where that is not known.
    """
    if makes_none(pipeline, drawing):
        return True
    if attached is None or not _is_early(fragment_entry(pipeline)):
        return False
    return not attached_tests(tests_of(pipeline, drawing), *attached).may_pass


def test_accesses(entry: ReflectedEntryPoint | None, tests: DepthStencil, stencil: bool) -> tuple[int, ...]:
    """The accesses of the depth or the stencil aspect by the tests of a draw: its reads, then its write.

    A test reads also where it writes. Where the implementation may choose the stage of a read, both stages read.
    """
    reading, writing = (
        (tests.reads_stencil, tests.writes_stencil) if stencil else (tests.reads_depth, tests.writes_depth)
    )
    early = _is_early(entry)
    write = (EARLY_WRITE if early else LATE_WRITE,) if writing else ()
    if not reading:
        return write
    if early:
        return (EARLY_READ, *write)
    if entry is None or _may_test_early(entry, tests, stencil):
        return (EARLY_READ, LATE_READ, *write)
    return (LATE_READ, *write)


def _is_early(entry: ReflectedEntryPoint | None) -> bool:
    """Whether the fragment shader comes after all tests, and after what these write."""
    if entry is None:
        return False
    if ExecutionMode.EarlyFragmentTests in entry.modes:
        return True
    replaces = entry.modes & {ExecutionMode.DepthReplacing, ExecutionMode.StencilRefReplacingEXT}
    return ExecutionMode.EarlyAndLateFragmentTestsAMD in entry.modes and not replaces


def _may_test_early(entry: ReflectedEntryPoint, tests: DepthStencil, stencil: bool) -> bool:
    """Whether a fragment may be tested before its shader runs, and again or only after it.

    A shader may be left out for a fragment that a test discards, unless the shader writes storage resources. Where it
    replaces the depth or the stencil reference, it must promise that such a test cannot discard too much.
    """
    modes = entry.modes
    if ExecutionMode.EarlyAndLateFragmentTestsAMD not in modes and any(use.writes for use in entry.uses):
        return False
    if stencil and ExecutionMode.StencilRefReplacingEXT in modes:
        return all(
            unchanged in modes
            or (less in modes and face.compare in _GREATER)
            or (greater in modes and face.compare in _LESS)
            for face, (unchanged, less, greater) in ((tests.front, _FRONT), (tests.back, _BACK))
        )
    if ExecutionMode.DepthReplacing not in modes:
        return True
    return not stencil and (
        ExecutionMode.DepthUnchanged in modes
        or (ExecutionMode.DepthLess in modes and tests.depth_compare in _GREATER)
        or (ExecutionMode.DepthGreater in modes and tests.depth_compare in _LESS)
    )


_FRONT = (
    ExecutionMode.StencilRefUnchangedFrontAMD,
    ExecutionMode.StencilRefLessFrontAMD,
    ExecutionMode.StencilRefGreaterFrontAMD,
)
_BACK = (
    ExecutionMode.StencilRefUnchangedBackAMD,
    ExecutionMode.StencilRefLessBackAMD,
    ExecutionMode.StencilRefGreaterBackAMD,
)
