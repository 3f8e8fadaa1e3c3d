"""A software driver that seems to have several queue families, for replays: what they ask of it is written down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from tests.support.streams import Stream, struct
from vkharness.device.queue_emulation import FAMILIES, EmulatedDevice, EmulatedLib, QueueEmulator
from vkharness.replay.objects import target as targets
from vkharness.replay.objects.queue_mapping import QueueFamily, QueuePlace
from vkharness.replay.objects.target import ReplayDevice, ReplayTarget
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED


@dataclass(slots=True)
class Asked:
    """Requests of replays to a driver."""

    calls: list[str] = field(default_factory=list)
    """The names of all device calls, in order."""
    submits: list[QueuePlace] = field(default_factory=list)
    """The queue of each submit."""
    transfers: list[tuple[int, int]] = field(default_factory=list)
    """The families of each barrier of a buffer or image that names two."""
    layouts: list[tuple[int, int]] = field(default_factory=list)
    """The layouts of each barrier of an image."""
    shared: list[list[int]] = field(default_factory=list)
    """The families of each buffer or image that is concurrent."""


class WatchedQueues(QueueEmulator):
    """Logical queues, with what is asked of them."""

    def __init__(self, ffi: Any, lib: Any, asked: Asked) -> None:
        super().__init__(ffi, lib)
        self.asked = asked

    def vkQueueSubmit(self, device: EmulatedDevice, real: Any, queue: Any, count: int, infos: Any, fence: Any) -> int:
        """Notes the queue."""
        self.asked.submits.append(next(place for place, each in device.queues.items() if each == queue))
        return super().vkQueueSubmit(device, real, queue, count, infos, fence)

    def vkCmdPipelineBarrier(self, device: EmulatedDevice, real: Any, commands: Any, *args: Any) -> None:
        """Notes the families and layouts."""
        *_, buffer_count, buffers, image_count, images = args
        for each in (*buffers[0:buffer_count], *images[0:image_count]):
            pair = int(each.srcQueueFamilyIndex), int(each.dstQueueFamilyIndex)
            if pair != (VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED):
                self.asked.transfers.append(pair)
        self.asked.layouts += [(int(each.oldLayout), int(each.newLayout)) for each in images[0:image_count]]
        super().vkCmdPipelineBarrier(device, real, commands, *args)

    def vkCreateBuffer(
        self, device: EmulatedDevice, real: Any, handle: Any, info: Any, allocator: Any, out: Any
    ) -> int:
        """Notes the families."""
        if info.sharingMode:
            self.asked.shared.append(list(info.pQueueFamilyIndices[0 : info.queueFamilyIndexCount]))
        return super().vkCreateBuffer(device, real, handle, info, allocator, out)


@contextmanager
def several_queues(name: str, families: Sequence[tuple[int, int]] = FAMILIES) -> Iterator[Asked]:
    """Replays on the driver `name` see these (VkQueueFlags, queues), of which all go to its one queue."""
    real, asked = targets.open_target(name), Asked()
    stand = WatchedQueues(real.ffi, real.lib, asked)
    stand.device = EmulatedDevice([flags for flags, _ in families], active=True, family=real.family)
    found = tuple(QueueFamily(*each) for each in families)
    target = replace(real, lib=EmulatedLib(stand), queue_families=found, devices={})
    before = targets._targets
    targets._targets = {name: target}
    try:
        with noted_calls(asked):
            yield asked
    finally:
        targets._targets = before
        _close(target)


def _close(target: ReplayTarget) -> None:
    for device in target.devices.values():
        target._destroy(device)


@contextmanager
def noted_calls(asked: Asked) -> Iterator[Asked]:
    """Replays note the names of the device calls that they make."""
    find = ReplayDevice._find

    def noting(self: ReplayDevice, name: str) -> Any:
        found = find(self, name)

        def call(*args: Any) -> Any:
            asked.calls.append(name)
            assert found is not None
            return found(*args)

        return call if found is not None else None

    ReplayDevice._find = noting  # type: ignore[method-assign]
    try:
        yield asked
    finally:
        ReplayDevice._find = find  # type: ignore[method-assign]


class QueueStream(Stream):
    """A stream whose trace tells its queue families, with queues of each of them."""

    def __init__(self) -> None:
        super().__init__()
        told = [struct("VkQueueFamilyProperties", queueFlags=flags, queueCount=count) for flags, count in FAMILIES]
        self.call("vkGetPhysicalDeviceQueueFamilyProperties", pQueueFamilyProperties=told)
        self._made = {(0, 0): (self.queue, self.pool)}

    def on(self, family: int, index: int = 0) -> int:
        """Records the following commands for this queue, and submits them to it. Returns its id."""
        if (family, index) not in self._made:
            queue, info = self.id(), struct("VkCommandPoolCreateInfo", flags=2, queueFamilyIndex=family)
            where = {"queueFamilyIndex": family, "queueIndex": index}
            self.call("vkGetDeviceQueue", device=self.device, pQueue=queue, **where)
            self._made[family, index] = queue, self.make("vkCreateCommandPool", "pCommandPool", info)
        self.queue, self.pool = self._made[family, index]
        return self.queue
