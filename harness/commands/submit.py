"""Queues, submits, fences and what the host waits for (specification: "Command Buffer Submission", "Fences")."""

from __future__ import annotations

from collections.abc import Iterable

from harness.commands.descriptors import chained
from harness.commands.objects import CommandBuffer, Objects
from harness.commands.registry import call
from harness.trace.calls import Call
from harness.trace.effects import (
    FAMILY_IGNORED,
    FenceReset,
    HostWaited,
    Occurrence,
    QueueObtained,
    SemaphoreOperation,
    Submission,
    Submitted,
)

SUCCESS = 0
ALL_COMMANDS = 0x10000
TIMELINE_SUBMIT_INFO = 1000207003
"""VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO."""


@call("vkQueueSubmit")
def queue_submit(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Batches of the first form: a signal follows everything, a wait comes with a stage mask."""
    batches = []
    for index, info in enumerate(call.args["pSubmits"] or ()):
        values = chained(info, TIMELINE_SUBMIT_INFO) or {}
        waits = _operations(info["pWaitSemaphores"], info.get("pWaitDstStageMask"), values.get("pWaitSemaphoreValues"))
        signals = _operations(info["pSignalSemaphores"], None, values.get("pSignalSemaphoreValues"))
        batches.append(_submission(objects, index, info["pCommandBuffers"] or (), waits, signals))
    yield _submitted(objects, call, batches)


def _operations(
    semaphores: list[int] | None, stages: list[int] | None, values: list[int] | None
) -> tuple[SemaphoreOperation, ...]:
    return tuple(
        SemaphoreOperation(
            semaphore,
            stages[at] if stages and at < len(stages) else ALL_COMMANDS,
            values[at] if values and at < len(values) else 0,
        )
        for at, semaphore in enumerate(semaphores or ())
    )


@call("vkQueueSubmit2")
def queue_submit2(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Batches of the second form: each wait and signal has a stage mask and a value of its own."""
    batches = []
    for index, info in enumerate(call.args["pSubmits"] or ()):
        ids = [each["commandBuffer"] for each in info["pCommandBufferInfos"] or ()]
        waits, signals = (
            tuple(SemaphoreOperation(each["semaphore"], each["stageMask"], each["value"]) for each in info[name] or ())
            for name in ("pWaitSemaphoreInfos", "pSignalSemaphoreInfos")
        )
        batches.append(_submission(objects, index, ids, waits, signals))
    yield _submitted(objects, call, batches)


def _submission(
    objects: Objects,
    index: int,
    ids: Iterable[int],
    waits: tuple[SemaphoreOperation, ...],
    signals: tuple[SemaphoreOperation, ...],
) -> Submission:
    held = []
    for id in ids:
        buffer = objects.get(CommandBuffer, id)
        held.append((id, tuple(buffer.commands) if buffer is not None else ()))
    return Submission(index, tuple(held), waits, signals)


def _submitted(objects: Objects, call: Call, batches: list[Submission]) -> Submitted:
    queue = call.args["queue"]
    flags = objects.queue_flags(queue)
    _, family = objects.queue_family.get(queue, (0, FAMILY_IGNORED))
    return Submitted(call.index, call.name, call.site, queue, flags, tuple(batches), call.args["fence"], family)


@call("vkGetDeviceQueue", "vkGetDeviceQueue2")
def get_queue(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Remembers the family of a queue."""
    family = call.args.get("queueFamilyIndex")
    if family is None:
        family = call.args["pQueueInfo"]["queueFamilyIndex"]
    objects.queue_family[call.args["pQueue"]] = (call.args["device"], family)
    yield QueueObtained(call.args["pQueue"], family)


@call("vkCreateCommandPool")
def create_pool(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Its queue family decides which stages a recorded barrier's masks mean."""
    info = call.args["pCreateInfo"]
    objects.pool_family[call.args["pCommandPool"]] = (call.args["device"], info["queueFamilyIndex"])
    return ()


@call("vkGetPhysicalDeviceQueueFamilyProperties")
def queue_families(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """What each family of a physical device can do decides which stages a barrier's masks mean."""
    objects.families[call.args["physicalDevice"]] = [
        each["queueFlags"] for each in call.args["pQueueFamilyProperties"] or ()
    ]
    return ()


@call("vkGetPhysicalDeviceQueueFamilyProperties2")
def queue_families2(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """The same, in the extensible form."""
    objects.families[call.args["physicalDevice"]] = [
        each["queueFamilyProperties"]["queueFlags"] for each in call.args["pQueueFamilyProperties"] or ()
    ]
    return ()


@call("vkCreateDevice")
def create_device(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Remembers which physical device it came from."""
    objects.devices[call.args["pDevice"]] = call.args["physicalDevice"]
    return ()


@call("vkWaitForFences")
def wait_for_fences(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """A successful wait for all fences (or for a single one) covers them; any-of-several says nothing certain."""
    fences = call.args["pFences"] or ()
    if call.result == SUCCESS and (call.args["waitAll"] or len(fences) == 1):
        yield HostWaited(fences=tuple(fences))


@call("vkGetFenceStatus")
def get_fence_status(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """VK_SUCCESS is as good as a wait."""
    if call.result == SUCCESS:
        yield HostWaited(fences=(call.args["fence"],))


@call("vkResetFences")
def reset_fences(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """They no longer stand for their last submission."""
    yield FenceReset(tuple(call.args["pFences"] or ()))


@call("vkDestroyFence")
def destroy_fence(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """As good as reset."""
    yield FenceReset((call.args["fence"],))


@call("vkQueueWaitIdle")
def queue_wait_idle(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Everything submitted to the queue is complete."""
    if call.result == SUCCESS:
        yield HostWaited(queue=call.args["queue"])


@call("vkDeviceWaitIdle", "vkDestroyDevice")
def device_wait_idle(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Everything is complete (destroying a device requires it)."""
    if call.succeeded:
        yield HostWaited()
