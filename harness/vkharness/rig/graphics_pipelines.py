"""Graphics pipelines with fixed state in few words. Everything else is the simplest valid choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vkharness.rig.compute_pipelines import ComputePipelines
from vkharness.rig.core import COLOR_FORMAT, RigImage, RigPipeline
from vkharness.rig.render_passes import RigRenderPass
from vkharness.shader.library import load
from vkharness.shader.reflect import reflect
from vkharness.spec.enums import VkCompareOp, VkCullMode, VkPipelineBindPoint, VkPrimitiveTopology, VkShaderStage
from vkharness.spec.formats import format_of
from vkharness.spec.names import enum_value

ALL_CHANNELS = 0xF
POSITIONS: dict[str, Any] = {
    "vertex": "vertex_position",
    "vertex_buffers": [(8, 0)],
    "attributes": [(0, 0, "VK_FORMAT_R32G32_SFLOAT", 0)],
}
"""Arguments of `Rig.graphics` for vertices that are positions of two floats, in the first vertex buffer."""
STRIP_POSITIONS = {**POSITIONS, "topology": VkPrimitiveTopology.TRIANGLE_STRIP}
"""The same for a triangle strip."""
STAGE_FEATURES = {
    VkShaderStage.TESSELLATION_CONTROL: "tessellationShader",
    VkShaderStage.TESSELLATION_EVALUATION: "tessellationShader",
    VkShaderStage.GEOMETRY: "geometryShader",
}
"""The feature that a stage between vertices and fragments takes."""


@dataclass(frozen=True, slots=True)
class PipelineState:
    """Fixed state of a graphics pipeline.

    `vertex_buffers` are (stride, rate), with rate 0 for vertices and 1 for instances. `attributes` are (location,
    buffer, format, offset). `stencil` has the members of VkStencilOpState that are not zero, for both faces; `back` is
    for the back face, if it differs. `cull` is VkCullModeFlags. `dynamic` names states without VK_DYNAMIC_STATE_.
    Comparison values are VkCompareOp. `scissor` is x, y, width and height; the whole extent without it.
    """

    vertex_buffers: Sequence[tuple[int, int]] = ()
    attributes: Sequence[tuple[int, int, str, int]] = ()
    topology: int = VkPrimitiveTopology.TRIANGLE_LIST
    samples: int = 1
    blend: bool = False
    components: int = ALL_CHANNELS
    """VkColorComponentFlags of what is written of each colour attachment."""
    depth_test: bool = False
    depth_write: bool = False
    depth_compare: int = VkCompareOp.ALWAYS
    stencil: Mapping[str, int] = field(default_factory=dict)
    back: Mapping[str, int] | None = None
    discard: bool = False
    cull: int = VkCullMode.NONE
    views: int = 0
    dynamic: Sequence[str] = ()
    scissor: Sequence[int] = ()
    raster_ordered: bool = False
    """Rasterization order attachment access for colour."""


class GraphicsPipelines(ComputePipelines):
    """Pipelines of one device, for compute and for drawing."""

    def graphics(
        self,
        fragment: str | Path | None = "gradient",
        vertex: str | Path = "fullscreen",
        *,
        between: Mapping[int, str] | None = None,
        bindings: dict[int, str] | None = None,
        push_bytes: int = 0,
        render_pass: RigRenderPass | None = None,
        subpass: int = 0,
        colors: Sequence[str] = (COLOR_FORMAT,),
        depth: str | None = None,
        extent: tuple[int, int] = (16, 16),
        **fixed: Any,
    ) -> RigPipeline:
        """A graphics pipeline of shaders as `compute` takes them, for a subpass or for dynamic rendering with formats.

        `between` are the shaders of tessellation, with patches of one vertex, and geometry stages by VkShaderStage.
        Its layout follows from the shaders; `bindings` and `push_bytes` are as for `pipeline_layout`. `fixed`: see
        `PipelineState`. Raises `LacksError` for a stage that the device lacks.
        """
        vk, state = self.vk, PipelineState(**fixed)
        shaders = {VkShaderStage.VERTEX: vertex, **(between or {}), VkShaderStage.FRAGMENT: fragment}
        self.require(*(STAGE_FEATURES[stage] for stage in between or {}))
        used = {at: reflect(load(each), "main", stage=at) for at, each in shaders.items() if each is not None}
        layout = self.pipeline_layout(used, bindings, push_bytes)
        count, members = len(colors), {}
        if render_pass is not None:
            count = len(render_pass.subpasses[subpass].colors)
            members = {"renderPass": render_pass.handle, "subpass": subpass}
        else:
            members = {"pNext": _formats(vk, colors, depth, state.views)}
        # Named, to live until the call: the package copies the structs, and what pName points at dies with them.
        stages = self._stages(shaders)
        if VkShaderStage.TESSELLATION_CONTROL in shaders:
            members["pTessellationState"] = vk.VkPipelineTessellationStateCreateInfo(patchControlPoints=1)
        info = vk.VkGraphicsPipelineCreateInfo(
            pStages=stages,
            layout=layout.handle,
            **members,
            **_fixed_state(vk, state, extent, _write_masks(fragment, count, state.components)),
        )
        handle = vk.vkCreateGraphicsPipelines(self.device, None, 1, [info], None)[0]
        return RigPipeline(self.own("Pipeline", handle), layout, VkPipelineBindPoint.GRAPHICS)

    def drawing_to(self, image: RigImage, fragment: str | Path = "gradient", **more: Any) -> RigPipeline:
        """A graphics pipeline for dynamic rendering to a whole image, in its format; the rest as for `graphics`."""
        return self.graphics(fragment, colors=[format_of(image.format).name], extent=image.extent[:2], **more)

    def _stages(self, shaders: Mapping[int, str | Path | None]) -> list[Any]:
        return [
            self.vk.VkPipelineShaderStageCreateInfo(stage=stage, module=self.shader_module(shader), pName="main")
            for stage, shader in shaders.items()
            if shader is not None
        ]


def _write_masks(fragment: str | Path | None, count: int, components: int) -> list[int]:
    """Nothing is written to attachments for which the fragment shader declares no output.

    They may not be modified in any case ("Fragment Output Interface"), and older drivers write undefined values there.
    """
    declared = range(count) if fragment is None else reflect(load(fragment), "main").declared_outputs
    return [components if location in declared else 0 for location in range(count)]


def _fixed_state(vk: Any, state: PipelineState, extent: tuple[int, int], masks: Sequence[int]) -> dict[str, Any]:
    """The members of VkGraphicsPipelineCreateInfo for fixed-function stages."""
    return {
        "pVertexInputState": _vertex_input(vk, state),
        "pInputAssemblyState": vk.VkPipelineInputAssemblyStateCreateInfo(topology=state.topology),
        "pViewportState": _viewport(vk, extent, state.scissor),
        "pRasterizationState": vk.VkPipelineRasterizationStateCreateInfo(
            rasterizerDiscardEnable=state.discard, cullMode=state.cull, lineWidth=1.0
        ),
        "pMultisampleState": vk.VkPipelineMultisampleStateCreateInfo(rasterizationSamples=state.samples),
        "pDepthStencilState": _depth_stencil(vk, state),
        "pColorBlendState": _blend(vk, masks, state),
        "pDynamicState": _dynamic(vk, state),
    }


def _formats(vk: Any, colors: Sequence[str], depth: str | None, views: int) -> Any:
    """VkPipelineRenderingCreateInfo. A depth/stencil format counts for the aspects that it has."""
    more = {}
    if depth is not None:
        value = enum_value("VkFormat", depth)
        aspects = format_of(value).aspects
        more = {
            "depthAttachmentFormat": value if aspects & 2 else 0,
            "stencilAttachmentFormat": value if aspects & 4 else 0,
        }
    return vk.VkPipelineRenderingCreateInfo(
        viewMask=views, pColorAttachmentFormats=[enum_value("VkFormat", each) for each in colors], **more
    )


def _vertex_input(vk: Any, state: PipelineState) -> Any:
    buffers = [
        vk.VkVertexInputBindingDescription(binding=at, stride=stride, inputRate=rate)
        for at, (stride, rate) in enumerate(state.vertex_buffers)
    ]
    attributes = [
        vk.VkVertexInputAttributeDescription(
            location=location, binding=binding, format=enum_value("VkFormat", form), offset=offset
        )
        for location, binding, form, offset in state.attributes
    ]
    return vk.VkPipelineVertexInputStateCreateInfo(
        pVertexBindingDescriptions=buffers, pVertexAttributeDescriptions=attributes
    )


def _viewport(vk: Any, extent: tuple[int, int], scissor: Sequence[int]) -> Any:
    viewport = vk.VkViewport(width=float(extent[0]), height=float(extent[1]), maxDepth=1.0)
    x, y, width, height = scissor or (0, 0, *extent)
    clip = vk.VkRect2D(vk.VkOffset2D(x, y), vk.VkExtent2D(width=width, height=height))
    return vk.VkPipelineViewportStateCreateInfo(
        viewportCount=1, pViewports=[viewport], scissorCount=1, pScissors=[clip]
    )


def _depth_stencil(vk: Any, state: PipelineState) -> Any:
    front = vk.VkStencilOpState(**state.stencil)
    back = front if state.back is None else vk.VkStencilOpState(**state.back)
    return vk.VkPipelineDepthStencilStateCreateInfo(
        depthTestEnable=state.depth_test,
        depthWriteEnable=state.depth_write,
        depthCompareOp=state.depth_compare,
        stencilTestEnable=bool(state.stencil),
        front=front,
        back=back,
    )


def _blend(vk: Any, masks: Sequence[int], state: PipelineState) -> Any:
    one = 1
    return vk.VkPipelineColorBlendStateCreateInfo(
        flags=int(state.raster_ordered),
        pAttachments=[
            vk.VkPipelineColorBlendAttachmentState(
                blendEnable=state.blend,
                srcColorBlendFactor=one,
                dstColorBlendFactor=one,
                srcAlphaBlendFactor=one,
                dstAlphaBlendFactor=one,
                colorWriteMask=mask,
            )
            for mask in masks
        ],
    )


def _dynamic(vk: Any, state: PipelineState) -> Any:
    if not state.dynamic:
        return None
    values = [enum_value("VkDynamicState", f"VK_DYNAMIC_STATE_{each}") for each in state.dynamic]
    return vk.VkPipelineDynamicStateCreateInfo(pDynamicStates=values)
