"""Shader objects (VK_EXT_shader_object): shaders without a pipeline, and the state that draws with them need."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vkharness.rig.core import RigCommandBuffer, RigPipeline, RigPipelineLayout
from vkharness.rig.graphics_pipelines import ALL_CHANNELS, GraphicsPipelines
from vkharness.shader.library import load
from vkharness.shader.reflect import reflect
from vkharness.spec.enums import VkPipelineBindPoint, VkPrimitiveTopology, VkShaderStage

FUNCTION = {
    "vkCmdSetRasterizerDiscardEnable": (0,),
    "vkCmdSetCullMode": (0,),
    "vkCmdSetFrontFace": (0,),
    "vkCmdSetDepthTestEnable": (0,),
    "vkCmdSetDepthWriteEnable": (0,),
    "vkCmdSetDepthBiasEnable": (0,),
    "vkCmdSetStencilTestEnable": (0,),
    "vkCmdSetPrimitiveRestartEnable": (0,),
}
"""Commands of Vulkan 1.3 that set state, each with the value that changes least."""
EXTENDED = {
    "vkCmdSetPolygonModeEXT": (0,),
    "vkCmdSetRasterizationSamplesEXT": (1,),
    "vkCmdSetSampleMaskEXT": (1, [0xFFFFFFFF]),
    "vkCmdSetAlphaToCoverageEnableEXT": (0,),
    "vkCmdSetColorBlendEnableEXT": (0, 1, [0]),
    "vkCmdSetColorWriteMaskEXT": (0, 1, [ALL_CHANNELS]),
}
"""The same of extensions; those of colour attachments are for the first one."""


class ShaderObjects(GraphicsPipelines):
    """Shader objects of one device, which are bound as a pipeline is."""

    def compute_object(self, shader: str | Path) -> RigPipeline:
        """A compute shader of `shaders/`, or of a file, without a pipeline."""
        return self._shader_objects({VkShaderStage.COMPUTE: shader}, VkPipelineBindPoint.COMPUTE)

    def graphics_objects(self, fragment: str | Path = "gradient", vertex: str | Path = "fullscreen") -> RigPipeline:
        """Shaders for draws without a pipeline."""
        shaders = {VkShaderStage.VERTEX: vertex, VkShaderStage.FRAGMENT: fragment}
        return self._shader_objects(shaders, VkPipelineBindPoint.GRAPHICS)

    def _shader_objects(self, shaders: Mapping[int, str | Path], point: int) -> RigPipeline:
        layout = self.pipeline_layout({at: reflect(load(each), "main", stage=at) for at, each in shaders.items()})
        made = {stage: self._shader_object(stage, load(shader), layout) for stage, shader in shaders.items()}
        return RigPipeline(None, layout, point, made)

    def _shader_object(self, stage: int, code: bytes, layout: RigPipelineLayout) -> Any:
        vk = self.vk
        following = VkShaderStage.FRAGMENT if stage == VkShaderStage.VERTEX else 0
        info = vk.VkShaderCreateInfoEXT(
            stage=stage,
            nextStage=following,
            codeType=vk.VK_SHADER_CODE_TYPE_SPIRV_EXT,
            codeSize=len(code),
            pCode=code,
            pName="main",
            setLayoutCount=len(layout.sets),
            pSetLayouts=[each.handle for each in layout.sets],
            pushConstantRangeCount=len(layout.pushed),
            pPushConstantRanges=layout.pushed,
        )
        return self.own("ShaderEXT", self.function("vkCreateShadersEXT")(self.device, 1, [info], None)[0])


class ShaderObjectCommands(RigCommandBuffer):
    """Commands for shader objects."""

    def set_all_state(
        self,
        extent: tuple[int, int] = (16, 16),
        vertex_buffers: tuple[tuple[int, int], ...] = (),
        attributes: tuple[tuple[int, int, int, int], ...] = (),
        topology: int = VkPrimitiveTopology.TRIANGLE_LIST,
    ) -> None:
        """Sets the state of draws with shader objects to one colour attachment, without tests. `vertex_buffers` are
        (stride, rate), `attributes` (location, buffer, VkFormat, offset)."""
        vk = self.vk
        vk.vkCmdSetViewportWithCount(self.handle, 1, [vk.VkViewport(width=extent[0], height=extent[1], maxDepth=1.0)])
        clip = vk.VkRect2D(vk.VkOffset2D(0, 0), vk.VkExtent2D(width=extent[0], height=extent[1]))
        vk.vkCmdSetScissorWithCount(self.handle, 1, [clip])
        vk.vkCmdSetPrimitiveTopology(self.handle, topology)
        for name, values in FUNCTION.items():
            getattr(vk, name)(self.handle, *values)
        for name, given in EXTENDED.items():
            self.rig.function(name)(self.handle, *given)
        buffers = [
            vk.VkVertexInputBindingDescription2EXT(binding=at, stride=stride, inputRate=rate, divisor=1)
            for at, (stride, rate) in enumerate(vertex_buffers)
        ]
        read = [
            vk.VkVertexInputAttributeDescription2EXT(location=location, binding=binding, format=form, offset=offset)
            for location, binding, form, offset in attributes
        ]
        self.rig.function("vkCmdSetVertexInputEXT")(self.handle, len(buffers), buffers, len(read), read)
