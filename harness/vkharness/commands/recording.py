"""Command pools and command buffers: allocation, begin, reset, free."""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.commands.handlers import call
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.spec.enums import VkCommandBufferLevel, VkCommandBufferUsage, VkStructureType
from vkharness.trace.calls import Call
from vkharness.trace.chain import chained
from vkharness.trace.effects import CommandBufferReset, StreamEvent


@call("vkAllocateCommandBuffers")
def allocate_command_buffers(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds new, empty command buffers."""
    info = call.args["pAllocateInfo"]
    members = objects.children.setdefault(info["commandPool"], set())
    for id in call.args["pCommandBuffers"] or ():
        buffer = CommandBuffer(id, info["commandPool"], info["level"] == VkCommandBufferLevel.SECONDARY)
        buffer.queue_flags = objects.pool_flags(buffer.pool)
        objects.add(buffer)
        members.add(id)
    return ()


@call("vkBeginCommandBuffer", "vkResetCommandBuffer")
def begin(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Resets a command buffer implicitly. A command buffer whose allocation was not seen is added."""
    id = call.args["commandBuffer"]
    buffer = objects.get(CommandBuffer, id)
    if buffer is None:
        buffer = CommandBuffer(id, 0)
        objects.add(buffer)
    buffer.reset()
    buffer.begun_after = objects.debug.frames.last_submit
    if objects.debug.has_labels:
        objects.debug.begun(id, call.index)
    buffer.queue_flags = objects.pool_flags(buffer.pool)
    info = call.args.get("pBeginInfo")
    group = chained(info, VkStructureType.DEVICE_GROUP_COMMAND_BUFFER_BEGIN_INFO)
    buffer.device_mask = -1 if group is None else group["deviceMask"]
    if info and buffer.secondary and info["flags"] & VkCommandBufferUsage.RENDER_PASS_CONTINUE:
        buffer.inheritance = info["pInheritanceInfo"]
    return (CommandBufferReset(id),)


@call("vkResetCommandPool")
def reset_pool(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Resets every command buffer of the pool."""
    for id in sorted(objects.children.get(call.args["commandPool"], ())):
        buffer = objects.get(CommandBuffer, id)
        if buffer is not None:
            buffer.reset()
            yield CommandBufferReset(id)


@call("vkFreeCommandBuffers")
def free_command_buffers(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes command buffers."""
    members = objects.children.get(call.args["commandPool"], set())
    for id in call.args["pCommandBuffers"] or ():
        if id:
            objects.remove(id)
            members.discard(id)
            yield CommandBufferReset(id, freed=True)


@call("vkDestroyCommandPool")
def destroy_pool(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes all command buffers of the pool."""
    objects.pool_family.pop(call.args["commandPool"], None)
    for id in sorted(objects.children.pop(call.args["commandPool"], ())):
        objects.remove(id)
        yield CommandBufferReset(id, freed=True)
