"""Shaders, pipeline layouts and compute pipelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.rig.core import RigDevice, RigPipeline
from harness.shader.library import load
from harness.spec.enums import VkDescriptorType, VkShaderStage
from harness.spec.names import enum_value


class ComputePipelines(RigDevice):
    """Pipelines of one device."""

    def compute(
        self,
        shader: str | Path,
        bindings: dict[int, str],
        *,
        push_bytes: int = 0,
        push: bool = False,
        counts: dict[int, int] | None = None,
        constants: tuple[int, ...] = (),
        flags: int = 0,
    ) -> RigPipeline:
        """A compute pipeline for a shader of `shaders/`, or of a file (`harness.shader.own_shader.load_file`).

        `bindings` maps numbers to descriptor types, named without VK_DESCRIPTOR_TYPE_. `push` makes set 0 a push
        descriptor set. `counts` gives array sizes, `constants` the 32-bit specialization constants from id 0. `flags`
        are VkPipelineCreateFlags.
        """
        vk = self.vk
        stage = VkShaderStage.COMPUTE
        layout, set_layout, types = self.pipeline_layout(bindings, push_bytes, stage, push=push, counts=counts)
        module = self.shader_module(shader)
        words = vk.ffi.new("uint32_t[]", constants)
        entries = [vk.VkSpecializationMapEntry(constantID=i, offset=4 * i, size=4) for i in range(len(constants))]
        chosen = vk.VkSpecializationInfo(pMapEntries=entries, dataSize=4 * len(constants), pData=words)
        stage = vk.VkPipelineShaderStageCreateInfo(
            stage=stage, module=module, pName="main", pSpecializationInfo=chosen if constants else None
        )
        pipeline_info = vk.VkComputePipelineCreateInfo(flags=flags, stage=stage, layout=layout)
        made = vk.vkCreateComputePipelines(self.device, None, 1, [pipeline_info], None)
        return RigPipeline(self.own("Pipeline", made[0]), layout, set_layout, types, push)

    def shader_module(self, shader: str | Path) -> Any:
        """A VkShaderModule of a shader of `shaders/` or of a file."""
        code = load(shader)
        info = self.vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code)
        return self.own("ShaderModule", self.vk.vkCreateShaderModule(self.device, info, None))

    def pipeline_layout(
        self,
        bindings: dict[int, str],
        push_bytes: int,
        stages: int,
        *,
        push: bool = False,
        counts: dict[int, int] | None = None,
    ) -> tuple[Any, Any, dict[int, tuple[int, int]]]:
        """(VkPipelineLayout, its VkDescriptorSetLayout, (type, count) by binding) for some shader stages.

        Only the fragment stage sees input attachments.
        """
        vk = self.vk
        types = {
            at: (enum_value("VkDescriptorType", f"VK_DESCRIPTOR_TYPE_{kind}"), (counts or {}).get(at, 1))
            for at, kind in bindings.items()
        }
        slots = [
            vk.VkDescriptorSetLayoutBinding(
                binding=at,
                descriptorType=kind,
                descriptorCount=count,
                stageFlags=VkShaderStage.FRAGMENT if kind == VkDescriptorType.INPUT_ATTACHMENT else stages,
            )
            for at, (kind, count) in types.items()
        ]
        info = vk.VkDescriptorSetLayoutCreateInfo(flags=int(push), bindingCount=len(slots), pBindings=slots)
        set_layout = self.own("DescriptorSetLayout", vk.vkCreateDescriptorSetLayout(self.device, info, None))
        pushed = [vk.VkPushConstantRange(stageFlags=stages, offset=0, size=push_bytes)] if push_bytes else []
        info = vk.VkPipelineLayoutCreateInfo(
            setLayoutCount=1, pSetLayouts=[set_layout], pushConstantRangeCount=len(pushed), pPushConstantRanges=pushed
        )
        return self.own("PipelineLayout", vk.vkCreatePipelineLayout(self.device, info, None)), set_layout, types
