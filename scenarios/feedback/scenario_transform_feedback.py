"""Transform feedback writes what vertex shaders capture, and its counters, in a stage of its own."""

import struct
from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigImage, RigPipeline
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VkPrimitiveTopology
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, COPY, DRAW = "vkCmdFillBuffer", "vkCmdCopyBuffer", "vkCmdDraw"
BEGIN, END = "vkCmdBeginTransformFeedbackEXT", "vkCmdEndTransformFeedbackEXT"
CAPTURED = "TRANSFORM_FEEDBACK/TRANSFORM_FEEDBACK_WRITE"
COUNTED, COUNTS = "TRANSFORM_FEEDBACK/TRANSFORM_FEEDBACK_COUNTER_WRITE", "TRANSFORM_FEEDBACK_COUNTER_READ"
FILLED, READ = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ"
NEEDS = ["VK_EXT_transform_feedback"]
COUNT_DRAW = "vkCmdDrawIndirectByteCountEXT"
POINTS = VkPrimitiveTopology.POINT_LIST


def pipeline_of(rig: Rig) -> RigPipeline:
    """A pipeline that captures a word a vertex and draws points."""
    return rig.graphics("gradient", "feedback_words", topology=POINTS)


def _capture(
    commands: Commands,
    image: RigImage,
    pipeline: RigPipeline,
    word: int,
    *bound: Any,
    vertices: int,
    counter: RigBuffer | None = None,
) -> None:
    """Draws points of an image and captures a word of each, from `word` on; `bound` are a buffer and its range."""
    commands.begin_rendering(RenderingAttachment(commands.rig.view(image)))
    commands.bind(pipeline)
    commands.push_constants(pipeline, word)
    commands.bind_feedback(*bound)
    commands.begin_feedback()
    commands.draw(vertices)
    commands.end_feedback(counter)
    commands.end_rendering()


@scenario(
    without={"captured before copied": [read_after_write(COPY, DRAW)]},
    weakened={
        "captured before copied / execution only": [read_after_write(COPY, DRAW)],
        "captured before copied / vertex shader": [read_after_write(COPY, DRAW)],
    },
    needs=NEEDS,
    rule="transform-feedback-has-its-own-stage",
)
def scenario_copy_reads_what_was_captured(rig: Rig) -> None:
    """The vertices that a draw captures are written in the transform feedback stage, not by the vertex shader."""
    image, a, b = rig.target(), rig.buffer(64), rig.buffer(64)
    pipeline = pipeline_of(rig)
    with rig.submission() as commands:
        commands.transition(image)
        _capture(commands, image, pipeline, 0x100, a, vertices=16)
        commands.barrier(
            "captured before copied",
            CAPTURED,
            READ,
            weaker={
                "execution only": {"src": "TRANSFORM_FEEDBACK", "dst": "COPY"},
                "vertex shader": {"src": "VERTEX_SHADER/SHADER_STORAGE_WRITE"},
            },
        )
        commands.copy(a, b)


@scenario(
    without={"filled before captured": [write_after_write(DRAW, FILL)]},
    weakened={"filled before captured / for counters": [write_after_write(DRAW, FILL)]},
    needs=NEEDS,
    rule="transform-feedback-has-its-own-stage",
)
def scenario_captured_over_a_filled_buffer(rig: Rig) -> None:
    """Capturing over a fill needs a memory dependency on it."""
    image, a = rig.target(), rig.buffer(64)
    pipeline = pipeline_of(rig)
    with rig.submission() as commands:
        commands.transition(image)
        commands.fill(a, 0xEEEEEEEE)
        commands.barrier(
            "filled before captured", FILLED, CAPTURED, weaker={"for counters": {"dst": f"TRANSFORM_FEEDBACK/{COUNTS}"}}
        )
        _capture(commands, image, pipeline, 0x200, a, vertices=16)


@scenario(
    without={"copied before captured": [write_after_read(DRAW, COPY)]},
    needs=NEEDS,
    rule="transform-feedback-has-its-own-stage",
)
def scenario_captured_over_what_a_copy_reads(rig: Rig) -> None:
    """An execution dependency keeps a capture from overwriting what a copy still reads."""
    image, a, b = rig.target(), rig.buffer(64), rig.buffer(64)
    pipeline = pipeline_of(rig)
    with rig.submission() as commands:
        commands.transition(image)
        commands.copy(a, b)
        commands.barrier("copied before captured", "COPY", "TRANSFORM_FEEDBACK")
        _capture(commands, image, pipeline, 0x300, a, vertices=16)


@scenario(
    weakened={"bound / the filled half": [write_after_write(DRAW, FILL)]},
    needs=NEEDS,
    rule="transform-feedback-has-its-own-stage",
)
def scenario_range_of_captured_words(rig: Rig) -> None:
    """Only the bound range is written."""
    image, a = rig.target(), rig.buffer(64)
    offset = rig.choose("bound", 32, {"the filled half": 0})
    pipeline = pipeline_of(rig)
    with rig.submission() as commands:
        commands.transition(image)
        commands.fill(a, 0xDDDDDDDD, 0, 32)
        _capture(commands, image, pipeline, 0x400, a, offset, 32, vertices=8)


@scenario(
    without={"counted before copied": [read_after_write(COPY, END)]},
    weakened={"counted before copied / what was captured": [read_after_write(COPY, END)]},
    needs=NEEDS,
    rule="feedback-counters-are-read-and-written",
)
def scenario_copy_reads_a_feedback_counter(rig: Rig) -> None:
    """The counter is written at the end, with an access of its own."""
    image, a, counter, b = rig.target(), rig.buffer(64), rig.buffer(64), rig.buffer(64)
    rig.host_write(counter, struct.pack("<I", 0xCCCCCCCC))
    pipeline = pipeline_of(rig)
    with rig.submission() as commands:
        commands.transition(image)
        _capture(commands, image, pipeline, 0x500, a, vertices=8, counter=counter)
        commands.barrier("counted before copied", COUNTED, READ, weaker={"what was captured": {"src": CAPTURED}})
        commands.copy(counter, b, (0, 0, 4))


@scenario(
    without={"filled before counted on": [read_after_write(BEGIN, FILL)]},
    weakened={"filled before counted on / for captures": [read_after_write(BEGIN, FILL)]},
    needs=NEEDS,
    rule="feedback-counters-are-read-and-written",
)
def scenario_feedback_reads_a_filled_counter(rig: Rig) -> None:
    """A counter given at the beginning is read there; the one at the end says how far it goes on from it."""
    image, a, counter, after = rig.target(), rig.buffer(64), rig.buffer(64), rig.buffer(64)
    with rig.submission() as commands:
        commands.transition(image)
        commands.fill(counter, 16)
        commands.barrier(
            "filled before counted on",
            FILLED,
            f"TRANSFORM_FEEDBACK/{COUNTS}",
            weaker={"for captures": {"dst": CAPTURED}},
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(pipeline_of(rig))
        commands.bind_feedback(a)
        commands.begin_feedback(counter)
        commands.end_feedback(after)
        commands.end_rendering()


@scenario(
    without={"ended before resumed": [read_after_write(BEGIN, END)]},
    weakened={
        "ended before resumed / execution only": [read_after_write(BEGIN, END)],
        "ended before resumed / as parameters": [read_after_write(BEGIN, END)],
    },
    needs=NEEDS,
    rule="feedback-ends-after-it-began",
)
def scenario_feedback_goes_on_from_its_counter(rig: Rig) -> None:
    """The end of feedback may write the counter that its begin read; the next begin needs a memory dependency."""
    targets, a = [rig.target() for _ in range(3)], rig.buffer(64)
    counter, after, other = rig.buffer(64), rig.buffer(64), rig.buffer(64, data=bytes(64))
    pipeline = pipeline_of(rig)

    def capture_nothing(commands: Commands, image: RigImage, begin: RigBuffer, end: RigBuffer) -> None:
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(pipeline)
        commands.bind_feedback(a)
        commands.begin_feedback(begin)
        commands.end_feedback(end)
        commands.end_rendering()

    with rig.submission() as commands:
        commands.transition(*targets)
        capture_nothing(commands, targets[0], other, other)
        _capture(commands, targets[1], pipeline, 0x700, a, vertices=8, counter=counter)
        commands.barrier(
            "ended before resumed",
            COUNTED,
            f"TRANSFORM_FEEDBACK/{COUNTS}",
            weaker={
                "execution only": {"src": "TRANSFORM_FEEDBACK", "dst": "TRANSFORM_FEEDBACK"},
                "as parameters": {"dst": "DRAW_INDIRECT/INDIRECT_COMMAND_READ"},
            },
        )
        capture_nothing(commands, targets[2], counter, after)


@scenario(
    without={"counted before drawn": [read_after_write(COUNT_DRAW, FILL)]},
    weakened={
        "counted before drawn / for counters": [read_after_write(COUNT_DRAW, FILL)],
        "counted before drawn / for feedback": [read_after_write(COUNT_DRAW, FILL)],
    },
    needs=NEEDS,
    rule="feedback-counters-are-read-and-written",
)
def scenario_draw_reads_a_byte_count(rig: Rig) -> None:
    """A draw of what was captured reads the counter as a parameter, and not with the counter's access."""
    image, a, counter = rig.target(), rig.buffer(64), rig.buffer(64)
    pipeline = pipeline_of(rig)
    with rig.submission() as commands:
        commands.transition(image)
        commands.fill(counter, 32)
        commands.barrier(
            "counted before drawn",
            FILLED,
            "DRAW_INDIRECT/INDIRECT_COMMAND_READ",
            weaker={
                "for counters": {"dst": f"DRAW_INDIRECT/{COUNTS}"},
                "for feedback": {"dst": f"TRANSFORM_FEEDBACK/{COUNTS}"},
            },
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(pipeline)
        commands.push_constants(pipeline, 0x600)
        commands.bind_feedback(a)
        commands.begin_feedback()
        commands.draw_byte_count(counter)
        commands.end_feedback()
        commands.end_rendering()
