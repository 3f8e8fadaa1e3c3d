"""Shaders and compute pipelines."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from vkharness.rig.core import RigPipeline
from vkharness.rig.pipeline_layouts import PipelineLayouts
from vkharness.shader.library import load
from vkharness.shader.reflect import reflect
from vkharness.spec.enums import VkShaderStage


class ComputePipelines(PipelineLayouts):
    """Pipelines of one device."""

    def compute(
        self,
        shader: str | Path,
        bindings: dict[int, str] | None = None,
        *,
        push_bytes: int = 0,
        push: bool = False,
        constants: tuple[int, ...] = (),
        flags: int = 0,
        described: bool = False,
    ) -> RigPipeline:
        """A compute pipeline for a shader of `shaders/`, or of a file (`vkharness.shader.own_shader.load_file`).

        Its layout follows from the shader; `bindings`, `push_bytes`, `push` and `described` are as for
        `pipeline_layout`.
        `constants` are the 32-bit specialization constants from id 0, `flags` VkPipelineCreateFlags.
        """
        vk, stage = self.vk, VkShaderStage.COMPUTE
        specialized = {at: struct.pack("<I", value) for at, value in enumerate(constants)}
        used = reflect(load(shader), "main", specialized, stage)
        layout = self.pipeline_layout({stage: used}, bindings, push_bytes, push=push, described=described)
        module = self.shader_module(shader)
        words = vk.ffi.new("uint32_t[]", constants)
        entries = [vk.VkSpecializationMapEntry(constantID=i, offset=4 * i, size=4) for i in range(len(constants))]
        chosen = vk.VkSpecializationInfo(pMapEntries=entries, dataSize=4 * len(constants), pData=words)
        only = vk.VkPipelineShaderStageCreateInfo(
            stage=stage, module=module, pName="main", pSpecializationInfo=chosen if constants else None
        )
        pipeline_info = vk.VkComputePipelineCreateInfo(flags=flags, stage=only, layout=layout.handle)
        made = vk.vkCreateComputePipelines(self.device, None, 1, [pipeline_info], None)
        return RigPipeline(self.own("Pipeline", made[0]), layout)

    def shader_module(self, shader: str | Path) -> Any:
        """A VkShaderModule of a shader of `shaders/` or of a file."""
        code = load(shader)
        info = self.vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code)
        return self.own("ShaderModule", self.vk.vkCreateShaderModule(self.device, info, None))
