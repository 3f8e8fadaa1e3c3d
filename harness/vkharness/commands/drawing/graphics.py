"""Graphics pipelines: their shaders, and the fixed state that decides the accesses of draws.

Specification: "Graphics Pipelines"; "Graphics Pipeline Library" for pipelines that are linked from parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from vkharness.commands.drawing.pipelines import make_stage
from vkharness.commands.handlers import call
from vkharness.commands.object_state import ObjectState
from vkharness.spec.enums import (
    VkCullMode,
    VkGraphicsPipelineLibrary,
    VkImageAspect,
    VkPipelineBindPoint,
    VkPrimitiveTopology,
    VkStructureType,
)
from vkharness.spec.formats import format_of
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import StreamEvent
from vkharness.trace.graphics_state import (
    ColorBlend,
    DepthStencil,
    GraphicsPipeline,
    GraphicsState,
    StencilFace,
    VertexBinding,
)
from vkharness.trace.resources import PipelineLayout, Stage

WHOLE_PIPELINE = 15
MOST_ATTACHMENTS = 64
"""A number of colour attachments that no device exceeds."""
RASTER_ORDERED_COLOR = 1
"""VK_PIPELINE_COLOR_BLEND_STATE_CREATE_RASTERIZATION_ORDER_ATTACHMENT_ACCESS_BIT_EXT."""
RASTER_ORDERED_DEPTH, RASTER_ORDERED_STENCIL = 1, 2
"""VK_PIPELINE_DEPTH_STENCIL_STATE_CREATE_RASTERIZATION_ORDER_ATTACHMENT_DEPTH_ACCESS_BIT_EXT, and of stencil."""
RASTERIZATION_ORDER = VkStructureType.PIPELINE_RASTERIZATION_STATE_RASTERIZATION_ORDER_AMD
UNSEEN = "a pipeline whose shaders were not seen"


@call("vkCreateGraphicsPipelines")
def create_graphics_pipelines(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds pipelines. Null handles (failed or deferred creation) are passed over."""
    for id, info in zip(call.args["pPipelines"] or (), call.args["pCreateInfos"] or (), strict=False):
        if id:
            objects.add(_pipeline(objects, id, info))
    return ()


def _pipeline(objects: ObjectState, id: int, info: dict[str, Any]) -> GraphicsPipeline:
    linked = chained(info, VkStructureType.PIPELINE_LIBRARY_CREATE_INFO_KHR)
    libraries = [objects.get(GraphicsPipeline, each) for each in (linked or {}).get("pLibraries") or ()]
    own = chained(info, VkStructureType.GRAPHICS_PIPELINE_LIBRARY_CREATE_INFO_EXT)
    parts = own["flags"] if own else 0 if libraries else WHOLE_PIPELINE
    stages = [make_stage(objects, each) for each in info["pStages"] or ()]
    unmodelled = UNSEEN if None in stages else ""
    if chained(info, VkStructureType.GRAPHICS_PIPELINE_SHADER_GROUPS_CREATE_INFO_NV):
        unmodelled = "a pipeline with shader groups"
    order = chained(info["pRasterizationState"] or {}, RASTERIZATION_ORDER) or {}
    if order.get("rasterizationOrder"):
        unmodelled = "a pipeline with relaxed rasterization order"
    made = GraphicsPipeline(
        id,
        VkPipelineBindPoint.GRAPHICS,
        objects.get(PipelineLayout, info["layout"]),
        tuple(stage for stage in stages if stage is not None),
        _state(info, parts),
        parts,
        unmodelled=unmodelled,
    )
    for library in libraries:
        made = _linked(made, library)
    return made


def _linked(made: GraphicsPipeline, library: GraphicsPipeline | None) -> GraphicsPipeline:
    """The pipeline with the parts of another library added."""
    if library is None:
        return replace(made, unmodelled=UNSEEN)
    state, more = made.state, library.state
    joined = replace(
        state,
        vertex_input=more.vertex_input
        if library.parts & VkGraphicsPipelineLibrary.VERTEX_INPUT_INTERFACE
        else state.vertex_input,
        topology=more.topology if library.parts & VkGraphicsPipelineLibrary.VERTEX_INPUT_INTERFACE else state.topology,
        restart=more.restart if library.parts & VkGraphicsPipelineLibrary.VERTEX_INPUT_INTERFACE else state.restart,
        discard=more.discard if library.parts & VkGraphicsPipelineLibrary.PRE_RASTERIZATION_SHADERS else state.discard,
        cull=more.cull if library.parts & VkGraphicsPipelineLibrary.PRE_RASTERIZATION_SHADERS else state.cull,
        depth_stencil=more.depth_stencil
        if library.parts & VkGraphicsPipelineLibrary.FRAGMENT_SHADER
        else state.depth_stencil,
        colors=more.colors if library.parts & VkGraphicsPipelineLibrary.FRAGMENT_OUTPUT_INTERFACE else state.colors,
        logic_enabled=more.logic_enabled
        if library.parts & VkGraphicsPipelineLibrary.FRAGMENT_OUTPUT_INTERFACE
        else state.logic_enabled,
        logic_op=more.logic_op
        if library.parts & VkGraphicsPipelineLibrary.FRAGMENT_OUTPUT_INTERFACE
        else state.logic_op,
        formats=more.formats if library.parts & VkGraphicsPipelineLibrary.FRAGMENT_OUTPUT_INTERFACE else state.formats,
        locations=more.locations
        if library.parts & VkGraphicsPipelineLibrary.FRAGMENT_OUTPUT_INTERFACE
        else state.locations,
        dynamic=state.dynamic | more.dynamic,
        raster_ordered=state.raster_ordered | more.raster_ordered,
    )
    return replace(
        made,
        layout=made.layout or library.layout,
        stages=_stages(made.stages, library.stages),
        state=joined,
        parts=made.parts | library.parts,
        unmodelled=made.unmodelled or library.unmodelled,
    )


def _stages(held: tuple[Stage, ...], more: tuple[Stage, ...]) -> tuple[Stage, ...]:
    known = {stage.stage for stage in held}
    return (*held, *(stage for stage in more if stage.stage not in known))


def _state(info: dict[str, Any], parts: int) -> GraphicsState:
    """The state of the parts that this create info gives. Parts that it leaves out have no effect."""
    dynamic = frozenset((info["pDynamicState"] or {}).get("pDynamicStates") or ())
    raster = info["pRasterizationState"] if parts & VkGraphicsPipelineLibrary.PRE_RASTERIZATION_SHADERS else None
    assembly = info["pInputAssemblyState"] if parts & VkGraphicsPipelineLibrary.VERTEX_INPUT_INTERFACE else None
    depth_stencil = info["pDepthStencilState"] if parts & VkGraphicsPipelineLibrary.FRAGMENT_SHADER else None
    blend = info["pColorBlendState"] if parts & VkGraphicsPipelineLibrary.FRAGMENT_OUTPUT_INTERFACE else None
    return GraphicsState(
        vertex_input=_vertex_input(
            info["pVertexInputState"] if parts & VkGraphicsPipelineLibrary.VERTEX_INPUT_INTERFACE else None
        ),
        restart=bool(assembly and assembly["primitiveRestartEnable"]),
        discard=bool(raster and raster["rasterizerDiscardEnable"]),
        cull=raster["cullMode"] if raster else VkCullMode.NONE,
        topology=assembly["topology"] if assembly else VkPrimitiveTopology.TRIANGLE_LIST,
        depth_stencil=_depth_stencil(depth_stencil),
        colors=_colors(blend),
        logic_enabled=bool(blend and blend["logicOpEnable"]),
        logic_op=blend["logicOp"] if blend else 0,
        dynamic=dynamic,
        formats=_formats(info) if parts & VkGraphicsPipelineLibrary.FRAGMENT_OUTPUT_INTERFACE else None,
        locations=locations_of(chained(info, VkStructureType.RENDERING_ATTACHMENT_LOCATION_INFO))
        if parts & VkGraphicsPipelineLibrary.FRAGMENT_OUTPUT_INTERFACE
        else None,
        raster_ordered=_raster_ordered(depth_stencil, blend),
    )


def _raster_ordered(depth_stencil: dict[str, Any] | None, blend: dict[str, Any] | None) -> int:
    """The aspects with rasterization order attachment access (rules.md#rasterization-order-attachment-access)."""
    tests = depth_stencil["flags"] if depth_stencil else 0
    aspects = VkImageAspect.COLOR if blend and blend["flags"] & RASTER_ORDERED_COLOR else 0
    aspects |= VkImageAspect.DEPTH if tests & RASTER_ORDERED_DEPTH else 0
    return aspects | (VkImageAspect.STENCIL if tests & RASTER_ORDERED_STENCIL else 0)


def _vertex_input(info: dict[str, Any] | None) -> tuple[VertexBinding, ...]:
    if info is None:
        return ()
    divisors = (chained(info, VkStructureType.PIPELINE_VERTEX_INPUT_DIVISOR_STATE_CREATE_INFO) or {}).get(
        "pVertexBindingDivisors"
    ) or ()
    by_binding = {each["binding"]: each["divisor"] for each in divisors}
    bindings = info["pVertexBindingDescriptions"] or ()
    return make_vertex_input(
        [{**each, "divisor": by_binding.get(each["binding"], 1)} for each in bindings],
        info["pVertexAttributeDescriptions"] or (),
    )


def make_vertex_input(
    bindings: Iterable[dict[str, Any]], attributes: Iterable[dict[str, Any]]
) -> tuple[VertexBinding, ...]:
    """The bindings that attributes use, from binding descriptions (with their divisors) and attribute descriptions.

    A binding without attributes is not read, and left out.
    """
    reached: dict[int, list[tuple[int, int]]] = {}
    for each in attributes:
        end = each["offset"] + format_of(each["format"]).block_bytes
        reached.setdefault(each["binding"], []).append((each["offset"], end))
    return tuple(
        VertexBinding(
            each["binding"],
            each["stride"],
            min(low for low, _ in reached[each["binding"]]),
            max(high for _, high in reached[each["binding"]]),
            each["inputRate"] == 1,
            each["divisor"],
        )
        for each in bindings
        if each["binding"] in reached
    )


def _depth_stencil(info: dict[str, Any] | None) -> DepthStencil:
    if info is None:
        return DepthStencil()
    return DepthStencil(
        depth_test=bool(info["depthTestEnable"]),
        depth_write=bool(info["depthWriteEnable"]),
        depth_compare=info["depthCompareOp"],
        depth_bounds=bool(info["depthBoundsTestEnable"]),
        stencil_test=bool(info["stencilTestEnable"]),
        front=_face(info["front"]),
        back=_face(info["back"]),
    )


def _face(info: dict[str, Any]) -> StencilFace:
    return StencilFace(
        info["failOp"], info["passOp"], info["depthFailOp"], info["compareOp"], info["compareMask"], info["writeMask"]
    )


def _colors(info: dict[str, Any] | None) -> tuple[ColorBlend, ...]:
    if info is None:
        return ()
    enables = (chained(info, VkStructureType.PIPELINE_COLOR_WRITE_CREATE_INFO_EXT) or {}).get(
        "pColorWriteEnables"
    ) or ()
    attachments = info["pAttachments"]
    if attachments is None:  # allowed when all of it is dynamic
        return tuple(ColorBlend() for _ in range(min(info["attachmentCount"], MOST_ATTACHMENTS)))
    return tuple(
        ColorBlend(
            each["colorWriteMask"],
            bool(each["blendEnable"]),
            equation_of(each),
            bool(enables[index]) if index < len(enables) else True,
        )
        for index, each in enumerate(attachments)
    )


def equation_of(info: dict[str, Any]) -> tuple[int, int, int, int, int, int]:
    """The factors and operations of a blend attachment state or of a VkColorBlendEquationEXT."""
    return (
        info["srcColorBlendFactor"],
        info["dstColorBlendFactor"],
        info["colorBlendOp"],
        info["srcAlphaBlendFactor"],
        info["dstAlphaBlendFactor"],
        info["alphaBlendOp"],
    )


def locations_of(info: dict[str, Any] | None) -> tuple[int, ...] | None:
    """The locations of a VkRenderingAttachmentLocationInfo; None where they are the indices of the attachments."""
    given = (info or {}).get("pColorAttachmentLocations")
    return None if given is None else tuple(given)


def _formats(info: dict[str, Any]) -> tuple[int, ...] | None:
    rendering = None if info["renderPass"] else chained(info, VkStructureType.PIPELINE_RENDERING_CREATE_INFO)
    return tuple(rendering["pColorAttachmentFormats"] or ()) if rendering else None
