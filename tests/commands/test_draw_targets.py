"""Accesses of attachments by draws, by pipeline and dynamic state; secondaries."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import drawing, passes
from tests.support.drawing import (
    ALWAYS,
    DEPTH_SPANS,
    GREATER,
    KEEP,
    LESS,
    NEVER,
    REPLACE,
    STENCIL_SPANS,
    WHOLE_COLOR,
    accesses,
    blend,
    declares,
    depth_tests,
    draw,
    face,
    seen,
)
from tests.support.streams import Stream, struct
from vkharness.spec._generated import ENUMS
from vkharness.spec.enums import VkBlendFactor, VkBlendOp, VkPrimitiveTopology, VkStencilFace
from vkharness.trace.attachment_operations import RasterizationOrder

COLOR_READ = "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_READ"
COLOR_WRITE = "COLOR_ATTACHMENT_OUTPUT_COLOR_ATTACHMENT_WRITE"
EARLY_READ = "EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"
LATE_READ = "LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_READ"
LATE_WRITE = "LATE_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE"
INPUT_READ = "FRAGMENT_SHADER_INPUT_ATTACHMENT_READ"
EARLY_WRITE = "EARLY_FRAGMENT_TESTS_DEPTH_STENCIL_ATTACHMENT_WRITE"
FRONT, BACK, BOTH = VkStencilFace.FRONT, VkStencilFace.BACK, VkStencilFace.FRONT_AND_BACK
TRIANGLES, LINES = VkPrimitiveTopology.TRIANGLE_LIST, VkPrimitiveTopology.LINE_LIST
STATES = {name.removeprefix("VK_DYNAMIC_STATE_"): value for name, value in ENUMS["VkDynamicState"].items()}
ZERO = VkBlendFactor.ZERO
ONE = VkBlendFactor.ONE
SRC_ALPHA = VkBlendFactor.SRC_ALPHA
DST_COLOR = VkBlendFactor.DST_COLOR
MAX = VkBlendOp.MAX


def color_draw(stream: Stream, **more: Any) -> tuple[int, int]:
    """(image, draw) of a draw to one colour attachment."""
    image, view = drawing.color_target(stream)
    made = drawing.pipeline(stream, vertex="fullscreen.vert", **more)
    stream.begin()
    drawing.render(stream, view)
    drawing.bind(stream, made)
    return image, draw(stream)


class TestColors:
    def test_a_written_location_is_an_ordered_write_of_its_attachment(self) -> None:
        stream = Stream()
        image, index = color_draw(stream)
        assert seen(stream, index) == [(image, COLOR_WRITE, WHOLE_COLOR)]
        assert [each.order for each in accesses(stream, index)] == [RasterizationOrder.COLOR]

    def test_only_locations_that_the_shader_writes_count(self) -> None:
        stream = Stream()
        targets = [drawing.color_target(stream) for _ in range(4)]
        made = drawing.pipeline(stream, "early_tests.frag", vertex="fullscreen.vert", colors=[blend()] * 4)
        stream.begin()
        drawing.render(stream, *(view for _, view in targets[:3]), None)
        drawing.bind(stream, made)
        assert seen(stream, draw(stream)) == [(targets[1][0], COLOR_WRITE, WHOLE_COLOR)]

    @pytest.mark.parametrize(
        "more", [{"colors": [blend(write=0)]}, {"colors": []}, {"discard": True}, {"cull": BOTH}, {"formats": [0]}]
    )
    def test_what_is_masked_absent_or_discarded_is_not_written(self, more: dict[str, Any]) -> None:
        stream = Stream()
        _, index = color_draw(stream, **more)
        assert seen(stream, index) == []

    def test_without_a_fragment_shader_undefined_values_may_be_written(self) -> None:
        stream = Stream()
        image, index = color_draw(stream, fragment=None)
        assert seen(stream, index) == [(image, COLOR_WRITE, WHOLE_COLOR)]

    def test_an_output_that_is_declared_and_never_written_counts(self) -> None:
        stream = Stream()
        targets = [drawing.color_target(stream) for _ in range(3)]
        made = drawing.pipeline(stream, declares(0, 2), vertex="fullscreen.vert", colors=[blend()] * 3)
        stream.begin()
        drawing.render(stream, *(view for _, view in targets))
        drawing.bind(stream, made)
        written = [(targets[at][0], COLOR_WRITE, WHOLE_COLOR) for at in (0, 2)]
        assert seen(stream, draw(stream)) == written

    def test_writes_are_limited_to_the_render_area_and_its_layers(self) -> None:
        stream = Stream()
        image, view = drawing.color_target(stream, array=3)
        made = drawing.pipeline(stream, vertex="fullscreen.vert")
        stream.begin()
        drawing.render(stream, view, area=passes.rect((2, 2), (4, 1)), layers=1, views=0b110)
        drawing.bind(stream, made)
        rows = tuple((layer * 64 + row * 8 + 4, layer * 64 + row * 8 + 6) for layer in (1, 2) for row in (1, 2))
        assert seen(stream, draw(stream)) == [(image, COLOR_WRITE, rows)]

    @pytest.mark.parametrize(
        ("factors", "op", "reads"),
        [((ONE, ONE), 0, True), ((SRC_ALPHA, ZERO), 0, False), ((DST_COLOR, ZERO), 0, True), ((ONE, ZERO), MAX, True)],
    )
    def test_blending_reads_where_the_stored_value_counts(self, factors: tuple[int, int], op: int, reads: bool) -> None:
        stream = Stream()
        image, index = color_draw(stream, colors=[blend(enable=True, factors=factors, op=op)])
        read = [(image, COLOR_READ, WHOLE_COLOR)] if reads else []
        assert seen(stream, index) == [*read, (image, COLOR_WRITE, WHOLE_COLOR)]
        assert drawing.unrecorded(stream, index) == [*[True for _ in read], False]

    @pytest.mark.parametrize(("operation", "reads"), [(3, False), (6, True)])
    def test_logical_operations_replace_blending(self, operation: int, reads: bool) -> None:
        stream = Stream()
        image, index = color_draw(stream, logic=operation, colors=[blend(enable=True)])
        assert [each[1] for each in seen(stream, index)] == ([COLOR_READ] if reads else []) + [COLOR_WRITE]
        assert image

    def test_a_draw_outside_rendering_is_named(self) -> None:
        stream = Stream()
        made = drawing.pipeline(stream, vertex="fullscreen.vert")
        stream.begin()
        drawing.bind(stream, made)
        assert drawing.unmodelled(stream, draw(stream)) == ["a draw outside a render pass instance that was seen"]


class TestDynamicColors:
    @pytest.mark.parametrize(
        ("state", "command", "values", "expected"),
        [
            ("COLOR_WRITE_ENABLE_EXT", "SetColorWriteEnableEXT", {"pColorWriteEnables": [0]}, []),
            ("COLOR_WRITE_MASK_EXT", "SetColorWriteMaskEXT", {"pColorWriteMasks": [0]}, []),
            ("COLOR_WRITE_MASK_EXT", "SetColorWriteMaskEXT", {"pColorWriteMasks": [1]}, [COLOR_WRITE]),
            (
                "COLOR_BLEND_ENABLE_EXT",
                "SetColorBlendEnableEXT",
                {"pColorBlendEnables": [1]},
                [COLOR_READ, COLOR_WRITE],
            ),
            ("RASTERIZER_DISCARD_ENABLE", "SetRasterizerDiscardEnable", {"rasterizerDiscardEnable": 1}, []),
        ],
    )
    def test_a_dynamic_state_counts_and_a_static_one_stays(
        self, state: str, command: str, values: dict[str, Any], expected: list[str]
    ) -> None:
        stream = Stream()
        _, view = drawing.color_target(stream)
        static = drawing.pipeline(stream, vertex="fullscreen.vert")
        made = drawing.pipeline(stream, vertex="fullscreen.vert", dynamic=[STATES[state]])
        stream.begin()
        drawing.render(stream, view)
        drawing.bind(stream, static)
        stream.cmd(command, **values)
        before = draw(stream)
        drawing.bind(stream, made)
        after = draw(stream)
        assert [each[1] for each in seen(stream, before)] == [COLOR_WRITE]
        assert [each[1] for each in seen(stream, after)] == expected

    def test_an_equation_set_by_a_command(self) -> None:
        stream = Stream()
        _, view = drawing.color_target(stream)
        dynamic = [STATES["COLOR_BLEND_EQUATION_EXT"], STATES["COLOR_BLEND_ADVANCED_EXT"]]
        made = drawing.pipeline(stream, vertex="fullscreen.vert", colors=[blend(enable=True)], dynamic=dynamic)
        stream.begin()
        drawing.render(stream, view)
        drawing.bind(stream, made)
        stream.cmd("SetColorBlendAdvancedEXT", pColorBlendAdvanced=[struct("VkColorBlendAdvancedEXT")])
        advanced = draw(stream)
        equation = struct("VkColorBlendEquationEXT", srcColorBlendFactor=ONE, srcAlphaBlendFactor=ONE)
        stream.cmd("SetColorBlendEquationEXT", pColorBlendEquations=[equation])
        plain = draw(stream)
        assert [each[1] for each in seen(stream, advanced)] == [COLOR_READ, COLOR_WRITE]
        assert [each[1] for each in seen(stream, plain)] == [COLOR_WRITE]

    def test_a_logical_operation_set_by_a_command(self) -> None:
        stream = Stream()
        _, view = drawing.color_target(stream)
        dynamic = [STATES["LOGIC_OP_ENABLE_EXT"], STATES["LOGIC_OP_EXT"]]
        made = drawing.pipeline(stream, vertex="fullscreen.vert", dynamic=dynamic)
        stream.begin()
        drawing.render(stream, view)
        drawing.bind(stream, made)
        found = []
        for enabled, operation in ((1, 6), (1, 3), (0, 6)):
            stream.cmd("SetLogicOpEnableEXT", logicOpEnable=enabled)
            stream.cmd("SetLogicOpEXT", logicOp=operation)
            found.append(draw(stream))
        assert [len(seen(stream, each)) for each in found] == [2, 1, 1]


def tested_draw(
    stream: Stream, state: dict[str, Any], fragment: str | bytes | None = None, **more: Any
) -> tuple[int, int]:
    """(image, draw) of a draw with depth and stencil attached."""
    image, view = drawing.depth_target(stream)
    made = drawing.pipeline(stream, fragment, vertex="fullscreen.vert", colors=None, depth_stencil=state, **more)
    stream.begin()
    drawing.render(stream, depth=view)
    drawing.bind(stream, made)
    return image, draw(stream)


class TestDepth:
    @pytest.mark.parametrize(
        ("state", "expected"),
        [
            (depth_tests(), []),
            (depth_tests(write=True), []),
            (depth_tests(depth=True, write=True), [EARLY_READ, LATE_READ, LATE_WRITE]),
            (depth_tests(depth=True, write=True, compare=ALWAYS), [LATE_WRITE]),
            (depth_tests(depth=True, write=True, compare=NEVER), []),
            (depth_tests(depth=True), [EARLY_READ, LATE_READ]),
            (depth_tests(depth=True, compare=ALWAYS), []),
            (depth_tests(depth=True, compare=NEVER), []),
            (depth_tests(depthBoundsTestEnable=1), [EARLY_READ, LATE_READ]),
        ],
    )
    def test_depth(self, state: dict[str, Any], expected: list[str]) -> None:
        stream = Stream()
        image, index = tested_draw(stream, state)
        assert seen(stream, index) == [(image, each, DEPTH_SPANS) for each in expected]
        found = accesses(stream, index)
        assert [each.order for each in found] == [RasterizationOrder.DEPTH_STENCIL] * len(expected)
        assert drawing.unrecorded(stream, index) == [each != LATE_WRITE for each in expected]

    @pytest.mark.parametrize(
        ("modes", "compare", "reads", "write"),
        [
            ((), LESS, [EARLY_READ, LATE_READ], LATE_WRITE),
            (("EarlyFragmentTests",), LESS, [EARLY_READ], EARLY_WRITE),
            (("EarlyFragmentTests", "DepthReplacing"), LESS, [EARLY_READ], EARLY_WRITE),
            (("EarlyAndLateFragmentTestsAMD",), LESS, [EARLY_READ], EARLY_WRITE),
            (("DepthReplacing",), LESS, [LATE_READ], LATE_WRITE),
            (("DepthReplacing", "DepthUnchanged"), LESS, [EARLY_READ, LATE_READ], LATE_WRITE),
            (("DepthReplacing", "DepthGreater"), LESS, [EARLY_READ, LATE_READ], LATE_WRITE),
            (("DepthReplacing", "DepthLess"), LESS, [LATE_READ], LATE_WRITE),
            (("DepthReplacing", "DepthLess"), GREATER, [EARLY_READ, LATE_READ], LATE_WRITE),
            (("EarlyAndLateFragmentTestsAMD", "DepthReplacing"), LESS, [LATE_READ], LATE_WRITE),
        ],
    )
    @pytest.mark.parametrize("writes", [False, True])
    def test_the_fragment_shader_may_say_when_tests_happen(
        self, modes: tuple[str, ...], compare: int, reads: list[str], write: str, writes: bool
    ) -> None:
        stream = Stream()
        state = depth_tests(depth=True, write=writes, compare=compare)
        _, index = tested_draw(stream, state, declares(modes=modes))
        assert [each[1] for each in seen(stream, index)] == [*reads, *([write] if writes else [])]

    def test_a_shader_that_stores_runs_before_the_tests(self) -> None:
        stream = Stream()
        _, index = tested_draw(stream, depth_tests(depth=True), "store_columns.frag")
        assert [each[1] for each in seen(stream, index)] == [LATE_READ]

    def test_nothing_is_tested_where_nothing_is_rasterized(self) -> None:
        stream = Stream()
        _, index = tested_draw(stream, depth_tests(depth=True, write=True), discard=True)
        assert seen(stream, index) == []


class TestStencil:
    @pytest.mark.parametrize(
        ("front", "depth", "writes"),
        [
            (face(), False, False),
            (face(passed=REPLACE), False, True),
            (face(passed=REPLACE, write=0), False, False),
            (face(passed=REPLACE, compare=NEVER), False, False),
            (face(fail=REPLACE), False, True),
            (face(fail=REPLACE, compare=ALWAYS), False, False),
            (face(depth_fail=REPLACE), False, False),
            (face(depth_fail=REPLACE), True, False),
            (face(passed=REPLACE), True, True),
        ],
    )
    @pytest.mark.parametrize("back", [False, True])
    def test_stencil_is_written_where_an_outcome_may_change_it(
        self, front: dict[str, Any], depth: bool, writes: bool, back: bool
    ) -> None:
        stream = Stream()
        faces = (face(), front) if back else (front, face())
        state = depth_tests(depth, compare=ALWAYS, stencil=front, front=faces[0], back=faces[1])
        image, index = tested_draw(stream, state)
        expected = [EARLY_READ, LATE_READ, *([LATE_WRITE] if writes else [])]
        assert seen(stream, index) == [(image, each, STENCIL_SPANS) for each in expected]

    @pytest.mark.parametrize("compare", [ALWAYS, NEVER])
    def test_a_test_that_does_not_compare_and_changes_nothing_reads_nothing(self, compare: int) -> None:
        stream = Stream()
        plain = face(compare=compare)
        _, index = tested_draw(stream, depth_tests(stencil=plain, back=plain))
        assert seen(stream, index) == []


DYNAMIC_TESTS = [
    STATES[name]
    for name in (
        "DEPTH_TEST_ENABLE",
        "DEPTH_WRITE_ENABLE",
        "DEPTH_COMPARE_OP",
        "DEPTH_BOUNDS_TEST_ENABLE",
        "STENCIL_TEST_ENABLE",
        "STENCIL_OP",
        "STENCIL_WRITE_MASK",
        "STENCIL_COMPARE_MASK",
    )
]


class TestDynamicTests:
    def dynamic_draws(self, *steps: list[tuple[str, dict[str, Any]]]) -> list[list[tuple[str, Any]]]:
        """(access, spans) of a draw after each step of commands."""
        stream = Stream()
        _, view = drawing.depth_target(stream)
        made = drawing.pipeline(
            stream, None, vertex="fullscreen.vert", colors=None, depth_stencil=depth_tests(), dynamic=DYNAMIC_TESTS
        )
        stream.begin()
        drawing.render(stream, depth=view)
        drawing.bind(stream, made)
        found = []
        for step in steps:
            for name, values in step:
                stream.cmd(name, **values)
            found.append(draw(stream))
        return [[each[1:] for each in seen(stream, index)] for index in found]

    def test_depth(self) -> None:
        on, written = (
            ("SetDepthTestEnable", {"depthTestEnable": 1}),
            ("SetDepthWriteEnableEXT", {"depthWriteEnable": 1}),
        )
        found = self.dynamic_draws(
            [on, ("SetDepthCompareOp", {"depthCompareOp": LESS})],
            [written],
            [("SetDepthTestEnableEXT", {"depthTestEnable": 0})],
            [("SetDepthBoundsTestEnable", {"depthBoundsTestEnable": 1})],
        )
        reads = [(EARLY_READ, DEPTH_SPANS), (LATE_READ, DEPTH_SPANS)]
        assert found == [reads, [*reads, (LATE_WRITE, DEPTH_SPANS)], [], reads]

    def test_stencil(self) -> None:
        def operations(faces: int, passed: int, compare: int) -> tuple[str, dict[str, Any]]:
            values = {"faceMask": faces, "failOp": KEEP, "passOp": passed, "depthFailOp": KEEP, "compareOp": compare}
            return "SetStencilOp", values

        reads = [(EARLY_READ, STENCIL_SPANS), (LATE_READ, STENCIL_SPANS)]
        found = self.dynamic_draws(
            [("SetStencilTestEnable", {"stencilTestEnable": 1}), operations(BOTH, KEEP, LESS)],
            [("SetStencilCompareMask", {"faceMask": FRONT, "compareMask": 0})],
            [("SetStencilCompareMask", {"faceMask": BACK, "compareMask": 0})],
            [operations(BACK, REPLACE, ALWAYS), ("SetStencilWriteMask", {"faceMask": BACK, "writeMask": 255})],
            [("SetStencilWriteMask", {"faceMask": BACK, "writeMask": 1})],
            [("SetStencilWriteMask", {"faceMask": BOTH, "writeMask": 0})],
        )
        write = (LATE_WRITE, STENCIL_SPANS)
        assert found == [reads, reads, [], [write], [*reads, write], []]


class TestNoFragmentPasses:
    """A test that is never passed discards each fragment, before anything that comes after the test."""

    @pytest.mark.parametrize(
        ("state", "expected"),
        [
            (depth_tests(depth=True, write=True, compare=NEVER), []),
            (depth_tests(depth=True, write=True), [EARLY_READ, LATE_READ, LATE_WRITE, COLOR_WRITE]),
            (depth_tests(depthBoundsTestEnable=1, depth=True, compare=NEVER), [EARLY_READ, LATE_READ]),
            (depth_tests(True, True, stencil=face(compare=NEVER), back=face(compare=NEVER)), []),
            (depth_tests(True, True, NEVER, stencil=face(compare=NEVER), back=face(compare=NEVER)), []),
            (depth_tests(stencil=face(fail=REPLACE, compare=NEVER), back=face(compare=NEVER)), [LATE_WRITE]),
            (depth_tests(stencil=face(compare=NEVER), back=face(compare=ALWAYS)), [COLOR_WRITE]),
        ],
    )
    def test_what_is_left_of_a_draw(self, state: dict[str, Any], expected: list[str]) -> None:
        stream = Stream()
        _, color = drawing.color_target(stream)
        _, depth = drawing.depth_target(stream)
        made = drawing.pipeline(stream, vertex="fullscreen.vert", depth_stencil=state)
        stream.begin()
        drawing.render(stream, color, depth=depth)
        drawing.bind(stream, made)
        assert sorted(each[1] for each in seen(stream, draw(stream))) == sorted(expected)

    @pytest.mark.parametrize("stencil", [False, True])
    def test_a_test_without_its_attachment_is_skipped(self, stencil: bool) -> None:
        stream = Stream()
        never = face(compare=NEVER)
        state = depth_tests(stencil=never, back=never) if stencil else depth_tests(depth=True, compare=NEVER)
        image, index = color_draw(stream, depth_stencil=state)
        assert seen(stream, index) == [(image, COLOR_WRITE, WHOLE_COLOR)]

    @pytest.mark.parametrize(
        ("depth", "passed", "writes"),
        [
            (NEVER, {"passed": REPLACE}, False),
            (NEVER, {"depth_fail": REPLACE}, True),
            (ALWAYS, {"depth_fail": REPLACE}, False),
            (LESS, {"depth_fail": REPLACE}, True),
            (LESS, {"passed": REPLACE}, True),
        ],
    )
    def test_a_failed_depth_test_takes_the_place_of_a_passed_one(
        self, depth: int, passed: dict[str, int], writes: bool
    ) -> None:
        stream = Stream()
        both = face(compare=ALWAYS, **passed)
        image, index = tested_draw(stream, depth_tests(True, compare=depth, stencil=both, back=both))
        assert ((image, LATE_WRITE, STENCIL_SPANS) in seen(stream, index)) is writes

    @pytest.mark.parametrize(
        ("fragment", "attached", "runs"),
        [("early_tests.frag", True, False), ("early_tests.frag", False, True), ("store_columns.frag", True, True)],
    )
    def test_a_shader_runs_unless_it_comes_after_the_tests(self, fragment: str, attached: bool, runs: bool) -> None:
        stream = Stream()
        depth: dict[str, Any] = {"depth": drawing.depth_target(stream)[1]} if attached else {}
        storage = stream.buffer(64)
        never = depth_tests(depth=True, compare=NEVER)
        made = drawing.pipeline(stream, fragment, vertex="fullscreen.vert", colors=None, depth_stencil=never)
        stream.begin()
        drawing.render(stream, **depth)
        drawing.bind(stream, made)
        drawing.bind_descriptors(stream, (7, storage))
        assert [each[0] for each in seen(stream, draw(stream))] == ([storage] if runs else [])


class TestCulling:
    """The rest of a draw whose polygons are culled."""

    @pytest.mark.parametrize("topology", list(range(11)))
    def test_polygons_are_culled_and_points_and_lines_are_not(self, topology: int) -> None:
        stream = Stream()
        _, index = tested_draw(stream, depth_tests(depth=True, write=True), cull=BOTH, topology=topology)
        lines = topology in (0, 1, 2, 6, 7, 10)
        assert bool(seen(stream, index)) is lines

    @pytest.mark.parametrize(
        ("stage", "modes", "polygons"),
        [
            (0x8, "OutputTriangleStrip", True),
            (0x8, "OutputLineStrip", False),
            (0x8, "OutputPoints", False),
            (0x4, "Triangles", True),
            (0x4, "Isolines", False),
            (0x4, "Triangles PointMode", False),
            (0x80, "OutputTrianglesEXT", True),
            (0x80, "OutputLinesEXT", False),
            (0x80, "OutputPoints", False),
        ],
    )
    def test_the_last_stage_before_the_rasterizer_decides(self, stage: int, modes: str, polygons: bool) -> None:
        stream = Stream()
        made = drawing.stage(stream, drawing.reads_uniform_writes_storage(stage, modes), stage)
        _, index = tested_draw(stream, depth_tests(depth=True), cull=BOTH, stages=[made])
        assert bool(seen(stream, index)) is not polygons

    @pytest.mark.parametrize(
        ("cull", "topology", "used"),
        [
            (0, TRIANGLES, (True, True)),
            (FRONT, TRIANGLES, (False, True)),
            (BACK, TRIANGLES, (True, False)),
            (0, LINES, (True, False)),
            (FRONT, LINES, (True, False)),
            (BOTH, LINES, (True, False)),
        ],
    )
    def test_only_faces_that_are_rasterized_have_a_stencil_test(
        self, cull: int, topology: int, used: tuple[bool, bool]
    ) -> None:
        found = []
        for written in (0, 1):
            stream = Stream()
            keeps, replaces = face(compare=ALWAYS), face(passed=REPLACE, compare=ALWAYS)
            faces = (replaces, keeps) if written == 0 else (keeps, replaces)
            state = depth_tests(stencil=faces[0], back=faces[1])
            _, index = tested_draw(stream, state, cull=cull, topology=topology)
            found.append([each[1] for each in seen(stream, index)] == [LATE_WRITE])
        assert tuple(found) == used

    def test_cull_mode_and_topology_may_be_dynamic(self) -> None:
        stream = Stream()
        _, view = drawing.color_target(stream)
        dynamic = [STATES["CULL_MODE"], STATES["PRIMITIVE_TOPOLOGY"]]
        made = drawing.pipeline(stream, vertex="fullscreen.vert", dynamic=dynamic)
        stream.begin()
        drawing.render(stream, view)
        drawing.bind(stream, made)
        found = []
        for cull, topology in ((FRONT, TRIANGLES), (BOTH, TRIANGLES), (BOTH, LINES), (BACK, TRIANGLES)):
            stream.cmd("SetCullMode", cullMode=cull)
            stream.cmd("SetPrimitiveTopologyEXT", primitiveTopology=topology)
            found.append(draw(stream))
        assert [len(seen(stream, each)) for each in found] == [1, 0, 1, 1]

    def test_a_culled_draw_reads_its_vertices_and_runs_no_fragment_shader(self) -> None:
        stream = Stream()
        vertices, storage = stream.buffer(64), stream.buffer(64)
        _, view = drawing.color_target(stream)
        given = drawing.vertex_input([drawing.binding()], [drawing.attribute()])
        made = drawing.pipeline(stream, "early_tests.frag", input=given, cull=BOTH)
        stream.begin()
        drawing.render(stream, view)
        drawing.bind(stream, made)
        drawing.bind_vertices(stream, vertices)
        drawing.bind_descriptors(stream, (7, storage))
        read = (vertices, "VERTEX_ATTRIBUTE_INPUT_VERTEX_ATTRIBUTE_READ", ((0, 24),))
        assert seen(stream, draw(stream)) == [read]


class TestInputAttachments:
    def test_a_fragment_shader_reads_the_render_area_in_raster_order(self) -> None:
        stream = Stream()
        source, source_view = drawing.color_target(stream)
        target, view = drawing.color_target(stream)
        made = drawing.pipeline(stream, "invert_input.frag", vertex="fullscreen.vert")
        passed = passes.render_pass(
            stream,
            [passes.described(), passes.described()],
            [passes.subpass([passes.refer(1)], inputs=[passes.refer(0, passes.READ_ONLY, 1)])],
        )
        frame = passes.framebuffer(stream, passed, [source_view, view], (8, 8))
        stream.begin()
        passes.begin_pass(stream, passed, frame, passes.rect((8, 2), (0, 3)))
        drawing.bind(stream, made)
        drawing.bind_descriptors(stream, (10, source_view))
        index = draw(stream)
        assert seen(stream, index) == [(source, INPUT_READ, ((24, 40),)), (target, COLOR_WRITE, ((24, 40),))]
        assert [each.order for each in accesses(stream, index)] == [RasterizationOrder.RASTER, RasterizationOrder.COLOR]

    def test_a_view_of_one_aspect_reads_that_aspect(self) -> None:
        stream = Stream()
        image, _ = drawing.depth_target(stream)
        stencil = passes.view(stream, image, 130, aspects=4)
        _, view = drawing.color_target(stream)
        made = drawing.pipeline(stream, "invert_input.frag", vertex="fullscreen.vert", colors=[blend(write=0)])
        stream.begin()
        drawing.render(stream, view)
        drawing.bind(stream, made)
        drawing.bind_descriptors(stream, (10, stencil))
        assert seen(stream, draw(stream)) == [(image, INPUT_READ, STENCIL_SPANS)]
