"""Structs of pNext chains that change what a call accesses or orders in ways that nobody here follows, and those that
change neither, each with a reason.

They are those that extend what judged commands take and that no handler reads. tests/commands/test_unknown_values.py
compares that with the registry. A call with one of `UNFOLLOWED` makes a verdict `unknown`.
"""

from __future__ import annotations

_UNFOLLOWED: dict[str, tuple[str, ...]] = {
    "inputs of a build in memory of their own": (
        "VkAccelerationStructureDenseGeometryFormatTrianglesDataAMDX",
        "VkAccelerationStructureGeometryLinearSweptSpheresDataNV",
        "VkAccelerationStructureGeometryMicromapDataKHR",
        "VkAccelerationStructureGeometryMotionTrianglesDataNV",
        "VkAccelerationStructureGeometrySpheresDataNV",
        "VkAccelerationStructureTrianglesDisplacementMicromapNV",
        "VkAccelerationStructureTrianglesOpacityMicromapKHR",
    ),
    "barriers of what is not a buffer or an image": ("VkTensorDependencyInfoARM", "VkTensorMemoryBarrierARM"),
    "descriptors of what is not followed": (
        "VkCommandBufferInheritanceDescriptorHeapInfoEXT",
        "VkPushConstantBankInfoNV",
        "VkWriteDescriptorSetAccelerationStructureNV",
        "VkWriteDescriptorSetPartitionedAccelerationStructureNV",
        "VkWriteDescriptorSetTensorARM",
    ),
    "regions and areas that are turned": (
        "VkCommandBufferInheritanceRenderPassTransformInfoQCOM",
        "VkRenderPassTransformBeginInfoQCOM",
    ),
    "parts of a render pass instance that have an order or memory of their own": (
        "VkCustomResolveCreateInfoEXT",
        "VkRenderPassPerformanceCountersByRegionBeginInfoARM",
        "VkRenderPassStripeBeginInfoARM",
        "VkRenderPassStripeSubmitInfoARM",
        "VkRenderPassTileShadingCreateInfoQCOM",
        "VkTileMemoryBindInfoQCOM",
        "VkTileMemorySizeInfoQCOM",
    ),
    "mutexes and fences of Direct3D": (
        "VkD3D12FenceSubmitInfoKHR",
        "VkWin32KeyedMutexAcquireReleaseInfoKHR",
        "VkWin32KeyedMutexAcquireReleaseInfoNV",
    ),
}

_IDLE: dict[str, tuple[str, ...]] = {
    "which buffer pushed descriptors lie in: what is pushed is followed by the call": (
        "VkDescriptorBufferBindingPushDescriptorBufferHandleEXT",
    ),
    "pipelines and shaders of generated commands, which are bound as well": (
        "VkGeneratedCommandsPipelineInfoEXT",
        "VkGeneratedCommandsShaderInfoEXT",
    ),
    "how and when to present, and what of an image changed": (
        "VkDisplayPresentInfoKHR",
        "VkFrameBoundaryTensorsARM",
        "VkLatencySubmissionPresentIdNV",
        "VkPresentFrameTokenGGP",
        "VkPresentId2KHR",
        "VkPresentIdKHR",
        "VkPresentRegionsKHR",
        "VkPresentTimesInfoGOOGLE",
        "VkPresentTimingsInfoEXT",
        "VkSetPresentConfigNV",
        "VkSwapchainPresentModeInfoEXT",
    ),
    "which of several physical devices does it": (
        "VkDeviceGroupBindSparseInfo",
        "VkDeviceGroupCommandBufferBeginInfo",
        "VkDeviceGroupPresentInfoKHR",
        "VkDeviceGroupRenderPassBeginInfo",
        "VkDeviceGroupSubmitInfo",
    ),
    "values and samples, and not where they are": (
        "VkAttachmentSampleCountInfoAMD",
        "VkBlitImageCubicWeightsInfoQCOM",
        "VkCommandBufferInheritanceViewportScissorInfoNV",
        "VkDepthBiasRepresentationInfoEXT",
        "VkExternalFormatANDROID",
        "VkExternalFormatOHOS",
        "VkMultisampledRenderToSingleSampledInfoEXT",
        "VkMultiviewPerViewAttributesInfoNVX",
        "VkMultiviewPerViewRenderAreasRenderPassBeginInfoQCOM",
        "VkRenderPassSampleLocationsBeginInfoEXT",
        "VkRenderingAttachmentFlagsInfoKHR",
        "VkRenderingInputAttachmentIndexInfo",
        "VkResolveImageModeInfoKHR",
        "VkSampleLocationsInfoEXT",
        "VkSubpassFragmentDensityMapOffsetEndInfoQCOM",
    ),
    "hints, protection and queries of performance": (
        "VkAmigoProfilingSubmitInfoSEC",
        "VkCommandBufferInheritanceConditionalRenderingInfoEXT",
        "VkExternalMemoryAcquireUnmodifiedEXT",
        "VkPerformanceQuerySubmitInfoKHR",
        "VkProtectedSubmitInfo",
        "VkThrottleHintSubmitInfoSEC",
    ),
    "flags that have no bits but none": ("VkMemoryBarrierAccessFlags3KHR",),
}

UNFOLLOWED = {name: reason for reason, names in _UNFOLLOWED.items() for name in names}
"""For each struct that is not followed, the reason."""
IDLE = {name: reason for reason, names in _IDLE.items() for name in names}
"""For each struct that changes neither accesses nor order, the reason."""
