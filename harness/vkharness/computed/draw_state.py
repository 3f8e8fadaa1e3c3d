"""The state that draws are executed with: pipelines, vertex and index buffers, and dynamic state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from vkharness.computed.captured_points import BIND, PointCapture
from vkharness.findings import UserError
from vkharness.replay.schedule.steps import Step
from vkharness.spec.enums import VkCullMode, VkDynamicState, VkPipelineBindPoint, VkStructureType
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call
from vkharness.trace.chain import links

FACES = (VkCullMode.FRONT, VkCullMode.BACK)
"""VkStencilFaceFlagBits."""
SIMPLE = {
    "vkCmdSetCullMode": (VkDynamicState.CULL_MODE, "cullMode"),
    "vkCmdSetFrontFace": (VkDynamicState.FRONT_FACE, "frontFace"),
    "vkCmdSetPrimitiveTopology": (VkDynamicState.PRIMITIVE_TOPOLOGY, "primitiveTopology"),
    "vkCmdSetDepthTestEnable": (VkDynamicState.DEPTH_TEST_ENABLE, "depthTestEnable"),
    "vkCmdSetDepthWriteEnable": (VkDynamicState.DEPTH_WRITE_ENABLE, "depthWriteEnable"),
    "vkCmdSetDepthCompareOp": (VkDynamicState.DEPTH_COMPARE_OP, "depthCompareOp"),
    "vkCmdSetStencilTestEnable": (VkDynamicState.STENCIL_TEST_ENABLE, "stencilTestEnable"),
    "vkCmdSetRasterizerDiscardEnable": (VkDynamicState.RASTERIZER_DISCARD_ENABLE, "rasterizerDiscardEnable"),
    "vkCmdSetViewport": (VkDynamicState.VIEWPORT, "pViewports"),
    "vkCmdSetScissor": (VkDynamicState.SCISSOR, "pScissors"),
    "vkCmdSetViewportWithCount": (VkDynamicState.VIEWPORT_WITH_COUNT, "pViewports"),
    "vkCmdSetScissorWithCount": (VkDynamicState.SCISSOR_WITH_COUNT, "pScissors"),
}
"""Command to the dynamic state that it sets, and the parameter with its value."""
BY_FACE = {
    "vkCmdSetStencilCompareMask": (VkDynamicState.STENCIL_COMPARE_MASK, ("compareMask",)),
    "vkCmdSetStencilWriteMask": (VkDynamicState.STENCIL_WRITE_MASK, ("writeMask",)),
    "vkCmdSetStencilReference": (VkDynamicState.STENCIL_REFERENCE, ("reference",)),
    "vkCmdSetStencilOp": (VkDynamicState.STENCIL_OP, ("failOp", "passOp", "depthFailOp", "compareOp")),
}
"""The same for state of each stencil face: members of VkStencilOpState, which are parameters."""
PLAIN_CHAIN = (VkStructureType.PIPELINE_RENDERING_CREATE_INFO, VkStructureType.PIPELINE_CREATION_FEEDBACK_CREATE_INFO)
"""Structures chained to a pipeline's create info that say nothing about what draws leave."""


class VertexPlace(NamedTuple):
    """A vertex or index buffer as bound; `kind` is the VkIndexType."""

    buffer: int
    offset: int
    kind: int = 0


@dataclass(slots=True)
class ExecutedDrawState:
    """The state of one execution of a command buffer."""

    pipeline: int = 0
    vertices: dict[int, VertexPlace] = field(default_factory=dict)
    indices: VertexPlace | None = None
    dynamic: dict[int, Any] = field(default_factory=dict)
    faces: dict[tuple[int, str], int] = field(default_factory=dict)
    """(face, member of VkStencilOpState) -> value."""
    feedback: PointCapture = field(default_factory=PointCapture)


@dataclass(frozen=True, slots=True)
class FixedState:
    """The fixed state of one draw."""

    info: Mapping[str, Any]
    topology: int
    discard: bool
    viewport: Mapping[str, float]
    scissor: Mapping[str, Any]
    cull: int
    front_face: int
    samples: int
    depth_test: bool
    depth_write: bool
    depth_compare: int
    stencil_test: bool
    faces: tuple[Mapping[str, int], Mapping[str, int]]
    """VkStencilOpState of front and back."""
    blends: Sequence[Mapping[str, int]]


class DrawStates:
    """Follows the state of the command buffer that is executed."""

    def __init__(self) -> None:
        self._pipelines: dict[int, dict[str, Any]] = {}
        self._execution: tuple[Any, ...] = ()
        self.current = ExecutedDrawState()

    def note(self, call: Call) -> None:
        """Takes the creation of pipelines in."""
        if call.name == "vkCreateGraphicsPipelines":
            for id, info in zip(call.args["pPipelines"] or (), call.args["pCreateInfos"] or (), strict=False):
                if id:
                    self._pipelines[id] = info

    def follow(self, step: Step, call: Call) -> None:
        """Takes a command in. State is not inherited from another command buffer."""
        where = step.identity
        execution = (where.submit, where.batch, where.position, where.executed_by)
        if execution != self._execution:
            self._execution, self.current = execution, ExecutedDrawState()
        name, args, state = main_name(call.name).removesuffix("2"), call.args, self.current
        if name == "vkCmdBindPipeline" and args["pipelineBindPoint"] == VkPipelineBindPoint.GRAPHICS:
            state.pipeline = args["pipeline"]
        elif name == "vkCmdBindShadersEXT":
            state.pipeline = 0
        elif name == "vkCmdBindVertexBuffers":
            for at, (buffer, offset) in enumerate(zip(args["pBuffers"], args["pOffsets"], strict=True)):
                state.vertices[args["firstBinding"] + at] = VertexPlace(buffer, offset)
        elif name == "vkCmdBindIndexBuffer":
            state.indices = VertexPlace(args["buffer"], args["offset"], args["indexType"])
        elif name == BIND:
            state.feedback.bind(args)
        elif name in SIMPLE:
            which, parameter = SIMPLE[name]
            if not args.get("firstViewport") and not args.get("firstScissor"):
                state.dynamic[which] = args[parameter]
        elif name in BY_FACE:
            for face in FACES:
                if args["faceMask"] & face:
                    state.faces |= {(face, each): args[each] for each in BY_FACE[name][1]}

    def fixed(self) -> FixedState:
        """The state of a draw now. Raises `UserError` where a part of it is not followed."""
        state, info = self.current, self._pipelines.get(self.current.pipeline)
        if info is None:
            raise UserError("its pipeline is not known")
        _refuse(info)
        raster, depth = info["pRasterizationState"], info["pDepthStencilState"] or {}
        held = _Chosen(state, frozenset((info["pDynamicState"] or {}).get("pDynamicStates") or ()))
        discard = bool(held.of(VkDynamicState.RASTERIZER_DISCARD_ENABLE, raster["rasterizerDiscardEnable"]))
        shape = {} if discard else info["pViewportState"]
        viewports = held.first((VkDynamicState.VIEWPORT, VkDynamicState.VIEWPORT_WITH_COUNT), shape.get("pViewports"))
        scissors = held.first((VkDynamicState.SCISSOR, VkDynamicState.SCISSOR_WITH_COUNT), shape.get("pScissors"))
        if not discard and not (len(viewports or ()) == len(scissors or ()) == 1):
            raise UserError("several viewports are not followed")
        multisample = None if discard else info["pMultisampleState"]
        return FixedState(
            info,
            held.of(VkDynamicState.PRIMITIVE_TOPOLOGY, info["pInputAssemblyState"]["topology"]),
            discard,
            viewports[0] if viewports else {},
            scissors[0] if scissors else {},
            held.of(VkDynamicState.CULL_MODE, raster["cullMode"]),
            held.of(VkDynamicState.FRONT_FACE, raster["frontFace"]),
            multisample["rasterizationSamples"] if multisample else 1,
            bool(held.of(VkDynamicState.DEPTH_TEST_ENABLE, depth.get("depthTestEnable", 0))),
            bool(held.of(VkDynamicState.DEPTH_WRITE_ENABLE, depth.get("depthWriteEnable", 0))),
            held.of(VkDynamicState.DEPTH_COMPARE_OP, depth.get("depthCompareOp", 0)),
            bool(held.of(VkDynamicState.STENCIL_TEST_ENABLE, depth.get("stencilTestEnable", 0))),
            (held.face(VkCullMode.FRONT, depth.get("front")), held.face(VkCullMode.BACK, depth.get("back"))),
            (info["pColorBlendState"] or {}).get("pAttachments") or (),
        )


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Chooses between the state of the pipeline and dynamic state."""

    state: ExecutedDrawState
    dynamic: frozenset[int]

    def of(self, which: int, static: Any) -> Any:
        """The value of one state."""
        if which not in self.dynamic:
            return static
        if which not in self.state.dynamic:
            raise UserError("dynamic state was not set")
        return self.state.dynamic[which]

    def first(self, several: Sequence[int], static: Any) -> Any:
        """The value of the state that is dynamic under one of several names."""
        return self.of(next((each for each in several if each in self.dynamic), several[0]), static)

    def face(self, face: int, static: Mapping[str, int] | None) -> Mapping[str, int]:
        """The VkStencilOpState of a face."""
        found = dict(static or {})
        for which, members in BY_FACE.values():
            if which in self.dynamic:
                for each in members:
                    if (face, each) not in self.state.faces:
                        raise UserError("dynamic state was not set")
                    found[each] = self.state.faces[face, each]
        return found


KNOWN_DYNAMIC = {which for which, _ in SIMPLE.values()} | {which for which, _ in BY_FACE.values()}


def _refuse(info: Mapping[str, Any]) -> None:
    """Raises `UserError` for state that changes what a draw leaves, and is not followed."""
    raster, assembly = info["pRasterizationState"], info["pInputAssemblyState"]
    if raster is None or assembly is None or any(each.get("sType") not in PLAIN_CHAIN for each in links(info["pNext"])):
        raise UserError("a pipeline of this sort is not followed")
    parts = ("pVertexInputState", "pViewportState", "pRasterizationState", "pMultisampleState", "pDepthStencilState")
    held = [info[each] for each in (*parts, "pColorBlendState") if info[each] is not None]
    if any(each["pNext"] for each in held):
        raise UserError("state that is chained to a pipeline is not followed")
    listed = (info["pDynamicState"] or {}).get("pDynamicStates") or ()
    if not KNOWN_DYNAMIC.issuperset(listed):
        raise UserError("a dynamic state of this sort is not followed")
    depth, blend = info["pDepthStencilState"] or {}, info["pColorBlendState"] or {}
    samples = info["pMultisampleState"] or {}
    if (
        any(raster[each] for each in ("depthClampEnable", "depthBiasEnable", "polygonMode"))
        or assembly["primitiveRestartEnable"]
        or depth.get("depthBoundsTestEnable")
        or blend.get("logicOpEnable")
        or any(samples.get(each) for each in ("sampleShadingEnable", "alphaToCoverageEnable", "alphaToOneEnable"))
        or any(each & 0xFFFFFFFF != 0xFFFFFFFF for each in samples.get("pSampleMask") or ())
    ):
        raise UserError("a state of the pipeline is not followed")
