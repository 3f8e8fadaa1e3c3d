"""A program that makes the calls of a shape of `bench/amplification.py`: `python bench/live_shapes.py SHAPE SIZE`.

It imports nothing of the harness. `PROGRAMS` has the shapes that a program can make on any driver with one queue.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import vulkan as vk

FULL = vk.VK_ACCESS_MEMORY_READ_BIT | vk.VK_ACCESS_MEMORY_WRITE_BIT
USAGE = vk.VK_BUFFER_USAGE_TRANSFER_SRC_BIT | vk.VK_BUFFER_USAGE_TRANSFER_DST_BIT
STAGE = vk.VK_PIPELINE_STAGE_ALL_COMMANDS_BIT
AGAIN = vk.VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT


class _Program:
    """A device with one command buffer, and what shapes need."""

    def __init__(self) -> None:
        app = vk.VkApplicationInfo(apiVersion=vk.VK_MAKE_VERSION(1, 3, 0))
        self._instance = vk.vkCreateInstance(vk.VkInstanceCreateInfo(pApplicationInfo=app), None)
        physical = vk.vkEnumeratePhysicalDevices(self._instance)[0]
        queues = [vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, pQueuePriorities=[1.0])]
        self.device = vk.vkCreateDevice(physical, vk.VkDeviceCreateInfo(pQueueCreateInfos=queues), None)
        self.queue = vk.vkGetDeviceQueue(self.device, 0, 0)
        self.pool = vk.vkCreateCommandPool(self.device, vk.VkCommandPoolCreateInfo(queueFamilyIndex=0), None)
        self.commands = self.begin()

    def begin(self, level: int = 0) -> vk.VkCommandBuffer:
        """Another command buffer, begun."""
        info = vk.VkCommandBufferAllocateInfo(commandPool=self.pool, level=level, commandBufferCount=1)
        made = vk.vkAllocateCommandBuffers(self.device, info)[0]
        inherited = vk.VkCommandBufferInheritanceInfo() if level else None
        vk.vkBeginCommandBuffer(made, vk.VkCommandBufferBeginInfo(flags=AGAIN, pInheritanceInfo=inherited))
        return made

    def buffer(self, size: int) -> vk.VkBuffer:
        """A buffer with memory of its own."""
        made = vk.vkCreateBuffer(self.device, vk.VkBufferCreateInfo(size=size, usage=USAGE), None)
        needs = vk.vkGetBufferMemoryRequirements(self.device, made)
        kind = (needs.memoryTypeBits & -needs.memoryTypeBits).bit_length() - 1
        info = vk.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=kind)
        vk.vkBindBufferMemory(self.device, made, vk.vkAllocateMemory(self.device, info, None), 0)
        return made

    def barrier(self, commands: vk.VkCommandBuffer) -> None:
        """Orders everything."""
        full = [vk.VkMemoryBarrier(srcAccessMask=FULL, dstAccessMask=FULL)]
        vk.vkCmdPipelineBarrier(commands, STAGE, STAGE, 0, 1, full, 0, None, 0, None)

    def ranged_barrier(self, buffer: vk.VkBuffer) -> None:
        """Orders the first word of a buffer."""
        masks = {"srcAccessMask": FULL, "dstAccessMask": FULL, "srcQueueFamilyIndex": 0, "dstQueueFamilyIndex": 0}
        one = [vk.VkBufferMemoryBarrier(**masks, buffer=buffer, offset=0, size=4)]
        vk.vkCmdPipelineBarrier(self.commands, STAGE, STAGE, 0, 0, None, 1, one, 0, None)

    def end(self, times: int = 1, at_once: int = 1) -> None:
        """Ends the recording, submits it so many times, each naming it so often, and waits."""
        vk.vkEndCommandBuffer(self.commands)
        batch = [vk.VkSubmitInfo(pCommandBuffers=[self.commands] * at_once)]
        for _ in range(times):
            vk.vkQueueSubmit(self.queue, 1, batch, None)
        vk.vkQueueWaitIdle(self.queue)


def _submits(program: _Program, size: int) -> None:
    vk.vkCmdFillBuffer(program.commands, program.buffer(64), 0, 4, 1)
    program.end(size)


def _batch(program: _Program, size: int) -> None:
    vk.vkCmdFillBuffer(program.commands, program.buffer(64), 0, 4, 1)
    program.end(at_once=size)


def _executions(program: _Program, size: int) -> None:
    buffer = program.buffer(64)
    for _ in range(size // 2):
        vk.vkCmdFillBuffer(program.commands, buffer, 0, 4, 1)
        program.barrier(program.commands)
    program.end(size // 2)


def _secondaries(program: _Program, size: int) -> None:
    inner = program.begin(1)
    vk.vkCmdFillBuffer(inner, program.buffer(64), 0, 4, 1)
    program.barrier(inner)
    vk.vkEndCommandBuffer(inner)
    vk.vkCmdExecuteCommands(program.commands, size, [inner] * size)
    program.end(8)


def _regions(program: _Program, size: int) -> None:
    buffers = [program.buffer(64 * size) for _ in range(2)]
    regions = [vk.VkBufferCopy(srcOffset=16 * at, dstOffset=16 * at, size=4) for at in range(size)]
    for _ in range(4):
        vk.vkCmdCopyBuffer(program.commands, *buffers, size, regions)
        program.barrier(program.commands)
        buffers.reverse()
    program.end()


def _findings(program: _Program, size: int) -> None:
    buffer = program.buffer(64)
    for _ in range(size):
        vk.vkCmdFillBuffer(program.commands, buffer, 0, 4, 1)
    program.end()


def _kinds_of_access(program: _Program, size: int) -> None:
    one, other = buffers = [program.buffer(64) for _ in range(2)]
    copy = [vk.VkBufferCopy(srcOffset=0, dstOffset=0, size=4)]
    for at in range(size):
        vk.vkCmdCopyBuffer(program.commands, buffers[at % 2], buffers[at % 2 - 1], 1, copy)
        if at % 3 == 0:
            vk.vkCmdFillBuffer(program.commands, one if at % 2 else other, 0, 4, 1)
    program.end()


def _fresh_ranges(program: _Program, size: int) -> None:
    buffer = program.buffer(16 * size)
    for at in range(size):
        vk.vkCmdFillBuffer(program.commands, buffer, 8 * at, 4, 1)
    program.end()


def _ranged_barriers(program: _Program, size: int) -> None:
    one, other = (program.buffer(64) for _ in range(2))
    copy = [vk.VkBufferCopy(srcOffset=0, dstOffset=0, size=4)]
    vk.vkCmdFillBuffer(program.commands, one, 0, 4, 1)
    for _ in range(size):
        program.ranged_barrier(one)
        program.ranged_barrier(other)
        vk.vkCmdCopyBuffer(program.commands, one, other, 1, copy)
    program.end()


PROGRAMS: dict[str, Callable[[_Program, int], None]] = {
    "submits": _submits,
    "batch": _batch,
    "executions": _executions,
    "secondaries": _secondaries,
    "regions": _regions,
    "findings": _findings,
    "kinds-of-access": _kinds_of_access,
    "fresh-ranges": _fresh_ranges,
    "ranged-barriers": _ranged_barriers,
}
"""Programs by the shape of which they make the calls."""


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](_Program(), int(sys.argv[2]))
