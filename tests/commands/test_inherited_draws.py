"""Draws in secondaries that continue a render pass instance: their attachments, and what is known of these."""

from __future__ import annotations

import pytest

from tests.support import drawing, passes
from tests.support.drawing import NEVER, depth_tests, draw, seen
from tests.support.interpreted import effects_of
from tests.support.streams import D32_S8, GENERAL, Stream, struct
from vkharness.check import Analysis
from vkharness.commands.synchronization.secondary import NOT_SEEN
from vkharness.spec.enums import VkPipelineStage2
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Execute, Unmodelled
from vkharness.trace.inherited import InheritedTargets


def inherited_draw(stream: Stream) -> tuple[int, int]:
    """(command buffer, draw) of a secondary that continues a render pass."""
    made = drawing.pipeline(stream, vertex="fullscreen.vert")
    id = stream.begin(level=1)
    begun = stream.blocks[-1]
    assert isinstance(begun, Call)
    begun.args["pBeginInfo"]["flags"] = 2
    drawing.bind(stream, made)
    index = draw(stream)
    stream.end()
    return id, index


def inheriting(stream: Stream, render_pass: int, framebuffer: int) -> int:
    """A secondary, begun, that continues the first subpass."""
    number, begun = stream.begin(level=1), stream.blocks[-1]
    assert isinstance(begun, Call)
    inherits = struct("VkCommandBufferInheritanceInfo", renderPass=render_pass, subpass=0, framebuffer=framebuffer)
    begun.args["pBeginInfo"] |= {"flags": 2, "pInheritanceInfo": inherits}
    return number


def clear_all(stream: Stream) -> None:
    """Clears the first colour attachment."""
    passes.clear_attachments(stream, [(1, 0)], [(passes.rect((8, 8)), 0, 1)])


class TestSecondaries:
    def test_attachments_are_those_of_the_instance_that_it_is_executed_in(self) -> None:
        stream = Stream()
        image, view = drawing.color_target(stream)
        secondary, index = inherited_draw(stream)
        stream.begin()
        drawing.render(stream, view, area=passes.rect((8, 1)))
        executed = stream.cmd("ExecuteCommands", pCommandBuffers=[secondary])
        found = effects_of(stream)
        assert [type(each) for each in found[index]] == [InheritedTargets]
        (effect,) = found[executed]
        assert isinstance(effect, Execute)
        ((_, commands),) = effect.buffers
        drawn = [each for command in commands for each in command.effects]
        assert [(each.resource, each.spans) for each in drawn if isinstance(each, Access)] == [(image, ((0, 8),))]
        assert len(drawn) == 1

    def test_where_no_instance_was_seen_the_draw_is_named(self) -> None:
        stream = Stream()
        secondary, _ = inherited_draw(stream)
        stream.begin()
        executed = stream.cmd("ExecuteCommands", pCommandBuffers=[secondary])
        named, effect = effects_of(stream)[executed]
        assert isinstance(effect, Execute) and named == Unmodelled(NOT_SEEN)
        stream.submit()
        analysis = Analysis().follow(stream.blocks)
        assert (analysis.verdict, [*analysis.unmodelled]) == ("unknown", [NOT_SEEN])

    @pytest.mark.parametrize("nested", [False, True])
    def test_a_secondary_in_a_secondary_inherits_the_instance_too(self, nested: bool) -> None:
        """VK_EXT_nested_command_buffer: the copy behind the instance reads what the innermost one clears."""
        stream = Stream()
        image = stream.image((8, 8, 1))
        used = passes.described(load=passes.NONE_LOAD, store=passes.NONE_STORE, initial=GENERAL, final=GENERAL)
        made = passes.render_pass(stream, [used], [passes.subpass([passes.refer(0, GENERAL)])])
        framebuffer = passes.framebuffer(stream, made, [passes.view(stream, image)], (8, 8))
        inner = inheriting(stream, made, framebuffer)
        clear_all(stream)
        stream.end()
        if nested:
            held, inner = inner, inheriting(stream, made, framebuffer)
            stream.cmd("ExecuteCommands", pCommandBuffers=[held])
            stream.end()
        stream.begin()
        passes.begin_pass(stream, made, framebuffer, passes.rect((8, 8)))
        stream.cmd("ExecuteCommands", pCommandBuffers=[inner])
        passes.end_pass(stream)
        stream.image_to_buffer(image, stream.buffer(256), (8, 8, 1), layout=GENERAL)
        stream.submit()
        (found,) = Analysis().follow(stream.blocks).findings
        assert (found.hazard, found.place.command) == ("READ_AFTER_WRITE", "vkCmdCopyImageToBuffer")

    def test_two_subpasses_are_one_instance_whoever_records_the_first(self) -> None:
        """A secondary in a secondary clears in the one, the primary in the other: that counts without `strict`, too."""
        stream = Stream()
        views = [passes.view(stream, stream.image((8, 8, 1))) for _ in range(2)]
        used = passes.described(load=passes.NONE_LOAD, store=passes.NONE_STORE, initial=GENERAL, final=GENERAL)
        each = passes.subpass([passes.refer(0, GENERAL)])
        output = VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT
        made = passes.render_pass(stream, [used], [each, each], [passes.depends(0, 1, (output, 0, output, 0))])
        framebuffer = passes.framebuffer(stream, made, views[:1], (8, 8))
        inner = inheriting(stream, made, framebuffer)
        clear_all(stream)
        stream.end()
        outer = inheriting(stream, made, framebuffer)
        stream.cmd("ExecuteCommands", pCommandBuffers=[inner])
        stream.end()
        stream.begin()
        passes.begin_rendering(stream, passes.rect((8, 8)), [passes.attached(views[1])])
        stream.cmd("EndRendering")
        passes.begin_pass(stream, made, framebuffer, passes.rect((8, 8)))
        stream.cmd("ExecuteCommands", pCommandBuffers=[outer])
        passes.next_subpass(stream)
        clear_all(stream)
        passes.end_pass(stream)
        stream.submit()
        assert Analysis(strict=False).follow(stream.blocks).verdict == "hazards"

    @pytest.mark.parametrize("dynamic", [False, True])
    @pytest.mark.parametrize(("attached", "runs"), [(True, False), (False, True)])
    def test_a_shader_behind_tests_runs_by_what_is_inherited(self, dynamic: bool, attached: bool, runs: bool) -> None:
        stream = Stream()
        storage = stream.buffer(64)
        never = depth_tests(depth=True, compare=NEVER)
        made = drawing.pipeline(stream, "early_tests.frag", vertex="fullscreen.vert", colors=None, depth_stencil=never)
        if dynamic:
            form = D32_S8 if attached else 0
            rendering = struct("VkCommandBufferInheritanceRenderingInfo", depthAttachmentFormat=form)
            inherited = struct("VkCommandBufferInheritanceInfo", pNext=rendering)
        else:
            used = passes.subpass(depth=passes.refer(0, passes.DEPTH_LAYOUT) if attached else None)
            passed = passes.render_pass(stream, [passes.described(D32_S8)], [passes.subpass(), used])
            inherited = struct("VkCommandBufferInheritanceInfo", renderPass=passed, subpass=1)
        stream.begin(level=1)
        begun = stream.blocks[-1]
        assert isinstance(begun, Call)
        begun.args["pBeginInfo"] |= {"flags": 2, "pInheritanceInfo": inherited}
        drawing.bind(stream, made)
        drawing.bind_descriptors(stream, (7, storage))
        assert [each[0] for each in seen(stream, draw(stream))] == ([storage] if runs else [])
