"""Transform feedback and conditional rendering: what they access, and what the commands under a condition read."""

from __future__ import annotations

from tests.commands.test_draw_targets import COLOR_WRITE
from tests.commands.test_inherited_draws import inherited_draw
from tests.support import drawing, passes
from tests.support.drawing import WHOLE_COLOR, draw, seen
from tests.support.interpreted import effects_of
from tests.support.streams import Stream, struct
from vkharness.trace.effects import Execute


class TestFeedback:
    def test_counters_are_read_at_the_begin_and_written_at_the_end(self) -> None:
        stream = Stream()
        counters = stream.buffer(64)
        stream.begin()
        given = {
            "firstCounterBuffer": 0,
            "counterBufferCount": 3,
            "pCounterBuffers": [counters, 0, counters],
            "pCounterBufferOffsets": [4, 0, 16],
        }
        begun = stream.cmd("BeginTransformFeedbackEXT", **given)
        ended = stream.cmd("EndTransformFeedbackEXT", **given)
        name = "TRANSFORM_FEEDBACK_EXT_TRANSFORM_FEEDBACK_COUNTER_"
        spans = ((4, 8), (16, 20))
        assert seen(stream, begun) == [(counters, f"{name}READ_EXT", spans)]
        assert seen(stream, ended) == [(counters, f"{name}WRITE_EXT", spans)]
        assert drawing.unrecorded(stream, begun) == [True]

    def test_draws_between_write_what_is_bound_once(self) -> None:
        stream = Stream()
        captured = stream.buffer(256)
        made = drawing.pipeline(stream, None, vertex="fullscreen.vert", colors=None, discard=True)
        stream.begin()
        drawing.render(stream)
        drawing.bind(stream, made)
        before = draw(stream)
        stream.cmd("BindTransformFeedbackBuffersEXT", pBuffers=[captured], pOffsets=[16], pSizes=[64])
        stream.cmd("BeginTransformFeedbackEXT")
        first, second = draw(stream), draw(stream)
        stream.cmd("EndTransformFeedbackEXT")
        after = draw(stream)
        write = (captured, "TRANSFORM_FEEDBACK_EXT_TRANSFORM_FEEDBACK_WRITE_EXT", ((16, 80),))
        assert [seen(stream, each) for each in (before, first, second, after)] == [[], [write], [], []]

    def test_feedback_that_goes_on_after_a_counter_is_named(self) -> None:
        stream = Stream()
        captured, counters = stream.buffer(256), stream.buffer(64)
        made = drawing.pipeline(stream, None, vertex="fullscreen.vert", colors=None, discard=True)
        stream.begin()
        drawing.render(stream)
        drawing.bind(stream, made)
        stream.cmd("BindTransformFeedbackBuffersEXT", pBuffers=[captured], pOffsets=[0])
        stream.cmd("BeginTransformFeedbackEXT", pCounterBuffers=[counters])
        assert drawing.unmodelled(stream, draw(stream)) == ["transform feedback that goes on after a counter"]

    def test_the_condition_is_read_at_the_begin_and_at_every_command_under_it(self) -> None:
        stream = Stream()
        condition, other = stream.buffer(64), stream.buffer(64)
        image, view = drawing.color_target(stream)
        made = drawing.pipeline(stream, vertex="fullscreen.vert")
        secondary, _ = inherited_draw(stream)
        info = struct("VkConditionalRenderingBeginInfoEXT", buffer=condition, offset=8)
        stream.begin()
        begun = stream.cmd("BeginConditionalRenderingEXT", pConditionalRenderingBegin=info)
        copied = stream.copy(condition, other, 64)
        drawing.render(stream, view)
        cleared = passes.clear_attachments(stream, [(1, 0)], [(passes.rect((8, 1)), 0, 1)])
        drawing.bind(stream, made)
        drawn = draw(stream)
        run = stream.cmd("ExecuteCommands", pCommandBuffers=[secondary])
        ended = stream.cmd("EndConditionalRenderingEXT")
        drawing.bind(stream, made)
        after = draw(stream)
        read = (condition, "CONDITIONAL_RENDERING_EXT_CONDITIONAL_RENDERING_READ_EXT", ((8, 12),))
        whole = (image, COLOR_WRITE, WHOLE_COLOR)
        assert seen(stream, begun) == [read] and drawing.unrecorded(stream, begun) == [True]
        assert read not in seen(stream, copied)
        assert seen(stream, cleared) == [read, (image, COLOR_WRITE, ((0, 8),))]
        assert seen(stream, drawn) == [read, whole]
        (executed,) = (each for each in effects_of(stream)[run] if isinstance(each, Execute))
        ((_, commands),) = executed.buffers
        assert [len(command.effects) for command in commands] == [2]
        assert seen(stream, ended) == [] and seen(stream, after) == [whole]
