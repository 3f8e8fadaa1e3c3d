"""Which pointers mean anything: Vulkan ignores some for what another member says, so that they may lead nowhere.

Every reader of C memory goes by these tables: the mirror of Python programs and the mirror layer.
"""

from __future__ import annotations

from vkharness.spec.enums import VkDescriptorType

IMAGES = (
    VkDescriptorType.SAMPLER,
    VkDescriptorType.COMBINED_IMAGE_SAMPLER,
    VkDescriptorType.SAMPLED_IMAGE,
    VkDescriptorType.STORAGE_IMAGE,
    VkDescriptorType.INPUT_ATTACHMENT,
    VkDescriptorType.SAMPLE_WEIGHT_IMAGE_QCOM,
    VkDescriptorType.BLOCK_MATCH_IMAGE_QCOM,
)
BUFFERS = (
    VkDescriptorType.UNIFORM_BUFFER,
    VkDescriptorType.STORAGE_BUFFER,
    VkDescriptorType.UNIFORM_BUFFER_DYNAMIC,
    VkDescriptorType.STORAGE_BUFFER_DYNAMIC,
)
TEXEL_BUFFERS = (VkDescriptorType.UNIFORM_TEXEL_BUFFER, VkDescriptorType.STORAGE_TEXEL_BUFFER)
"""The descriptor types of which an entry gives pImageInfo, pBufferInfo or pTexelBufferView."""

STRIDES = {"vkCmdDrawMultiEXT": ("pVertexInfo", "stride"), "vkCmdDrawMultiIndexedEXT": ("pIndexInfo", "stride")}
"""Commands with a parameter of which the elements lie as many bytes apart as another one says. (The registry has it as
the attribute `stride`.) What is read of them lies side by side."""

NEVER_FOLLOWED = frozenset({"pAllocator", "pUserData"})
"""Names of pointers that lead to what is the program's own."""
GUARDS: dict[tuple[str, str], tuple[str, tuple[int, ...]]] = {
    ("VkWriteDescriptorSet", "pImageInfo"): ("descriptorType", IMAGES),
    ("VkWriteDescriptorSet", "pBufferInfo"): ("descriptorType", BUFFERS),
    ("VkWriteDescriptorSet", "pTexelBufferView"): ("descriptorType", TEXEL_BUFFERS),
    ("VkDescriptorSetLayoutBinding", "pImmutableSamplers"): ("descriptorType", (0, 1)),
    ("VkBufferCreateInfo", "pQueueFamilyIndices"): ("sharingMode", (1,)),
    ("VkImageCreateInfo", "pQueueFamilyIndices"): ("sharingMode", (1,)),
    ("VkSwapchainCreateInfoKHR", "pQueueFamilyIndices"): ("imageSharingMode", (1,)),
    ("VkPhysicalDeviceImageDrmFormatModifierInfoEXT", "pQueueFamilyIndices"): ("sharingMode", (1,)),
    ("VkTensorCreateInfoARM", "pQueueFamilyIndices"): ("sharingMode", (1,)),
    ("VkFramebufferCreateInfo", "pAttachments"): ("flags", (0,)),  # the only bit is VK_FRAMEBUFFER_CREATE_IMAGELESS_BIT
    ("VkImageCompressionControlEXT", "pFixedRateFlags"): ("flags", (2,)),
    ("VkCommandBufferInheritanceViewportScissorInfoNV", "pViewportDepths"): ("viewportScissor2D", (1,)),
}
"""When a pointer means anything: with these values of another member."""
IGNORED_ELSEWHERE = frozenset(
    {
        # In a primary command buffer.
        ("VkCommandBufferBeginInfo", "pInheritanceInfo"),
        # By the stages of the pipeline, rasterizerDiscardEnable, the attachments of the subpass, or dynamic states.
        ("VkGraphicsPipelineCreateInfo", "pVertexInputState"),
        ("VkGraphicsPipelineCreateInfo", "pInputAssemblyState"),
        ("VkGraphicsPipelineCreateInfo", "pTessellationState"),
        ("VkGraphicsPipelineCreateInfo", "pViewportState"),
        ("VkGraphicsPipelineCreateInfo", "pRasterizationState"),
        ("VkGraphicsPipelineCreateInfo", "pMultisampleState"),
        ("VkGraphicsPipelineCreateInfo", "pDepthStencilState"),
        ("VkGraphicsPipelineCreateInfo", "pColorBlendState"),
        ("VkGraphicsShaderGroupCreateInfoNV", "pVertexInputState"),
        ("VkGraphicsShaderGroupCreateInfoNV", "pTessellationState"),
        ("VkPipelineRenderingCreateInfo", "pColorAttachmentFormats"),
        # By dynamic states.
        ("VkPipelineViewportStateCreateInfo", "pViewports"),
        ("VkPipelineViewportStateCreateInfo", "pScissors"),
        ("VkPipelineMultisampleStateCreateInfo", "pSampleMask"),
        ("VkPipelineColorBlendStateCreateInfo", "pAttachments"),
        ("VkPipelineDiscardRectangleStateCreateInfoEXT", "pDiscardRectangles"),
        ("VkPipelineViewportExclusiveScissorStateCreateInfoNV", "pExclusiveScissors"),
        ("VkPipelineViewportWScalingStateCreateInfoNV", "pViewportWScalings"),
        ("VkPipelineViewportShadingRateImageStateCreateInfoNV", "pShadingRatePalettes"),
        ("VkPipelineCoverageModulationStateCreateInfoNV", "pCoverageModulationTable"),
        # Where no attachment is cleared.
        ("VkRenderPassBeginInfo", "pClearValues"),
    }
)
"""Pointers of structs that Vulkan may ignore for what is not in the struct. They are followed, as all are, only where
there is memory, and one that leads to none is worth no word."""
MOST_LINKS = 64
"""Structs of one pNext chain that are passed over. Garbage may lead in a circle."""
