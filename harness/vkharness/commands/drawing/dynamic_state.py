"""Dynamic state that decides the accesses of draws (specification: "Dynamic State").

Many states change no access (`CHANGES_NO_ACCESS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from vkharness.commands.drawing.graphics import MOST_ATTACHMENTS, equation_of, locations_of, make_vertex_input
from vkharness.commands.handlers import CommandHandler, command
from vkharness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from vkharness.spec._generated import ENUMS
from vkharness.spec.command_classes import CHANGES_NO_ACCESS
from vkharness.spec.enums import VK_ATTACHMENT_UNUSED, VkStencilFace
from vkharness.trace.effects import Effect, Unmodelled
from vkharness.trace.graphics_state import (
    ColorBlend,
    DepthStencil,
    DrawState,
    GraphicsState,
    StencilFace,
    VertexBinding,
)

_STATES = ENUMS["VkDynamicState"]
STENCIL_OP = _STATES["VK_DYNAMIC_STATE_STENCIL_OP"]
STENCIL_COMPARE_MASK = _STATES["VK_DYNAMIC_STATE_STENCIL_COMPARE_MASK"]
STENCIL_WRITE_MASK = _STATES["VK_DYNAMIC_STATE_STENCIL_WRITE_MASK"]
DEPTH_TEST = _STATES["VK_DYNAMIC_STATE_DEPTH_TEST_ENABLE"]
DEPTH_WRITE = _STATES["VK_DYNAMIC_STATE_DEPTH_WRITE_ENABLE"]
DEPTH_COMPARE = _STATES["VK_DYNAMIC_STATE_DEPTH_COMPARE_OP"]
DEPTH_BOUNDS_TEST = _STATES["VK_DYNAMIC_STATE_DEPTH_BOUNDS_TEST_ENABLE"]
STENCIL_TEST = _STATES["VK_DYNAMIC_STATE_STENCIL_TEST_ENABLE"]
DISCARD = _STATES["VK_DYNAMIC_STATE_RASTERIZER_DISCARD_ENABLE"]
CULL_MODE = _STATES["VK_DYNAMIC_STATE_CULL_MODE"]
TOPOLOGY = _STATES["VK_DYNAMIC_STATE_PRIMITIVE_TOPOLOGY"]
RESTART = _STATES["VK_DYNAMIC_STATE_PRIMITIVE_RESTART_ENABLE"]
LOGIC_OP = _STATES["VK_DYNAMIC_STATE_LOGIC_OP_EXT"]
LOGIC_OP_ENABLE = _STATES["VK_DYNAMIC_STATE_LOGIC_OP_ENABLE_EXT"]
COLOR_WRITE_ENABLE = _STATES["VK_DYNAMIC_STATE_COLOR_WRITE_ENABLE_EXT"]
COLOR_WRITE_MASK = _STATES["VK_DYNAMIC_STATE_COLOR_WRITE_MASK_EXT"]
COLOR_BLEND_ENABLE = _STATES["VK_DYNAMIC_STATE_COLOR_BLEND_ENABLE_EXT"]
COLOR_BLEND_EQUATION = _STATES["VK_DYNAMIC_STATE_COLOR_BLEND_EQUATION_EXT"]
COLOR_BLEND_ADVANCED = _STATES["VK_DYNAMIC_STATE_COLOR_BLEND_ADVANCED_EXT"]
VERTEX_INPUT = _STATES["VK_DYNAMIC_STATE_VERTEX_INPUT_EXT"]
BINDING_STRIDE = _STATES["VK_DYNAMIC_STATE_VERTEX_INPUT_BINDING_STRIDE"]
LOCATIONS = -1
"""Stands beside them for the locations of colour attachments, which are no VkDynamicState."""

TESTS = {DEPTH_TEST, DEPTH_WRITE, DEPTH_COMPARE, DEPTH_BOUNDS_TEST, STENCIL_TEST, STENCIL_OP} | {
    STENCIL_COMPARE_MASK,
    STENCIL_WRITE_MASK,
}
"""The states that `depth_stencil` gives."""

VALUES = {
    "vkCmdSetDepthTestEnable": (DEPTH_TEST, "depthTestEnable"),
    "vkCmdSetDepthWriteEnable": (DEPTH_WRITE, "depthWriteEnable"),
    "vkCmdSetDepthCompareOp": (DEPTH_COMPARE, "depthCompareOp"),
    "vkCmdSetDepthBoundsTestEnable": (DEPTH_BOUNDS_TEST, "depthBoundsTestEnable"),
    "vkCmdSetStencilTestEnable": (STENCIL_TEST, "stencilTestEnable"),
    "vkCmdSetRasterizerDiscardEnable": (DISCARD, "rasterizerDiscardEnable"),
    "vkCmdSetCullMode": (CULL_MODE, "cullMode"),
    "vkCmdSetPrimitiveTopology": (TOPOLOGY, "primitiveTopology"),
    "vkCmdSetPrimitiveRestartEnable": (RESTART, "primitiveRestartEnable"),
    "vkCmdSetLogicOpEXT": (LOGIC_OP, "logicOp"),
    "vkCmdSetLogicOpEnableEXT": (LOGIC_OP_ENABLE, "logicOpEnable"),
}
"""Commands that set one number, with the state and the parameter."""

BY_FACE = {
    "vkCmdSetStencilOp": (STENCIL_OP, ("failOp", "passOp", "depthFailOp", "compareOp")),
    "vkCmdSetStencilCompareMask": (STENCIL_COMPARE_MASK, ("compareMask",)),
    "vkCmdSetStencilWriteMask": (STENCIL_WRITE_MASK, ("writeMask",)),
}
"""Commands that set numbers for the faces in `faceMask`."""

BY_ATTACHMENT = {
    "vkCmdSetColorWriteEnableEXT": (COLOR_WRITE_ENABLE, "pColorWriteEnables"),
    "vkCmdSetColorWriteMaskEXT": (COLOR_WRITE_MASK, "pColorWriteMasks"),
    "vkCmdSetColorBlendEnableEXT": (COLOR_BLEND_ENABLE, "pColorBlendEnables"),
    "vkCmdSetColorBlendEquationEXT": (COLOR_BLEND_EQUATION, "pColorBlendEquations"),
    "vkCmdSetColorBlendAdvancedEXT": (COLOR_BLEND_ADVANCED, "pColorBlendAdvanced"),
}
"""Commands that set an array over colour attachments."""


@command(*CHANGES_NO_ACCESS)
def change_no_access(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A command with no effect on memory."""
    return NOTHING


@command("vkCmdSetCoverageToColorEnableNV")
def set_coverage_to_color(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Draws may write a colour that the shader does not write from now on, which is not followed."""
    return (Unmodelled("coverage that takes the place of a colour"),) if args["coverageToColorEnable"] else NOTHING


def _value_setter(state: int, parameter: str) -> CommandHandler:
    def handler(_: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
        return _set(buffer.drawing, {(state, 0): args[parameter]})

    return handler


def _face_setter(state: int, parameters: tuple[str, ...]) -> CommandHandler:
    def handler(_: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
        values = tuple(args[each] for each in parameters)
        return _set(
            buffer.drawing,
            {(state, face): values for face in (VkStencilFace.FRONT, VkStencilFace.BACK) if args["faceMask"] & face},
        )

    return handler


def _attachment_setter(state: int, parameter: str) -> CommandHandler:
    def handler(_: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
        first = args.get("firstAttachment", 0)
        return _set(buffer.drawing, {(state, index): value for index, value in enumerate(args[parameter] or (), first)})

    return handler


for _name, (_state, _parameter) in VALUES.items():
    command(_name)(_value_setter(_state, _parameter))
for _name, (_state, _parameters) in BY_FACE.items():
    command(_name)(_face_setter(_state, _parameters))
for _name, (_state, _parameter) in BY_ATTACHMENT.items():
    command(_name)(_attachment_setter(_state, _parameter))


def _set(drawing: DrawState, values: dict[tuple[int, int], Any]) -> Iterable[Effect]:
    drawing.dynamic.update(values)
    drawing.targets = None
    return NOTHING


@command("vkCmdSetRenderingAttachmentLocations")
def set_locations(_: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Maps output locations to colour attachments until rendering begins anew."""
    return _set(buffer.drawing, {(LOCATIONS, 0): locations_of(args["pLocationInfo"])})


def forget_locations(drawing: DrawState) -> None:
    """Rendering begins: each colour attachment has its index as its location."""
    if drawing.dynamic.pop((LOCATIONS, 0), None) is not None:
        drawing.targets = None


@command("vkCmdSetVertexInputEXT")
def set_vertex_input(_: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Replaces all bindings and attributes, and the strides that were set before."""
    given = given_vertex_input(args)
    dynamic = buffer.drawing.dynamic
    dynamic[VERTEX_INPUT, 0] = given
    dynamic.update({(BINDING_STRIDE, each.binding): each.stride for each in given})
    buffer.drawing.sources = None
    return NOTHING


def given_vertex_input(args: dict[str, Any]) -> tuple[VertexBinding, ...]:
    """The bindings that a vkCmdSetVertexInputEXT sets."""
    return make_vertex_input(args["pVertexBindingDescriptions"] or (), args["pVertexAttributeDescriptions"] or ())


# The state that holds for a draw: the pipeline's value, or the value that was set where the pipeline has the state
# dynamic. A dynamic state that was never set makes the draw invalid; the pipeline's value stands in.


def vertex_input(state: GraphicsState, drawing: DrawState) -> tuple[VertexBinding, ...]:
    """The bindings that attributes use, with the strides that apply to a draw."""
    held: tuple[VertexBinding, ...] = _value(state, drawing, VERTEX_INPUT, state.vertex_input)
    if BINDING_STRIDE not in state.dynamic:
        return held
    strides = [drawing.dynamic.get((BINDING_STRIDE, each.binding), each.stride) for each in held]
    return tuple(replace(each, stride=stride) for each, stride in zip(held, strides, strict=True))


def discards(state: GraphicsState, drawing: DrawState) -> bool:
    """Whether a draw rasterizes nothing."""
    return bool(_value(state, drawing, DISCARD, state.discard))


def cull_mode(state: GraphicsState, drawing: DrawState) -> int:
    """The VkCullModeFlags that apply to a draw."""
    return int(_value(state, drawing, CULL_MODE, state.cull))


def topology(state: GraphicsState, drawing: DrawState) -> int:
    """The VkPrimitiveTopology of a draw's input."""
    return int(_value(state, drawing, TOPOLOGY, state.topology))


def restarts(state: GraphicsState, drawing: DrawState) -> bool:
    """Whether the largest index restarts the primitive, and means no vertex."""
    return bool(_value(state, drawing, RESTART, state.restart))


def depth_stencil(state: GraphicsState, drawing: DrawState) -> DepthStencil:
    """The depth and stencil tests that apply to a draw."""
    held = state.depth_stencil
    return DepthStencil(
        bool(_value(state, drawing, DEPTH_TEST, held.depth_test)),
        bool(_value(state, drawing, DEPTH_WRITE, held.depth_write)),
        _value(state, drawing, DEPTH_COMPARE, held.depth_compare),
        bool(_value(state, drawing, DEPTH_BOUNDS_TEST, held.depth_bounds)),
        bool(_value(state, drawing, STENCIL_TEST, held.stencil_test)),
        _face(state, drawing, held.front, VkStencilFace.FRONT),
        _face(state, drawing, held.back, VkStencilFace.BACK),
    )


def _face(state: GraphicsState, drawing: DrawState, held: StencilFace, face: int) -> StencilFace:
    return StencilFace(
        *_value(state, drawing, STENCIL_OP, (held.fail, held.passed, held.depth_fail, held.compare), face),
        *_value(state, drawing, STENCIL_COMPARE_MASK, (held.compare_mask,), face),
        *_value(state, drawing, STENCIL_WRITE_MASK, (held.write_mask,), face),
    )


def colors(state: GraphicsState, drawing: DrawState) -> Iterator[tuple[int, ColorBlend]]:
    """(index, state) of each colour attachment to which the pipeline may draw."""
    for index, held in enumerate(_attachments(state)):
        if state.formats is not None and not (index < len(state.formats) and state.formats[index]):
            continue
        equation = _value(state, drawing, COLOR_BLEND_EQUATION, None, index)
        advanced = _value(state, drawing, COLOR_BLEND_ADVANCED, None, index)
        yield (
            index,
            ColorBlend(
                _value(state, drawing, COLOR_WRITE_MASK, held.write_mask, index),
                bool(_value(state, drawing, COLOR_BLEND_ENABLE, held.blend, index)),
                held.equation if equation is None else equation_of(equation),
                bool(_value(state, drawing, COLOR_WRITE_ENABLE, held.write_enable, index)),
                advanced is not None and equation is None,
            ),
        )


def location(state: GraphicsState, drawing: DrawState, index: int) -> int | None:
    """The location of which the output goes to a colour attachment; None where nothing does.

    Specification: VkRenderingAttachmentLocationInfo; rules.md#draws-write-colour-at-attachment-output.
    """
    held = drawing.dynamic.get((LOCATIONS, 0)) or state.locations
    if held is None:
        return index
    return held[index] if index < len(held) and held[index] != VK_ATTACHMENT_UNUSED else None


def _attachments(state: GraphicsState) -> tuple[ColorBlend, ...]:
    """The attachments of the blend state. With all of it dynamic there may be none; then as many as possible count."""
    if state.colors or COLOR_WRITE_MASK not in state.dynamic:
        return state.colors
    return tuple(ColorBlend() for _ in range(MOST_ATTACHMENTS if state.formats is None else len(state.formats)))


def logic_op(state: GraphicsState, drawing: DrawState) -> int | None:
    """The VkLogicOp that replaces blending; None when there is none."""
    if not _value(state, drawing, LOGIC_OP_ENABLE, state.logic_enabled):
        return None
    return int(_value(state, drawing, LOGIC_OP, state.logic_op))


def _value(state: GraphicsState, drawing: DrawState, which: int, static: Any, part: int = 0) -> Any:
    return drawing.dynamic.get((which, part), static) if which in state.dynamic else static
