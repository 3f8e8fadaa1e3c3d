"""Traces of calls that a program makes, in orders that no program has.

The arguments of each call fit those of the others: images have views, command buffers a pool, passes attachments with
resolves, sets the layout of the pipelines that use them, and swapchains images. Only the order is any: ends without
begins, executions of what was never recorded, waits for what was never set, uses behind destructions, resets of what is
pending, presents of what was not acquired, descriptors that are written while they are used.
"""

from __future__ import annotations

import random

from vkharness.fuzz.filled_calls import struct
from vkharness.fuzz.hostile.call_streams import trace_of
from vkharness.fuzz.hostile.fitting_calls import (
    ALL,
    AREA,
    BUFFERS,
    DEVICE,
    EVENTS,
    EXTENT,
    FENCE,
    FORMAT,
    FRAMEBUFFER,
    IMAGES,
    LAYERS,
    MEMORY,
    PASS,
    PHYSICAL,
    POOL,
    PRIMARIES,
    QUERIES,
    QUEUES,
    RANGE,
    READ_WRITE,
    SECONDARIES,
    SEMAPHORES,
    SIDE,
    SIZE,
    TIMELINE,
    VIEWS,
    Calls,
)
from vkharness.fuzz.hostile.shader_orders import Shaders, SwapchainCalls
from vkharness.spec.enums import VkImageAspect, VkImageLayout

MOST_CALLS = 60


class _Objects(Calls):
    """Objects are made, destroyed and made again."""

    def _make_a_device(self) -> None:
        queues = [struct("VkDeviceQueueCreateInfo", pQueuePriorities=[1.0, 1.0])]
        self._call(
            "vkCreateDevice",
            physicalDevice=PHYSICAL,
            pDevice=DEVICE,
            pCreateInfo=struct("VkDeviceCreateInfo", pQueueCreateInfos=queues),
        )
        for at, queue in enumerate(QUEUES):
            self._call("vkGetDeviceQueue", device=DEVICE, queueIndex=at, pQueue=queue)

    def _make_command_buffers(self) -> None:
        self._create("vkCreateCommandPool", "VkCommandPoolCreateInfo", pCommandPool=POOL)
        for level, several in enumerate((PRIMARIES, SECONDARIES)):
            info = struct("VkCommandBufferAllocateInfo", commandPool=POOL, level=level, commandBufferCount=len(several))
            self._call("vkAllocateCommandBuffers", device=DEVICE, pAllocateInfo=info, pCommandBuffers=[*several])

    def _make_memory(self) -> None:
        info = struct("VkMemoryAllocateInfo", allocationSize=SIZE * 8)
        self._call("vkAllocateMemory", device=DEVICE, pAllocateInfo=info, pMemory=MEMORY)
        for each in BUFFERS:
            self._make_buffer(each)
        for image, view in zip(IMAGES, VIEWS, strict=True):
            self._make_an_image_again(image, view)

    def _make_buffer(self, buffer: int = BUFFERS[0]) -> None:
        created = struct("VkBufferCreateInfo", size=SIZE, usage=0x1FF)
        self._call("vkCreateBuffer", device=DEVICE, pCreateInfo=created, pBuffer=buffer)
        place = self._rng.choice((0, SIZE, 2 * SIZE))
        self._call("vkBindBufferMemory", device=DEVICE, buffer=buffer, memory=MEMORY, memoryOffset=place)

    def _make_an_image_again(self, image: int = IMAGES[0], view: int = VIEWS[0]) -> None:
        created = struct(
            "VkImageCreateInfo",
            imageType=1,
            format=FORMAT,
            extent=EXTENT,
            mipLevels=1,
            arrayLayers=1,
            samples=1,
            usage=0x9F,
        )
        self._call("vkCreateImage", device=DEVICE, pCreateInfo=created, pImage=image)
        place = self._rng.choice((2, 3, 4)) * SIZE
        self._call("vkBindImageMemory", device=DEVICE, image=image, memory=MEMORY, memoryOffset=place)
        seen = struct("VkImageViewCreateInfo", image=image, viewType=1, format=FORMAT, subresourceRange=RANGE)
        self._call("vkCreateImageView", device=DEVICE, pCreateInfo=seen, pView=view)

    def _make_pass(self) -> None:
        described = struct(
            "VkAttachmentDescription",
            format=FORMAT,
            samples=1,
            initialLayout=VkImageLayout.GENERAL,
            finalLayout=VkImageLayout.GENERAL,
            loadOp=self._rng.randint(0, 2),
            storeOp=self._rng.randint(0, 1),
        )
        first, second = (
            [struct("VkAttachmentReference", attachment=at, layout=VkImageLayout.GENERAL)] for at in (0, 1)
        )
        subpasses = [
            struct("VkSubpassDescription", pColorAttachments=first, pResolveAttachments=second),
            struct("VkSubpassDescription", pColorAttachments=second, pInputAttachments=first),
        ]
        dependency = struct(
            "VkSubpassDependency",
            srcSubpass=0,
            dstSubpass=1,
            srcStageMask=ALL,
            dstStageMask=ALL,
            srcAccessMask=READ_WRITE,
            dstAccessMask=READ_WRITE,
        )
        self._create(
            "vkCreateRenderPass",
            "VkRenderPassCreateInfo",
            pRenderPass=PASS,
            info={"pAttachments": [described] * 2, "pSubpasses": subpasses, "pDependencies": [dependency]},
        )
        sides = {"width": SIDE, "height": SIDE, "layers": 1}
        self._create(
            "vkCreateFramebuffer",
            "VkFramebufferCreateInfo",
            pFramebuffer=FRAMEBUFFER,
            info={"renderPass": PASS, "pAttachments": [*VIEWS[:2]], **sides},
        )

    def _make_synchronization(self) -> None:
        for each in EVENTS:
            self._create("vkCreateEvent", "VkEventCreateInfo", pEvent=each)
        self._create("vkCreateQueryPool", "VkQueryPoolCreateInfo", pQueryPool=QUERIES, info={"queryCount": 4})
        for each in SEMAPHORES:
            self._create("vkCreateSemaphore", "VkSemaphoreCreateInfo", pSemaphore=each)
        kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=1)
        self._create("vkCreateSemaphore", "VkSemaphoreCreateInfo", pSemaphore=TIMELINE, info={"pNext": kind})
        self._create("vkCreateFence", "VkFenceCreateInfo", pFence=FENCE)

    def _do_destroy(self) -> None:
        name, parameter, several = self._rng.choice(
            (
                ("vkDestroyBuffer", "buffer", BUFFERS),
                ("vkDestroyImage", "image", IMAGES),
                ("vkFreeMemory", "memory", (MEMORY,)),
                ("vkDestroyImageView", "imageView", VIEWS),
                ("vkDestroyRenderPass", "renderPass", (PASS,)),
                ("vkDestroyFramebuffer", "framebuffer", (FRAMEBUFFER,)),
                ("vkDestroyEvent", "event", EVENTS),
                ("vkDestroyQueryPool", "queryPool", (QUERIES,)),
                ("vkDestroySemaphore", "semaphore", (*SEMAPHORES, TIMELINE)),
                ("vkDestroyFence", "fence", (FENCE,)),
                ("vkDestroyCommandPool", "commandPool", (POOL,)),
            )
        )
        self._call(name, device=DEVICE, **{parameter: self._rng.choice(several)})

    def _do_free(self) -> None:
        several = self._some((*PRIMARIES, *SECONDARIES))
        self._call("vkFreeCommandBuffers", device=DEVICE, commandPool=POOL, pCommandBuffers=several)

    def _do_reset(self) -> None:
        if self._rng.random() < 0.3:
            self._call("vkResetCommandPool", device=DEVICE, commandPool=POOL)
        else:
            self._call("vkResetCommandBuffer", commandBuffer=self._buffer())


class _Commands(Calls):
    """Makes calls that record command buffers."""

    def _do_begin(self) -> None:
        inherited = struct(
            "VkCommandBufferInheritanceInfo", renderPass=self._rng.choice((0, PASS)), framebuffer=FRAMEBUFFER
        )
        info = struct(
            "VkCommandBufferBeginInfo",
            flags=self._rng.choice((0, 1, 2, 4)),
            pInheritanceInfo=self._rng.choice((None, inherited)),
        )
        self._record("vkBeginCommandBuffer", pBeginInfo=info)

    def _do_end(self) -> None:
        self._record("vkEndCommandBuffer")

    def _do_fill(self) -> None:
        size = self._rng.choice((4, 256, (1 << 64) - 1))
        self._record("vkCmdFillBuffer", dstBuffer=self._rng.choice(BUFFERS), size=size)

    def _do_copy(self) -> None:
        region = struct("VkBufferCopy", srcOffset=0, dstOffset=self._rng.choice((0, 128)), size=256)
        self._record(
            "vkCmdCopyBuffer",
            srcBuffer=self._rng.choice(BUFFERS),
            dstBuffer=self._rng.choice(BUFFERS),
            pRegions=[region],
        )

    def _do_copy_to_image(self) -> None:
        region = struct("VkBufferImageCopy", imageSubresource=LAYERS, imageExtent=EXTENT)
        self._record(
            "vkCmdCopyBufferToImage",
            srcBuffer=self._rng.choice(BUFFERS),
            dstImage=self._rng.choice(IMAGES),
            dstImageLayout=VkImageLayout.GENERAL,
            pRegions=[region],
        )

    def _do_barrier(self) -> None:
        memory = struct("VkMemoryBarrier", srcAccessMask=READ_WRITE, dstAccessMask=READ_WRITE)
        family = self._rng.choice((0, 1, 0xFFFFFFFF))
        image = struct(
            "VkImageMemoryBarrier",
            srcAccessMask=READ_WRITE,
            dstAccessMask=READ_WRITE,
            oldLayout=VkImageLayout.GENERAL,
            newLayout=VkImageLayout.GENERAL,
            image=self._rng.choice(IMAGES),
            subresourceRange=RANGE,
            srcQueueFamilyIndex=family,
            dstQueueFamilyIndex=self._rng.choice((family, 0)),
        )
        self._record(
            "vkCmdPipelineBarrier",
            srcStageMask=ALL,
            dstStageMask=ALL,
            pMemoryBarriers=[memory] * self._rng.randint(0, 1),
            pImageMemoryBarriers=[image] * self._rng.randint(0, 1),
        )

    def _do_begin_pass(self) -> None:
        clear = struct("VkRenderPassBeginInfo", renderPass=PASS, framebuffer=FRAMEBUFFER, renderArea=AREA)
        self._record("vkCmdBeginRenderPass", pRenderPassBegin=clear, contents=self._rng.randint(0, 1))

    def _do_next_subpass(self) -> None:
        self._record("vkCmdNextSubpass", contents=self._rng.randint(0, 1))

    def _do_end_pass(self) -> None:
        self._record("vkCmdEndRenderPass")

    def _do_begin_rendering(self) -> None:
        target = struct(
            "VkRenderingAttachmentInfo",
            imageView=self._rng.choice((0, *VIEWS)),
            imageLayout=VkImageLayout.GENERAL,
            resolveMode=self._rng.randint(0, 2),
            resolveImageView=self._rng.choice((0, *VIEWS)),
            resolveImageLayout=VkImageLayout.GENERAL,
            loadOp=self._rng.randint(0, 2),
            storeOp=self._rng.randint(0, 1),
        )
        info = struct(
            "VkRenderingInfo",
            flags=self._rng.choice((0, 1, 2, 4, 6)),
            renderArea=AREA,
            layerCount=1,
            pColorAttachments=[target] * self._rng.randint(0, 2),
        )
        self._record("vkCmdBeginRendering", pRenderingInfo=info)

    def _do_end_rendering(self) -> None:
        self._record("vkCmdEndRendering")

    def _do_clear(self) -> None:
        what = struct("VkClearAttachment", aspectMask=VkImageAspect.COLOR)
        where = struct("VkClearRect", rect=AREA, layerCount=1)
        self._record("vkCmdClearAttachments", pAttachments=[what], pRects=[where])

    def _do_draw(self) -> None:
        self._record("vkCmdDraw", vertexCount=3, instanceCount=1)

    def _do_execute(self) -> None:
        self._record("vkCmdExecuteCommands", pCommandBuffers=self._some((*SECONDARIES, *SECONDARIES, PRIMARIES[0])))

    def _do_event(self) -> None:
        name = self._rng.choice(("vkCmdSetEvent", "vkCmdResetEvent"))
        self._record(name, event=self._rng.choice(EVENTS), stageMask=ALL)

    def _do_event_2(self) -> None:
        barrier = struct(
            "VkMemoryBarrier2", srcStageMask=ALL, srcAccessMask=READ_WRITE, dstStageMask=ALL, dstAccessMask=READ_WRITE
        )
        info = struct("VkDependencyInfo", pMemoryBarriers=[barrier])
        several = self._some(EVENTS)
        if self._rng.random() < 0.5:
            self._record("vkCmdSetEvent2", event=self._rng.choice(EVENTS), pDependencyInfo=info)
        else:
            self._record("vkCmdWaitEvents2", pEvents=several, pDependencyInfos=[info] * len(several))

    def _do_wait_events(self) -> None:
        self._record("vkCmdWaitEvents", pEvents=self._some(EVENTS), srcStageMask=ALL, dstStageMask=ALL)

    def _do_host_event(self) -> None:
        self._call(
            self._rng.choice(("vkSetEvent", "vkResetEvent", "vkGetEventStatus")),
            device=DEVICE,
            event=self._rng.choice(EVENTS),
        )

    def _do_query(self) -> None:
        name = self._rng.choice(("vkCmdBeginQuery", "vkCmdEndQuery", "vkCmdWriteTimestamp"))
        self._record(name, queryPool=QUERIES, query=self._rng.randint(0, 4))

    def _do_reset_queries(self) -> None:
        self._record("vkCmdResetQueryPool", queryPool=QUERIES, firstQuery=self._rng.randint(0, 3), queryCount=2)

    def _do_copy_queries(self) -> None:
        self._record(
            "vkCmdCopyQueryPoolResults",
            queryPool=QUERIES,
            queryCount=2,
            dstBuffer=self._rng.choice(BUFFERS),
            stride=8,
            flags=self._rng.randint(0, 3),
        )


class _Queues(Calls):
    """Makes calls on queues and of the host."""

    def _do_submit(self) -> None:
        waits, signals = (self._some((*SEMAPHORES, TIMELINE)) for _ in range(2))
        values = struct(
            "VkTimelineSemaphoreSubmitInfo",
            pWaitSemaphoreValues=[self._rng.randint(0, 3) for _ in waits],
            pSignalSemaphoreValues=[self._rng.randint(0, 3) for _ in signals],
        )
        info = struct(
            "VkSubmitInfo",
            pNext=values,
            pWaitSemaphores=waits,
            pWaitDstStageMask=[ALL] * len(waits),
            pCommandBuffers=[self._buffer() for _ in range(self._rng.randint(0, 2))],
            pSignalSemaphores=signals,
        )
        self._call("vkQueueSubmit", queue=self._rng.choice(QUEUES), pSubmits=[info], fence=self._rng.choice((0, FENCE)))

    def _do_bind(self) -> None:
        where = struct("VkSparseMemoryBind", size=SIZE, memory=MEMORY)
        bound = struct("VkSparseBufferMemoryBindInfo", buffer=self._rng.choice(BUFFERS), pBinds=[where])
        info = struct("VkBindSparseInfo", pBufferBinds=[bound], pSignalSemaphores=self._some(SEMAPHORES))
        self._call("vkQueueBindSparse", queue=self._rng.choice(QUEUES), pBindInfo=[info])

    def _do_wait(self) -> None:
        name = self._rng.choice(
            ("vkQueueWaitIdle", "vkDeviceWaitIdle", "vkWaitForFences", "vkResetFences", "vkGetFenceStatus")
        )
        said = {"queue": QUEUES[0]} if name == "vkQueueWaitIdle" else {"device": DEVICE}
        fences = {"pFences": [FENCE]} if name.endswith("Fences") else {"fence": FENCE} if "Status" in name else {}
        self._call(name, **said, **fences)

    def _do_timeline(self) -> None:
        value = self._rng.randint(0, 4)
        if self._rng.random() < 0.5:
            info = struct("VkSemaphoreSignalInfo", semaphore=self._rng.choice((TIMELINE, *SEMAPHORES)), value=value)
            self._call("vkSignalSemaphore", device=DEVICE, pSignalInfo=info)
        else:
            info = struct("VkSemaphoreWaitInfo", pSemaphores=[TIMELINE], pValues=[value])
            self._call("vkWaitSemaphores", device=DEVICE, pWaitInfo=info)

    def _do_map(self) -> None:
        if self._rng.random() < 0.5:
            self._call("vkMapMemory", device=DEVICE, memory=MEMORY, size=SIZE)
        else:
            self._call("vkUnmapMemory", device=DEVICE, memory=MEMORY)


class CallOrders(_Objects, _Commands, Shaders, _Queues, SwapchainCalls):
    """One stream; `text` is its trace, beside which the files of `CODE` lie.

    `_make_` begins the names of what comes first, `_do_` of what may come.
    """

    def __init__(self, rng: random.Random) -> None:
        super().__init__(rng)
        self._verbs = sorted(name for name in dir(self) if name.startswith("_do_"))
        self._makers = sorted(name for name in dir(self) if name.startswith("_make_"))

    def _do_make_again(self) -> None:
        getattr(self, self._rng.choice(self._makers))()

    def text(self, calls: int | None = None) -> bytes:
        """A new stream as a trace, with so many calls behind those that make the objects; any number without one."""
        for name in self._makers:
            getattr(self, name)()
        some = self._rng.sample(self._verbs, 10)
        for _ in range(self._rng.randint(4, MOST_CALLS) if calls is None else calls):
            choice = self._rng.random()
            name = self._rng.choice(some if choice < 0.7 else self._verbs)
            getattr(self, "_do_begin" if choice < 0.1 else "_do_submit" if choice < 0.2 else name)()
        return trace_of(self._lines)
