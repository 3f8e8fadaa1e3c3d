"""Device masks and device indices, as a program for several physical devices gives them, on a group of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer
from vkharness.rig.queues import SemaphoreUse
from vkharness.spec.enums import VkDependency
from vkharness.spec.masks import scope
from vkharness.suite import Rig, race, read_after_write, scenario

COPY, FILL = "vkCmdCopyBuffer", "vkCmdFillBuffer"
RAW = read_after_write(COPY, FILL)
WRITE, READ = "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ"
FIRST = 0b1
"""The device mask of the only physical device."""


def _submit(
    rig: Rig, commands: Commands, waits: Sequence[SemaphoreUse] = (), signals: Sequence[SemaphoreUse] = ()
) -> None:
    """A batch of which the only physical device executes everything, and which says so."""
    vk = rig.vk
    group = vk.VkDeviceGroupSubmitInfo(
        waitSemaphoreCount=len(waits),
        pWaitSemaphoreDeviceIndices=[0] * len(waits),
        commandBufferCount=1,
        pCommandBufferDeviceMasks=[FIRST],
        signalSemaphoreCount=len(signals),
        pSignalSemaphoreDeviceIndices=[0] * len(signals),
    )
    info = vk.VkSubmitInfo(
        pNext=group,
        waitSemaphoreCount=len(waits),
        pWaitSemaphores=[each.semaphore for each in waits],
        pWaitDstStageMask=[scope(each.stages)[0] for each in waits],
        commandBufferCount=1,
        pCommandBuffers=[commands.handle],
        signalSemaphoreCount=len(signals),
        pSignalSemaphores=[each.semaphore for each in signals],
    )
    vk.vkQueueSubmit(commands.queue.handle, 1, [info], None)


def _bound(rig: Rig, memory: Any, size: int = 256) -> RigBuffer:
    """A buffer that has the first instance of its memory on the first physical device."""
    vk, usage = rig.vk, rig.vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT | rig.vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
    handle = vk.vkCreateBuffer(rig.device, vk.VkBufferCreateInfo(size=size, usage=usage), None)
    rig.own("Buffer", handle)
    group = vk.VkBindBufferMemoryDeviceGroupInfo(deviceIndexCount=1, pDeviceIndices=[0])
    info = vk.VkBindBufferMemoryInfo(buffer=handle, memory=memory, memoryOffset=0, pNext=group)
    vk.vkBindBufferMemory2(rig.device, 1, [info])
    return RigBuffer(handle, size, memory)


@scenario(without={"fill before copy": [RAW]}, rule="each-physical-device-executes-its-own-commands")
def scenario_commands_of_one_device_mask(rig: Rig) -> None:
    """Commands that the same physical device executes need a dependency, whatever said that it executes them."""
    a, b = rig.buffer(), rig.buffer()
    with rig.commands() as commands:
        rig.vk.vkCmdSetDeviceMask(commands.handle, FIRST)
        commands.fill(a, 0x11111111)
        commands.barrier("fill before copy", WRITE, READ)
        rig.vk.vkCmdSetDeviceMask(commands.handle, FIRST)
        commands.copy(a, b)
    _submit(rig, commands)


@scenario(
    without={"fill before copy": [RAW]},
    weakened={"fill before copy / execution only": [RAW], "fill before copy / device-local": []},
    rule="a-barrier-is-local-to-its-physical-device",
)
def scenario_barrier_between_the_devices_of_a_group(rig: Rig) -> None:
    """A barrier between all physical devices of a group orders the commands of one, as a device-local one does."""
    a, b = rig.buffer(), rig.buffer()
    weaker: dict[str, dict[str, Any]] = {
        "execution only": {"src": "CLEAR", "dst": "COPY", "flags": VkDependency.DEVICE_GROUP},
        "device-local": {"flags": 0},
    }
    with rig.commands() as commands:
        commands.fill(a, 0x22222222)
        commands.barrier("fill before copy", WRITE, READ, flags=VkDependency.DEVICE_GROUP, weaker=weaker)
        commands.copy(a, b)
    _submit(rig, commands)


@scenario(without={"fill before copy": [RAW]}, rule="an-instance-of-memory-for-each-physical-device")
def scenario_instance_of_memory(rig: Rig) -> None:
    """Two buffers on one instance of memory are the same memory."""
    vk = rig.vk
    target = rig.buffer()
    sized = vk.vkGetBufferMemoryRequirements(rig.device, target.handle)
    memory = rig.memory(sized.size, sized.memoryTypeBits)
    a, b = _bound(rig, memory), _bound(rig, memory)
    with rig.commands() as commands:
        commands.fill(a, 0x33333333)
        commands.barrier("fill before copy", WRITE, READ)
        commands.copy(b, target)
    _submit(rig, commands)


@scenario(
    without={"the wait": [race("READ_RACING_WRITE", COPY, FILL)]},
    queues=["TRANSFER"],
    rule="a-semaphore-belongs-to-the-physical-device-of-its-index",
)
def scenario_semaphore_of_a_device_index(rig: Rig) -> None:
    """A wait on the physical device that signaled orders the queues of it."""
    a, b, done = rig.buffer(), rig.buffer(), rig.semaphore()
    first, second = rig.queues
    with rig.commands(queue=first) as commands:
        commands.fill(a, 0x44444444)
    _submit(rig, commands, signals=[SemaphoreUse(done)])
    waits = rig.operation("the wait", done, "ALL_TRANSFER")
    with rig.commands(queue=second) as commands:
        commands.copy(a, b)
    _submit(rig, commands, waits=waits)
