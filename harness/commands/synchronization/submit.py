"""Queues, submits, fences and what the host waits for (specification: "Command Buffer Submission", "Fences")."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.commands.drawing.descriptors import chained
from harness.commands.handlers import call
from harness.commands.object_state import CommandBuffer, ObjectState
from harness.spec.scopes import ALL_COMMANDS
from harness.trace.calls import Call
from harness.trace.effects import (
    FAMILY_IGNORED,
    FenceReset,
    HostWaited,
    QueueObtained,
    SemaphoreOperation,
    StreamEvent,
    Submission,
    Submitted,
)

SUCCESS = 0
TIMELINE_SUBMIT_INFO = 1000207003
"""VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO."""


Operations = tuple[SemaphoreOperation, ...]


@call("vkQueueSubmit", "vkQueueSubmit2")
def queue_submit(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Batches of either form."""
    yield _submitted(objects, call, [_submission(objects, *each) for each in enumerate(call.args["pSubmits"] or ())])


def semaphore_operations(info: dict[str, Any]) -> tuple[Operations, Operations]:
    """What a VkSubmitInfo or VkSubmitInfo2 waits for, and what it signals. In the second form each has a stage mask and
    a value of its own; in the first a wait comes with a stage mask and a signal follows everything."""
    if "pCommandBufferInfos" in info:
        return _second_form(info["pWaitSemaphoreInfos"]), _second_form(info["pSignalSemaphoreInfos"])
    values = chained(info, TIMELINE_SUBMIT_INFO) or {}
    return (
        _first_form(info["pWaitSemaphores"], info.get("pWaitDstStageMask"), values.get("pWaitSemaphoreValues")),
        _first_form(info["pSignalSemaphores"], None, values.get("pSignalSemaphoreValues")),
    )


def _second_form(infos: list[dict[str, Any]] | None) -> Operations:
    return tuple(SemaphoreOperation(each["semaphore"], each["stageMask"], each["value"]) for each in infos or ())


def _first_form(semaphores: list[int] | None, stages: list[int] | None, values: list[int] | None) -> Operations:
    return tuple(
        SemaphoreOperation(
            semaphore,
            stages[at] if stages and at < len(stages) else ALL_COMMANDS,
            values[at] if values and at < len(values) else 0,
        )
        for at, semaphore in enumerate(semaphores or ())
    )


def _submission(objects: ObjectState, index: int, info: dict[str, Any]) -> Submission:
    second = "pCommandBufferInfos" in info
    ids = [each["commandBuffer"] for each in info["pCommandBufferInfos"] or ()] if second else info["pCommandBuffers"]
    held = []
    for id in ids or ():
        buffer = objects.get(CommandBuffer, id)
        held.append((id, tuple(buffer.commands) if buffer is not None else ()))
    return Submission(index, tuple(held), *semaphore_operations(info))


def _submitted(objects: ObjectState, call: Call, batches: list[Submission]) -> Submitted:
    queue = call.args["queue"]
    flags = objects.queue_flags(queue)
    _, family = objects.queue_family.get(queue, (0, FAMILY_IGNORED))
    return Submitted(call.index, call.name, call.site, queue, flags, tuple(batches), call.args["fence"], family)


@call("vkGetDeviceQueue", "vkGetDeviceQueue2")
def get_queue(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the family of a queue."""
    family = call.args.get("queueFamilyIndex")
    if family is None:
        family = call.args["pQueueInfo"]["queueFamilyIndex"]
    objects.queue_family[call.args["pQueue"]] = (call.args["device"], family)
    yield QueueObtained(call.args["pQueue"], family)


@call("vkCreateCommandPool")
def create_pool(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Its queue family decides which stages a recorded barrier's masks mean."""
    info = call.args["pCreateInfo"]
    objects.pool_family[call.args["pCommandPool"]] = (call.args["device"], info["queueFamilyIndex"])
    return ()


@call("vkGetPhysicalDeviceQueueFamilyProperties")
def queue_families(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """What each family of a physical device can do decides which stages a barrier's masks mean."""
    objects.families[call.args["physicalDevice"]] = [
        each["queueFlags"] for each in call.args["pQueueFamilyProperties"] or ()
    ]
    return ()


@call("vkGetPhysicalDeviceQueueFamilyProperties2")
def queue_families2(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The same, in the extensible form."""
    objects.families[call.args["physicalDevice"]] = [
        each["queueFamilyProperties"]["queueFlags"] for each in call.args["pQueueFamilyProperties"] or ()
    ]
    return ()


@call("vkCreateDevice")
def create_device(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers which physical device it came from."""
    objects.devices[call.args["pDevice"]] = call.args["physicalDevice"]
    return ()


@call("vkWaitForFences")
def wait_for_fences(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """A successful wait for all fences (or for a single one) covers them; any-of-several says nothing certain."""
    fences = call.args["pFences"] or ()
    if call.result == SUCCESS and (call.args["waitAll"] or len(fences) == 1):
        yield HostWaited(fences=tuple(fences))


@call("vkGetFenceStatus")
def get_fence_status(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """VK_SUCCESS is as good as a wait."""
    if call.result == SUCCESS:
        yield HostWaited(fences=(call.args["fence"],))


@call("vkResetFences")
def reset_fences(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """They no longer stand for their last submission."""
    yield FenceReset(tuple(call.args["pFences"] or ()))


@call("vkDestroyFence")
def destroy_fence(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """As good as reset."""
    yield FenceReset((call.args["fence"],))


@call("vkQueueWaitIdle")
def queue_wait_idle(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Everything submitted to the queue is complete."""
    if call.result == SUCCESS:
        yield HostWaited(queue=call.args["queue"])


@call("vkDeviceWaitIdle", "vkDestroyDevice")
def device_wait_idle(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Everything is complete (destroying a device requires it)."""
    if call.succeeded:
        yield HostWaited()
