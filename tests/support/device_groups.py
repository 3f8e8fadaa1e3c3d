"""Traces of a logical device that is made of several physical devices."""

from __future__ import annotations

from typing import Any

from tests.support.streams import ALL_COMMANDS, BUFFER_USAGE, R8G8B8A8, Stream, extent, struct
from vkharness.agreement import compare
from vkharness.check import Analysis
from vkharness.model import judge_stream_events
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkAccess2, VkDependency, VkImageUsage, VkPipelineStage2

CLEAR, COPY = VkPipelineStage2.CLEAR, VkPipelineStage2.COPY
WRITE, READ = VkAccess2.TRANSFER_WRITE, VkAccess2.TRANSFER_READ
SINGLE, SEVERAL = 0, 1
"""Memory types: of a heap with one instance, and of one with an instance for each physical device."""
PHYSICAL = 900
BOTH = 0b11


class GroupStream(Stream):
    """A stream on a device of `size` physical devices."""

    def __init__(self, size: int = 2, told: bool = True) -> None:
        super().__init__()
        self.blocks.clear()
        if told:
            types = [struct("VkMemoryType", heapIndex=at) for at in range(2)]
            heaps = [struct("VkMemoryHeap", size=1 << 30, flags=flags) for flags in (0, 2)]
            properties = struct("VkPhysicalDeviceMemoryProperties", memoryTypes=types, memoryHeaps=heaps)
            self.call("vkGetPhysicalDeviceMemoryProperties", physicalDevice=PHYSICAL, pMemoryProperties=properties)
        link = struct("VkDeviceGroupDeviceCreateInfo", pPhysicalDevices=[PHYSICAL + at for at in range(size)])
        info = struct("VkDeviceCreateInfo", pNext=link)
        self.call("vkCreateDevice", physicalDevice=PHYSICAL, pCreateInfo=info, pDevice=self.device)
        self.call("vkGetDeviceQueue", device=self.device, pQueue=self.queue)
        info = struct("VkCommandPoolCreateInfo", flags=2)
        self.call("vkCreateCommandPool", device=self.device, pCreateInfo=info, pCommandPool=self.pool)

    def allocate(self, kind: int = SEVERAL, mask: int = 0, size: int = 1 << 20) -> int:
        """Memory of a type; with a mask, on these physical devices."""
        made = self.id()
        link = struct("VkMemoryAllocateFlagsInfo", flags=1, deviceMask=mask) if mask else None
        info = struct("VkMemoryAllocateInfo", allocationSize=size, memoryTypeIndex=kind, pNext=link)
        self.call("vkAllocateMemory", device=self.device, pAllocateInfo=info, pMemory=made)
        return made

    def bound(self, memory: int, indices: list[int] | None = None, size: int = 16, offset: int = 0) -> int:
        """A buffer on memory; with indices, each physical device has that instance."""
        made = self.make("vkCreateBuffer", "pBuffer", struct("VkBufferCreateInfo", size=size, usage=BUFFER_USAGE))
        link = struct("VkBindBufferMemoryDeviceGroupInfo", pDeviceIndices=indices) if indices else None
        info = struct("VkBindBufferMemoryInfo", buffer=made, memory=memory, memoryOffset=offset, pNext=link)
        self.call("vkBindBufferMemory2", device=self.device, pBindInfos=[info])
        return made

    def bound_image(self, memory: int, indices: list[int] | None = None, regions: list[Any] | None = None) -> int:
        """An image of 8 x 8 texels in the same way."""
        usage = VkImageUsage.TRANSFER_SRC | VkImageUsage.TRANSFER_DST | VkImageUsage.COLOR_ATTACHMENT
        info = struct(
            "VkImageCreateInfo", imageType=1, format=R8G8B8A8, extent=extent((8, 8, 1)), mipLevels=1, arrayLayers=1,
            samples=1, usage=usage,
        )  # fmt: skip
        made = self.make("vkCreateImage", "pImage", info)
        link = struct(
            "VkBindImageMemoryDeviceGroupInfo", pDeviceIndices=indices or [], pSplitInstanceBindRegions=regions or []
        )
        bind = struct("VkBindImageMemoryInfo", image=made, memory=memory, pNext=link if indices or regions else None)
        self.call("vkBindImageMemory2", device=self.device, pBindInfos=[bind])
        return made

    def mask(self, mask: int) -> None:
        """vkCmdSetDeviceMask."""
        self.cmd("SetDeviceMask", deviceMask=mask)

    def order(self, given: dict[str, Any], across: bool = False, **more: Any) -> None:
        """vkCmdPipelineBarrier2 of one memory barrier, between physical devices or on each."""
        flags = VkDependency.DEVICE_GROUP if across else 0
        barriers = [struct("VkMemoryBarrier2", **given)] if given else []
        self.cmd(
            "PipelineBarrier2",
            pDependencyInfo=struct("VkDependencyInfo", dependencyFlags=flags, pMemoryBarriers=barriers, **more),
        )

    def execute(
        self,
        mask: int = BOTH,
        wait: tuple[int, int] | None = None,
        signal: tuple[int, int] | None = None,
        queue: int = 0,
        fence: int = 0,
    ) -> None:
        """Ends the commands, and submits them to physical devices; `wait` and `signal` are a semaphore and a device
        index."""
        self.end()
        given = [
            [struct("VkSemaphoreSubmitInfo", semaphore=each[0], deviceIndex=each[1], stageMask=ALL_COMMANDS)]
            if each is not None
            else []
            for each in (wait, signal)
        ]
        commands = [struct("VkCommandBufferSubmitInfo", commandBuffer=self.commands, deviceMask=mask)]
        batch = struct(
            "VkSubmitInfo2", pWaitSemaphoreInfos=given[0], pCommandBufferInfos=commands, pSignalSemaphoreInfos=given[1]
        )
        self.call("vkQueueSubmit2", queue=queue or self.queue, pSubmits=[batch], fence=fence)

    def semaphore(self) -> int:
        """A binary semaphore."""
        return self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))


FILL_TO_COPY = {"srcStageMask": CLEAR, "srcAccessMask": WRITE, "dstStageMask": COPY, "dstAccessMask": READ}


def of_buffer(buffer: int, given: dict[str, Any] = FILL_TO_COPY) -> dict[str, Any]:
    """A VkBufferMemoryBarrier2 of all of a buffer."""
    families = dict.fromkeys(("srcQueueFamilyIndex", "dstQueueFamilyIndex"), VK_QUEUE_FAMILY_IGNORED)
    return struct("VkBufferMemoryBarrier2", buffer=buffer, size=0xFFFFFFFFFFFFFFFF, **given, **families)


def judged(stream: Stream) -> tuple[list[str], str]:
    """The hazards that syncval finds, and the verdict; the model must find the same."""
    analysis = Analysis(keep_events=True).follow(stream.blocks)
    opinion = judge_stream_events(analysis.events)
    agreed = compare(analysis.findings, opinion)
    assert not agreed.disagreements, agreed
    return [str(each.hazard) for each in analysis.findings], analysis.verdict
