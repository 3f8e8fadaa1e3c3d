"""Semaphores, fences, submits and waits of the host.

A named wait or signal of a semaphore is a dependency like a barrier: twins leave it out or weaken it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vkharness.device.headless import DeviceQueue
from vkharness.rig.core import RigCommandBuffer, RigDevice, RigEvent
from vkharness.rig.events import apply_event_operations
from vkharness.spec.enums import VkSemaphoreType, VkSemaphoreWait
from vkharness.spec.masks import scope

FOREVER = 0xFFFFFFFFFFFFFFFF


@dataclass(frozen=True, slots=True)
class SemaphoreUse:
    """A wait or a signal of a semaphore.

    `stages` are text (`vkharness.spec.masks`); vkQueueSubmit ignores them for signals, which follow all stages. `value`
    is None for a binary semaphore.
    """

    semaphore: Any
    stages: str = "ALL_COMMANDS"
    value: int | None = None


@dataclass(frozen=True, slots=True)
class RigBatch:
    """One batch of a submit."""

    commands: Sequence[RigCommandBuffer] = ()
    waits: Sequence[SemaphoreUse] = ()
    signals: Sequence[SemaphoreUse] = ()


class Submits(RigDevice):
    """Submits to the queues of one device, with semaphores and fences."""

    def operation(
        self,
        name: str,
        semaphore: Any,
        stages: str = "ALL_COMMANDS",
        value: int | None = None,
        *,
        weaker: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> list[SemaphoreUse]:
        """A wait or a signal as a named dependency. The result is empty in the twin that leaves it out.

        `weaker` replaces `semaphore`, `stages` or `value`.
        """
        amended = self.amend(name, {"semaphore": semaphore, "stages": stages, "value": value}, weaker or {})
        return [] if amended is None else [SemaphoreUse(**amended)]

    def submit(
        self,
        *recorded: RigCommandBuffer,
        fence: Any = None,
        sync2: bool = False,
        queue: DeviceQueue | None = None,
        waits: Sequence[SemaphoreUse] = (),
        signals: Sequence[SemaphoreUse] = (),
    ) -> None:
        """One vkQueueSubmit (or vkQueueSubmit2) of one batch, to the queue for which its commands were recorded."""
        self.submit_batches(RigBatch(recorded, waits, signals), fence=fence, sync2=sync2, queue=queue)

    def submit_batches(
        self,
        *batches: RigBatch | Sequence[RigCommandBuffer],
        fence: Any = None,
        sync2: bool = False,
        queue: DeviceQueue | None = None,
    ) -> None:
        """One vkQueueSubmit (or vkQueueSubmit2) of several batches, to the given queue or else to that
        of its commands."""
        whole = [each if isinstance(each, RigBatch) else RigBatch(each) for each in batches]
        recorded = [commands for batch in whole for commands in batch.commands]
        apply_event_operations(operation for each in recorded for operation in each.event_operations)
        target = queue or next((each.queue for each in recorded), self.queues[0])
        made = [(_submit_info2 if sync2 else _submit_info)(self.vk, batch) for batch in whole]
        function = self.vk.vkQueueSubmit2 if sync2 else self.vk.vkQueueSubmit
        function(target.handle, len(made), made, fence)

    def submit_before(self, event: RigEvent, *commands: RigCommandBuffer) -> None:
        """One submit that waits for an event which the host sets afterwards."""
        event.signaled = True  # it will be
        self.submit_batches(commands)

    def semaphore(self) -> Any:
        """An unsignaled binary semaphore."""
        return self.own("Semaphore", self.vk.vkCreateSemaphore(self.device, self.vk.VkSemaphoreCreateInfo(), None))

    def timeline(self, initial: int = 0) -> Any:
        """A timeline semaphore with its initial value."""
        vk = self.vk
        kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=VkSemaphoreType.TIMELINE, initialValue=initial)
        return self.own("Semaphore", vk.vkCreateSemaphore(self.device, vk.VkSemaphoreCreateInfo(pNext=kind), None))

    def host_signal(self, semaphore: Any, value: int) -> None:
        """vkSignalSemaphore."""
        self.vk.vkSignalSemaphore(self.device, self.vk.VkSemaphoreSignalInfo(semaphore=semaphore, value=value))

    def host_wait_timeline(
        self,
        name: str,
        *values: tuple[Any, int],
        how: str = "all",
        weaker: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """The host waits until timelines reach values, unless a twin leaves the wait out.

        `how` is "all" or "any" of them (vkWaitSemaphores), or "counter": vkGetSemaphoreCounterValue until each value is
        reached. `weaker` replaces `how` and `values`.
        """
        amended = self.amend(name, {"how": how, "values": values}, weaker or {})
        if amended is None:
            return
        vk, waited = self.vk, amended["values"]
        if amended["how"] == "counter":
            for each, value in waited:
                while vk.vkGetSemaphoreCounterValue(self.device, each) < value:
                    pass
            return
        info = vk.VkSemaphoreWaitInfo(
            flags=VkSemaphoreWait.ANY if amended["how"] == "any" else 0,
            semaphoreCount=len(waited),
            pSemaphores=[each for each, _ in waited],
            pValues=[value for _, value in waited],
        )
        vk.vkWaitSemaphores(self.device, info, FOREVER)

    def fence(self) -> Any:
        """An unsignaled fence."""
        return self.own("Fence", self.vk.vkCreateFence(self.device, self.vk.VkFenceCreateInfo(), None))

    def wait(self, fence: Any = None) -> None:
        """Waits for a fence, or for the queue."""
        if fence is None:
            self.vk.vkQueueWaitIdle(self.queue)
        else:
            self.vk.vkWaitForFences(self.device, 1, [fence], True, 0xFFFFFFFFFFFFFFFF)

    def host_wait(
        self, name: str, how: str, *fences: Any, weaker: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Sequence[Any]:
        """A wait of the host for the device as a named dependency, unless a twin leaves it out.

        `how` is "all" or "any" of the fences (vkWaitForFences), "status" (vkGetFenceStatus until it is signaled),
        "queue" or "device" (to be idle). `weaker` replaces `how` and `fences`. Returns the fences that are signaled
        for sure.
        """
        amended = self.amend(name, {"how": how, "fences": fences}, weaker or {})
        if amended is None:
            return ()
        vk, waited = self.vk, list(amended["fences"])
        match amended["how"]:
            case "all" | "any" as which:
                vk.vkWaitForFences(self.device, len(waited), waited, which == "all", 0xFFFFFFFFFFFFFFFF)
            case "status":
                for fence in waited:
                    while not self.signaled(fence):
                        pass
            case "queue":
                vk.vkQueueWaitIdle(self.queue)
            case _:
                vk.vkDeviceWaitIdle(self.device)
        return waited if amended["how"] in ("all", "status") else ()

    def signaled(self, fence: Any) -> bool:
        """The answer of vkGetFenceStatus."""
        try:
            self.vk.vkGetFenceStatus(self.device, fence)
        except self.vk.VkNotReady:
            return False
        return True

    def reset_fence(self, fence: Any) -> None:
        """vkResetFences of one fence."""
        self.vk.vkResetFences(self.device, 1, [fence])


def timeline_values(vk: Any, waits: Sequence[SemaphoreUse], signals: Sequence[SemaphoreUse]) -> Any:
    """The VkTimelineSemaphoreSubmitInfo of a batch; None where all its semaphores are binary."""
    if all(each.value is None for each in (*waits, *signals)):
        return None
    return vk.VkTimelineSemaphoreSubmitInfo(
        waitSemaphoreValueCount=len(waits),
        pWaitSemaphoreValues=[each.value or 0 for each in waits],
        signalSemaphoreValueCount=len(signals),
        pSignalSemaphoreValues=[each.value or 0 for each in signals],
    )


def _submit_info(vk: Any, batch: RigBatch) -> Any:
    waits, signals = list(batch.waits), list(batch.signals)
    return vk.VkSubmitInfo(
        pNext=timeline_values(vk, waits, signals),
        waitSemaphoreCount=len(waits),
        pWaitSemaphores=[each.semaphore for each in waits],
        pWaitDstStageMask=[scope(each.stages)[0] for each in waits],
        commandBufferCount=len(batch.commands),
        pCommandBuffers=[each.handle for each in batch.commands],
        signalSemaphoreCount=len(signals),
        pSignalSemaphores=[each.semaphore for each in signals],
    )


def _submit_info2(vk: Any, batch: RigBatch) -> Any:
    waits, signals = (
        [
            vk.VkSemaphoreSubmitInfo(semaphore=each.semaphore, value=each.value or 0, stageMask=scope(each.stages)[0])
            for each in several
        ]
        for several in (batch.waits, batch.signals)
    )
    infos = [vk.VkCommandBufferSubmitInfo(commandBuffer=each.handle) for each in batch.commands]
    return vk.VkSubmitInfo2(
        waitSemaphoreInfoCount=len(waits),
        pWaitSemaphoreInfos=waits,
        commandBufferInfoCount=len(infos),
        pCommandBufferInfos=infos,
        signalSemaphoreInfoCount=len(signals),
        pSignalSemaphoreInfos=signals,
    )
