"""The commands of today's registry that are not modelled, and those that have nothing to model, each with a reason.

Every vkCmd*, every vkQueue* and every host call that may act or synchronize has a handler or stands in one list here.
tests/commands/test_coverage.py compares that with the registry. A command of NAMED makes a verdict `unknown`. A command
of HARMLESS changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vkharness.commands.handlers import CALLS, COMMANDS, call, command
from vkharness.commands.object_state import NOTHING, CommandBuffer, ObjectState
from vkharness.spec import _generated as tables
from vkharness.spec.command_classes import is_recorded
from vkharness.trace.calls import Call
from vkharness.trace.effects import Effect, StreamEvent, UnmodelledCall

_NAMED: dict[str, tuple[str, ...]] = {
    "video coding: pictures and bitstreams are not followed": (
        "vkCmdBeginVideoCodingKHR",
        "vkCmdControlVideoCodingKHR",
        "vkCmdDecodeVideoKHR",
        "vkCmdEncodeVideoKHR",
        "vkCmdEndVideoCodingKHR",
    ),
    "optical flow: the images of a session are not followed": (
        "vkBindOpticalFlowSessionImageNV",
        "vkCmdOpticalFlowExecuteNV",
    ),
    "kernels of CUDA and NVX: binary code, opaque parameters": ("vkCmdCuLaunchKernelNVX", "vkCmdCudaLaunchKernelNV"),
    "ray tracing of VK_NV_ray_tracing, which VK_KHR_acceleration_structure replaced": (
        "vkBindAccelerationStructureMemoryNV",
        "vkCmdBuildAccelerationStructureNV",
        "vkCmdCopyAccelerationStructureNV",
        "vkCmdTraceRaysNV",
        "vkCmdWriteAccelerationStructuresPropertiesNV",
    ),
    "commands that the device generates or reads from memory": (
        "vkCmdBindPipelineShaderGroupNV",
        "vkCmdDecompressMemoryIndirectCountEXT",
        "vkCmdDecompressMemoryIndirectCountNV",
        "vkCmdDispatchGraphAMDX",
        "vkCmdDispatchGraphIndirectAMDX",
        "vkCmdDispatchGraphIndirectCountAMDX",
        "vkCmdExecuteGeneratedCommandsNV",
        "vkCmdInitializeGraphScratchMemoryAMDX",
        "vkCmdPreprocessGeneratedCommandsNV",
        "vkCmdUpdatePipelineIndirectBufferNV",
    ),
    "tensors and data graphs: their memory is not followed": (
        "vkBindDataGraphPipelineSessionMemoryARM",
        "vkBindTensorMemoryARM",
        "vkCmdCopyTensorARM",
        "vkCmdDispatchDataGraphARM",
    ),
    "matrices that the device or the host converts": (
        "vkCmdConvertCooperativeVectorMatrixNV",
        "vkConvertCooperativeVectorMatrixNV",
    ),
    "acceleration structures of clusters and partitions": (
        "vkCmdBuildClusterAccelerationStructureIndirectNV",
        "vkCmdBuildPartitionedAccelerationStructuresNV",
    ),
    "resolves in a shader, memory of tiles and work tile by tile": (
        "vkCmdBeginCustomResolveEXT",
        "vkCmdBeginPerTileExecutionQCOM",
        "vkCmdBindTileMemoryQCOM",
        "vkCmdDispatchTileQCOM",
        "vkCmdEndPerTileExecutionQCOM",
    ),
    "the index that restarts a primitive is another one, so that other vertices are read": (
        "vkCmdSetPrimitiveRestartIndexEXT",
    ),
    "instrumented shaders write to an object that is not followed": (
        "vkClearShaderInstrumentationMetricsARM",
        "vkCmdBeginShaderInstrumentationARM",
        "vkCmdEndShaderInstrumentationARM",
    ),
    "payloads of operating systems that have no files": ("vkImportSemaphoreZirconHandleFUCHSIA",),
    "stages of one vendor that no driver here has": (
        "vkCmdBindInvocationMaskHUAWEI",
        "vkCmdBindShadingRateImageNV",
        "vkCmdDrawClusterHUAWEI",
        "vkCmdDrawClusterIndirectHUAWEI",
        "vkCmdSubpassShadingHUAWEI",
    ),
}

_HARMLESS: dict[str, tuple[str, ...]] = {
    "for tools: tags, messages, checkpoints, performance": (
        "vkAcquirePerformanceConfigurationINTEL",
        "vkAcquireProfilingLockKHR",
        "vkCmdBeginGpaSampleAMD",
        "vkCmdBeginGpaSessionAMD",
        "vkCmdCopyGpaSessionResultsAMD",
        "vkCmdEndGpaSampleAMD",
        "vkCmdEndGpaSessionAMD",
        "vkCmdSetCheckpointNV",
        "vkCmdSetPerformanceMarkerINTEL",
        "vkCmdSetPerformanceOverrideINTEL",
        "vkCmdSetPerformanceStreamMarkerINTEL",
        "vkDebugMarkerSetObjectTagEXT",
        "vkDebugReportMessageEXT",
        "vkInitializePerformanceApiINTEL",
        "vkQueueSetPerformanceConfigurationINTEL",
        "vkReleasePerformanceConfigurationINTEL",
        "vkReleaseProfilingLockKHR",
        "vkResetGpaSessionAMD",
        "vkSetDebugUtilsObjectTagEXT",
        "vkSetGpaDeviceClockModeAMD",
        "vkSetPrivateData",
        "vkSubmitDebugUtilsMessageEXT",
        "vkUninitializePerformanceApiINTEL",
    ),
    "displays, and when to present": (
        "vkAntiLagUpdateAMD",
        "vkAcquireXlibDisplayEXT",
        "vkAcquireDrmDisplayEXT",
        "vkAcquireFullScreenExclusiveModeEXT",
        "vkAcquireWinrtDisplayNV",
        "vkDisplayPowerControlEXT",
        "vkQueueNotifyOutOfBandLegacyNV",
        "vkQueueNotifyOutOfBandNV",
        "vkRegisterDeviceEventEXT",
        "vkRegisterDisplayEventEXT",
        "vkReleaseDisplayEXT",
        "vkReleaseFullScreenExclusiveModeEXT",
        "vkSetHdrMetadataEXT",
        "vkSetLatencyMarkerLegacyNV",
        "vkSetLatencyMarkerNV",
        "vkSetLatencySleepModeLegacyNV",
        "vkSetLatencySleepModeNV",
        "vkSetLocalDimmingAMD",
        "vkSetSwapchainPresentTimingQueueSizeEXT",
        "vkShutdownLatencyDeviceLegacyNV",
        "vkWaitForPresent2KHR",
        "vkWaitForPresentKHR",
    ),
    "hints of how to schedule work": (
        "vkCmdSetComputeOccupancyPriorityNV",
        "vkCmdSetDispatchParametersARM",
        "vkQueueSetPerfHintQCOM",
    ),
    "what other systems share, and what they ask of it": (
        "vkExportMetalObjectsEXT",
        "vkSetBufferCollectionBufferConstraintsFUCHSIA",
        "vkSetBufferCollectionImageConstraintsFUCHSIA",
    ),
    "colors that samplers read outside of an image": (
        "vkRegisterCustomBorderColorEXT",
        "vkUnregisterCustomBorderColorEXT",
    ),
    "caches, pools and compilation": (
        "vkCompileDeferredNV",
        "vkEndCommandBuffer",
        "vkMergePipelineCaches",
        "vkMergeValidationCachesEXT",
        "vkReleaseCapturedPipelineDataKHR",
        "vkSetDeviceMemoryPriorityEXT",
        "vkTrimCommandPool",
    ),
    "what a deferred operation does is named when it is deferred": ("vkDeferredOperationJoinKHR",),
    "for video sessions, whose commands are named": (
        "vkBindVideoSessionMemoryKHR",
        "vkUpdateVideoSessionParametersKHR",
    ),
}


def _by_name(groups: dict[str, tuple[str, ...]]) -> dict[str, str]:
    return {name: reason for reason, names in groups.items() for name in names}


NAMED = _by_name(_NAMED)
"""For each command that is not modelled, the reason."""
HARMLESS = _by_name(_HARMLESS)
"""For each command with nothing to model, the reason."""
QUIET = ("vkGet", "vkEnumerate", "vkCreate", "vkDestroy")
"""Beginnings of host calls that only query, make or end objects. Those that matter have handlers."""


def accountable() -> Iterator[str]:
    """The main names of all commands of today's registry that must have a handler or an entry here."""
    for name in tables.COMMANDS:
        if name not in tables.COMMAND_ALIASES and not name.startswith(QUIET):
            yield name


def touches_nothing(name: str) -> bool:
    """Whether a host call without a handler only queries, makes or ends objects. Of a name that the registry does not
    have nobody can say so."""
    return name.startswith(QUIET) and name in tables.COMMANDS


def handled(name: str) -> bool:
    """Whether a family module says what a command does."""
    handler: Any = COMMANDS.get(name) or CALLS.get(name)
    return handler is not None and handler.__module__ != __name__


@call(*(name for name in NAMED if not is_recorded(name)))
def name_it(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Reports that a host call is not modelled. (The interpreter does so for a vkCmd* without a handler.)"""
    objects.contents.forget_all()
    yield UnmodelledCall(call.name)


@call(*(name for name in HARMLESS if not is_recorded(name)))
def pass_over(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """A host call with no effect on memory or order."""
    return ()


@command(*(name for name in HARMLESS if is_recorded(name)))
def pass_over_command(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """A command with no effect on memory or order."""
    return NOTHING
