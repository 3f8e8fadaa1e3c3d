"""Logical devices that are made of several physical devices (specification: "Device Group Functionality").

Each physical device executes the commands of its device masks, on instances of the resources that are its own. So a
queue of such a device counts as one queue for each physical device, a memory object as one address space for each of
its instances, and a command as one command for each physical device that executes it (`group_commands`). What judges
know of queues is right then: barriers, semaphores and events are device-local, and a fence is signaled when all
physical devices have completed their work. A device of one physical device is not here, and pays nothing.

Rules: rules.md#each-physical-device-executes-its-own-commands, rules.md#an-instance-of-memory-for-each-physical-device.
Uses that are not followed are named, so that no verdict is clean.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple

from vkharness.queue_ids import queue_of_device
from vkharness.spec.enums import VK_MAX_DEVICE_GROUP_SIZE, VkMemoryAllocate, VkStructureType
from vkharness.trace.chain import chained
from vkharness.trace.effects import (
    Acquired,
    Destroyed,
    FenceReset,
    HostWaited,
    Presented,
    QueueObtained,
    StreamEvent,
    Submitted,
    UnmodelledCall,
)
from vkharness.trace.sparse_effects import BIND_SPARSE

FIRST_NAME = 1 << 61
"""Address spaces of other instances, and what stands for barriers between physical devices, have ids from here on."""


class _Instances(NamedTuple):
    """The instances of a memory object."""

    device: int
    """The logical device."""
    first: int
    """The instance that has the id of the memory object."""
    several: bool
    """Whether each physical device has one to which resources are bound by default."""


class DeviceGroups:
    """The instances of memory, queues and ids of each physical device. Physical devices have their device indices."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._memories: dict[int, _Instances] = {}
        self._attached: dict[int, tuple[int, tuple[int, ...]]] = {}
        """By resource: its memory, and which instance of that each physical device has bound to it."""
        self._queues: dict[int, int] = {}
        self._others: dict[int, dict[tuple[int, ...], int]] = {}
        self._numbers = count(FIRST_NAME)

    def add(self, device: int, size: int) -> None:
        """A logical device of so many physical devices. Raises ValueError where that is too many."""
        if size > VK_MAX_DEVICE_GROUP_SIZE:
            raise ValueError(f"{size} physical devices")
        self._sizes[device] = size

    def size(self, device: int) -> int:
        """How many physical devices a logical device has."""
        return self._sizes.get(device, 1)

    # -- memory --------------------------------------------------------------------------------------------------------

    def allocate(self, device: int, memory: int, info: dict[str, Any], heap_has_several: bool | None) -> Iterator[str]:
        """Memory is allocated; gives names of what is not known. `heap_has_several`: whether its heap has
        VK_MEMORY_HEAP_MULTI_INSTANCE_BIT.

        Specification: "Device Group Memory Allocations". Rule:
        rules.md#an-instance-of-memory-for-each-physical-device.
        """
        if self.size(device) == 1:
            return
        if heap_has_several is None:
            yield "memory of several physical devices, of whose heap the trace does not tell the flags"
        told = chained(info, VkStructureType.MEMORY_ALLOCATE_FLAGS_INFO) or {}
        mask = told.get("deviceMask", 0) if told.get("flags", 0) & VkMemoryAllocate.DEVICE_MASK else 0
        first = (mask & -mask).bit_length() - 1 if mask else 0
        self._memories[memory] = _Instances(device, first, heap_has_several is not False)

    def bind(self, resource: int, memory: int, info: dict[str, Any] | None = None) -> Iterator[str]:
        """Memory is bound to a resource, as a VkBindBufferMemoryInfo or VkBindImageMemoryInfo says; gives names of what
        is not followed.

        Specification: "VkBindBufferMemoryDeviceGroupInfo", "VkBindImageMemoryDeviceGroupInfo". Rule:
        rules.md#an-instance-of-memory-for-each-physical-device.
        """
        held = self._memories.get(memory)
        if held is None:
            return
        kinds = (
            VkStructureType.BIND_BUFFER_MEMORY_DEVICE_GROUP_INFO,
            VkStructureType.BIND_IMAGE_MEMORY_DEVICE_GROUP_INFO,
        )
        told = next((link for link in (chained(info, kind) for kind in kinds) if link is not None), {})
        if told.get("pSplitInstanceBindRegions"):
            yield "an image of which regions are bound to instances of memory of several physical devices"
        size = self.size(held.device)
        indices = tuple(told.get("pDeviceIndices") or ())[:size]
        if len(indices) < size:
            indices = tuple(range(size)) if held.several else (0,) * size
        self._attached[resource] = memory, indices

    def instance(self, resource: int, space: int, device: int) -> int:
        """The instance of memory that a physical device reaches through a resource."""
        _, indices = self._attached.get(resource, (0, ()))
        if device < len(indices):
            return indices[device]
        held = self._memories.get(space)
        return device if held is None or held.several else 0

    def shares(self, resource: int, space: int, device: int, mask: int) -> bool:
        """Whether another physical device of a mask reaches the same instance through a resource."""
        own = self.instance(resource, space, device)
        others = (each for each in range(mask.bit_length()) if mask >> each & 1 and each != device)
        return any(self.instance(resource, space, each) == own for each in others)

    def place(self, space: int, resource: int, device: int) -> int:
        """The address space that a physical device reaches through a resource, of which `space` has the addresses: its
        own, or that of an alias."""
        memory, _ = self._attached.get(resource, (space, ()))
        held, number = self._memories.get(memory), self.instance(resource, space, device)
        return space if number == (0 if held is None else held.first) else self.other(space, number)

    # -- ids -----------------------------------------------------------------------------------------------------------

    def other(self, id: int, *of: int) -> int:
        """The id of what `id` is for another physical device, for another instance, or between two of them."""
        known = self._others.setdefault(id, {})
        if of not in known:
            known[of] = next(self._numbers)
        return known[of]

    def own(self, id: int, device: int) -> int:
        """The id of the queue or fence of a physical device. That of the first one is `id`."""
        of_device = queue_of_device(id, device)
        return id if device == 0 else self.other(id, device) if of_device is None else of_device

    def all(self, space: int) -> tuple[int, ...]:
        """All ids that an address space has so far."""
        return (space, *self._others.get(space, {}).values())

    def size_of_queue(self, queue: int) -> int:
        """How many physical devices execute what a queue is given."""
        return self._queues.get(queue, 1)

    def obtain(self, queue: int, device: int) -> None:
        """A queue of a logical device."""
        self._queues[queue] = self.size(device)

    # -- events --------------------------------------------------------------------------------------------------------

    def followed(self, stream_event: StreamEvent) -> Iterator[StreamEvent]:
        """Yields the events of a call outside of command buffers for all physical devices.

        Rule: rules.md#a-semaphore-belongs-to-the-physical-device-of-its-index.
        """
        match stream_event:
            case HostWaited(fences=fences) if fences:
                yield HostWaited(fences=self._fences(fences))
            case HostWaited(queue=queue) if queue:
                yield from (HostWaited(queue=self.own(queue, each)) for each in range(self.size_of_queue(queue)))
            case FenceReset():
                yield replace(stream_event, fences=self._fences(stream_event.fences))
            case QueueObtained(queue=queue):
                several = (self.own(queue, each) for each in range(self.size_of_queue(queue)))
                yield from (replace(stream_event, queue=each) for each in several)
            case Destroyed():
                yield stream_event
                yield from (Destroyed(each, span=stream_event.span) for each in self.all(stream_event.space)[1:])
                self._forget(stream_event)
            case Submitted(name=name) if name == BIND_SPARSE:
                yield UnmodelledCall("vkQueueBindSparse where a device has several physical devices")
                yield stream_event
            case Acquired() | Presented():
                yield UnmodelledCall(f"{stream_event.name} where a device has several physical devices")
                yield stream_event
            case _:
                yield stream_event

    def _fences(self, several: Iterable[int]) -> tuple[int, ...]:
        """Fences with those of all physical devices."""
        size = max(self._sizes.values())
        return tuple(self.own(fence, device) for fence in several for device in range(size))

    def _forget(self, gone: Destroyed) -> None:
        self._attached.pop(gone.resource or gone.space, None)
        if gone.span is None:
            self._memories.pop(gone.space, None)
            self._others.pop(gone.space, None)
