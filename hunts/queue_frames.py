"""Random programs of frames with what orders work, and with calls in places where few programs make them.

Several queues and families, semaphores of both kinds, fences, events, queries, ownership, batches that fail, pools that
are reset, command buffers that are recorded in turns or again while they are executed, device addresses, suspended
rendering, render passes; and somebody who asks for findings in the middle.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from hunts.frame_programs import COMPUTE, READ_WRITE, WHOLE
from hunts.front_programs import ASKS
from hunts.shader_frames import EDGE, GRAPHICS, RGBA8, ShaderFrames
from vkharness.fuzz.filled_calls import struct
from vkharness.spec.enums import VkPipelineStage2, VkResult, VkShaderStage

FIRST_ADDRESS = 1 << 40
QUERIES = 4
ALL, COPIES, HOST = VkPipelineStage2.ALL_COMMANDS, VkPipelineStage2.ALL_TRANSFER, VkPipelineStage2.HOST
HOST_ACCESSES = 0x6000
IGNORED = 0xFFFFFFFF
SUSPENDS = (2, 4, 6, 1, 0)
"""VkRenderingFlags."""


class QueueObjects(ShaderFrames):
    """The objects of one seed's program, and its submits."""

    def _begin(self) -> None:
        self._ways = random.Random(f"queues {self._random.random()}")
        self._odd = self._ways.choice((0, 0.05, 0.3))
        """How often a submit is one that no program should make, or fails."""
        super()._begin()
        families = self._ways.choice(((), (0,), (1,), (0, 1)))
        self._queues = [self._queue, *map(self._other_queue, families)]
        other = self._create("vkCreateCommandPool", "VkCommandPoolCreateInfo", flags=2, queueFamilyIndex=1)
        self._pools = [self._pool, other]
        self._binaries = [self._semaphore(0) for _ in range(2)]
        self._timelines = [self._semaphore(1) for _ in range(2)]
        self._values = [0, 0]
        """Of each timeline, the last value that anything signals."""
        self._fences = [self._create("vkCreateFence", "VkFenceCreateInfo") for _ in range(2)]
        self._events = [self._create("vkCreateEvent", "VkEventCreateInfo") for _ in range(2)]
        kind = {"queryType": self._ways.choice((0, 2)), "queryCount": QUERIES}
        self._queries = self._create("vkCreateQueryPool", "VkQueryPoolCreateInfo", **kind)
        self._make_addresses()
        self._pass = self._render_pass()
        self._framebuffers = [self._framebuffer() for _ in range(2)]
        self._swapchain = self._new_swapchain() if self._ways.random() < 0.4 else 0

    # -- objects

    def _other_queue(self, family: int) -> int:
        return self._made("vkGetDeviceQueue", device=self._device, queueFamilyIndex=family)

    def _semaphore(self, kind: int) -> int:
        chain = struct("VkSemaphoreTypeCreateInfo", semaphoreType=kind) if kind else None
        return self._create("vkCreateSemaphore", "VkSemaphoreCreateInfo", pNext=chain)

    def _new_swapchain(self) -> int:
        size = {"imageExtent": {"width": EDGE, "height": EDGE}, "imageArrayLayers": 1, "minImageCount": 2}
        return self._create("vkCreateSwapchainKHR", "VkSwapchainCreateInfoKHR", imageFormat=RGBA8, **size)

    def _make_addresses(self) -> None:
        """A pipeline that copies between device addresses, and a few that are known."""
        pushed = [struct("VkPushConstantRange", stageFlags=VkShaderStage.COMPUTE, size=24)]
        made = self._create("vkCreatePipelineLayout", "VkPipelineLayoutCreateInfo", pPushConstantRanges=pushed)
        module = self._module("address_copy")
        stage = struct("VkPipelineShaderStageCreateInfo", stage=VkShaderStage.COMPUTE, module=module, pName="main")
        info = struct("VkComputePipelineCreateInfo", stage=stage, layout=made)
        several = {"device": self._device, "pCreateInfos": [info]}
        self._addressed = self._made("vkCreateComputePipelines", several=True, **several), made
        self._addresses = [self._address(each) for each in self._buffers[:2]]

    def _address(self, buffer: int) -> int:
        """The device address of a buffer. Some share one."""
        told = FIRST_ADDRESS + 4096 * self._ways.choice((buffer, 1))
        info = struct("VkBufferDeviceAddressInfo", buffer=buffer)
        self._returns(told, "vkGetBufferDeviceAddress", device=self._device, pInfo=info)
        return told

    def _render_pass(self) -> int:
        chosen = self._ways
        operations = {"loadOp": chosen.randrange(3), "storeOp": chosen.randrange(2)}
        layouts = {"initialLayout": chosen.choice((0, 1)), "finalLayout": 1}
        attachment = struct("VkAttachmentDescription", format=RGBA8, samples=1, **operations, **layouts)
        colors = [struct("VkAttachmentReference", attachment=0, layout=1)]
        subpasses = [struct("VkSubpassDescription", pColorAttachments=colors)] * 2
        scopes = dict.fromkeys(("srcStageMask", "dstStageMask"), ALL)
        scopes |= dict.fromkeys(("srcAccessMask", "dstAccessMask"), READ_WRITE)
        dependencies = [struct("VkSubpassDependency", srcSubpass=IGNORED, **scopes)] * chosen.randrange(2)
        given = {"pAttachments": [attachment], "pSubpasses": subpasses, "pDependencies": dependencies}
        return self._create("vkCreateRenderPass", "VkRenderPassCreateInfo", **given)

    def _framebuffer(self) -> int:
        views = {"pAttachments": [self._ways.choice(self._images)[1]], "width": EDGE, "height": EDGE, "layers": 1}
        return self._create("vkCreateFramebuffer", "VkFramebufferCreateInfo", renderPass=self._pass, **views)

    def _returns(self, result: int, name: str, **values: Any) -> None:
        """Makes a call that returns this."""
        self._call(name, **values)
        self.calls[-1]["result"] = result

    # -- submits

    def _submit(self) -> None:
        chosen = self._ways
        if chosen.random() < 0.3:
            super()._submit()
            return
        several = chosen.sample(self._primaries, chosen.randint(0, len(self._primaries)))
        if chosen.random() < self._odd:
            several += chosen.choices(self._primaries + self._secondaries, k=1)
        batches: list[list[int]] = [[]]
        for each in several:
            if chosen.random() < 0.4:
                batches.append([])
            batches[-1].append(each)
        queue, fence = chosen.choice(self._queues), chosen.choice((0, chosen.choice(self._fences)))
        name, batch = chosen.choice((("vkQueueSubmit", self._batch), ("vkQueueSubmit2", self._batch2)))
        fails = chosen.random() < self._odd / 3
        result = chosen.choice((VkResult.ERROR_DEVICE_LOST, VkResult.ERROR_OUT_OF_HOST_MEMORY)) if fails else 0
        self._returns(result, name, queue=queue, pSubmits=[batch(each) for each in batches], fence=fence)
        if chosen.random() < 0.2:
            self._call("vkQueueWaitIdle", queue=chosen.choice(self._queues))
        elif chosen.random() < 0.2:
            self._wait_for_fence()
        if self._swapchain and chosen.random() < 0.5:
            self._present(queue)

    def _wait_for_fence(self) -> None:
        chosen, device = self._ways, {"device": self._device}
        fences = chosen.sample(self._fences, chosen.choice((1, 1, 2)))
        if chosen.random() < 0.3:
            result = chosen.choice((VkResult.SUCCESS, VkResult.NOT_READY))
            self._returns(result, "vkGetFenceStatus", **device, fence=fences[0])
            return
        result = chosen.choice((VkResult.SUCCESS, VkResult.SUCCESS, VkResult.TIMEOUT))
        self._returns(result, "vkWaitForFences", **device, pFences=fences, waitAll=chosen.randrange(2), timeout=9)
        if chosen.random() < 0.5:
            self._call("vkResetFences", **device, pFences=fences)

    def _present(self, queue: int) -> None:
        waits = self._ways.sample(self._binaries, self._ways.randrange(2))
        image = {"pSwapchains": [self._swapchain], "pImageIndices": [0]}
        info = struct("VkPresentInfoKHR", **image, pWaitSemaphores=waits)
        self._call("vkQueuePresentKHR", queue=queue, pPresentInfo=info)

    def _operations_on_semaphores(self, signal: bool) -> list[tuple[int, int]]:
        """Semaphores with their values. A timeline may be waited for before anything signals it."""
        chosen, found = self._ways, list[tuple[int, int]]()
        if chosen.random() < 0.3:
            found.append((chosen.choice(self._binaries), 0))
        if chosen.random() < 0.4:
            at = chosen.randrange(2)
            self._values[at] += signal
            value = self._values[at] + (0 if signal else chosen.choice((0, 0, -1, 1, 2)))
            found.append((self._timelines[at], max(0, value)))
        return found

    def _stages(self) -> int:
        return self._ways.choice((ALL, COPIES))

    def _batch(self, held: list[int]) -> dict[str, Any]:
        waits, signals = (self._operations_on_semaphores(signal) for signal in (False, True))
        values = {
            "pWaitSemaphoreValues": [value for _, value in waits],
            "pSignalSemaphoreValues": [value for _, value in signals],
        }
        given = {"pWaitSemaphores": [id for id, _ in waits], "pSignalSemaphores": [id for id, _ in signals]}
        given |= {"pWaitDstStageMask": [self._stages() for _ in waits], "pCommandBuffers": held}
        return struct("VkSubmitInfo", pNext=struct("VkTimelineSemaphoreSubmitInfo", **values), **given)

    def _batch2(self, held: list[int]) -> dict[str, Any]:
        waits, signals = (
            [
                struct("VkSemaphoreSubmitInfo", semaphore=id, value=value, stageMask=self._stages())
                for id, value in self._operations_on_semaphores(signal)
            ]
            for signal in (False, True)
        )
        buffers = [struct("VkCommandBufferSubmitInfo", commandBuffer=each) for each in held]
        given = {"pWaitSemaphoreInfos": waits, "pCommandBufferInfos": buffers, "pSignalSemaphoreInfos": signals}
        return struct("VkSubmitInfo2", **given)


class QueueFrames(QueueObjects):
    """The calls of one seed's program."""

    # -- commands

    def _more(self) -> list[Callable[[], None]]:
        several: list[list[Callable[[], None]]] = [
            [self._set_event, self._wait_event, self._reset_event], [self._query, self._query, self._copy_query],
            [self._ownership] * 2, [self._host_barrier], [self._barrier2] * 2, [self._suspended],
            [self._render_passes] * 2, [self._by_address] * 3, [self._dispatch_base],
        ]  # fmt: skip
        chosen = self._ways.sample(several, self._ways.randrange(len(several)))
        mine = [each for group in chosen for each in group]
        return super()._more() + mine * self._ways.choice((1, 1, 3))

    def _dispatch_base(self) -> None:
        groups = {"groupCountX": self._chosen.choice((1, 2)), "groupCountY": 1, "groupCountZ": 1}
        self._command("DispatchBase", baseGroupX=self._chosen.randrange(2), **groups)

    def _set_event(self) -> None:
        self._command("SetEvent", event=self._chosen.choice(self._events), stageMask=self._chosen.choice((ALL, COPIES)))

    def _reset_event(self) -> None:
        self._command("ResetEvent", event=self._chosen.choice(self._events), stageMask=ALL)

    def _wait_event(self) -> None:
        events = self._chosen.sample(self._events, self._chosen.choice((1, 1, 2)))
        stages = {"srcStageMask": self._chosen.choice((ALL, COPIES, HOST)), "dstStageMask": ALL}
        barriers = [struct("VkMemoryBarrier", srcAccessMask=READ_WRITE, dstAccessMask=READ_WRITE)]
        self._command("WaitEvents", pEvents=events, **stages, pMemoryBarriers=barriers)

    def _query(self) -> None:
        at, pool = self._chosen.randrange(QUERIES), {"queryPool": self._queries}
        match self._chosen.randrange(4):
            case 0:
                self._command("ResetQueryPool", **pool, firstQuery=at, queryCount=1)
            case 1:
                self._command("BeginQuery", **pool, query=at)
            case 2:
                self._command("EndQuery", **pool, query=at)
            case _:
                self._command("WriteTimestamp", **pool, pipelineStage=0x2000, query=at)

    def _copy_query(self) -> None:
        place = {"dstBuffer": self._some_buffer(), "dstOffset": self._offset(), "stride": 8}
        count = self._chosen.choice((1, QUERIES))
        self._command("CopyQueryPoolResults", queryPool=self._queries, queryCount=count, **place)

    def _ownership(self) -> None:
        chosen = self._chosen
        scope = dict.fromkeys(("srcAccessMask", "dstAccessMask"), READ_WRITE)
        families = chosen.choice(((0, 1), (1, 0), (0, 0), (IGNORED, 0)))
        scope |= {"srcQueueFamilyIndex": families[0], "dstQueueFamilyIndex": families[1]}
        stages = dict.fromkeys(("srcStageMask", "dstStageMask"), ALL)
        if chosen.random() < 0.6:
            buffers = [struct("VkBufferMemoryBarrier", **scope, buffer=self._some_buffer(), size=WHOLE)]
            self._command("PipelineBarrier", **stages, pBufferMemoryBarriers=buffers)
        else:
            image = {"image": chosen.choice(self._images)[0], "subresourceRange": self._subresources(0, IGNORED)}
            images = [struct("VkImageMemoryBarrier", **scope, **image, oldLayout=1, newLayout=1)]
            self._command("PipelineBarrier", **stages, pImageMemoryBarriers=images)

    def _host_barrier(self) -> None:
        scope = [struct("VkMemoryBarrier", srcAccessMask=READ_WRITE, dstAccessMask=HOST_ACCESSES)]
        self._command("PipelineBarrier", srcStageMask=ALL, dstStageMask=HOST, pMemoryBarriers=scope)

    def _barrier2(self) -> None:
        chosen, stages = self._chosen, (ALL, COPIES, VkPipelineStage2.COMPUTE_SHADER, VkPipelineStage2.COPY)
        scope = {"srcStageMask": chosen.choice(stages), "dstStageMask": chosen.choice(stages)}
        scope |= {"srcAccessMask": chosen.choice((READ_WRITE, 0x1000)), "dstAccessMask": READ_WRITE}
        families = dict.fromkeys(("srcQueueFamilyIndex", "dstQueueFamilyIndex"), IGNORED)
        place = {"buffer": self._some_buffer(), "offset": self._offset(), "size": self._size()}
        lists = {
            "pMemoryBarriers": [struct("VkMemoryBarrier2", **scope)] * chosen.randrange(2),
            "pBufferMemoryBarriers": [struct("VkBufferMemoryBarrier2", **scope, **families, **place)]
            * chosen.randrange(3),
        }
        self._command("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", **lists))

    def _suspended(self) -> None:
        """Rendering that is suspended or resumed."""
        chosen = self._chosen
        view = {"imageView": chosen.choice(self._images)[1], "imageLayout": 1, "loadOp": chosen.randrange(3)}
        colors = [struct("VkRenderingAttachmentInfo", **view)]
        area = struct("VkRect2D", extent={"width": EDGE, "height": EDGE})
        given = {"renderArea": area, "layerCount": 1, "pColorAttachments": colors}
        info = struct("VkRenderingInfo", flags=chosen.choice(SUSPENDS), **given)
        self._command("BeginRendering", pRenderingInfo=info)
        self._draw_something()
        self._command("EndRendering")

    def _render_passes(self) -> None:
        area = struct("VkRect2D", extent={"width": EDGE, "height": self._chosen.choice((EDGE, 1))})
        frame = {"renderPass": self._pass, "framebuffer": self._chosen.choice(self._framebuffers)}
        info = struct("VkRenderPassBeginInfo", **frame, renderArea=area)
        self._command("BeginRenderPass", pRenderPassBegin=info)
        self._draw_something()
        if self._chosen.random() < 0.5:
            self._command("NextSubpass")
            self._draw_something()
        self._command("EndRenderPass")

    def _draw_something(self) -> None:
        self._command("BindPipeline", pipelineBindPoint=GRAPHICS, pipeline=self._chosen.choice(self._graphics))
        self._draw()

    def _by_address(self) -> None:
        """A dispatch that copies between known addresses."""
        pipeline, layout = self._addressed
        self._command("BindPipeline", pipelineBindPoint=COMPUTE, pipeline=pipeline)
        ends = [self._chosen.choice(self._addresses) + self._chosen.choice((0, 64)) for _ in range(2)]
        data = b"".join(each.to_bytes(8, "little") for each in (*ends, self._chosen.choice((16, 64))))
        place = {"layout": layout, "stageFlags": VkShaderStage.COMPUTE, "size": len(data)}
        self._command("PushConstants", **place, pValues=data)
        self._command("Dispatch", groupCountX=1, groupCountY=1, groupCountZ=1)

    # -- what happens between commands

    def _disturb(self) -> None:
        ways: list[Callable[[], None]] = [
            self._reset_pools, self._set_on_host, self._signal_on_host, self._wait_for_value, self._wait_for_fence,
            self._wait_for_device, self._renew, self._record_other, self._submit, self._ask, self._readdress,
            self._free_memory,
        ]  # fmt: skip
        (super()._disturb if self._ways.random() < 0.5 else self._ways.choice(ways))()

    def _reset_pools(self) -> None:
        name = self._ways.choice(("vkResetCommandPool", "vkTrimCommandPool", "vkResetDescriptorPool"))
        if name != "vkResetDescriptorPool":
            self._call(name, device=self._device, commandPool=self._ways.choice(self._pools))
            return
        self._call(name, device=self._device, descriptorPool=self._set_pool)
        if self._ways.random() < 0.9:
            self._free["VkDescriptorSet"] += [self.objects[id][1] for id, _ in self._sets]
            self._sets = [self._set()]

    def _set_on_host(self) -> None:
        name = self._ways.choice(("vkSetEvent", "vkResetEvent"))
        self._call(name, device=self._device, event=self._ways.choice(self._events))

    def _signal_on_host(self) -> None:
        at = self._ways.randrange(2)
        self._values[at] += self._ways.choice((0, 1, 1, 3))
        info = struct("VkSemaphoreSignalInfo", semaphore=self._timelines[at], value=self._values[at])
        self._call("vkSignalSemaphore", device=self._device, pSignalInfo=info)

    def _wait_for_value(self) -> None:
        at = self._ways.randrange(2)
        values = [max(0, self._values[at] - self._ways.randrange(2))]
        info = struct("VkSemaphoreWaitInfo", pSemaphores=[self._timelines[at]], pValues=values)
        self._call("vkWaitSemaphores", device=self._device, pWaitInfo=info, timeout=9)

    def _wait_for_device(self) -> None:
        self._call("vkDeviceWaitIdle", device=self._device)

    def _renew(self) -> None:
        """An object goes, and another one may get its handle."""
        makers: tuple[tuple[str, str, list[int], Callable[[], int]], ...] = (
            ("Semaphore", "semaphore", self._binaries, lambda: self._semaphore(0)),
            ("Fence", "fence", self._fences, lambda: self._create("vkCreateFence", "VkFenceCreateInfo")),
            ("Event", "event", self._events, lambda: self._create("vkCreateEvent", "VkEventCreateInfo")),
            ("Framebuffer", "framebuffer", self._framebuffers, self._framebuffer),
        )
        kind, member, several, make = self._ways.choice(makers)
        at = self._ways.randrange(len(several))
        self._gone(f"vkDestroy{kind}", several[at], **{member: several[at]})
        several[at] = make()

    def _record_other(self) -> None:
        """A few commands of another command buffer, in the middle of this one."""
        chosen, mine = self._ways, self._commands
        others = [each for each in (*self._primaries, *self._secondaries) if each != mine]
        if not others or not mine:
            return
        self._commands = chosen.choice(others)
        if chosen.random() < 0.3:
            info = struct("VkCommandBufferBeginInfo")
            self._call("vkBeginCommandBuffer", commandBuffer=self._commands, pBeginInfo=info)
        for _ in range(chosen.randrange(3)):
            chosen.choice(self._operations)()
        if chosen.random() < 0.3:
            self._call("vkEndCommandBuffer", commandBuffer=self._commands)
        self._commands = mine

    def _ask(self) -> None:
        self.calls.append({"name": ASKS, "args": {}})

    def _readdress(self) -> None:
        self._addresses[self._ways.randrange(len(self._addresses))] = self._address(self._ways.choice(self._buffers))

    def _free_memory(self) -> None:
        at = self._ways.randrange(2)
        self._gone("vkFreeMemory", self._memories[at], memory=self._memories[at])
        self._memories[at] = self._memory(4 * self.buffer_size)
