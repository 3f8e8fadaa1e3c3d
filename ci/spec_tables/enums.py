"""The enumerations that hand-written code names: `vkharness.spec.enums`. To use one more, add its type to `NAMED`."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from typing import Any

NAMED = (
    "VkAccelerationStructureTypeKHR",
    "VkAccessFlagBits2",
    "VkAttachmentDescriptionFlagBits",
    "VkAttachmentLoadOp",
    "VkAttachmentStoreOp",
    "VkBlendFactor",
    "VkBlendOp",
    "VkBufferUsageFlagBits",
    "VkBuildAccelerationStructureModeKHR",
    "VkCommandBufferLevel",
    "VkCommandBufferUsageFlagBits",
    "VkCompareOp",
    "VkCompositeAlphaFlagBitsKHR",
    "VkCullModeFlagBits",
    "VkDebugUtilsMessageSeverityFlagBitsEXT",
    "VkDebugUtilsMessageTypeFlagBitsEXT",
    "VkDependencyFlagBits",
    "VkDescriptorSetLayoutCreateFlagBits",
    "VkDescriptorType",
    "VkDescriptorUpdateTemplateType",
    "VkDynamicState",
    "VkExternalFenceHandleTypeFlagBits",
    "VkExternalMemoryHandleTypeFlagBits",
    "VkExternalSemaphoreHandleTypeFlagBits",
    "VkFenceImportFlagBits",
    "VkFilter",
    "VkFormat",
    "VkFormatFeatureFlagBits",
    "VkFrameBoundaryFlagBitsEXT",
    "VkFramebufferCreateFlagBits",
    "VkGeometryTypeKHR",
    "VkGraphicsPipelineLibraryFlagBitsEXT",
    "VkImageAspectFlagBits",
    "VkImageCreateFlagBits",
    "VkImageLayout",
    "VkImageTiling",
    "VkImageType",
    "VkImageUsageFlagBits",
    "VkImageViewType",
    "VkIndexType",
    "VkLayerSettingTypeEXT",
    "VkMemoryAllocateFlagBits",
    "VkMemoryHeapFlagBits",
    "VkMemoryPropertyFlagBits",
    "VkPipelineBindPoint",
    "VkPipelineCreateFlagBits",
    "VkPipelineStageFlagBits2",
    "VkPresentModeKHR",
    "VkPrimitiveTopology",
    "VkQueryResultFlagBits",
    "VkQueryType",
    "VkQueueFlagBits",
    "VkRenderingFlagBits",
    "VkResolveModeFlagBits",
    "VkResult",
    "VkSamplerAddressMode",
    "VkSamplerMipmapMode",
    "VkSemaphoreImportFlagBits",
    "VkSemaphoreType",
    "VkSemaphoreWaitFlagBits",
    "VkShaderStageFlagBits",
    "VkSharingMode",
    "VkStencilFaceFlagBits",
    "VkStencilOp",
    "VkStructureType",
    "VkSubpassContents",
    "VkSurfaceTransformFlagBitsKHR",
    "VkValidationFeatureDisableEXT",
    "VkValidationFeatureEnableEXT",
)

HEAD = '''\
"""Vulkan's enumerations, made by ci/gen_spec.py from the registry {version} (PyPI vulkan-object). Never edited.

A class has Vulkan's name of the type, without `FlagBits` and vendor: VkPipelineStageFlagBits2 is `VkPipelineStage2`.
VkQueueFlagBits is `VkQueueFlag`, since VkQueue is another type. A member has Vulkan's name without the type's prefix,
`_BIT` and the type's vendor: VK_IMAGE_LAYOUT_GENERAL is `VkImageLayout.GENERAL`. Before a digit, one word more is kept:
VK_IMAGE_TYPE_2D is `VkImageType.TYPE_2D`. Members are plain integers, since an `IntFlag` is slow in arithmetic.
"""

from __future__ import annotations

from typing import Final

'''


def class_name(name: str, handles: Container[str]) -> str:
    """The class that stands for a type, as the module's docstring says."""
    short = re.sub(r"(KHR|EXT|NV)$", "", name).replace("FlagBits", "")
    return f"{short}Flag" if short in handles else short


def member_names(kind: str, names: Iterable[str]) -> Iterator[str]:
    """The members that stand for a type's enumerants. Raises SystemExit for one that does not begin like its type."""
    vendor = re.search(r"(KHR|EXT|NV)?$", kind)
    words = re.sub(r"(?<=[a-z])(?=[A-Z0-9])", "_", class_name(kind, ()))
    start = "VK_" if kind == "VkResult" else f"{words.upper()}_"
    for name in names:
        if not name.startswith(start):
            raise SystemExit(f"gen_spec: {name} does not begin with {start}")
        short = re.sub(r"_BIT(?=_|$)", "", name.removeprefix(start)).removesuffix(f"_{vendor[0] if vendor else ''}")
        yield f"{start[:-1].rpartition('_')[2]}_{short}" if short[0].isdigit() else short


def enums(registry: Any) -> Iterator[str]:
    """The text of the module."""
    yield HEAD.replace("{version}", registry.headerVersionComplete)
    for name, row in registry.constants.items():
        if row.type != "float":
            yield f"{name}: Final = {hex(row.value) if row.value > 9 else row.value}\n"
    for kind in NAMED:
        masks = kind in registry.bitmasks
        fields = registry.bitmasks[kind].flags if masks else registry.enums[kind].fields
        fields = sorted(fields, key=lambda field: int(field.value))
        yield f"\n\nclass {class_name(kind, registry.handles)}:\n"
        for name, field in zip(member_names(kind, (field.name for field in fields)), fields, strict=True):
            yield f"    {name} = {hex(field.value) if masks else field.value}\n"
