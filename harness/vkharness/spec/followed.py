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
}
"""When a pointer means anything: with these values of another member."""
MOST_LINKS = 64
"""Structs of one pNext chain that are passed over. Garbage may lead in a circle."""
