"""Render passes: when attachments are loaded, resolved, stored and moved, and the dependencies, exactly."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import passes
from tests.support.interpreted import effects_of
from tests.support.passes import (
    CLEAR,
    COLOR_LAYOUT,
    DEPTH_LAYOUT,
    DISCARD,
    DONT_CARE,
    LOAD,
    NONE_LOAD,
    NONE_STORE,
    READ_ONLY,
    STORE,
    depends,
    described,
    rect,
    refer,
    subpass,
)
from tests.support.render_effects import (
    AREA,
    ATTACHMENT_ACCESSES,
    COLOR_READ,
    COLOR_WRITE,
    EARLY_READ,
    EARLY_WRITE,
    LATE_WRITE,
    accesses,
    mask,
    spans,
    target,
)
from tests.support.streams import COLOR, D32, D32_S8, DEPTH, S8, STENCIL, Stream, struct
from vkharness.agreement import compare
from vkharness.check import Analysis
from vkharness.findings import Hazard
from vkharness.model import judge_stream_events
from vkharness.spec.enums import VK_ATTACHMENT_UNUSED, VK_SUBPASS_EXTERNAL, VkAttachmentDescription, VkImageLayout
from vkharness.trace import effects
from vkharness.trace.attachment_operations import AttachmentOperation, RasterizationOrder
from vkharness.trace.effects import (
    Access,
    AttachmentUsers,
    Dependency,
    PassBegin,
    PassEnd,
    SubpassBegin,
    SubpassDependency,
    Unmodelled,
)

READ_ONLY_DEPTH = VkImageLayout.DEPTH_STENCIL_READ_ONLY_OPTIMAL
READ_ONLY_STENCIL_WRITTEN = VkImageLayout.DEPTH_READ_ONLY_STENCIL_ATTACHMENT_OPTIMAL


@pytest.mark.parametrize("form", [1, 2])
class TestRenderPass:
    def test_one_subpass_from_begin_to_end(self, form: int) -> None:
        stream = Stream()
        image, view = target(stream)
        passed = passes.render_pass(stream, [described(final=READ_ONLY)], [subpass([refer(0)])], form=form)
        frame = passes.framebuffer(stream, passed, [view], (8, 8))
        stream.begin()
        begun = passes.begin_pass(stream, passed, frame, AREA, form=form)
        ended = stream.cmd("EndRenderPass") if form == 1 else passes.end_pass(stream)
        found = effects_of(stream)
        start, first, load = found[begun]
        assert isinstance(start, PassBegin) and isinstance(first, SubpassBegin)
        assert start.subpasses == 1
        assert start.dependencies == (
            SubpassDependency(-1, 0, Dependency(0, 0, 0x10000, mask(ATTACHMENT_ACCESSES))),
            SubpassDependency(
                0, -1, Dependency(0x10000, mask("COLOR_ATTACHMENT_WRITE|DEPTH_STENCIL_ATTACHMENT_WRITE"), 0, 0)
            ),
        )
        assert first.transitions == (
            effects.AutomaticTransition(image, image, ((0, 64),), 0, COLOR_LAYOUT, leaves=(), users=(0,)),
        )
        assert accesses((load,)) == [(image, COLOR_WRITE, "LOAD")]
        store, end = found[ended]
        assert accesses((store,)) == [(image, COLOR_WRITE, "STORE")]
        assert end == PassEnd(
            transitions=(
                effects.AutomaticTransition(image, image, ((0, 64),), COLOR_LAYOUT, READ_ONLY, leaves=(0,), users=(0,)),
            )
        )

    def test_no_implicit_dependency_without_a_transition(self, form: int) -> None:
        stream = Stream()
        _, view = target(stream)
        same = described(initial=COLOR_LAYOUT, final=COLOR_LAYOUT)
        passed = passes.render_pass(stream, [same], [subpass([refer(0)])], form=form)
        frame = passes.framebuffer(stream, passed, [view], (8, 8))
        stream.begin()
        begun = passes.begin_pass(stream, passed, frame, AREA, form=form)
        start, first, _ = effects_of(stream)[begun]
        assert start == PassBegin(1, ())
        assert first == SubpassBegin(0, transitions=())

    def test_explicit_dependencies_replace_implicit_ones(self, form: int) -> None:
        stream = Stream()
        _, view = target(stream)
        masks = (0x400, 0x100, 0x400, 0x180)
        given = [
            passes.depends(VK_SUBPASS_EXTERNAL, 0, masks),
            passes.depends(VK_SUBPASS_EXTERNAL, 0, (1, 2, 4, 8)),
            passes.depends(0, 0, masks),
            passes.depends(0, VK_SUBPASS_EXTERNAL, masks),
        ]
        passed = passes.render_pass(stream, [described(final=1)], [subpass([refer(0)])], given, form)
        frame = passes.framebuffer(stream, passed, [view], (8, 8))
        stream.begin()
        begun = passes.begin_pass(stream, passed, frame, AREA, form=form)
        start = effects_of(stream)[begun][0]
        assert isinstance(start, PassBegin)
        assert [(each.src, each.dst, each.dependency) for each in start.dependencies] == [
            (-1, 0, Dependency(*masks)),
            (-1, 0, Dependency(1, 2, 4, 8)),
            (0, 0, Dependency(*masks)),
            (0, -1, Dependency(*masks)),
        ]

    def test_multiview_loads_and_stores_by_view(self, form: int) -> None:
        """Rule: a view is loaded in the first subpass that uses it and stored in the last (MultiviewLoadOp/StoreOp)."""
        stream = Stream()
        image, view = target(stream, array=3)
        same = described(load=LOAD, initial=COLOR_LAYOUT, final=READ_ONLY)
        several = [subpass([refer(0)], views=0b011), subpass([refer(0)], views=0b110)]
        passed = passes.render_pass(stream, [same], several, form=form)
        frame = passes.framebuffer(stream, passed, [view], (8, 8))
        stream.begin()
        begun = passes.begin_pass(stream, passed, frame, AREA, form=form)
        moved = passes.next_subpass(stream)
        ended = passes.end_pass(stream)
        found = effects_of(stream)
        assert spans(found[begun]) == [((0, 128),)]
        assert accesses(found[moved]) == [(image, COLOR_WRITE, "STORE"), (image, COLOR_READ, "LOAD")]
        assert spans(found[moved]) == [((0, 64),), ((128, 192),)]
        assert spans(found[ended]) == [((64, 192),)]
        last = found[ended][-1]
        assert isinstance(last, PassEnd) and last.transitions[0].leaves == (0, 1)
        assert last.transitions[0].spans == ((0, 192),)


class TestSubpasses:
    def run(self, passed: int, stream: Stream, views: list[int], subpasses: int, layers: int = 1) -> list[Any]:
        """The effects of begin, of each next subpass and of the end."""
        frame = passes.framebuffer(stream, passed, views, (8, 8), layers)
        stream.begin()
        indices = [passes.begin_pass(stream, passed, frame, AREA)]
        indices += [passes.next_subpass(stream) for _ in range(subpasses - 1)]
        indices.append(passes.end_pass(stream))
        found = effects_of(stream)
        return [found[index] for index in indices]

    def test_a_later_subpass_reads_what_an_earlier_one_wrote(self) -> None:
        """The first attachment goes from colour to input: loaded in 0, kept by 1, read in 2, stored at the end."""
        stream = Stream()
        (first, first_view), (second, second_view) = target(stream), target(stream)
        several = [
            subpass([refer(0)]),
            subpass([refer(1)], preserve=[0]),
            subpass([refer(1)], inputs=[refer(0, READ_ONLY, COLOR)]),
        ]
        made = [described(final=READ_ONLY), described(load=NONE_LOAD, store=DISCARD, final=1)]
        passed = passes.render_pass(stream, made, several)
        begin, middle, last, end = self.run(passed, stream, [first_view, second_view], 3)
        assert accesses(begin) == [(first, COLOR_WRITE, "LOAD")]
        assert accesses(middle) == []
        assert middle[0].index == 1
        assert [(each.resource, each.old_layout, each.new_layout) for each in middle[0].transitions] == [
            (second, 0, COLOR_LAYOUT)
        ]
        assert [(each.resource, each.old_layout, each.new_layout) for each in last[0].transitions] == [
            (first, COLOR_LAYOUT, READ_ONLY)
        ]
        assert accesses(end) == [(first, COLOR_WRITE, "STORE"), (second, COLOR_WRITE, "STORE")]
        assert [(each.resource, each.new_layout) for each in end[-1].transitions] == [(second, 1)]
        assert [(each.leaves, each.users) for each in end[-1].transitions] == [((1, 2), (1, 2))]
        ends = {(each.src, each.dst) for each in begin[0].dependencies}
        assert ends == {(-1, 0), (-1, 1), (2, -1)}

    def test_unused_attachments_go_straight_to_their_final_layout(self) -> None:
        stream = Stream()
        (image, view), (other, other_view) = target(stream), target(stream)
        made = [described(initial=COLOR_LAYOUT), described(initial=1, final=READ_ONLY)]
        passed = passes.render_pass(stream, made, [subpass([refer(0), refer(VK_ATTACHMENT_UNUSED)], preserve=[])])
        begin, end = self.run(passed, stream, [view, other_view], 1)
        assert begin[0].dependencies == ()
        assert accesses(begin) + accesses(end) == [(image, COLOR_WRITE, "LOAD"), (image, COLOR_WRITE, "STORE")]
        assert end[-1] == PassEnd(transitions=(effects.AutomaticTransition(other, other, ((0, 64),), 1, READ_ONLY),))

    @pytest.mark.parametrize(
        ("may", "middle", "ends"),
        [(True, [(-1, 0)], [((0, 1), (0, 1)), ((1,), (0, 1))]), (False, [()], [((0,), (0,)), ((1,), (1,))])],
    )
    def test_aliased_attachments_leave_one_anothers_subpasses(
        self, may: bool, middle: list[tuple[int, ...]], ends: list[tuple[tuple[int, ...], tuple[int, ...]]]
    ) -> None:
        stream = Stream()
        _, view = target(stream)
        made = [{**described(final=READ_ONLY), "flags": VkAttachmentDescription.MAY_ALIAS * may} for _ in range(2)]
        passed = passes.render_pass(stream, made, [subpass([refer(0)]), subpass([refer(1)])])
        _, second, end = self.run(passed, stream, [view, view], 2)
        begun = next(each for each in second if isinstance(each, SubpassBegin))
        assert [each.leaves for each in begun.transitions] == middle
        assert [(each.leaves, each.users) for each in end[-1].transitions] == ends

    def test_resolves_come_at_the_end_of_their_subpass_before_stores(self) -> None:
        stream = Stream()
        (many, many_view), (one, one_view) = target(stream, samples=4), target(stream)
        made = [described(samples=4, store=DISCARD), described(load=DONT_CARE)]
        several = [
            subpass([refer(0), refer(VK_ATTACHMENT_UNUSED)], resolves=[refer(1), refer(VK_ATTACHMENT_UNUSED)]),
            subpass([refer(1)]),
        ]
        passed = passes.render_pass(stream, made, several)
        begin, middle, end = self.run(passed, stream, [many_view, one_view], 2)
        assert accesses(begin) == [(many, COLOR_WRITE, "LOAD"), (one, COLOR_WRITE, "LOAD")]
        assert accesses(middle) == [
            (many, COLOR_READ, "RESOLVE_READ"),
            (one, COLOR_WRITE, "RESOLVE_WRITE"),
            (many, COLOR_WRITE, "STORE"),
        ]
        assert accesses(end) == [(one, COLOR_WRITE, "STORE")]

    @pytest.mark.parametrize(("uses", "users"), [(True, [(0, 1)]), (False, [])])
    def test_a_resolve_counts_for_each_subpass_that_uses_its_attachments(
        self, uses: bool, users: list[tuple[int, ...]]
    ) -> None:
        """The first subpass draws to the target, or to nothing. The second one resolves into it."""
        stream = Stream()
        (_, many_view), (_, one_view) = target(stream, samples=4), target(stream)
        none = (NONE_LOAD, NONE_STORE)
        made = [described(load=none[0], store=none[1], samples=samples) for samples in (4, 1)]
        several = [subpass([refer(1)] if uses else []), subpass([refer(0)], resolves=[refer(1)])]
        passed = passes.render_pass(stream, made, several)
        *_, end = self.run(passed, stream, [many_view, one_view], 2)
        begun = [each.subpasses for each in end if isinstance(each, AttachmentUsers) and each.subpasses]
        assert begun[:1] == users and ("RESOLVE_WRITE" in [name for *_, name in accesses(end)])

    @pytest.mark.parametrize(("modes", "expected"), [((1, 0), [0]), ((0, 1), [64]), ((1, 1), [0, 64]), ((0, 0), [])])
    def test_depth_stencil_resolve_by_mode(self, modes: tuple[int, int], expected: list[int]) -> None:
        stream = Stream()
        many, many_view = target(stream, D32_S8, samples=4, aspects=DEPTH | STENCIL)
        one, one_view = target(stream, D32_S8, aspects=DEPTH | STENCIL)
        none = (NONE_LOAD, NONE_STORE)
        made = [described(D32_S8, *none, final=DEPTH_LAYOUT, stencil=none, samples=samples) for samples in (4, 1)]
        depth = refer(0, DEPTH_LAYOUT)
        several = [subpass(depth=depth, depth_resolve=(refer(1, DEPTH_LAYOUT), *modes))]
        _, end = self.run(passes.render_pass(stream, made, several), stream, [many_view, one_view], 1)
        assert accesses(end) == [
            (each, access, operation)
            for _ in expected
            for each, access, operation in ((many, COLOR_READ, "RESOLVE_READ"), (one, COLOR_WRITE, "RESOLVE_WRITE"))
        ] + [(one, LATE_WRITE, "STORE")] * len(expected), "what a resolve wrote is stored as by DONT_CARE"
        assert spans(end)[: 2 * len(expected)] == [((at, at + 64),) for at in expected for _ in range(2)]
        resolves = [each for each in end if isinstance(each, Access) and each.operation != AttachmentOperation.STORE]
        assert {each.order for each in resolves} <= {RasterizationOrder.RASTER}

    def test_stencil_layouts_apart_from_depth(self) -> None:
        stream = Stream()
        image, view = target(stream, D32_S8, aspects=DEPTH)
        made = [
            described(D32_S8, LOAD, STORE, 1, DEPTH_LAYOUT, stencil=(CLEAR, DISCARD), stencil_layouts=(0, DEPTH_LAYOUT))
        ]
        passed = passes.render_pass(stream, made, [subpass(depth=refer(0, DEPTH_LAYOUT))])
        begin, end = self.run(passed, stream, [view], 1)
        moves = [(each.spans, each.old_layout, each.new_layout) for each in begin[1].transitions]
        assert moves == [(((0, 64),), 1, DEPTH_LAYOUT), (((64, 128),), 0, DEPTH_LAYOUT)]
        assert accesses(begin) == [(image, EARLY_READ, "LOAD"), (image, EARLY_WRITE, "LOAD")]
        assert accesses(end) == [(image, LATE_WRITE, "STORE")] * 2

    @pytest.mark.parametrize(("form", "access"), [(D32, EARLY_WRITE), (S8, EARLY_READ)])
    def test_formats_with_one_aspect_use_its_operation(self, form: int, access: str) -> None:
        stream = Stream()
        aspects = DEPTH if form == D32 else STENCIL
        image, view = target(stream, form, aspects=aspects)
        made = [described(form, CLEAR, NONE_STORE, 1, 1, stencil=(LOAD, NONE_STORE))]
        passed = passes.render_pass(stream, made, [subpass(depth=refer(0, 1))])
        begin, _ = self.run(passed, stream, [view], 1)
        assert accesses(begin) == [(image, access, "LOAD")]

    @pytest.mark.parametrize("preserved", [[], [0]])
    def test_an_attachment_that_is_used_and_preserved_is_advice(self, preserved: list[int]) -> None:
        stream = Stream()
        image, view = target(stream)
        passed = passes.render_pass(stream, [described()], [subpass([refer(0)], preserve=preserved)])
        begin, end = self.run(passed, stream, [view], 1)
        assert accesses(begin) == [(image, COLOR_WRITE, "LOAD")]
        assert accesses(end) == [(image, COLOR_WRITE, "STORE")]
        analysis = Analysis(keep_events=True).follow(stream.blocks)
        advised = [each for each in analysis.findings if each.advice]
        assert [each.hazard for each in advised] == [Hazard.PRESERVED_AND_USED] * len(preserved)
        assert all("pPreserveAttachments-00854" in each.message for each in advised)
        assert analysis.unmodelled == {}
        assert compare(analysis.findings, judge_stream_events(analysis.events)).disagreements == ()

    @pytest.mark.parametrize(("second", "moves"), [(READ_ONLY_STENCIL_WRITTEN, 0), (DEPTH_LAYOUT, 1)])
    def test_two_read_only_layouts_need_no_transition_between(self, second: int, moves: int) -> None:
        """Specification, "Automatic Layout Transitions": the implementation orders the uses in each layout."""
        stream = Stream()
        _, view = target(stream, D32, aspects=DEPTH)
        made = [described(D32, LOAD, NONE_STORE, initial=READ_ONLY_DEPTH, final=second)]
        several = [subpass(depth=refer(0, layout)) for layout in (READ_ONLY_DEPTH, second)]
        _, middle, _ = self.run(passes.render_pass(stream, made, several), stream, [view], 2)
        assert sum(len(each.transitions) for each in middle if isinstance(each, SubpassBegin)) == moves

    def test_memory_barrier_2_replaces_a_dependencys_masks(self) -> None:
        stream = Stream()
        _, view = target(stream)
        masks = (1 << 32, 0x1000, 1 << 33, 1 << 40)
        given = [passes.depends(VK_SUBPASS_EXTERNAL, 0, masks, barrier=True)]
        passed = passes.render_pass(stream, [described()], [subpass([refer(0)])], given)
        begin, _ = self.run(passed, stream, [view], 1)
        assert begin[0].dependencies[0].dependency == Dependency(*masks)

    def test_transitions_cover_the_framebuffers_layers_whatever_the_render_area(self) -> None:
        stream = Stream()
        image, view = target(stream, array=3)
        passed = passes.render_pass(stream, [described()], [subpass([refer(0)])])
        frame = passes.framebuffer(stream, passed, [view], (8, 8), 2)
        stream.begin()
        begun = passes.begin_pass(stream, passed, frame, rect((8, 1), (0, 7)))
        _, first, load = effects_of(stream)[begun]
        assert isinstance(first, SubpassBegin) and isinstance(load, Access)
        assert first.transitions[0].spans == ((0, 128),)
        assert load.spans == ((0, 128),), "nor are writes of load operations limited"
        assert load.operation is AttachmentOperation.LOAD and load.resource == image

    def test_imageless_framebuffers_take_their_views_at_begin(self) -> None:
        stream = Stream()
        image, view = target(stream)
        passed = passes.render_pass(stream, [described()], [subpass([refer(0)])])
        info = struct("VkFramebufferCreateInfo", flags=1, renderPass=passed, width=8, height=8, layers=1)
        frame = stream.make("vkCreateFramebuffer", "pFramebuffer", {**info, "attachmentCount": 1})
        stream.begin()
        given = struct("VkRenderPassAttachmentBeginInfo", pAttachments=[view])
        begun = passes.begin_pass(stream, passed, frame, AREA, following=given)
        missing = passes.begin_pass(stream, passed, frame, AREA)
        found = effects_of(stream)
        assert accesses(found[begun]) == [(image, COLOR_WRITE, "LOAD")]
        assert Unmodelled("an attachment that was not seen") in found[missing]

    def test_destroyed_objects_do_not_change_what_was_recorded(self) -> None:
        stream = Stream()
        image, view = target(stream)
        passed = passes.render_pass(stream, [described()], [subpass([refer(0)])])
        frame = passes.framebuffer(stream, passed, [view], (8, 8))
        stream.begin()
        passes.begin_pass(stream, passed, frame, AREA)
        stream.call("vkDestroyFramebuffer", device=stream.device, framebuffer=frame)
        stream.call("vkDestroyRenderPass", device=stream.device, renderPass=passed)
        ended = passes.end_pass(stream)
        again = passes.begin_pass(stream, passed, frame, AREA)
        found = effects_of(stream)
        assert accesses(found[ended]) == [(image, COLOR_WRITE, "STORE")]
        assert isinstance(found[again][0], Unmodelled)

    def test_subpasses_beyond_the_last_are_named(self) -> None:
        stream = Stream()
        _, view = target(stream)
        passed = passes.render_pass(stream, [described()], [subpass([refer(0)])])
        frame = passes.framebuffer(stream, passed, [view], (8, 8))
        stream.begin()
        passes.begin_pass(stream, passed, frame, AREA)
        moved = passes.next_subpass(stream)
        assert isinstance(effects_of(stream)[moved][0], Unmodelled)

    def test_sizes_from_a_hostile_file_cost_nothing(self) -> None:
        stream = Stream()
        _, view = target(stream)
        passed = passes.render_pass(stream, [described()], [subpass([refer(0), refer(77)])])
        frame = passes.framebuffer(stream, passed, [view], (8, 8), layers=0xFFFFFFFF)
        stream.begin()
        begun = passes.begin_pass(stream, passed, frame, rect((1 << 31, 1 << 31), (-5, -5)))
        cleared = passes.clear_attachments(stream, [(COLOR, 0)], [(AREA, 0, 0xFFFFFFFF)])
        found = effects_of(stream)
        assert spans(found[begun]) == [((0, 64),)]
        assert spans(found[cleared]) == [((0, 64),)]


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (subpass([refer(0)], resolves=[refer(1)]), subpass([refer(2)], inputs=[refer(1)]), "clean"),
        (subpass([refer(2)], inputs=[refer(1)]), subpass([refer(0)], resolves=[refer(1)]), "unknown"),
        (subpass([refer(1)]), subpass([refer(0)], resolves=[refer(1)]), "unknown"),
        (subpass([refer(2)]), subpass([refer(0)], inputs=[refer(1)], resolves=[refer(1)]), "unknown"),
        (subpass([refer(0)], resolves=[refer(1)]), subpass([refer(0)], resolves=[refer(1)]), "clean"),
    ],
)
def test_an_attachment_that_is_used_before_a_resolve_into_it_is_named(
    first: dict[str, Any], second: dict[str, Any], verdict: str
) -> None:
    """It "may have its contents modified at any point once rendering begins"."""
    stream = Stream()
    several = [described(samples=4), described(), described()]
    views = [target(stream, samples=samples)[1] for samples in (4, 1, 1)]
    everything = depends(0, 1, (0x10000, 0x18000, 0x10000, 0x18000))
    passed = passes.render_pass(stream, several, [first, second], [everything])
    frame = passes.framebuffer(stream, passed, views, (8, 8))
    stream.begin()
    passes.begin_pass(stream, passed, frame, AREA)
    passes.next_subpass(stream)
    passes.end_pass(stream)
    stream.submit()
    assert Analysis().follow(stream.blocks).verdict == verdict


@pytest.mark.parametrize(("offset", "masks", "verdict"), [(0, 3, "clean"), (1, 3, "unknown"), (0, 1, "clean")])
def test_a_view_offset_between_several_views_is_named(offset: int, masks: int, verdict: str) -> None:
    """Each view depends on the one with its number plus the offset, and accesses name no view."""
    stream = Stream()
    _, seen = target(stream, array=2)
    given = {**depends(0, 1, (0x10000, 0x18000, 0x10000, 0x18000)), "dependencyFlags": 2, "viewOffset": offset}
    several = [subpass([refer(0)], views=masks), subpass([refer(0)], views=masks)]
    passed = passes.render_pass(stream, [described()], several, [given])
    frame = passes.framebuffer(stream, passed, [seen], (8, 8))
    stream.begin()
    passes.begin_pass(stream, passed, frame, AREA)
    passes.next_subpass(stream)
    passes.end_pass(stream)
    stream.submit()
    assert Analysis().follow(stream.blocks).verdict == verdict
