"""Rounds of work in one program whose resources are never destroyed, for what must not grow."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.support.passes import (
    begin_pass,
    depends,
    described,
    end_pass,
    framebuffer,
    next_subpass,
    rect,
    refer,
    subpass,
    view,
)
from tests.support.passes import render_pass as make_pass
from tests.support.streams import ALL_COMMANDS, GENERAL, IMAGE_USAGE, READ_WRITE, Stream, layers, struct
from vkharness.spec.enums import VkAccess2, VkImageUsage, VkPipelineStage2
from vkharness.trace.calls import Block, Call

WAITS = ("none", "none", "fence", "timeline", "idle")
"""Actions of the host after a submit, in a program that waits now and then."""
SIZE = 256

COPY, CLEAR, COMPUTE = VkPipelineStage2.COPY, VkPipelineStage2.CLEAR, VkPipelineStage2.COMPUTE_SHADER
COLOR_OUTPUT = VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT
TRANSFER_READ, TRANSFER_WRITE = VkAccess2.TRANSFER_READ, VkAccess2.TRANSFER_WRITE
STORAGE = VkAccess2.SHADER_STORAGE_READ | VkAccess2.SHADER_STORAGE_WRITE
COLOR_ACCESS = VkAccess2.COLOR_ATTACHMENT_READ | VkAccess2.COLOR_ATTACHMENT_WRITE
Scope = tuple[int, int]
"""Stages and accesses."""


AFTER: tuple[Scope, ...] = (
    (ALL_COMMANDS, READ_WRITE),
    (COPY | CLEAR, TRANSFER_READ | TRANSFER_WRITE),
    (COMPUTE | COPY, STORAGE | TRANSFER_READ),
    (ALL_COMMANDS | VkPipelineStage2.HOST, VkAccess2.MEMORY_WRITE | VkAccess2.HOST_READ),
)
"""Second scopes."""


class Rounds(Stream):
    """The calls of one program, round by round.

    A round makes buffers, an image, a render pass, a framebuffer and descriptor sets, and records commands over them
    (copies, clears, dispatches, render passes) with a dependency behind each: over everything, over a buffer, or by an
    event. It submits them to one of two queues, after the round before.
    """

    def __init__(self, seed: int, waits: tuple[str, ...], commands: int = 40) -> None:
        """`waits` has what the host may do after a submit; `commands` are those of a round, without barriers."""
        self._taken = 0
        super().__init__()
        self._random, self._waits, self._count = random.Random(seed), waits, commands
        self._queues = [self.queue, self.id()]
        self.call("vkGetDeviceQueue", device=self.device, queueFamilyIndex=0, queueIndex=1, pQueue=self._queues[1])
        self._timeline = self.timeline()
        self._value = 0
        self._shared = self.buffer(SIZE)
        self._dispatch = self.compute("copy_words", [self._shared, self._shared], bytes(8))
        made = [each for each in self.blocks if isinstance(each, Call)]
        self._set_layout = next(each for each in made if each.name == "vkCreateDescriptorSetLayout").args["pSetLayout"]
        self._event = self.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))

    def _take(self) -> list[Block]:
        """The calls since the last time."""
        taken = list(self.blocks)
        self.blocks.clear()
        for block in taken:
            self._taken += 1
            block.index = self._taken
        return taken

    def round(self) -> list[Block]:
        """The calls of one more round."""
        pick = self._random
        self._buffers = [self.buffer(SIZE) for _ in range(4)]
        self._image = self.image((8, 8, 1), usage=IMAGE_USAGE | VkImageUsage.COLOR_ATTACHMENT)
        self._sets = [self._set(*pick.sample(self._buffers, 2)) for _ in range(2)]
        passed = self._pass()
        self.begin()
        self.transition(self._image, 0, GENERAL)
        so_far: list[Scope] = []
        works: list[Callable[[], list[Scope]]] = [
            self._fill, self._copy, self._clear, self._image_copy, self._compute, passed
        ]  # fmt: skip
        for _ in range(self._count):
            so_far += pick.choice(works)()
            self._order(so_far)
            del so_far[:-8]
        self.end()
        self._hand_in()
        return self._take()

    # -- commands ------------------------------------------------------------------------------------------------------

    def _fill(self) -> list[Scope]:
        self.fill(self._random.choice(self._buffers), 1, 64 * self._random.randrange(4), 64)
        return [(CLEAR, TRANSFER_WRITE)]

    def _copy(self) -> list[Scope]:
        source, target = self._random.sample([*self._buffers, self._shared], 2)
        self.copy(source, target, 64, 64 * self._random.randrange(4), 64 * self._random.randrange(4))
        return [(COPY, TRANSFER_READ | TRANSFER_WRITE)]

    def _clear(self) -> list[Scope]:
        self.clear(self._image, (0, 0, 0, 1), layout=GENERAL)
        return [(CLEAR, TRANSFER_WRITE)]

    def _image_copy(self) -> list[Scope]:
        self.image_to_buffer(self._image, self._random.choice(self._buffers), (8, 8, 1), layers(), GENERAL)
        return [(COPY, TRANSFER_READ | TRANSFER_WRITE)]

    def _compute(self) -> list[Scope]:
        held = self._random.choice(self._sets)
        self.cmd("BindPipeline", pipelineBindPoint=1, pipeline=self._dispatch.pipeline)
        self.cmd("BindDescriptorSets", pipelineBindPoint=1, layout=self._dispatch.layout, pDescriptorSets=[held])
        self.cmd("PushConstants", layout=self._dispatch.layout, stageFlags=0x20, size=8, pValues=b"\1\0\0\0\1\0\0\0")
        self.cmd("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)
        return [(COMPUTE, STORAGE)]

    def _pass(self) -> Callable[[], list[Scope]]:
        """Makes a render pass of two subpasses; what records an instance of it."""
        around = (ALL_COMMANDS, VkAccess2.MEMORY_WRITE, COLOR_OUTPUT, COLOR_ACCESS)
        between = (COLOR_OUTPUT, COLOR_ACCESS, COLOR_OUTPUT, COLOR_ACCESS)
        attachment = described(load=self._random.choice((0, 1)), initial=GENERAL, final=GENERAL)
        parts = [subpass([refer(0, GENERAL)]) for _ in range(self._random.choice((1, 2)))]
        orders = [depends(0xFFFFFFFF, 0, around), *([depends(0, 1, between)] if len(parts) > 1 else [])]
        made = make_pass(self, [attachment], parts, orders)
        frame = framebuffer(self, made, [view(self, self._image)], (8, 8))

        def record() -> list[Scope]:
            begin_pass(self, made, frame, rect((8, 8)), [{"color": {"uint32": [0] * 4}}])
            for _ in parts[1:]:
                next_subpass(self)
            end_pass(self)
            return [(COLOR_OUTPUT, COLOR_ACCESS)]

        return record

    def _set(self, *buffers: int) -> int:
        """A descriptor set of a pool of its own."""
        return self._dispatch._descriptor_set(self._set_layout, list(buffers))

    def _order(self, before: list[Scope]) -> None:
        """A dependency from all that came lately to what may come: over everything, over a buffer, or by an event."""
        pick = self._random
        stages = accesses = 0
        for stage, access in before:
            stages, accesses = stages | stage, accesses | access
        after = pick.choice(AFTER)
        masks = {"srcStageMask": stages, "srcAccessMask": accesses, "dstStageMask": after[0], "dstAccessMask": after[1]}
        kind = pick.randrange(8)
        if kind == 0:
            families = {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
            part = struct("VkBufferMemoryBarrier2", buffer=pick.choice(self._buffers), size=SIZE, **masks, **families)
            info = struct("VkDependencyInfo", pBufferMemoryBarriers=[part])
        else:
            info = struct("VkDependencyInfo", pMemoryBarriers=[struct("VkMemoryBarrier2", **masks)])
        if kind == 1:
            self.cmd("SetEvent2", event=self._event, pDependencyInfo=info)
            self.cmd("WaitEvents2", pEvents=[self._event], pDependencyInfos=[info])
            self.barrier()
            self.cmd("ResetEvent2", event=self._event, stageMask=ALL_COMMANDS)
            self.barrier()
            return
        self.cmd("PipelineBarrier2", pDependencyInfo=info)

    # -- submits and waits ---------------------------------------------------------------------------------------------

    def _hand_in(self) -> None:
        """Submits what was recorded, with the next value of the timeline; waits for it, or not."""
        pick = self._random
        fence = self.make("vkCreateFence", "pFence", struct("VkFenceCreateInfo"))
        queue, wait = pick.choice(self._queues), pick.choice(self._waits)
        operation = struct("VkSemaphoreSubmitInfo", semaphore=self._timeline, stageMask=ALL_COMMANDS)
        batch = struct(
            "VkSubmitInfo2",
            pWaitSemaphoreInfos=[{**operation, "value": self._value}],
            pCommandBufferInfos=[struct("VkCommandBufferSubmitInfo", commandBuffer=self.commands)],
            pSignalSemaphoreInfos=[{**operation, "value": self._value + 1}],
        )
        self._value += 1
        self.call("vkQueueSubmit2", queue=queue, pSubmits=[batch], fence=fence)
        if wait == "fence":
            self.call("vkWaitForFences", device=self.device, pFences=[fence], waitAll=1)
        elif wait == "timeline":
            info = struct("VkSemaphoreWaitInfo", pSemaphores=[self._timeline], pValues=[self._value])
            self.call("vkWaitSemaphores", device=self.device, pWaitInfo=info)
        elif wait == "idle":
            self.call("vkQueueWaitIdle", queue=queue)
        last = self.blocks[-1]
        assert isinstance(last, Call)
        last.result = 0
