"""Queues, submits, fences and what the host waits for (specification: "Command Buffer Submission", "Fences")."""

from __future__ import annotations

from collections.abc import Iterable

from harness.commands.objects import CommandBuffer, Objects
from harness.commands.registry import call
from harness.trace.calls import Call
from harness.trace.effects import FenceReset, HostWaited, Ignored, Occurrence, Submission, Submitted

SUCCESS = 0


@call("vkQueueSubmit")
def queue_submit(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Batches of the first form."""
    batches = []
    for index, info in enumerate(call.args["pSubmits"] or ()):
        if info["pWaitSemaphores"] or info["pSignalSemaphores"]:
            yield Ignored(f"{call.name} with semaphores")
        batches.append(_submission(objects, index, info["pCommandBuffers"] or ()))
    yield _submitted(objects, call, batches)


@call("vkQueueSubmit2")
def queue_submit2(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Batches of the second form."""
    batches = []
    for index, info in enumerate(call.args["pSubmits"] or ()):
        if info["pWaitSemaphoreInfos"] or info["pSignalSemaphoreInfos"]:
            yield Ignored(f"{call.name} with semaphores")
        ids = [each["commandBuffer"] for each in info["pCommandBufferInfos"] or ()]
        batches.append(_submission(objects, index, ids))
    yield _submitted(objects, call, batches)


def _submission(objects: Objects, index: int, ids: Iterable[int]) -> Submission:
    held = []
    for id in ids:
        buffer = objects.get(CommandBuffer, id)
        held.append((id, tuple(buffer.commands) if buffer is not None else ()))
    return Submission(index, tuple(held))


def _submitted(objects: Objects, call: Call, batches: list[Submission]) -> Submitted:
    queue = call.args["queue"]
    flags = objects.queue_flags(queue)
    return Submitted(call.index, call.name, call.site, queue, flags, tuple(batches), call.args["fence"])


@call("vkGetDeviceQueue", "vkGetDeviceQueue2")
def get_queue(objects: Objects, call: Call) -> Iterable[Occurrence]:
    """Remembers the family; a second queue of one device makes order between queues matter, which is not modelled."""
    family = call.args.get("queueFamilyIndex")
    if family is None:
        family = call.args["pQueueInfo"]["queueFamilyIndex"]
    objects.queue_family[call.args["pQueue"]] = (call.args["device"], family)
    if len(objects.queue_family) > 1:
        yield Ignored("a second queue")


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
