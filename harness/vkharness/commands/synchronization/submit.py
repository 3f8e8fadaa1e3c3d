"""Queues, submits, fences and what the host waits for (specification: "Command Buffer Submission", "Fences")."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vkharness.commands.device_groups import DeviceGroups
from vkharness.commands.group_commands import GroupSubmit
from vkharness.commands.handlers import call
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.rendering import other_aspect
from vkharness.commands.synchronization.bind_sparse import UNORDERED
from vkharness.findings import Place
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkResult, VkStructureType
from vkharness.spec.names import flags_value
from vkharness.trace.calls import FOUND_WRITES, Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import (
    Command,
    FenceReset,
    HostWaited,
    QueueObtained,
    StreamEvent,
    Submission,
    Submitted,
    UnmodelledCall,
)
from vkharness.trace.host_effects import FenceCreated
from vkharness.trace.submits import SubmitBatch, batches
from vkharness.trace.work_budget import A_BUFFER, A_COMMAND, spend

SIGNALED = flags_value("VkFenceCreateFlags", "VK_FENCE_CREATE_SIGNALED_BIT")


@call("vkQueueSubmit", "vkQueueSubmit2")
def queue_submit(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Batches of either form."""
    taken = batches(call.args)
    objects.contents.submit(call.args["queue"], taken)
    objects.payloads.waited(wait.semaphore for each in taken for wait in each.waits)
    if objects.debug.has_labels:
        objects.debug.submitted(call.args["queue"], call.index, [each.command_buffers for each in taken])
    objects.debug.frames.submitted(call)
    if objects.sparse.resources:
        for space in objects.sparse.spaces():
            objects.contents.memory.forget_space(space)
        if objects.contents.holds_back:
            yield UnmodelledCall(UNORDERED)
    made = _submitted(objects, call, [_submission(objects, *each) for each in enumerate(taken)])
    if objects.contents.unmodelled:
        yield from map(UnmodelledCall, objects.contents.unmodelled)
        objects.contents.unmodelled.clear()
    if objects.groups is None or objects.groups.size_of_queue(made.queue) == 1:
        yield made
    else:
        yield from GroupSubmit(objects, objects.groups, made).events(taken)


def _submission(objects: ObjectState, index: int, batch: SubmitBatch) -> Submission:
    held = []
    for id in batch.command_buffers:
        buffer = objects.get(CommandBuffer, id)
        held.append((id, _settled(objects, buffer) if buffer is not None else ()))
    return Submission(index, tuple(held), waits=batch.waits, signals=batch.signals)


def _settled(objects: ObjectState, buffer: CommandBuffer) -> Sequence[Command]:
    spend(A_BUFFER + A_COMMAND * buffer.weight, "steps of executed commands")
    settled = objects.contents.settled(buffer.executed(), buffer.steps, buffer.depends, buffer.last_settled)
    return objects.sparse.resolved(settled) if objects.sparse.resources else settled


def _submitted(objects: ObjectState, call: Call, submissions: list[Submission]) -> Submitted:
    queue = call.args["queue"]
    flags = objects.queue_flags(queue)
    _, family = objects.queue_family.get(queue, (0, VK_QUEUE_FAMILY_IGNORED))
    return Submitted(
        call.index, call.name, call.site, queue, flags, tuple(submissions), call.args["fence"], family=family
    )


@call("vkGetDeviceQueue", "vkGetDeviceQueue2")
def get_queue(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the family of a queue."""
    family = call.args.get("queueFamilyIndex")
    if family is None:
        family = call.args["pQueueInfo"]["queueFamilyIndex"]
    device = call.args["device"]
    several = any(own == device and family != other for own, other in objects.queue_family.values())
    objects.queue_family[call.args["pQueue"]] = (device, family)
    if objects.groups is not None:
        objects.groups.obtain(call.args["pQueue"], device)
    yield QueueObtained(call.args["pQueue"], family)
    if several and objects.barriers_by_slice.get(device, False) is None:
        yield UnmodelledCall("queues of several families where the trace does not say whether maintenance9 is enabled")


@call("vkCreateCommandPool")
def create_pool(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Its queue family decides which stages a recorded barrier's masks mean."""
    info = call.args["pCreateInfo"]
    objects.pool_family[call.args["pCommandPool"]] = (call.args["device"], info["queueFamilyIndex"])
    return ()


@call("vkGetPhysicalDeviceQueueFamilyProperties")
def queue_families(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the VkQueueFlags of each family. They decide which stages the masks of barriers stand for."""
    objects.families[call.args["physicalDevice"]] = [
        each["queueFlags"] for each in call.args["pQueueFamilyProperties"] or ()
    ]
    return ()


@call("vkGetPhysicalDeviceQueueFamilyProperties2")
def queue_families2(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the VkQueueFlags of each family, from vkGetPhysicalDeviceQueueFamilyProperties2."""
    objects.families[call.args["physicalDevice"]] = [
        each["queueFamilyProperties"]["queueFlags"] for each in call.args["pQueueFamilyProperties"] or ()
    ]
    kind = VkStructureType.QUEUE_FAMILY_OWNERSHIP_TRANSFER_PROPERTIES_KHR
    told = [chained(each, kind) or {} for each in call.args["pQueueFamilyProperties"] or ()]
    masks = tuple(each.get("optimalImageTransferToQueueFamilies") for each in told)
    if masks and None not in masks:
        objects.image_acquirers[call.args["physicalDevice"]] = tuple(int(each or 0) for each in masks)
    return ()


@call("vkCreateDevice")
def create_device(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers which physical device it came from, and whether barriers of 3D images name slices (maintenance9).

    Contents of memory are not followed where a device has several physical devices: a command writes those instances
    that its device mask says. Specification: "VkDeviceGroupDeviceCreateInfo".
    """
    objects.devices[call.args["pDevice"]] = call.args["physicalDevice"]
    if call.args.get(FOUND_WRITES):
        objects.contents.watch()
    objects.debug.frames.device_created(call)
    objects.aspect_rewrites[call.args["pDevice"]] = other_aspect.device_made(objects, call)
    enabled = chained(call.args["pCreateInfo"], VkStructureType.PHYSICAL_DEVICE_MAINTENANCE_9_FEATURES_KHR)
    extensions = call.args["pCreateInfo"].get("ppEnabledExtensionNames") or ()
    if enabled is not None or "VK_KHR_maintenance9" in extensions:
        # A recording of ours has the struct without its members, and a capture may leave it out.
        value = (enabled or {}).get("maintenance9")
        objects.barriers_by_slice[call.args["pDevice"]] = None if value is None else bool(value)
    group = chained(call.args["pCreateInfo"], VkStructureType.DEVICE_GROUP_DEVICE_CREATE_INFO)
    size = len(group.get("pPhysicalDevices") or ()) if group is not None else 0
    if size > 1:
        objects.groups = objects.groups or DeviceGroups()
        objects.groups.add(call.args["pDevice"], size)
        objects.contents.give_up()
    return ()


@call("vkWaitForFences")
def wait_for_fences(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """A successful wait for all fences (or for a single one) covers them; any-of-several says nothing certain."""
    fences = call.args["pFences"] or ()
    if call.result == VkResult.SUCCESS and (call.args["waitAll"] or len(fences) == 1):
        yield HostWaited(fences=tuple(fences))


@call("vkGetFenceStatus")
def get_fence_status(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """VK_SUCCESS is as good as a wait."""
    if call.result == VkResult.SUCCESS:
        yield HostWaited(fences=(call.args["fence"],))


@call("vkCreateFence")
def create_fence(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a fence. One that is created signaled has to be reset before its first use."""
    if call.args["pCreateInfo"]["flags"] & SIGNALED:
        yield FenceCreated(call.args["pFence"], Place(call.index, call.name, call.site))


@call("vkResetFences")
def reset_fences(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Resets fences, which no longer stand for their last submission."""
    yield FenceReset(tuple(call.args["pFences"] or ()), by=Place(call.index, call.name, call.site))


@call("vkDestroyFence")
def destroy_fence(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes a fence, which is equivalent to a reset."""
    yield FenceReset((call.args["fence"],), by=Place(call.index, call.name, call.site))


@call("vkQueueWaitIdle")
def queue_wait_idle(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Everything submitted to the queue is complete."""
    if call.result == VkResult.SUCCESS:
        yield HostWaited(queue=call.args["queue"])


@call("vkDeviceWaitIdle", "vkDestroyDevice")
def device_wait_idle(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Everything is complete (destroying a device requires it). Of several devices, the queues of this one are."""
    if not call.succeeded:
        return
    if len(objects.devices) < 2:
        yield HostWaited()
        return
    for queue, (device, _) in objects.queue_family.items():
        if device == call.args["device"]:
            yield HostWaited(queue=queue)
