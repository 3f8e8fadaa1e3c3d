"""Logical queues: several queue families on a device that has one queue.

This module stands in for the driver's functions that know queues. It is put under the mirror, in place of the `vulkan`
package's `lib`. Whoever calls Vulkan, the mirror included, sees a device with the families of `FAMILIES`, while all
work goes to the driver's single queue. A batch that waits for a timeline value is held back until something signals it,
so that one queue can run what several would. On a device that has the wanted queues it only forwards.

Threads may use several logical queues at once. The driver's queue is used by one of them at a time, as the
specification demands ("Threading Behavior").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock
from typing import Any

from vkharness.device.headless import place_queues
from vkharness.record.rebind import rebind
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkPipelineStage2, VkResult, VkSemaphoreType, VkStructureType
from vkharness.spec.shapes import new_struct
from vkharness.trace.pending_batches import PendingBatch, PendingBatches, Values

FAMILIES = ((0x7, 8), (0x6, 4), (0x4, 2))
"""(VkQueueFlags, queues) of each logical family: everything; compute and transfer; transfer."""


Operation = tuple[Any, int, int]
"""Semaphore, stages and value of a wait or a signal."""


@dataclass(frozen=True, slots=True)
class EmulatedBatch:
    """One batch on its way to the driver's queue. The fence may be NULL."""

    waits: tuple[Operation, ...]
    buffers: tuple[Any, ...]
    signals: tuple[Operation, ...]
    fence: Any


@dataclass(slots=True)
class EmulatedDevice:
    """The logical queues of the device of one scenario."""

    wanted: Sequence[int]
    active: bool = False
    """Whether the driver lacks the queues, so that logical queues stand for them."""
    family: int = 0
    """The index of the driver's queue family."""
    queue: Any = None
    """The driver's VkQueue, which runs all work."""
    queues: dict[tuple[int, int], Any] = field(default_factory=dict)
    """Logical handles by (family, index)."""
    memory: list[Any] = field(default_factory=list)
    pools: dict[int, int] = field(default_factory=dict)
    """Logical family by command pool."""
    buffers: dict[int, int] = field(default_factory=dict)
    """Logical family by command buffer."""
    releases: PendingBatches[EmulatedBatch] = field(default_factory=PendingBatches)
    lock: Lock = field(default_factory=Lock)
    """Of `releases` and of the driver's queue."""


class QueueEmulator:
    """One method for each C function. `real` is the driver's function, and the parameters after it are the function's.

    These are the functions that the rig calls. A logical queue given to another function (vkGetDeviceQueue2,
    vkQueueBindSparse, labels of queues) would reach the driver, which does not know it.
    """

    def __init__(self, ffi: Any, lib: Any) -> None:
        self.ffi, self.lib = ffi, lib
        self.device: EmulatedDevice | None = None
        self.functions = {name: getattr(self, name) for name in dir(type(self)) if name.startswith("vk")}
        self._made: dict[tuple[str, Any], Any] = {}

    def pointer(self, name: str, real: Any) -> Any:
        """The C function pointer that stands for `real`. It is the same pointer for the life of the process."""
        key = (name, real)
        if key not in self._made:
            self._made[key] = self.ffi.callback(self.ffi.typeof(real), partial(self._call, name, real))
        return self._made[key]

    def _call(self, name: str, real: Any, *args: Any) -> Any:
        if self.device is None or (not self.device.active and name not in BEFORE):
            return real(*args)
        return self.functions[name](self.device, real, *args)

    def _id(self, handle: Any) -> int:
        return int(self.ffi.cast("uintptr_t", handle))

    # -- families, devices, queues -------------------------------------------------------------------------------------

    def vkGetPhysicalDeviceQueueFamilyProperties(
        self, device: EmulatedDevice, real: Any, physical: Any, count: Any, out: Any
    ) -> None:
        """Returns the driver's families when they suffice, otherwise the logical families."""
        amount = self.ffi.new("uint32_t *")
        real(physical, amount, self.ffi.NULL)
        found = self.ffi.new("VkQueueFamilyProperties[]", amount[0])
        real(physical, amount, found)
        families = [(int(each.queueFlags), int(each.queueCount)) for each in found]
        device.active = place_queues(families, device.wanted) is None
        if not device.active:
            real(physical, count, out)
            return
        first = place_queues(families, device.wanted[:1])
        device.family = first[0][0] if first else 0
        if out == self.ffi.NULL:
            count[0] = len(FAMILIES)
            return
        count[0] = min(count[0], len(FAMILIES))
        for index in range(count[0]):
            out[index] = found[device.family]
            out[index].queueFlags, out[index].queueCount = FAMILIES[index]

    def vkCreateDevice(
        self, device: EmulatedDevice, real: Any, physical: Any, info: Any, allocator: Any, out: Any
    ) -> int:
        """Creates the device with a single queue of the driver."""
        priority = self.ffi.new("float[1]", [1.0])
        queue = {
            "sType": VkStructureType.DEVICE_QUEUE_CREATE_INFO,
            "queueFamilyIndex": device.family,
            "queueCount": 1,
            "pQueuePriorities": priority,
        }
        queues = self.ffi.new("VkDeviceQueueCreateInfo *", queue)
        changed = self.ffi.new("VkDeviceCreateInfo *", info[0])
        changed.queueCreateInfoCount, changed.pQueueCreateInfos = 1, queues
        return int(real(physical, changed, allocator, out))

    def vkGetDeviceQueue(
        self, device: EmulatedDevice, real: Any, handle: Any, family: int, index: int, out: Any
    ) -> None:
        """Returns the driver's queue for the queue that is asked for first, and a new handle for every other queue."""
        if device.queue is None:
            real(handle, device.family, 0, out)
            device.queue = out[0]
            device.queues[family, index] = device.queue
        if (family, index) not in device.queues:
            device.memory.append(self.ffi.new("char[64]"))
            device.queues[family, index] = self.ffi.cast("VkQueue", device.memory[-1])
        out[0] = device.queues[family, index]

    def vkGetDeviceProcAddr(self, device: EmulatedDevice, real: Any, handle: Any, name: Any) -> Any:
        """Returns stand-ins for functions of extensions, too."""
        found = real(handle, name)
        text = self.ffi.string(name).decode()
        if found == self.ffi.NULL or text not in self.functions:
            return found
        ours = self.pointer(text, self.ffi.cast(f"PFN_{text}", found))
        return self.ffi.cast("PFN_vkVoidFunction", ours)

    # -- submission ----------------------------------------------------------------------------------------------------

    def vkQueueSubmit(self, device: EmulatedDevice, real: Any, queue: Any, count: int, infos: Any, fence: Any) -> int:
        """Submits batches of VkSubmitInfo, whose signals follow all commands."""
        batches = []
        for info in _list(infos, count):
            waits = _list(info.pWaitSemaphores, info.waitSemaphoreCount)
            stages = _list(info.pWaitDstStageMask, info.waitSemaphoreCount)
            signals = _list(info.pSignalSemaphores, info.signalSemaphoreCount)
            waited, signaled = self._timeline_values(info)
            everything = [VkPipelineStage2.ALL_COMMANDS] * len(signals)
            batches.append(
                EmulatedBatch(
                    tuple(zip(waits, stages, waited or [0] * len(waits), strict=True)),
                    tuple(_list(info.pCommandBuffers, info.commandBufferCount)),
                    tuple(zip(signals, everything, signaled or [0] * len(signals), strict=True)),
                    self.ffi.NULL,
                )
            )
        return self._submit(device, queue, batches, fence)

    def vkQueueSubmit2(self, device: EmulatedDevice, real: Any, queue: Any, count: int, infos: Any, fence: Any) -> int:
        """Submits batches of VkSubmitInfo2."""
        batches = []
        for info in _list(infos, count):
            waits, signals = (
                tuple((each.semaphore, each.stageMask, each.value) for each in _list(start, number))
                for start, number in (
                    (info.pWaitSemaphoreInfos, info.waitSemaphoreInfoCount),
                    (info.pSignalSemaphoreInfos, info.signalSemaphoreInfoCount),
                )
            )
            buffers = _list(info.pCommandBufferInfos, info.commandBufferInfoCount)
            batches.append(EmulatedBatch(waits, tuple(each.commandBuffer for each in buffers), signals, self.ffi.NULL))
        return self._submit(device, queue, batches, fence)

    def _timeline_values(self, info: Any) -> tuple[list[int], list[int]]:
        """The timeline values for which a VkSubmitInfo waits and which it signals. Both lists are empty without a
        timeline."""
        values = self._chained(
            info.pNext, "VkTimelineSemaphoreSubmitInfo *", VkStructureType.TIMELINE_SEMAPHORE_SUBMIT_INFO
        )
        if values is None:
            return [], []
        return (
            _list(values.pWaitSemaphoreValues, values.waitSemaphoreValueCount),
            _list(values.pSignalSemaphoreValues, values.signalSemaphoreValueCount),
        )

    def _chained(self, first: Any, kind: str, structure_type: int) -> Any:
        """The struct of a type in a pNext chain; None without such a struct."""
        link = self.ffi.cast(kind, first)
        while link != self.ffi.NULL and link.sType != structure_type:
            link = self.ffi.cast(kind, link.pNext)
        return None if link == self.ffi.NULL else link

    def _submit(self, device: EmulatedDevice, queue: Any, batches: list[EmulatedBatch], fence: Any) -> int:
        batches = batches or [EmulatedBatch((), (), (), self.ffi.NULL)]
        batches[-1] = replace(batches[-1], fence=fence)
        held = [PendingBatch(self._values(each.waits), self._values(each.signals), each) for each in batches]
        with device.lock:
            return self._send(device, device.releases.submit(self._id(queue), held))

    def _values(self, operations: Iterable[Operation]) -> Values:
        return tuple((self._id(semaphore), value) for semaphore, _, value in operations)

    def _send(self, device: EmulatedDevice, batches: Iterable[EmulatedBatch]) -> int:
        """Submits the batches that can run now. Returns the first error, or VK_SUCCESS."""
        results = [self._send_one(device, each) for each in batches]
        return next((result for result in results if result), VkResult.SUCCESS)

    def _send_one(self, device: EmulatedDevice, batch: EmulatedBatch) -> int:
        ffi = self.ffi
        waits, signals = (
            ffi.new(
                "VkSemaphoreSubmitInfo[]",
                [
                    {
                        "sType": VkStructureType.SEMAPHORE_SUBMIT_INFO,
                        "semaphore": semaphore,
                        "stageMask": stages,
                        "value": value,
                    }
                    for semaphore, stages, value in operations
                ],
            )
            for operations in (batch.waits, batch.signals)
        )
        buffers = [
            {"sType": VkStructureType.COMMAND_BUFFER_SUBMIT_INFO, "commandBuffer": each} for each in batch.buffers
        ]
        infos = ffi.new("VkCommandBufferSubmitInfo[]", buffers)
        info = new_struct(
            ffi,
            "VkSubmitInfo2",
            waitSemaphoreInfoCount=len(waits),
            pWaitSemaphoreInfos=waits,
            commandBufferInfoCount=len(infos),
            pCommandBufferInfos=infos,
            signalSemaphoreInfoCount=len(signals),
            pSignalSemaphoreInfos=signals,
        )
        return int(self.lib.vkQueueSubmit2(device.queue, 1, info, batch.fence))

    def vkQueueWaitIdle(self, device: EmulatedDevice, real: Any, queue: Any) -> int:
        """Waits for the driver's queue, which runs the work of every logical queue."""
        with device.lock:
            return int(real(device.queue))

    def vkQueuePresentKHR(self, device: EmulatedDevice, real: Any, queue: Any, info: Any) -> int:
        """Presents on the driver's queue. Every logical queue can present."""
        with device.lock:
            return int(real(device.queue, info))

    def vkCreateSemaphore(
        self, device: EmulatedDevice, real: Any, handle: Any, info: Any, allocator: Any, out: Any
    ) -> int:
        """Remembers timelines, since their values decide which batches are held."""
        result = int(real(handle, info, allocator, out))
        kind = self._chained(info.pNext, "VkSemaphoreTypeCreateInfo *", VkStructureType.SEMAPHORE_TYPE_CREATE_INFO)
        if result == VkResult.SUCCESS and kind is not None and kind.semaphoreType == VkSemaphoreType.TIMELINE:
            with device.lock:
                device.releases.create(self._id(out[0]), kind.initialValue)
        return result

    def vkSignalSemaphore(self, device: EmulatedDevice, real: Any, handle: Any, info: Any) -> int:
        """Signals a timeline, and submits the batches that were held for it."""
        result = int(real(handle, info))
        with device.lock:
            released = device.releases.signal(self._id(info.semaphore), info.value)
            return result or self._send(device, released)

    # -- what names a family -------------------------------------------------------------------------------------------

    def vkCreateCommandPool(
        self, device: EmulatedDevice, real: Any, handle: Any, info: Any, allocator: Any, out: Any
    ) -> int:
        """Creates a pool of the driver's family. The logical family decides what its barriers mean."""
        changed = self.ffi.new("VkCommandPoolCreateInfo *", info[0])
        changed.queueFamilyIndex = device.family
        result = int(real(handle, changed, allocator, out))
        device.pools[self._id(out[0])] = info.queueFamilyIndex
        return result

    def vkAllocateCommandBuffers(self, device: EmulatedDevice, real: Any, handle: Any, info: Any, out: Any) -> int:
        """Allocates command buffers, which have the logical family of their pool."""
        result = int(real(handle, info, out))
        if result == VkResult.SUCCESS:
            family = device.pools.get(self._id(info.commandPool), VK_QUEUE_FAMILY_IGNORED)
            device.buffers.update((self._id(each), family) for each in out[0 : info.commandBufferCount])
        return result

    def vkCreateBuffer(
        self, device: EmulatedDevice, real: Any, handle: Any, info: Any, allocator: Any, out: Any
    ) -> int:
        """Creates a buffer for the driver's single family."""
        return int(real(handle, self._exclusive("VkBufferCreateInfo *", info), allocator, out))

    def vkCreateImage(self, device: EmulatedDevice, real: Any, handle: Any, info: Any, allocator: Any, out: Any) -> int:
        """Creates an image for the driver's single family."""
        return int(real(handle, self._exclusive("VkImageCreateInfo *", info), allocator, out))

    def vkCreateSwapchainKHR(
        self, device: EmulatedDevice, real: Any, handle: Any, info: Any, allocator: Any, out: Any
    ) -> int:
        """Creates a swapchain for the driver's single family."""
        changed = self.ffi.new("VkSwapchainCreateInfoKHR *", info[0])
        changed.imageSharingMode, changed.queueFamilyIndexCount = 0, 0
        return int(real(handle, changed, allocator, out))

    def _exclusive(self, kind: str, info: Any) -> Any:
        changed = self.ffi.new(kind, info[0])
        changed.sharingMode, changed.queueFamilyIndexCount = 0, 0
        return changed

    def vkCmdPipelineBarrier(self, device: EmulatedDevice, real: Any, commands: Any, *args: Any) -> None:
        """Records a barrier without ownership transfers (`_one_family`)."""
        *before, buffer_count, buffers, image_count, images = args
        buffers = self._one_family(device, commands, "VkBufferMemoryBarrier[]", buffers, buffer_count)
        images = self._one_family(device, commands, "VkImageMemoryBarrier[]", images, image_count)
        real(commands, *before, buffer_count, buffers, image_count, images)

    def vkCmdPipelineBarrier2(self, device: EmulatedDevice, real: Any, commands: Any, info: Any) -> None:
        """Records a barrier without ownership transfers (`_one_family`)."""
        changed = self.ffi.new("VkDependencyInfo *", info[0])
        buffers = self._one_family(
            device, commands, "VkBufferMemoryBarrier2[]", info.pBufferMemoryBarriers, info.bufferMemoryBarrierCount
        )
        images = self._one_family(
            device, commands, "VkImageMemoryBarrier2[]", info.pImageMemoryBarriers, info.imageMemoryBarrierCount
        )
        changed.pBufferMemoryBarriers, changed.pImageMemoryBarriers = buffers, images
        real(commands, changed)

    def _one_family(self, device: EmulatedDevice, commands: Any, kind: str, barriers: Any, count: int) -> Any:
        """Barriers without ownership transfers.

        The release keeps its layout transition. The acquire would make it again, and so loses it.
        """
        if not count:
            return barriers
        changed = self.ffi.new(kind, list(barriers[0:count]))
        for each in changed:
            source, target = each.srcQueueFamilyIndex, each.dstQueueFamilyIndex
            acquires = source != target and target == device.buffers.get(self._id(commands))
            if acquires and kind.startswith("VkImage"):
                each.oldLayout = each.newLayout
            each.srcQueueFamilyIndex = each.dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED
        return changed


BEFORE = frozenset({"vkGetPhysicalDeviceQueueFamilyProperties", "vkGetDeviceProcAddr"})
"""Functions with an effect before it is known whether the driver has the queues."""


class EmulatedLib:
    """Stands in place of the package's `lib`. Functions without a stand-in are the driver's."""

    def __init__(self, stand: QueueEmulator) -> None:
        self.__dict__["_stand"] = stand

    def __getattr__(self, name: str) -> Any:
        stand: QueueEmulator = self.__dict__["_stand"]
        value = getattr(stand.lib, name)
        if name in stand.functions:
            value = stand.pointer(name, value)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self.__dict__["_stand"].lib, name, value)

    def __dir__(self) -> list[str]:
        return dir(self.__dict__["_stand"].lib)


def _list(start: Any, count: int) -> list[Any]:
    return list(start[0:count]) if count else []


_stand: list[QueueEmulator] = []
"""The emulator of this process, once there is one. It is never dropped, since function pointers
outlive their device."""


@contextmanager
def logical_queues(wanted: Sequence[int]) -> Iterator[EmulatedDevice]:
    """Vulkan with queues of families that have these VkQueueFlags, for one device that is made inside.

    Enter it before a mirror is attached. Raises `RuntimeError` when a batch still waits for a timeline value at the
    end, since no device could ever run it.
    """
    if len(wanted) == 1:  # every device has that one
        yield EmulatedDevice(tuple(wanted))
        return
    import vulkan._vulkan as package

    if not _stand:
        _stand.append(QueueEmulator(package.ffi, package.lib))
    stand = _stand[0]
    lib = package.lib
    stand.device = device = EmulatedDevice(tuple(wanted))
    stand_in = EmulatedLib(stand)
    rebind(lib, stand_in)
    try:
        yield device
    finally:
        rebind(stand_in, lib)
        stand.device = None
    if device.releases.held:
        raise RuntimeError(f"{len(device.releases.held)} batches wait for timeline values that nothing signals")
