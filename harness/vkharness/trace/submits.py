"""The batches of a submission in one shape, for all forms of the call.

VkSubmitInfo2 gives each semaphore a stage mask and a value of its own. VkSubmitInfo gives stages to waits only: its
signals follow all commands. The values of VkSubmitInfo and VkBindSparseInfo come in a chained
VkTimelineSemaphoreSubmitInfo. A missing value is 0, which binary semaphores ignore. Specification: "Command Buffer
Submission", "Sparse Resource Binding".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from vkharness.spec.enums import VkPipelineStage2, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import SemaphoreOperation

Operations = tuple[SemaphoreOperation, ...]


@dataclass(frozen=True, slots=True)
class SubmitBatch:
    """The waits, command buffers and signals of one VkSubmitInfo, VkSubmitInfo2 or VkBindSparseInfo."""

    waits: Operations
    command_buffers: tuple[int, ...]
    """The ids of the command buffers. A VkBindSparseInfo has none."""
    signals: Operations
    masks: tuple[int, ...] = ()
    """By command buffer, the mask of the physical devices that execute it; 0 for all."""


def batches(args: dict[str, Any]) -> list[SubmitBatch]:
    """The batches of a vkQueueSubmit, vkQueueSubmit2 or vkQueueBindSparse, from its arguments."""
    return [_batch(info) for info in args.get("pSubmits") or args.get("pBindInfo") or ()]


def cut(call: Call, first: int, end: int) -> Call:
    """A submission of those of its batches from `first` on and before `end`. The fence goes with the last batch."""
    infos, count = ("pBindInfo", "bindInfoCount") if "pBindInfo" in call.args else ("pSubmits", "submitCount")
    made = call.args.get(infos) or []
    fence = call.args["fence"] if end >= len(made) else 0
    return replace(call, args={**call.args, count: len(made[first:end]), infos: made[first:end], "fence": fence})


def _batch(info: dict[str, Any]) -> SubmitBatch:
    if "pCommandBufferInfos" in info:
        several = info["pCommandBufferInfos"] or ()
        ids, masks = (tuple(each.get(name, 0) for each in several) for name in ("commandBuffer", "deviceMask"))
        waits, signals = (_second_form(info[name]) for name in ("pWaitSemaphoreInfos", "pSignalSemaphoreInfos"))
        return SubmitBatch(waits, ids, signals, masks)
    values = chained(info, VkStructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO) or {}
    group = _group(info)
    ids = tuple(info.get("pCommandBuffers") or ())
    stages = info.get("pWaitDstStageMask")
    return SubmitBatch(
        _first_form(info.get("pWaitSemaphores"), stages, values.get("pWaitSemaphoreValues"), group.waits),
        ids,
        _first_form(info.get("pSignalSemaphores"), None, values.get("pSignalSemaphoreValues"), group.signals),
        (group.masks + (1,) * len(ids))[: len(ids)],
    )


class _Group(NamedTuple):
    """The device indices and masks of a batch."""

    waits: tuple[int, ...] = ()
    masks: tuple[int, ...] = ()
    signals: tuple[int, ...] = ()


def _group(info: dict[str, Any]) -> _Group:
    """Without a struct that says so, semaphore operations and command buffers execute on device index zero.

    Specification: "VkDeviceGroupSubmitInfo", "VkDeviceGroupBindSparseInfo".
    """
    names = ("pWaitSemaphoreDeviceIndices", "pCommandBufferDeviceMasks", "pSignalSemaphoreDeviceIndices")
    given = chained(info, VkStructureType.DEVICE_GROUP_SUBMIT_INFO)
    if given is not None:
        return _Group(*(tuple(given.get(name) or ()) for name in names))
    bind = chained(info, VkStructureType.DEVICE_GROUP_BIND_SPARSE_INFO)
    if bind is None:
        return _Group()
    waits, signals = (len(info.get(name) or ()) for name in ("pWaitSemaphores", "pSignalSemaphores"))
    device = (bind["resourceDeviceIndex"],)
    return _Group(device * waits, (), device * signals)


def _second_form(infos: list[dict[str, Any]] | None) -> Operations:
    return tuple(
        SemaphoreOperation(each["semaphore"], each["stageMask"], value=each["value"], device=each.get("deviceIndex", 0))
        for each in infos or ()
    )


def _first_form(
    semaphores: list[int] | None, stages: list[int] | None, values: list[int] | None, devices: tuple[int, ...]
) -> Operations:
    return tuple(
        SemaphoreOperation(
            semaphore,
            stages[at] if stages and at < len(stages) else VkPipelineStage2.ALL_COMMANDS,
            value=values[at] if values and at < len(values) else 0,
            device=devices[at] if at < len(devices) else 0,
        )
        for at, semaphore in enumerate(semaphores or ())
    )
