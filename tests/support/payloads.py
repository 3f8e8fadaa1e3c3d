"""Traces written by hand of programs that export and import payloads."""

from __future__ import annotations

from tests.support.streams import ALL_COMMANDS, Stream, struct
from vkharness.check import Analysis
from vkharness.spec.enums import VkExternalSemaphoreHandleType, VkSemaphoreType
from vkharness.trace.calls import PAYLOAD, Call

OPAQUE, SYNC_FILE = VkExternalSemaphoreHandleType.OPAQUE_FD, VkExternalSemaphoreHandleType.SYNC_FD


class Programs(Stream):
    """A stream with two queues that share payloads."""

    def __init__(self) -> None:
        super().__init__()
        self.other = self.id()
        self.call("vkGetDeviceQueue", device=self.device, pQueue=self.other)
        self.fds = 10

    def semaphore(self, timeline: bool = False) -> int:
        """A semaphore."""
        kind = struct("VkSemaphoreTypeCreateInfo", semaphoreType=VkSemaphoreType.TIMELINE) if timeline else None
        return self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo", pNext=kind))

    def export(self, object: int, kind: str = "Semaphore", handle: int = OPAQUE, file: str = "") -> int:
        """The file descriptor of a payload. `file` names the file behind it."""
        self.fds += 1
        info = struct(f"Vk{kind}GetFdInfoKHR", handleType=handle, **{kind.lower(): object})
        self.call(f"vkGet{kind}FdKHR", device=self.device, pGetFdInfo=info, pFd=self.fds)
        self._settle(file)
        return self.fds

    def bring(
        self, object: int, fd: int, kind: str = "Semaphore", handle: int = OPAQUE, flags: int = 0, file: str = ""
    ) -> None:
        """Imports a payload."""
        info = struct(f"VkImport{kind}FdInfoKHR", handleType=handle, fd=fd, flags=flags, **{kind.lower(): object})
        self.call(f"vkImport{kind}FdKHR", device=self.device, **{f"pImport{kind}FdInfo": info})
        self._settle(file)

    def bring_memory(self, fd: int, file: str = "") -> int:
        """vkAllocateMemory of imported memory."""
        there = struct("VkImportMemoryFdInfoKHR", handleType=1, fd=fd)
        memory = self.id()
        info = struct("VkMemoryAllocateInfo", allocationSize=1 << 20, pNext=there)
        self.call("vkAllocateMemory", device=self.device, pAllocateInfo=info, pMemory=memory)
        self._settle(file)
        return memory

    def _settle(self, file: str) -> None:
        call = self.blocks[-1]
        assert isinstance(call, Call)
        call.result = 0
        if file:
            call.args[PAYLOAD] = file

    def run(
        self, queue: int, *, waits: list[int] | None = None, signals: list[int] | None = None, fence: int = 0
    ) -> None:
        """Submits what was recorded last."""
        info = struct(
            "VkSubmitInfo",
            pWaitSemaphores=waits,
            pWaitDstStageMask=[ALL_COMMANDS] * len(waits or ()),
            pSignalSemaphores=signals,
            pCommandBuffers=[self.commands],
            commandBufferCount=1,
        )
        self.call("vkEndCommandBuffer", commandBuffer=self.commands)
        self.call("vkQueueSubmit", queue=queue, submitCount=1, pSubmits=[info], fence=fence)

    def hazards(self) -> list[str]:
        """Returns the hazards that syncval finds; it must model the whole stream."""
        analysis = Analysis().follow(self.blocks)
        assert analysis.unmodelled == {}
        return [found.hazard for found in analysis.findings]
