"""Draws: what they read beside the attachments, what their shaders load and store, and attachments themselves.

Stages and accesses: specification, "Access Types"; of attachments, "Load Operations" and "Store Operations".
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VkCompareOp, VkImageAspect, VkPrimitiveTopology
from vkharness.spec.names import value_name
from vkharness.suite.matrix.operation_table import Record, operation
from vkharness.suite.matrix.resource_kinds import (
    BUFFER,
    BYTES,
    DEPTH,
    FLOATS,
    IMAGE,
    LINE,
    SAMPLES,
    STENCIL,
    SWAPCHAIN,
    WORDS,
    ResourcePart,
)
from vkharness.suite.matrix.shader_operations import ARGUMENTS

COLOR_WRITE, COLOR_READ = (f"COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_{access}" for access in ("WRITE", "READ"))
DEPTH_WRITE, DEPTH_READ = (
    f"EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_{access}" for access in ("WRITE", "READ")
)
FEEDBACK, CONDITION = ("VK_EXT_transform_feedback",), ("VK_EXT_conditional_rendering",)
POINTS = VkPrimitiveTopology.POINT_LIST
ATTACHED = (IMAGE, FLOATS, WORDS, LINE, SAMPLES, SWAPCHAIN)
"""Kinds that can be colour attachments."""
DRAWN = (IMAGE, FLOATS, LINE, SAMPLES, SWAPCHAIN)
"""Those of formats that a shader writes as floats."""


# -- what a draw reads beside its attachments --------------------------------------------------------------------------


@operation(BUFFER, scope="VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ", command="vkCmdDraw")
def read_vertices(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDraw, the part holding all its vertices."""
    return _attributes(setup, part, 0)


@operation(BUFFER, scope="VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ", command="vkCmdDraw", variant=True)
def read_instances(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDraw, the part holding the attribute of all its instances."""
    return _attributes(setup, part, 1)


@operation(BUFFER, scope="INDEX_INPUT/INDEX_READ", command="vkCmdDrawIndexed")
def read_indices(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDrawIndexed, the part holding all its indices."""

    def draw(commands: Commands) -> None:
        commands.bind_indices(part.buffer, part.offset)
        commands.draw_indexed(BYTES // 4)

    return drawn(setup, draw, vertex="point_by_index", topology=POINTS)


@operation(BUFFER, scope=ARGUMENTS, command="vkCmdDrawIndirect")
def draw_indirect(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDrawIndirect, the part holding its parameters."""
    return drawn(setup, lambda commands: commands.draw_indirect(part.buffer, part.offset))


@operation(BUFFER, scope=ARGUMENTS, command="vkCmdDrawIndexedIndirect")
def draw_indexed_indirect(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDrawIndexedIndirect, the part holding its parameters."""
    indices = setup.rig.buffer(1024, data=b"".join(at.to_bytes(4, "little") for at in range(256)))

    def draw(commands: Commands) -> None:
        commands.bind_indices(indices)
        commands.draw_indirect(part.buffer, part.offset, indexed=True)

    return drawn(setup, draw, vertex="point_by_index", topology=POINTS)


@operation(BUFFER, scope=ARGUMENTS, command="vkCmdDrawIndirectCount")
def draw_indirect_count(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDrawIndirectCount of at most one draw, the part holding the count."""
    setup.rig.require("drawIndirectCount")
    parameters = setup.rig.buffer(16, data=bytes((3, 0, 0, 0, 1, 0, 0, 0)))
    return drawn(setup, lambda commands: commands.draw_indirect(parameters, counted=(part.buffer, part.offset)))


@operation(
    BUFFER,
    scope="CONDITIONAL_RENDERING/CONDITIONAL_RENDERING_READ",
    command="vkCmdBeginConditionalRenderingEXT",
    last="vkCmdDraw",
    again="vkCmdDraw",
    needs=CONDITION,
)
def read_condition(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdBeginConditionalRenderingEXT around a draw, the part holding the condition."""

    def draw(commands: Commands) -> None:
        commands.begin_condition(part.buffer, part.offset)
        commands.draw()
        commands.end_condition()

    return drawn(setup, draw)


@operation(
    BUFFER,
    scope="DRAW_INDIRECT/INDIRECT_COMMAND_READ",
    other="TRANSFORM_FEEDBACK_COUNTER_READ",
    command="vkCmdDrawIndirectByteCountEXT",
    needs=FEEDBACK,
)
def draw_byte_count(setup: Commands, part: ResourcePart, __: int) -> Record:
    """vkCmdDrawIndirectByteCountEXT, the part holding the counter."""

    def draw(commands: Commands) -> None:
        commands.draw_byte_count(part.buffer, offset=part.offset)

    return drawn(setup, draw, vertex="point_by_index", topology=POINTS)


@operation(BUFFER, scope="TRANSFORM_FEEDBACK/TRANSFORM_FEEDBACK_WRITE", command="vkCmdDraw", needs=FEEDBACK)
def capture_vertices(setup: Commands, part: ResourcePart, value: int) -> Record:
    """A draw that captures its vertices by transform feedback."""

    def draw(commands: Commands) -> None:
        commands.bind_feedback(part.buffer, part.offset, BYTES)
        commands.begin_feedback()
        commands.draw(BYTES // 4)
        commands.end_feedback()

    return drawn(setup, draw, vertex="feedback_words", value=value, topology=POINTS)


@operation(
    BUFFER,
    scope="TRANSFORM_FEEDBACK/TRANSFORM_FEEDBACK_COUNTER_WRITE",
    other="TRANSFORM_FEEDBACK_WRITE",
    command="vkCmdEndTransformFeedbackEXT",
    observable=False,
    needs=FEEDBACK,
)
def count_captured_bytes(setup: Commands, part: ResourcePart, value: int) -> Record:
    """The counter that the end of transform feedback writes. Most reads show nothing of its one word."""
    target = setup.rig.buffer(BYTES)

    def draw(commands: Commands) -> None:
        commands.bind_feedback(target)
        commands.begin_feedback()
        commands.draw(value)
        commands.end_feedback(part.buffer, part.offset)

    return drawn(setup, draw, vertex="feedback_words", value=value, topology=POINTS)


def _attributes(setup: Commands, part: ResourcePart, rate: int) -> Record:
    """Points by one word each, which the part holds for each vertex (rate 0) or instance (1)."""
    count = BYTES // 4

    def draw(commands: Commands) -> None:
        commands.bind_vertices((part.buffer, part.offset))
        commands.draw(1 if rate else count, count if rate else 1)

    return drawn(
        setup,
        draw,
        vertex="point_by_word",
        vertex_buffers=[(4, rate)],
        attributes=[(0, 0, "VK_FORMAT_R32_UINT", 0)],
        topology=POINTS,
    )


# -- attachments -------------------------------------------------------------------------------------------------------


@operation(
    *ATTACHED, scope=COLOR_WRITE, other="COLOR_ATTACHMENT_READ", command="vkCmdBeginRendering", last="vkCmdEndRendering"
)
def clear_color_attachment(_: Commands, part: ResourcePart, value: int) -> Record:
    """Dynamic rendering that clears a colour attachment and stores it."""
    return _attachment(part, "CLEAR", "STORE", value)


@operation(*ATTACHED, scope=COLOR_READ, other="COLOR_ATTACHMENT_WRITE", command="vkCmdBeginRendering", observable=False)
def load_color_attachment(_: Commands, part: ResourcePart, __: int) -> Record:
    """The load operation of a colour attachment, VK_ATTACHMENT_LOAD_OP_LOAD; nothing is stored."""
    return _attachment(part, "LOAD", "NONE")


@operation(
    *DRAWN, scope=COLOR_WRITE, other="COLOR_ATTACHMENT_READ", command="vkCmdBeginRendering", last="vkCmdEndRendering"
)
def draw_to_color_attachment(setup: Commands, part: ResourcePart, value: int) -> Record:
    """A draw to half of a colour attachment that is cleared before, and stored."""
    width, height, _ = part.extent
    pipeline = setup.rig.graphics(
        "constant_color", colors=[_format(part)], extent=(width, height), scissor=_half(part), samples=part.samples
    )

    def draw(commands: Commands) -> None:
        commands.bind(pipeline)
        commands.push_constants(pipeline, *struct.unpack("<4I", struct.pack("<4f", *[value / 8] * 4)))
        commands.draw()

    return _attachment(part, "CLEAR", "STORE", value, draw)


@operation(
    *ATTACHED, scope=COLOR_WRITE, other="COLOR_ATTACHMENT_READ", command="vkCmdBeginRendering", last="vkCmdEndRendering"
)
def clear_attachments(_: Commands, part: ResourcePart, value: int) -> Record:
    """vkCmdClearAttachments of half of a colour attachment that is cleared before, and stored."""
    rects = [(_half(part), 0, 1)]

    def clear(commands: Commands) -> None:
        commands.clear_attachments((1, 0, value + 1), rects=rects)

    return _attachment(part, "CLEAR", "STORE", value, clear)


@operation(IMAGE, FLOATS, scope=COLOR_WRITE, other="COLOR_ATTACHMENT_READ", command="vkCmdEndRendering")
def resolve_color_attachment(setup: Commands, part: ResourcePart, value: int) -> Record:
    """Dynamic rendering that resolves a multisample attachment of its own into the part."""
    rig, (width, height, _) = setup.rig, part.extent
    source = rig.image(_format(part), (width, height, 1), samples=4, usage=0x10)
    setup.transition(source)
    held = RenderingAttachment(rig.view(source), store="DONT_CARE", clear=value, resolve=part.view())

    def record(commands: Commands) -> None:
        commands.begin_rendering(held, area=part.area)
        commands.end_rendering()

    return record


@operation(
    DEPTH,
    STENCIL,
    scope=DEPTH_WRITE,
    other="DEPTH_STENCIL_ATTACHMENT_READ",
    command="vkCmdBeginRendering",
    last="vkCmdEndRendering",
)
def clear_depth_or_stencil_attachment(_: Commands, part: ResourcePart, value: int) -> Record:
    """Dynamic rendering that clears a depth or stencil attachment and stores it."""
    return _attachment(part, "CLEAR", "STORE", value)


@operation(
    DEPTH,
    STENCIL,
    scope=DEPTH_READ,
    other="DEPTH_STENCIL_ATTACHMENT_WRITE",
    command="vkCmdBeginRendering",
    observable=False,
)
def load_depth_or_stencil_attachment(_: Commands, part: ResourcePart, __: int) -> Record:
    """The load operation of a depth or stencil attachment, VK_ATTACHMENT_LOAD_OP_LOAD; nothing is stored."""
    return _attachment(part, "LOAD", "NONE")


@operation(
    DEPTH,
    scope=DEPTH_WRITE,
    other="DEPTH_STENCIL_ATTACHMENT_READ",
    command="vkCmdBeginRendering",
    last="vkCmdEndRendering",
)
def draw_to_depth_attachment(setup: Commands, part: ResourcePart, value: int) -> Record:
    """A draw to half of a depth attachment that is cleared before, and stored."""
    pipeline = setup.rig.graphics(
        None, colors=(), depth=_format(part), depth_test=True, depth_write=True, scissor=_half(part)
    )

    def draw(commands: Commands) -> None:
        commands.bind(pipeline)
        commands.draw()

    return _attachment(part, "CLEAR", "STORE", value, draw)


@operation(
    DEPTH, scope=DEPTH_READ, other="DEPTH_STENCIL_ATTACHMENT_WRITE", command="vkCmdBeginRendering", observable=False
)
def test_depth(setup: Commands, part: ResourcePart, __: int) -> Record:
    """A draw to a colour attachment of its own where it is nearer than a depth attachment, which is not stored. It is
    open whether contents that nobody wrote pass the test, so that a hazard need not show."""
    rig = setup.rig
    target = rig.target()
    setup.transition(target)
    color, depth = RenderingAttachment(rig.view(target)), RenderingAttachment(part.view(), load="LOAD", store="NONE")
    pipeline = rig.graphics(vertex="fullscreen", depth=_format(part), depth_test=True, depth_compare=VkCompareOp.LESS)

    def record(commands: Commands) -> None:
        commands.begin_rendering(color, depth=depth)
        commands.bind(pipeline)
        commands.draw()
        commands.end_rendering()

    return record


def _half(part: ResourcePart) -> tuple[int, int, int, int]:
    return 0, 0, max(1, part.extent[0] // 2), part.extent[1]


def _format(part: ResourcePart) -> str:
    return value_name("VkFormat", part.image.format)


def _attachment(part: ResourcePart, load: str, store: str, value: int = 0, inside: Record | None = None) -> Record:
    """Dynamic rendering to the part alone."""
    color = part.aspect == VkImageAspect.COLOR
    held = RenderingAttachment(part.view(), load=load, store=store, clear=value if color else (value / 8, value))
    depth = held if part.aspect == VkImageAspect.DEPTH else None
    stencil = held if part.aspect == VkImageAspect.STENCIL else None

    def record(commands: Commands) -> None:
        if color:
            commands.begin_rendering(held, area=part.area)
        else:
            commands.begin_rendering(depth=depth, stencil=stencil, area=part.area)
        if inside is not None:
            inside(commands)
        commands.end_rendering()

    return record


def drawn(
    setup: Commands,
    draw: Record,
    *,
    held: Mapping[str, Any] | None = None,
    value: int | None = None,
    **pipeline_options: Any,
) -> Record:
    """`draw` with a pipeline inside dynamic rendering to an attachment of the operation's own.

    `held` are the descriptors, `value` what is pushed, `pipeline_options` those of `Rig.graphics`.
    """
    rig = setup.rig
    target = rig.target()
    setup.transition(target)
    view = rig.view(target)
    pipeline = rig.graphics(**pipeline_options)
    descriptors = rig.descriptors(pipeline, **held) if held else None

    def record(commands: Commands) -> None:
        commands.begin_rendering(RenderingAttachment(view))
        commands.bind(pipeline, descriptors)
        if value is not None:
            commands.push_constants(pipeline, value)
        draw(commands)
        commands.end_rendering()

    return record
