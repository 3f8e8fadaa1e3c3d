"""Dynamic rendering and clears of attachments: exactly what they access."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import passes
from tests.support.interpreted import effects_of
from tests.support.passes import CLEAR, DISCARD, DONT_CARE, LOAD, NONE_LOAD, NONE_STORE, STORE, rect
from tests.support.render_effects import (
    AREA,
    COLOR_READ,
    COLOR_WRITE,
    EARLY_READ,
    EARLY_WRITE,
    LATE_WRITE,
    accesses,
    spans,
    target,
)
from tests.support.streams import COLOR, D32_S8, DEPTH, STENCIL, Stream, struct
from vkharness.spec.enums import VK_ATTACHMENT_UNUSED, VkImageLayout, VkRendering, VkStructureType
from vkharness.trace.attachment_operations import RasterizationOrder
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Execute, RenderingBegin, Unmodelled

SUSPENDING, RESUMING = VkRendering.SUSPENDING, VkRendering.RESUMING


class TestDynamicRendering:
    @pytest.mark.parametrize(
        ("load", "expected"),
        [(LOAD, [COLOR_READ]), (CLEAR, [COLOR_WRITE]), (DONT_CARE, [COLOR_WRITE]), (NONE_LOAD, [])],
    )
    def test_color_loads(self, load: int, expected: list[str]) -> None:
        stream = Stream()
        image, view = target(stream)
        stream.begin()
        begun = passes.begin_rendering(stream, AREA, [passes.attached(view, load)])
        assert accesses(effects_of(stream).get(begun, ())) == [(image, each, "LOAD") for each in expected]

    @pytest.mark.parametrize(
        ("store", "expected"), [(STORE, [COLOR_WRITE]), (DISCARD, [COLOR_WRITE]), (NONE_STORE, [])]
    )
    def test_color_stores(self, store: int, expected: list[str]) -> None:
        stream = Stream()
        image, view = target(stream)
        stream.begin()
        passes.begin_rendering(stream, AREA, [passes.attached(view, NONE_LOAD, store)])
        ended = stream.cmd("EndRendering")
        found = effects_of(stream).get(ended, ())
        assert accesses(found) == [(image, each, "STORE") for each in expected]
        assert {each.order for each in found if isinstance(each, Access)} <= {RasterizationOrder.COLOR}

    @pytest.mark.parametrize(("load", "expected"), [(CLEAR, 1), (DONT_CARE, 1), (LOAD, 0), (NONE_LOAD, 0)])
    def test_storing_none_of_what_was_written_leaves_undefined_contents(self, load: int, expected: int) -> None:
        """Specification, VK_ATTACHMENT_STORE_OP_NONE: as DONT_CARE "if values are written"."""
        stream = Stream()
        image, view = target(stream)
        passed = passes.render_pass(
            stream, [passes.described(load=load, store=NONE_STORE)], [passes.subpass([passes.refer(0)])]
        )
        frame = passes.framebuffer(stream, passed, [view], (8, 8))
        stream.begin()
        passes.begin_rendering(stream, AREA, [passes.attached(view, load, NONE_STORE)])
        ended = stream.cmd("EndRendering")
        passes.begin_pass(stream, passed, frame, AREA)
        pass_ended = passes.end_pass(stream)
        found = effects_of(stream)
        stored = [(image, COLOR_WRITE, "STORE")] * expected
        assert accesses(found.get(ended, ())) == stored
        assert accesses(found.get(pass_ended, ())) == stored

    @pytest.mark.parametrize("suspended", [False, True])
    def test_storing_none_after_a_clear_writes_the_whole_subresource(self, suspended: bool) -> None:
        stream = Stream()
        image, view = target(stream)
        attached = [passes.attached(view, LOAD, NONE_STORE)]
        stream.begin()
        passes.begin_rendering(stream, rect((4, 4)), attached, flags=SUSPENDING * suspended)
        passes.clear_attachments(stream, [(COLOR, 0)], [(rect((1, 1)), 0, 1)])
        if suspended:
            stream.cmd("EndRendering")
            passes.begin_rendering(stream, rect((4, 4)), attached, flags=RESUMING)
        ended = stream.cmd("EndRendering")
        passes.begin_rendering(stream, rect((4, 4)), attached)
        untouched = stream.cmd("EndRendering")
        found = effects_of(stream)
        assert accesses(found[ended]) == [(image, COLOR_WRITE, "STORE")]
        assert spans(found[ended]) == [((0, 64),)]
        assert untouched not in found

    def test_storing_none_of_rendering_that_another_command_buffer_suspended_is_named(self) -> None:
        stream = Stream()
        _, view = target(stream)
        stream.begin()
        passes.begin_rendering(stream, AREA, [passes.attached(view, LOAD, NONE_STORE)], flags=RESUMING)
        ended = stream.cmd("EndRendering")
        assert [type(each) for each in effects_of(stream)[ended]] == [Unmodelled]

    def test_depth_and_stencil_have_operations_of_their_own(self) -> None:
        stream = Stream()
        image, view = target(stream, D32_S8, aspects=DEPTH | STENCIL)
        stream.begin()
        begun = passes.begin_rendering(
            stream, AREA, depth=passes.attached(view, LOAD, STORE), stencil=passes.attached(view, CLEAR, STORE)
        )
        ended = stream.cmd("EndRendering")
        found = effects_of(stream)
        assert accesses(found[begun]) == [(image, EARLY_READ, "LOAD"), (image, EARLY_WRITE, "LOAD")]
        assert spans(found[begun]) == [((0, 64),), ((64, 128),)]
        assert accesses(found[ended]) == [(image, LATE_WRITE, "STORE")] * 2
        assert spans(found[ended]) == [((0, 64),), ((64, 128),)]
        assert {each.order for each in found[begun] if isinstance(each, Access)} == {RasterizationOrder.DEPTH_STENCIL}

    def test_suspending_ends_nothing_and_resuming_begins_nothing(self) -> None:
        stream = Stream()
        image, view = target(stream)
        color = passes.attached(view)
        stream.begin()
        first = passes.begin_rendering(stream, AREA, [color], flags=2)
        suspended = stream.cmd("EndRendering")
        resumed = passes.begin_rendering(stream, AREA, [color], flags=4)
        last = stream.cmd("EndRendering")
        found = effects_of(stream)
        assert accesses(found[first]) == [(image, COLOR_WRITE, "LOAD")]
        assert suspended not in found and resumed not in found
        assert accesses(found[last]) == [(image, COLOR_WRITE, "STORE")]

    def test_resolves_of_color_depth_and_stencil(self) -> None:
        stream = Stream()
        (many, many_view), (one, one_view) = target(stream, samples=4), target(stream)
        deep, deep_view = target(stream, D32_S8, samples=4, aspects=DEPTH | STENCIL)
        flat, flat_view = target(stream, D32_S8, aspects=DEPTH | STENCIL)
        resolving: dict[str, Any] = {"resolveMode": 2, "resolveImageView": one_view, "resolveImageLayout": 1}
        deeply: dict[str, Any] = {"resolveMode": 1, "resolveImageView": flat_view, "resolveImageLayout": 1}
        stream.begin()
        passes.begin_rendering(
            stream,
            AREA,
            [passes.attached(many_view, CLEAR, DISCARD, **resolving)],
            passes.attached(deep_view, NONE_LOAD, NONE_STORE, **deeply),
            passes.attached(deep_view, NONE_LOAD, NONE_STORE, resolveMode=0, resolveImageView=flat_view),
        )
        ended = stream.cmd("EndRendering")
        found = effects_of(stream)
        assert accesses(found[ended]) == [
            (many, COLOR_READ, "RESOLVE_READ"),
            (one, COLOR_WRITE, "RESOLVE_WRITE"),
            (many, COLOR_WRITE, "STORE"),
            (deep, COLOR_READ, "RESOLVE_READ"),
            (flat, COLOR_WRITE, "RESOLVE_WRITE"),
        ]
        assert spans(found[ended])[-1] == ((0, 64),), "depth only: the stencil mode is NONE"
        orders = [each.order for each in found[ended] if isinstance(each, Access)]
        assert orders == [RasterizationOrder.COLOR] * 3 + [RasterizationOrder.RASTER] * 2

    def test_render_area_limits_what_is_loaded_and_no_write_of_an_operation(self) -> None:
        """Specification, "Render Pass Load Operations": writes may touch "any memory locations within the image
        subresource bound for that attachment"."""
        stream = Stream()
        image = stream.image((8, 8, 1), mips=2, array=3)
        view = passes.view(stream, image, mip=1, layers=(1, 2))
        stream.begin()
        whole = passes.begin_rendering(stream, rect((4, 4)), [passes.attached(view)], layers=2)
        stream.cmd("EndRendering")
        small = rect((2, 2), (1, 1))
        part = passes.begin_rendering(stream, small, [passes.attached(view, LOAD)], layers=1)
        stored = stream.cmd("EndRendering")
        cleared = passes.begin_rendering(stream, small, [passes.attached(view, CLEAR)], layers=1)
        stream.cmd("EndRendering")
        beyond = passes.begin_rendering(stream, rect((50, 50)), [passes.attached(view)], layers=50)
        found = effects_of(stream)
        level = 3 * 64  # the first mip level of three layers comes before
        assert spans(found[whole]) == [((level + 16, level + 48),)]
        assert spans(found[part]) == [((level + 16 + 5, level + 16 + 7), (level + 16 + 9, level + 16 + 11))]
        assert spans(found[stored]) == spans(found[cleared]) == [((level + 16, level + 32),)]
        assert spans(found[beyond]) == [((level + 16, level + 48),)]

    @pytest.mark.parametrize("by_layout", [True, False])
    def test_feedback_loop_keeps_operations_in_the_render_area(self, by_layout: bool) -> None:
        stream = Stream()
        _, view = target(stream)
        layout = VkImageLayout.ATTACHMENT_FEEDBACK_LOOP_OPTIMAL_EXT
        chain = {"sType": VkStructureType.ATTACHMENT_FEEDBACK_LOOP_INFO_EXT, "pNext": None, "feedbackLoopEnable": 1}
        how: dict[str, Any] = {"imageLayout": layout} if by_layout else {"pNext": chain}
        stream.begin()
        begun = passes.begin_rendering(stream, rect((2, 1)), [passes.attached(view, CLEAR, **how)])
        ended = stream.cmd("EndRendering")
        found = effects_of(stream)
        assert spans(found[begun]) == spans(found[ended]) == [((0, 2),)]

    def test_a_view_mask_takes_its_layers_and_slices_of_3d_images_count_as_layers(self) -> None:
        stream = Stream()
        _, view = target(stream, array=4)
        volume = stream.image((8, 8, 4), kind=2)
        slices = passes.view(stream, volume, layers=(1, 2))
        stream.begin()
        masked = passes.begin_rendering(stream, AREA, [passes.attached(view)], views=0b1010)
        stream.cmd("EndRendering")
        sliced = passes.begin_rendering(stream, AREA, [passes.attached(slices, LOAD)], layers=2)
        stored = stream.cmd("EndRendering")
        found = effects_of(stream)
        assert spans(found[masked]) == [((64, 128), (192, 256))]
        assert spans(found[sliced]) == [((64, 192),)]
        assert spans(found[stored]) == [((0, 256),)], "a mip level of a 3D image is one subresource"

    def test_null_views_are_nothing_and_unseen_ones_are_named(self) -> None:
        stream = Stream()
        stream.begin()
        null = passes.begin_rendering(stream, AREA, [passes.attached(0)])
        stream.cmd("EndRendering")
        unseen = passes.begin_rendering(stream, AREA, [passes.attached(999)])
        found = effects_of(stream)
        assert accesses(found[null]) == []
        assert found[unseen] == (RenderingBegin(), Unmodelled("an attachment that was not seen"))

    def test_an_end_without_a_beginning_is_named(self) -> None:
        stream = Stream()
        stream.begin()
        ended = stream.cmd("EndRendering")
        assert isinstance(effects_of(stream)[ended][0], Unmodelled)

    def test_a_command_buffer_that_is_begun_again_renders_no_more(self) -> None:
        stream = Stream()
        _, view = target(stream)
        commands = stream.begin()
        passes.begin_rendering(stream, AREA, [passes.attached(view)])
        stream.call("vkBeginCommandBuffer", commandBuffer=commands, pBeginInfo=struct("VkCommandBufferBeginInfo"))
        ended = stream.cmd("EndRendering")
        assert isinstance(effects_of(stream)[ended][0], Unmodelled)


class TestClears:
    def clear(self, clears: list[tuple[int, int]], rects: list[Any], **rendering: Any) -> tuple[list[int], Any]:
        stream = Stream()
        first, second = target(stream, array=2), target(stream, array=2)
        deep = target(stream, D32_S8, aspects=DEPTH | STENCIL, array=2)
        stream.begin()
        passes.begin_rendering(
            stream,
            AREA,
            [passes.attached(first[1]), passes.attached(second[1]), passes.attached(0)],
            passes.attached(deep[1]),
            **{"layers": 2, **rendering},
        )
        cleared = passes.clear_attachments(stream, clears, rects)
        return [first[0], second[0], deep[0]], effects_of(stream).get(cleared, ())

    def test_a_rectangle_of_one_layer(self) -> None:
        (_, second, _), found = self.clear([(COLOR, 1)], [(rect((2, 1), (3, 4)), 1, 1)])
        assert accesses(found) == [(second, COLOR_WRITE, "ORDINARY")]
        assert spans(found) == [((64 + 35, 64 + 37),)]
        assert found[0].order is RasterizationOrder.COLOR

    def test_overlapping_rectangles_are_one_access(self) -> None:
        (first, _, _), found = self.clear([(COLOR, 0)], [(rect((8, 2)), 0, 1), (rect((8, 2), (0, 1)), 0, 1)])
        assert accesses(found) == [(first, COLOR_WRITE, "ORDINARY")]
        assert spans(found) == [((0, 24),)]

    def test_aspects_that_nothing_is_bound_for_are_skipped(self) -> None:
        # The stencil aspect of the image is there, but no stencil attachment is bound.
        (_, _, deep), found = self.clear([(DEPTH | STENCIL, 0)], [(AREA, 0, 1)])
        assert accesses(found) == [(deep, EARLY_WRITE, "ORDINARY"), (deep, LATE_WRITE, "ORDINARY")]
        assert spans(found) == [((0, 64),)] * 2
        assert found[0].order is RasterizationOrder.DEPTH_STENCIL

    @pytest.mark.parametrize("index", [2, 7, VK_ATTACHMENT_UNUSED])
    def test_unused_color_attachments_are_skipped(self, index: int) -> None:
        assert self.clear([(COLOR, index)], [(AREA, 0, 1)])[1] == ()

    def test_multiview_clears_every_view(self) -> None:
        _, found = self.clear([(COLOR, 0)], [(AREA, 0, 1)], views=0b11)
        assert spans(found) == [((0, 128),)]

    def test_outside_rendering_it_is_named(self) -> None:
        stream = Stream()
        stream.begin()
        cleared = passes.clear_attachments(stream, [(COLOR, 0)], [(AREA, 0, 1)])
        assert isinstance(effects_of(stream)[cleared][0], Unmodelled)

    def test_in_a_secondary_it_is_known_where_it_is_executed(self) -> None:
        stream = Stream()
        image, view = target(stream)
        info = struct("VkCommandBufferInheritanceInfo")
        secondary = stream.begin(level=1)
        begun = struct("VkCommandBufferBeginInfo", flags=2, pInheritanceInfo=info)
        stream.call("vkBeginCommandBuffer", commandBuffer=secondary, pBeginInfo=begun)
        cleared = passes.clear_attachments(stream, [(COLOR, 0)], [(rect((8, 1)), 0, 1)])
        stream.end()
        stream.begin()
        passes.begin_rendering(stream, AREA, [passes.attached(view)], flags=1)
        executed = stream.cmd("ExecuteCommands", pCommandBuffers=[secondary])
        found = effects_of(stream)
        assert accesses(found[cleared]) == []
        (inside,) = found[executed]
        assert isinstance(inside, Execute)
        ((_, (command,)),) = inside.buffers
        assert accesses(command.effects) == [(image, COLOR_WRITE, "ORDINARY")]
        assert spans(command.effects) == [((0, 8),)]


@pytest.mark.parametrize("load", [LOAD, CLEAR])
def test_samples_that_are_only_implicit_are_those_of_the_attachment(load: int) -> None:
    """The implicit multisampled image is memory of the implementation alone: the attachment is loaded and stored."""
    found = []
    for enabled in (0, 1):
        stream = Stream()
        _, view = target(stream)
        stream.begin()
        begun = passes.begin_rendering(stream, AREA, [passes.attached(view, load)])
        link = struct(
            "VkMultisampledRenderToSingleSampledInfoEXT",
            multisampledRenderToSingleSampledEnable=1,
            rasterizationSamples=4,
        )
        call = stream.blocks[begun - 1]
        assert isinstance(call, Call)
        call.args["pRenderingInfo"]["pNext"] = link if enabled else None
        ended = stream.cmd("EndRendering")
        made = effects_of(stream)
        found.append([*accesses(made[begun]), *accesses(made[ended])])
        assert not any(isinstance(each, Unmodelled) for each in made[begun])
    assert found[0] == found[1]
