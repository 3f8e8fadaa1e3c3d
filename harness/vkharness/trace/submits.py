"""The batches of a submission in one shape, for all forms of the call.

VkSubmitInfo2 gives each semaphore a stage mask and a value of its own. VkSubmitInfo gives stages to waits only: its
signals follow all commands. The values of VkSubmitInfo and VkBindSparseInfo come in a chained
VkTimelineSemaphoreSubmitInfo. A missing value is 0, which binary semaphores ignore. Specification: "Command Buffer
Submission", "Sparse Resource Binding".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

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
        ids = tuple(each["commandBuffer"] for each in info["pCommandBufferInfos"] or ())
        return SubmitBatch(_second_form(info["pWaitSemaphoreInfos"]), ids, _second_form(info["pSignalSemaphoreInfos"]))
    values = chained(info, VkStructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO) or {}
    return SubmitBatch(
        _first_form(info.get("pWaitSemaphores"), info.get("pWaitDstStageMask"), values.get("pWaitSemaphoreValues")),
        tuple(info.get("pCommandBuffers") or ()),
        _first_form(info.get("pSignalSemaphores"), None, values.get("pSignalSemaphoreValues")),
    )


def _second_form(infos: list[dict[str, Any]] | None) -> Operations:
    return tuple(SemaphoreOperation(each["semaphore"], each["stageMask"], value=each["value"]) for each in infos or ())


def _first_form(semaphores: list[int] | None, stages: list[int] | None, values: list[int] | None) -> Operations:
    return tuple(
        SemaphoreOperation(
            semaphore,
            stages[at] if stages and at < len(stages) else VkPipelineStage2.ALL_COMMANDS,
            value=values[at] if values and at < len(values) else 0,
        )
        for at, semaphore in enumerate(semaphores or ())
    )
