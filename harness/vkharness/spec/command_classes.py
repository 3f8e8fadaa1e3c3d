"""Which classes of commands there are. What a command is by its name is asked here and nowhere else.

A set holds main names (`main_name`), without those of extensions that became core. A tuple holds beginnings of names,
for `str.startswith`, so that every form of a command is in its class: "vkCmdDraw" stands for vkCmdDrawIndexed and
vkCmdDrawMeshTasksEXT as well. Tests hold the classes against the registry.
"""

from __future__ import annotations

from vkharness.spec._generated import BASETYPES, ENUMS, FLAG_WIDTH, HANDLES, TYPE_ALIASES
from vkharness.spec.shapes import Member, main_name, members

SUBMITS = frozenset({"vkQueueSubmit", "vkQueueSubmit2"})
"""Execute command buffers on a queue."""
QUEUE_WORK = SUBMITS | {"vkQueueBindSparse"}
"""Have batches that wait for semaphores and signal them."""
ACQUIRES = frozenset({"vkAcquireNextImageKHR", "vkAcquireNextImage2KHR"})
"""Hand out an image of a swapchain."""
PRESENT = "vkQueuePresentKHR"
"""Gives images of swapchains back, to be shown."""
HOST_WAITS = frozenset({"vkWaitForFences", "vkQueueWaitIdle", "vkDeviceWaitIdle", "vkWaitSemaphores"})
"""Return when work of the device is complete."""
HOST_POLLS = frozenset({"vkGetFenceStatus", "vkGetSemaphoreCounterValue"})
"""Say whether work of the device is complete."""
HOST_PUBLISHES = frozenset({"vkFlushMappedMemoryRanges", "vkSignalSemaphore", "vkSetEvent"})
"""The host tells the device of what it wrote: work that was submitted before may go on."""
DESTROYERS = ("vkDestroy", "vkFree", "vkReleasePerformanceConfiguration")
"""How the names of commands begin that destroy their last handle."""
EXPORTS = {
    "vkGetMemoryFdKHR": "pGetFdInfo",
    "vkGetSemaphoreFdKHR": "pGetFdInfo",
    "vkGetFenceFdKHR": "pGetFdInfo",
    "vkGetMemoryWin32HandleKHR": "pGetWin32HandleInfo",
    "vkGetSemaphoreWin32HandleKHR": "pGetWin32HandleInfo",
    "vkGetFenceWin32HandleKHR": "pGetWin32HandleInfo",
}
"""Export a payload as a handle of the operating system, each with the parameter that says of which object."""
IMPORTS = {
    "vkImportSemaphoreFdKHR": "pImportSemaphoreFdInfo",
    "vkImportSemaphoreWin32HandleKHR": "pImportSemaphoreWin32HandleInfo",
    "vkImportFenceFdKHR": "pImportFenceFdInfo",
    "vkImportFenceWin32HandleKHR": "pImportFenceWin32HandleInfo",
}
"""Import the payload of a semaphore or a fence, each with the parameter that says which. Memory is imported by
vkAllocateMemory."""
ANSWERED = (
    HOST_POLLS
    | EXPORTS.keys()
    | {
        "vkGetAccelerationStructureBuildSizesKHR",
        "vkGetAccelerationStructureDeviceAddressKHR",
        "vkGetBufferDeviceAddress",
        "vkGetDescriptorEXT",
        "vkGetDescriptorSetLayoutBindingOffsetEXT",
        "vkGetDeviceImageMemoryRequirements",
        "vkGetDeviceQueue",
        "vkGetDeviceQueue2",
        "vkGetEventStatus",
        "vkGetImageMemoryRequirements",
        "vkGetImageMemoryRequirements2",
        "vkGetImageSparseMemoryRequirements",
        "vkGetImageSparseMemoryRequirements2",
        "vkGetMicromapBuildSizesEXT",
        "vkGetPhysicalDeviceMemoryProperties",
        "vkGetPhysicalDeviceMemoryProperties2",
        "vkGetPhysicalDeviceProperties",
        "vkGetPhysicalDeviceProperties2",
        "vkGetPhysicalDeviceQueueFamilyProperties",
        "vkGetPhysicalDeviceQueueFamilyProperties2",
        "vkGetQueryPoolResults",
        "vkGetSwapchainImagesKHR",
    }
)
"""Queries whose answers the judges need: those with a handler in `vkharness.commands`, as a test holds."""

OPENS, CLOSES = "vkCmdBegin", "vkCmdEnd"
"""Begin and end what one command buffer must close: render passes, queries, conditional rendering, labels."""
LEFT_OPEN = "vkCmdBeginCustomResolve"
"""Begins a part of a render pass instance that ends with it."""
BEGINS_RENDERING, NEXT_SUBPASS, ENDS_RENDERING = "vkCmdBeginRender", "vkCmdNextSubpass", "vkCmdEndRender"
RENDERING = (BEGINS_RENDERING, NEXT_SUBPASS, ENDS_RENDERING)
"""Begin, advance and end a render pass instance; they load, store and resolve attachments."""
OF_AN_INSTANCE = "vkCmdSetRendering"
"""How state commands begin that may only be recorded inside dynamic rendering, for that instance alone."""
DRAWS = ("vkCmdDraw", "vkCmdClearAttachments")
"""Access the attachments of a render pass instance, inside it."""
DRAWS_INDEXED = ("vkCmdDrawIndexed", "vkCmdDrawMultiIndexed")
"""Of those, the ones that read the index buffer."""
TRACES_RAYS = "vkCmdTraceRays"
"""How the names of commands begin that run a ray tracing pipeline."""
RUNS_SHADERS = ("vkCmdDraw", "vkCmdDispatch", TRACES_RAYS)
RUNS_INVOCATIONS = (
    "vkCmdDispatch",
    TRACES_RAYS,
    "vkCmdExecuteGeneratedCommands",
    "vkCmdCudaLaunchKernel",
    "vkCmdCuLaunchKernel",
)
"""Commands that may run invocations as a dispatch does."""
CONDITIONAL = (
    "vkCmdDraw",
    "vkCmdDispatch",
    "vkCmdClearAttachments",
    "vkCmdExecuteGeneratedCommands",
    "vkCmdBeginCustomResolve",
)
"""Are discarded where conditional rendering says so."""
TRANSFERS = ("vkCmdFill", "vkCmdUpdate", "vkCmdCopy", "vkCmdClear", "vkCmdBlit", "vkCmdResolve")
"""Write exactly the ranges that their arguments name."""
RENDERING_OBJECTS = ("vkCreateImage", "vkCreateRenderPass", "vkCreateFramebuffer")
"""Make what a render pass instance consists of: images and their views, render passes, framebuffers."""

CHANGES_NO_ACCESS = (
    "vkCmdSetViewport",
    "vkCmdSetViewportWithCount",
    "vkCmdSetScissor",
    "vkCmdSetScissorWithCount",
    "vkCmdSetLineWidth",
    "vkCmdSetDepthBias",
    "vkCmdSetDepthBias2EXT",
    "vkCmdSetDepthBiasEnable",
    "vkCmdSetDepthBounds",
    "vkCmdSetBlendConstants",
    "vkCmdSetStencilReference",
    "vkCmdSetFrontFace",
    "vkCmdSetAlphaToCoverageEnableEXT",
    "vkCmdSetAlphaToOneEnableEXT",
    "vkCmdSetAttachmentFeedbackLoopEnableEXT",
    "vkCmdSetCoarseSampleOrderNV",
    "vkCmdSetConservativeRasterizationModeEXT",
    "vkCmdSetCoverageModulationModeNV",
    "vkCmdSetCoverageModulationTableEnableNV",
    "vkCmdSetCoverageModulationTableNV",
    "vkCmdSetCoverageReductionModeNV",
    "vkCmdSetCoverageToColorLocationNV",
    "vkCmdSetDepthClampEnableEXT",
    "vkCmdSetDepthClampRangeEXT",
    "vkCmdSetDepthClipEnableEXT",
    "vkCmdSetDepthClipNegativeOneToOneEXT",
    "vkCmdSetDiscardRectangleEXT",
    "vkCmdSetDiscardRectangleEnableEXT",
    "vkCmdSetDiscardRectangleModeEXT",
    "vkCmdSetExclusiveScissorEnableNV",
    "vkCmdSetExclusiveScissorNV",
    "vkCmdSetExtraPrimitiveOverestimationSizeEXT",
    "vkCmdSetFragmentShadingRateEnumNV",
    "vkCmdSetFragmentShadingRateKHR",
    "vkCmdSetLineRasterizationModeEXT",
    "vkCmdSetLineStippleEXT",
    "vkCmdSetLineStippleEnableEXT",
    "vkCmdSetPatchControlPointsEXT",
    "vkCmdSetPolygonModeEXT",
    "vkCmdSetProvokingVertexModeEXT",
    "vkCmdSetRasterizationSamplesEXT",
    "vkCmdSetRasterizationStreamEXT",
    "vkCmdSetRayTracingPipelineStackSizeKHR",
    "vkCmdSetRenderingInputAttachmentIndices",
    "vkCmdSetRepresentativeFragmentTestEnableNV",
    "vkCmdSetSampleLocationsEXT",
    "vkCmdSetSampleLocationsEnableEXT",
    "vkCmdSetSampleMaskEXT",
    "vkCmdSetShadingRateImageEnableNV",
    "vkCmdSetTessellationDomainOriginEXT",
    "vkCmdSetViewportShadingRatePaletteNV",
    "vkCmdSetViewportSwizzleNV",
    "vkCmdSetViewportWScalingEnableNV",
    "vkCmdSetViewportWScalingNV",
)
"""Commands that may change fragments and values, but not the memory that draws can reach. The indices of input
attachments say what a shader calls them; which image it reads is what the descriptor says."""
CLEAR_VALUES = frozenset({
    ("vkCmdClearColorImage", "pColor"), ("vkCmdClearDepthStencilImage", "pDepthStencil"),
    ("VkClearAttachment", "clearValue"), ("VkRenderingAttachmentInfo", "clearValue"),
    ("VkRenderPassBeginInfo", "clearValueCount"), ("VkRenderPassBeginInfo", "pClearValues"),
})  # fmt: skip
"""The parameters and members that say what clears write, but not where."""


def decides_access(owner: str, member: Member) -> bool:
    """Whether any access follows from a parameter of a command or a member of a struct. Numbers that mean a value of
    today's registry count: others are not modelled."""
    return (owner, member.name) not in CLEAR_VALUES and not (owner in CHANGES_NO_ACCESS and _is_plain(member))


def _is_plain(member: Member) -> bool:
    """Whether a parameter holds nothing but numbers that may be any."""
    name = TYPE_ALIASES.get(member.type, member.type)
    parts = members(name)
    if parts is not None:
        return all(each.name != "pNext" and _is_plain(each) for each in parts)
    return name not in HANDLES and name not in FLAG_WIDTH and (name not in ENUMS or name in BASETYPES)


def is_recorded(name: str) -> bool:
    """Whether a call is recorded into a command buffer."""
    return name.startswith("vkCmd")


def is_submit(name: str) -> bool:
    """Whether a call executes command buffers on a queue, in either form and under any of its names."""
    return main_name(name) in SUBMITS


def is_debug(name: str) -> bool:
    """Whether a call only labels or names things for tools (VK_EXT_debug_utils, VK_EXT_debug_marker)."""
    return "Debug" in name


def nesting(name: str) -> int:
    """1 for a command that opens what its command buffer must close, -1 for one that closes it, else 0."""
    if is_debug(name) or name.startswith(LEFT_OPEN):
        return 0
    return 1 if name.startswith(OPENS) else -1 if name.startswith(CLOSES) else 0
