"""Draws in secondaries that continue a render pass instance: their attachments, and what is known of these."""

from __future__ import annotations

import pytest

from tests.support import drawing, passes
from tests.support.drawing import NEVER, depth_tests, draw, seen
from tests.support.interpreted import effects_of
from tests.support.streams import D32_S8, Stream, struct
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Execute
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
        (effect,) = effects_of(stream)[executed]
        assert isinstance(effect, Execute)
        ((_, commands),) = effect.buffers
        named = [getattr(each, "what", "") for command in commands for each in command.effects]
        assert named == ["a secondary that draws, executed outside a render pass instance that was seen"]

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
