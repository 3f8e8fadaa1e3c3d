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
        timelines = vk.VkPhysicalDeviceTimelineSemaphoreFeatures(timelineSemaphore=True)
        device = vk.VkDeviceCreateInfo(pNext=timelines, pQueueCreateInfos=queues)
        self.device = vk.vkCreateDevice(physical, device, None)
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

    def memory(self, needs: vk.VkMemoryRequirements) -> vk.VkDeviceMemory:
        """Memory that has what something needs."""
        kind = (needs.memoryTypeBits & -needs.memoryTypeBits).bit_length() - 1
        info = vk.VkMemoryAllocateInfo(allocationSize=needs.size, memoryTypeIndex=kind)
        return vk.vkAllocateMemory(self.device, info, None)

    def buffer(self, size: int, memory: vk.VkDeviceMemory | None = None) -> vk.VkBuffer:
        """A buffer, with memory of its own where none is given."""
        made = vk.vkCreateBuffer(self.device, vk.VkBufferCreateInfo(size=size, usage=USAGE), None)
        memory = memory or self.memory(vk.vkGetBufferMemoryRequirements(self.device, made))
        vk.vkBindBufferMemory(self.device, made, memory, 0)
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


def _events(program: _Program, size: int) -> None:
    several = max(1, size // 8)
    events = [vk.vkCreateEvent(program.device, vk.VkEventCreateInfo(), None) for _ in range(several)]
    for event in events:
        vk.vkCmdSetEvent(program.commands, event, STAGE)
    for _ in range(several):
        vk.vkCmdWaitEvents(program.commands, several, events, STAGE, STAGE, 0, None, 0, None, 0, None)
    vk.vkCmdFillBuffer(program.commands, program.buffer(64), 0, 4, 1)
    program.end(several)


def _timeline(program: _Program, size: int) -> None:
    kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=vk.VK_SEMAPHORE_TYPE_TIMELINE)
    semaphore = vk.vkCreateSemaphore(program.device, vk.VkSemaphoreCreateInfo(pNext=kind), None)
    vk.vkCmdFillBuffer(program.commands, program.buffer(64), 0, 4, 1)
    vk.vkEndCommandBuffer(program.commands)
    for value in range(size):
        values = vk.VkTimelineSemaphoreSubmitInfo(pWaitSemaphoreValues=[value], pSignalSemaphoreValues=[value + 1])
        batch = vk.VkSubmitInfo(
            pNext=values, pWaitSemaphores=[semaphore], pWaitDstStageMask=[STAGE], pCommandBuffers=[program.commands],
            pSignalSemaphores=[semaphore],
        )  # fmt: skip
        vk.vkQueueSubmit(program.queue, 1, [batch], None)
    vk.vkQueueWaitIdle(program.queue)


def _subresources(program: _Program, size: int) -> None:
    general, layers = vk.VK_IMAGE_LAYOUT_GENERAL, 256
    info = vk.VkImageCreateInfo(
        imageType=vk.VK_IMAGE_TYPE_2D, format=vk.VK_FORMAT_R8G8B8A8_UNORM, extent=vk.VkExtent3D(128, 128, 1),
        mipLevels=8, arrayLayers=layers, samples=vk.VK_SAMPLE_COUNT_1_BIT, usage=vk.VK_IMAGE_USAGE_TRANSFER_DST_BIT,
    )  # fmt: skip
    image = vk.vkCreateImage(program.device, info, None)
    memory = program.memory(vk.vkGetImageMemoryRequirements(program.device, image))
    vk.vkBindImageMemory(program.device, image, memory, 0)
    aspect = vk.VK_IMAGE_ASPECT_COLOR_BIT
    whole = vk.VkImageMemoryBarrier(
        srcAccessMask=FULL, dstAccessMask=FULL, oldLayout=general, newLayout=general, image=image,
        subresourceRange=vk.VkImageSubresourceRange(aspect, 0, 8, 0, layers),
    )  # fmt: skip
    for at in range(size):
        part = vk.VkImageSubresourceRange(aspect, at % 8, 1, 37 * at % layers, 1)
        vk.vkCmdClearColorImage(program.commands, image, general, vk.VkClearColorValue(float32=[0.0] * 4), 1, [part])
        if at % 4 == 3:
            vk.vkCmdPipelineBarrier(program.commands, STAGE, STAGE, 0, 0, None, 0, None, 1, [whole])
    program.end()


def _aliases(program: _Program, size: int) -> None:
    first = vk.vkCreateBuffer(program.device, vk.VkBufferCreateInfo(size=64, usage=USAGE), None)
    memory = program.memory(vk.vkGetBufferMemoryRequirements(program.device, first))
    for buffer in [program.buffer(64, memory) for _ in range(size)]:
        vk.vkCmdFillBuffer(program.commands, buffer, 0, 4, 1)
    program.end()


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
    "events": _events,
    "timeline": _timeline,
    "regions": _regions,
    "subresources": _subresources,
    "aliases": _aliases,
    "findings": _findings,
    "kinds-of-access": _kinds_of_access,
    "fresh-ranges": _fresh_ranges,
    "ranged-barriers": _ranged_barriers,
}
"""Programs by the shape of which they make the calls."""


if __name__ == "__main__":
    PROGRAMS[sys.argv[1]](_Program(), int(sys.argv[2]))
