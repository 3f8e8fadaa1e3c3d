"""Pipelines and descriptor sets of the small engine."""

import vulkan as vk
from short_names import *
from small_device import SmallDevice


class Pipeline:
    """A pipeline with its layouts."""

    def __init__(self, handle, layout, set_layout, kinds, stages, point):
        self.handle, self.layout, self.set_layout, self.kinds, self.stages, self.point = (
            handle,
            layout,
            set_layout,
            kinds,
            stages,
            point,
        )


class SmallPipelines(SmallDevice):
    """Makes pipelines and the sets that they use."""

    # Pipelines

    def module(self, shader):
        code = (SHADERS / f"{shader}.spv").read_bytes()
        return vk.vkCreateShaderModule(self.device, vk.VkShaderModuleCreateInfo(codeSize=len(code), pCode=code), None)

    def _layout(self, kinds, stage, push, counts=None):
        bindings = [vk.VkDescriptorSetLayoutBinding(i, k, (counts or {}).get(i, 1), stage) for i, k in enumerate(kinds)]
        sets = vk.vkCreateDescriptorSetLayout(self.device, vk.VkDescriptorSetLayoutCreateInfo(pBindings=bindings), None)
        ranges = [vk.VkPushConstantRange(stage, 0, push)] if push else []
        return sets, vk.vkCreatePipelineLayout(
            self.device, vk.VkPipelineLayoutCreateInfo(pSetLayouts=[sets], pPushConstantRanges=ranges), None
        )

    def _stage(self, stage, module):
        name = vk.ffi.new("char[]", b"main")
        self.kept.append(name)
        return vk.VkPipelineShaderStageCreateInfo(stage=stage, module=module, pName=name)

    def compute(self, shader, kinds, push=0, counts=None):
        sets, made = self._layout(kinds, vk.VK_SHADER_STAGE_COMPUTE_BIT, push, counts)
        stage = self._stage(vk.VK_SHADER_STAGE_COMPUTE_BIT, self.module(shader))
        handle = vk.vkCreateComputePipelines(
            self.device, None, 1, [vk.VkComputePipelineCreateInfo(stage=stage, layout=made)], None
        )[0]
        return Pipeline(handle, made, sets, kinds, vk.VK_SHADER_STAGE_COMPUTE_BIT, vk.VK_PIPELINE_BIND_POINT_COMPUTE)

    def graphics(
        self,
        vertex,
        fragment,
        kinds=(),
        push=0,
        colors=(RGBA,),
        depth=None,
        render_pass=None,
        subpass=0,
        size=(16, 16),
        points=False,
        vertices=None,
        depth_write=True,
        blend=False,
        samples=1,
    ):
        both = vk.VK_SHADER_STAGE_VERTEX_BIT | vk.VK_SHADER_STAGE_FRAGMENT_BIT
        if INPUT in kinds:
            both = vk.VK_SHADER_STAGE_FRAGMENT_BIT
        sets, made = self._layout(kinds, both, push)
        stages = [self._stage(vk.VK_SHADER_STAGE_VERTEX_BIT, self.module(vertex))]
        if fragment:
            stages.append(self._stage(vk.VK_SHADER_STAGE_FRAGMENT_BIT, self.module(fragment)))
        parts = _fixed_state(colors, depth, size, points, vertices, depth_write, blend, samples)
        formats = {"pColorAttachmentFormats": list(colors), "depthAttachmentFormat": depth or 0}
        chain = None if render_pass else vk.VkPipelineRenderingCreateInfo(**formats)
        info = vk.VkGraphicsPipelineCreateInfo(
            pNext=chain, pStages=stages, layout=made, renderPass=render_pass, subpass=subpass, **parts
        )
        handle = vk.vkCreateGraphicsPipelines(self.device, None, 1, [info], None)[0]
        return Pipeline(handle, made, sets, kinds, both, vk.VK_PIPELINE_BIND_POINT_GRAPHICS)

    def set(self, pipeline, resources):
        """A descriptor set; a resource is a buffer, (buffer, offset, size), a view, (view, layout), or a list of buffers."""
        info = vk.VkDescriptorSetAllocateInfo(descriptorPool=self.descriptors, pSetLayouts=[pipeline.set_layout])
        made = vk.vkAllocateDescriptorSets(self.device, info)[0]
        for at, (kind, resource) in enumerate(zip(pipeline.kinds, resources, strict=False)):
            if kind in (STORAGE, UNIFORM):
                each = resource if isinstance(resource, list) else [resource]
                each = [r if isinstance(r, tuple) else (r, 0, r.size) for r in each]
                part = {
                    "pBufferInfo": [vk.VkDescriptorBufferInfo(b.handle, o, s) for b, o, s in each],
                    "descriptorCount": len(each),
                }
            else:
                view, held = (
                    resource
                    if isinstance(resource, tuple)
                    else (resource, "GENERAL" if kind == STORED else "SHADER_READ_ONLY_OPTIMAL")
                )
                part = {
                    "pImageInfo": [vk.VkDescriptorImageInfo(self.sampler, view, layout(held))],
                    "descriptorCount": 1,
                }
            vk.vkUpdateDescriptorSets(
                self.device,
                1,
                [vk.VkWriteDescriptorSet(dstSet=made, dstBinding=at, descriptorType=kind, **part)],
                0,
                None,
            )
        return made


def _fixed_state(colors, depth, size, points, vertices, depth_write, blend, samples):
    attributes = [vk.VkVertexInputAttributeDescription(0, 0, vertices[0], 0)] if vertices else []
    bindings = [vk.VkVertexInputBindingDescription(0, vertices[1], vk.VK_VERTEX_INPUT_RATE_VERTEX)] if vertices else []
    colour = [
        vk.VkPipelineColorBlendAttachmentState(
            blendEnable=blend,
            srcColorBlendFactor=1,
            dstColorBlendFactor=1 if blend else 0,
            srcAlphaBlendFactor=1,
            colorWriteMask=15,
        )
        for _ in colors
    ]
    width, height = size
    parts = {
        "pVertexInputState": vk.VkPipelineVertexInputStateCreateInfo(
            pVertexBindingDescriptions=bindings, pVertexAttributeDescriptions=attributes
        ),
        "pInputAssemblyState": vk.VkPipelineInputAssemblyStateCreateInfo(
            topology=vk.VK_PRIMITIVE_TOPOLOGY_POINT_LIST if points else vk.VK_PRIMITIVE_TOPOLOGY_TRIANGLE_LIST
        ),
        "pViewportState": vk.VkPipelineViewportStateCreateInfo(
            viewportCount=1,
            pViewports=[vk.VkViewport(0, 0, width, height, 0, 1)],
            scissorCount=1,
            pScissors=[vk.VkRect2D(vk.VkOffset2D(0, 0), vk.VkExtent2D(width, height))],
        ),
        "pRasterizationState": vk.VkPipelineRasterizationStateCreateInfo(lineWidth=1.0),
        "pMultisampleState": vk.VkPipelineMultisampleStateCreateInfo(rasterizationSamples=samples),
        "pColorBlendState": vk.VkPipelineColorBlendStateCreateInfo(attachmentCount=len(colour), pAttachments=colour),
    }
    if depth:
        parts["pDepthStencilState"] = vk.VkPipelineDepthStencilStateCreateInfo(
            depthTestEnable=1, depthWriteEnable=depth_write, depthCompareOp=vk.VK_COMPARE_OP_LESS_OR_EQUAL
        )
    return parts
