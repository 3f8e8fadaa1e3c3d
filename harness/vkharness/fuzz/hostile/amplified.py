"""Traces of few bytes that ask for much work: each shape repeats what multiplies with something else in the trace.

`SHAPES` has them by name. Each takes a size; its file grows in proportion to that, and what a judge that follows it to
the letter does grows faster: with the square, or with the product of two lists. `bench/amplification.py` prints what
the commands make of them, and the hunt draws from them (`any_amplified`).

>>> amplified("submits", 3).count(b"vkQueueSubmit")
3
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from vkharness.fuzz.filled_calls import arguments, struct
from vkharness.fuzz.hostile.call_streams import HEADER, add_call, trace_of
from vkharness.spec.enums import VkAccess2, VkBufferUsage, VkImageLayout, VkImageUsage, VkPipelineStage2

LARGEST_SIZE = 400
"""The largest size that the hunt draws."""
RESULTS = ("vkCreate", "vkAllocate", "vkQueue", "vkBegin", "vkEnd", "vkBind")
EVERYTHING = VkPipelineStage2.ALL_COMMANDS
ANY_ACCESS = VkAccess2.MEMORY_READ | VkAccess2.MEMORY_WRITE
USAGE = VkBufferUsage.TRANSFER_SRC | VkBufferUsage.TRANSFER_DST
WORD = 4


class _Lines:
    """A trace in the making. Objects have the numbers from 1 on."""

    def __init__(self, queues: int = 1) -> None:
        self.lines: list[dict[str, Any]] = [HEADER]
        self._last = 0
        self.device = self.id()
        self.call("vkCreateDevice", pCreateInfo=struct("VkDeviceCreateInfo"), pDevice=self.device)
        self.queues = [self.id() for _ in range(queues)]
        for at, queue in enumerate(self.queues):
            self.call("vkGetDeviceQueue", device=self.device, queueIndex=at, pQueue=queue)
        self.pool = self.make("vkCreateCommandPool", "pCommandPool", struct("VkCommandPoolCreateInfo"))
        self.commands = 0

    def id(self) -> int:
        """A number that no other object has."""
        self._last += 1
        return self._last

    def call(self, name: str, **given: Any) -> None:
        """A call; what is not given is zero."""
        add_call(self.lines, name, arguments(name, **given), 0 if name.startswith(RESULTS) else None)

    def make(self, name: str, output: str, info: dict[str, Any]) -> int:
        """A vkCreate* call; the new object."""
        made = self.id()
        self.call(name, device=self.device, pCreateInfo=info, **{output: made})
        return made

    def memory(self, size: int) -> int:
        """vkAllocateMemory of so many bytes."""
        made = self.id()
        info = struct("VkMemoryAllocateInfo", allocationSize=size)
        self.call("vkAllocateMemory", device=self.device, pAllocateInfo=info, pMemory=made)
        return made

    def buffer(self, size: int, memory: int = 0, offset: int = 0) -> int:
        """A buffer, bound to memory of its own where none is given."""
        made = self.make("vkCreateBuffer", "pBuffer", struct("VkBufferCreateInfo", size=size, usage=USAGE))
        held = memory or self.memory(size)
        self.call("vkBindBufferMemory", device=self.device, buffer=made, memory=held, memoryOffset=offset)
        return made

    def begin(self, level: int = 0) -> int:
        """A new command buffer that is being recorded."""
        self.commands = self.id()
        info = struct("VkCommandBufferAllocateInfo", commandPool=self.pool, level=level, commandBufferCount=1)
        made = [self.commands]
        self.call("vkAllocateCommandBuffers", device=self.device, pAllocateInfo=info, pCommandBuffers=made)
        inherited = struct("VkCommandBufferInheritanceInfo") if level else None
        again = struct("VkCommandBufferBeginInfo", flags=4, pInheritanceInfo=inherited)
        self.call("vkBeginCommandBuffer", commandBuffer=self.commands, pBeginInfo=again)
        return self.commands

    def end(self) -> None:
        """Ends the recording."""
        self.call("vkEndCommandBuffer", commandBuffer=self.commands)

    def finish(self) -> None:
        """Ends the recording, and submits it."""
        self.end()
        self.submit()

    def command(self, name: str, **given: Any) -> None:
        """vkCmd<name> in the command buffer that is being recorded."""
        self.call(f"vkCmd{name}", commandBuffer=self.commands, **given)

    def fill(self, buffer: int, offset: int = 0, size: int = WORD) -> None:
        """vkCmdFillBuffer."""
        self.command("FillBuffer", dstBuffer=buffer, dstOffset=offset, size=size)

    def barrier(self, **more: Any) -> None:
        """A full memory barrier, or that of buffers which are given."""
        full = struct("VkMemoryBarrier", srcAccessMask=ANY_ACCESS, dstAccessMask=ANY_ACCESS)
        stages = {"srcStageMask": EVERYTHING, "dstStageMask": EVERYTHING}
        self.command("PipelineBarrier", **stages, **(more or {"pMemoryBarriers": [full]}))

    def ranged_barrier(self, buffer: int, offset: int, size: int) -> None:
        """A full barrier of a part of a buffer."""
        families = {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
        masks = {"srcAccessMask": ANY_ACCESS, "dstAccessMask": ANY_ACCESS}
        where = {"buffer": buffer, "offset": offset, "size": size}
        self.barrier(pBufferMemoryBarriers=[struct("VkBufferMemoryBarrier", **masks, **families, **where)])

    def submit(self, *command_buffers: int, queue: int = 0) -> None:
        """vkQueueSubmit of one batch."""
        batch = struct("VkSubmitInfo", pCommandBuffers=list(command_buffers or (self.commands,)))
        self.call("vkQueueSubmit", queue=self.queues[queue], pSubmits=[batch])

    def submit_in_turn(self, semaphore: int, value: int, queue: int = 0) -> None:
        """vkQueueSubmit2 that waits for a value of a timeline, and signals the next one."""
        operation = struct("VkSemaphoreSubmitInfo", semaphore=semaphore, stageMask=EVERYTHING)
        batch = struct(
            "VkSubmitInfo2",
            pWaitSemaphoreInfos=[{**operation, "value": value}],
            pCommandBufferInfos=[struct("VkCommandBufferSubmitInfo", commandBuffer=self.commands)],
            pSignalSemaphoreInfos=[{**operation, "value": value + 1}],
        )
        self.call("vkQueueSubmit2", queue=self.queues[queue], pSubmits=[batch])

    def timeline(self) -> int:
        """A timeline semaphore that begins at 0."""
        kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=1)
        return self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=kind))

    def text(self) -> bytes:
        """The trace."""
        return trace_of(self.lines)


def _one_fill(queues: int = 1) -> _Lines:
    """A command buffer of one fill."""
    lines = _Lines(queues)
    buffer = lines.buffer(64)
    lines.begin()
    lines.fill(buffer)
    lines.end()
    return lines


def _submits(size: int) -> _Lines:
    """One command buffer of one fill, submitted again and again. Nothing orders the submits."""
    lines = _one_fill()
    for _ in range(size):
        lines.submit()
    return lines


def _batch(size: int) -> _Lines:
    """One submit that names one command buffer again and again."""
    lines = _one_fill()
    lines.submit(*[lines.commands] * size)
    return lines


def _two_queues(size: int) -> _Lines:
    """Two command buffers on two queues in turn."""
    lines = _Lines(2)
    buffer = lines.buffer(64)
    several = []
    for _ in range(2):
        several.append(lines.begin())
        lines.fill(buffer)
        lines.end()
    for at in range(size):
        lines.submit(several[at % 2], queue=at % 2)
    return lines


def _secondaries(size: int) -> _Lines:
    """A primary that executes a secondary again and again, submitted eight times with a barrier behind each."""
    lines = _Lines()
    buffer = lines.buffer(64)
    inner = lines.begin(level=1)
    lines.fill(buffer)
    lines.barrier()
    lines.end()
    lines.begin()
    lines.command("ExecuteCommands", pCommandBuffers=[inner] * size)
    lines.end()
    for _ in range(8):
        lines.submit()
    return lines


def _events(size: int) -> _Lines:
    """Sets of events, waits that name all of them, and executions of both."""
    lines = _Lines()
    several = max(1, size // 8)
    events = [lines.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo")) for _ in range(several)]
    buffer = lines.buffer(64)
    lines.begin()
    for event in events:
        lines.command("SetEvent", event=event, stageMask=EVERYTHING)
    for _ in range(several):
        lines.command("WaitEvents", srcStageMask=EVERYTHING, dstStageMask=EVERYTHING, pEvents=events)
    lines.fill(buffer)
    lines.end()
    for _ in range(several):
        lines.submit()
    return lines


def _timeline(size: int) -> _Lines:
    """Submits in a chain by the values of one timeline. The host waits for none."""
    lines = _one_fill()
    semaphore = lines.timeline()
    for value in range(size):
        lines.submit_in_turn(semaphore, value)
    return lines


def _late_signals(size: int) -> _Lines:
    """Queues that wait for one another by the values of a timeline; the last submit lets all of them go on."""
    lines = _one_fill(size)
    semaphore = lines.timeline()
    for value in reversed(range(size)):
        lines.submit_in_turn(semaphore, value, queue=value)
    return lines


def _regions(size: int) -> _Lines:
    """Copies of many regions, each beside each other one, with barriers between."""
    lines = _Lines()
    source, target = lines.buffer(64 * size), lines.buffer(64 * size)
    lines.begin()
    regions = [struct("VkBufferCopy", srcOffset=16 * at, dstOffset=16 * at, size=WORD) for at in range(size)]
    for at in range(4):
        one, other = (source, target) if at % 2 else (target, source)
        lines.command("CopyBuffer", srcBuffer=one, dstBuffer=other, pRegions=regions)
        lines.barrier()
    lines.finish()
    return lines


def _subresources(size: int) -> _Lines:
    """Clears of single subresources of an image of many, then transitions of all of them."""
    lines = _Lines()
    layers, general = 256, VkImageLayout.GENERAL
    info = struct(
        "VkImageCreateInfo", imageType=1, format=37, mipLevels=8, arrayLayers=layers, samples=1,
        extent={"width": 128, "height": 128, "depth": 1}, usage=VkImageUsage.TRANSFER_DST,
    )  # fmt: skip
    image = lines.make("vkCreateImage", "pImage", info)
    lines.call("vkBindImageMemory", device=lines.device, image=image, memory=lines.memory(1 << 30))
    lines.begin()
    for at in range(size):
        part = struct(
            "VkImageSubresourceRange", aspectMask=1, baseMipLevel=at % 8, levelCount=1, baseArrayLayer=37 * at % layers,
            layerCount=1,
        )  # fmt: skip
        lines.command("ClearColorImage", image=image, imageLayout=general, pRanges=[part])
        if at % 4 == 3:
            whole = struct("VkImageSubresourceRange", aspectMask=1, levelCount=8, layerCount=layers)
            barrier = struct(
                "VkImageMemoryBarrier", srcAccessMask=ANY_ACCESS, dstAccessMask=ANY_ACCESS, oldLayout=general,
                newLayout=general, image=image, subresourceRange=whole,
            )  # fmt: skip
            lines.barrier(pImageMemoryBarriers=[barrier])
    lines.finish()
    return lines


def _aliases(size: int) -> _Lines:
    """Many buffers on the same bytes of memory, each of them filled."""
    lines = _Lines()
    memory = lines.memory(1 << 16)
    buffers = [lines.buffer(64, memory) for _ in range(size)]
    lines.begin()
    for buffer in buffers:
        lines.fill(buffer)
    lines.finish()
    return lines


def _findings(size: int) -> _Lines:
    """Fills of the same bytes in one command buffer, without a barrier: each is a hazard with all before it."""
    lines = _Lines()
    buffer = lines.buffer(64)
    lines.begin()
    for _ in range(size):
        lines.fill(buffer)
    lines.finish()
    return lines


def _kinds_of_access(size: int) -> _Lines:
    """Reads and writes of the same bytes in turn, without a barrier."""
    lines = _Lines()
    buffer, other = lines.buffer(64), lines.buffer(64)
    copy = [struct("VkBufferCopy", size=WORD)]
    lines.begin()
    for at in range(size):
        one, two = (buffer, other) if at % 2 else (other, buffer)
        lines.command("CopyBuffer", srcBuffer=one, dstBuffer=two, pRegions=copy)
        if at % 3 == 0:
            lines.fill(buffer)
    lines.finish()
    return lines


def _fresh_ranges(size: int) -> _Lines:
    """Fills of ever other bytes of one buffer."""
    lines = _Lines()
    buffer = lines.buffer(16 * size)
    lines.begin()
    for at in range(size):
        lines.fill(buffer, 8 * at)
    lines.finish()
    return lines


def _ranged_barriers(size: int) -> _Lines:
    """Barriers of the same bytes, and a copy behind each that reads what was written at first."""
    lines = _Lines()
    buffer, other = lines.buffer(64), lines.buffer(64)
    copy = [struct("VkBufferCopy", size=WORD)]
    lines.begin()
    lines.fill(buffer)
    for _ in range(size):
        lines.ranged_barrier(buffer, 0, WORD)
        lines.ranged_barrier(other, 0, WORD)
        lines.command("CopyBuffer", srcBuffer=buffer, dstBuffer=other, pRegions=copy)
    lines.finish()
    return lines


def _executions(size: int) -> _Lines:
    """A command buffer of many commands, submitted many times."""
    lines = _Lines()
    half = max(1, size // 2)
    buffer = lines.buffer(64)
    lines.begin()
    for _ in range(half):
        lines.fill(buffer)
        lines.barrier()
    lines.end()
    for _ in range(half):
        lines.submit()
    return lines


SHAPES: dict[str, Callable[[int], _Lines]] = {
    "submits": _submits,
    "batch": _batch,
    "two-queues": _two_queues,
    "executions": _executions,
    "secondaries": _secondaries,
    "events": _events,
    "timeline": _timeline,
    "late-signals": _late_signals,
    "regions": _regions,
    "subresources": _subresources,
    "aliases": _aliases,
    "findings": _findings,
    "kinds-of-access": _kinds_of_access,
    "fresh-ranges": _fresh_ranges,
    "ranged-barriers": _ranged_barriers,
}
"""Makers of traces in which one thing repeats, by its name."""


def amplified(shape: str, size: int) -> bytes:
    """The trace of a shape; `size` counts what repeats in it."""
    return SHAPES[shape](size).text()


def any_amplified(rng: random.Random) -> bytes:
    """A trace of any shape and size."""
    return amplified(rng.choice(list(SHAPES)), 1 << rng.randrange(LARGEST_SIZE.bit_length()))
