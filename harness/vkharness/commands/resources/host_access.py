"""The host's accesses of mapped memory: writes, reads, flushes and invalidates.

Which memory is host-visible and coherent follows from the properties that the program asked for. Memory counts as both
where the stream does not tell. Specification: "Host Access to Device Memory Objects".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vkharness.commands.contents.content_steps import Updated
from vkharness.commands.handlers import call
from vkharness.commands.object_state import ObjectState
from vkharness.commands.rendering import other_aspect
from vkharness.spans import Span, subtract
from vkharness.spec.enums import VK_WHOLE_SIZE, VkMemoryProperty
from vkharness.trace.calls import UNSEEN_WRITES, Call, HostRead, HostWrite
from vkharness.trace.effects import StreamEvent
from vkharness.trace.host_effects import (
    HostAccess,
    HostDeclaredRead,
    HostFlushed,
    HostInvalidated,
    HostWrote,
    MemoryMapped,
    MemoryUnmapped,
)
from vkharness.trace.resources import Memory


@call("vkGetPhysicalDeviceMemoryProperties", "vkGetPhysicalDeviceMemoryProperties2")
def memory_properties(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the flags of each memory type."""
    found = call.args["pMemoryProperties"] or {}
    inner = found.get("memoryProperties", found)
    types, heaps = inner.get("memoryTypes") or (), inner.get("memoryHeaps") or ()
    objects.memory_types[call.args["physicalDevice"]] = [
        (each["propertyFlags"], heaps[each["heapIndex"]]["flags"] if each["heapIndex"] < len(heaps) else None)
        for each in types
    ]
    return ()


@call("vkGetPhysicalDeviceProperties", "vkGetPhysicalDeviceProperties2")
def device_properties(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the size of the atoms of non-coherent memory, and bufferImageGranularity."""
    found = call.args["pProperties"] or {}
    limits = found.get("properties", found).get("limits") or {}
    objects.atom_sizes[call.args["physicalDevice"]] = max(1, limits.get("nonCoherentAtomSize", 1))
    objects.granularities[call.args["physicalDevice"]] = max(1, limits.get("bufferImageGranularity", 1))
    other_aspect.property_told(objects, call)
    return ()


def heap_flags(objects: ObjectState, device: int, info: dict[str, Any]) -> int | None:
    """VkMemoryHeapFlags of the heap of a VkMemoryAllocateInfo; None where the program did not ask for them."""
    found = _memory_type(objects, device, info)
    return None if found is None else found[1]


def _memory_type(objects: ObjectState, device: int, info: dict[str, Any]) -> tuple[int, int | None] | None:
    types, index = objects.memory_types.get(objects.devices.get(device, 0), []), info["memoryTypeIndex"]
    return types[index] if index < len(types) else None


def new_memory(objects: ObjectState, device: int, id: int, info: dict[str, Any]) -> Memory:
    """The memory object of a VkMemoryAllocateInfo."""
    physical = objects.devices.get(device, 0)
    found = _memory_type(objects, device, info)
    flags = VkMemoryProperty.HOST_VISIBLE | VkMemoryProperty.HOST_COHERENT if found is None else found[0]
    visible = bool(flags & VkMemoryProperty.HOST_VISIBLE)
    coherent = bool(flags & VkMemoryProperty.HOST_COHERENT) or not visible
    atom_size = 1 if coherent else objects.atom_sizes.get(physical, 1)
    granularity = objects.granularities.get(physical, 1)
    return Memory(id, info["allocationSize"], visible, coherent, atom_size, granularity)


@call("vkMapMemory", "vkMapMemory2KHR")
def map_memory(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The program sees a range of memory."""
    info = call.args.get("pMemoryMapInfo") or call.args
    held = objects.get(Memory, info["memory"])
    if held is not None:
        if call.args.get(UNSEEN_WRITES):
            objects.contents.leave_to_host(held.id)
        end = held.size if info["size"] == VK_WHOLE_SIZE else min(held.size, info["offset"] + info["size"])
        yield MemoryMapped(held.id, (info["offset"], end))


@call("vkUnmapMemory", "vkUnmapMemory2KHR")
def unmap_memory(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The program no longer sees memory."""
    yield MemoryUnmapped((call.args.get("pMemoryUnmapInfo") or call.args)["memory"])


@call("vkFlushMappedMemoryRanges")
def flush(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Makes the host's writes available to the device. A range stands for all atoms that it touches."""
    for id, span in _ranges(objects, call):
        yield HostFlushed(call.index, call.site, id, span)


@call("vkInvalidateMappedMemoryRanges")
def invalidate(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Makes what is available to the host visible to it. It also declares that the host is about to read."""
    for id, span in _ranges(objects, call):
        yield HostInvalidated(call.index, call.site, id, span)
        yield from _reads(objects, call, id, span, call.name)


def host_write(objects: ObjectState, write: HostWrite) -> Iterator[StreamEvent]:
    """The host changed bytes of mapped memory.

    Of writes that were found by comparing (`FOUND_WRITES`), what the device changed since is taken for the device's.
    """
    held = objects.get(Memory, write.memory) or Memory(write.memory, write.offset + len(write.data))
    span = (write.offset, min(held.size, write.offset + len(write.data)))
    contents = objects.contents
    device_wrote = contents.changed(write.memory, span)
    contents.change((Updated(write.memory, span[0], write.data[: span[1] - span[0]]),))
    contents.changed(write.memory, span)  # this one is the host's
    if span[0] < span[1] and not write.initial:
        for each in subtract([span], device_wrote):
            yield HostWrote(
                write.index,
                write.site,
                write.memory,
                each,
                coherent=held.coherent,
                non_coherent_atom_size=held.non_coherent_atom_size,
            )


def host_read(objects: ObjectState, read: HostRead) -> Iterator[StreamEvent]:
    """The host reads bytes of mapped memory, as the program declared."""
    held = objects.get(Memory, read.memory) or Memory(read.memory, read.offset + read.size)
    span = (read.offset, min(held.size, read.offset + read.size))
    if span[0] < span[1]:
        yield from _reads(objects, read, read.memory, span, "host read")


def _reads(objects: ObjectState, block: Call | HostRead, id: int, span: Span, name: str) -> Iterator[StreamEvent]:
    """A read of bytes, and of the images that lie there and have addresses of their own."""
    held = objects.get(Memory, id) or Memory(id, span[1])
    yield HostDeclaredRead(
        block.index,
        block.site,
        id,
        span,
        coherent=held.coherent,
        non_coherent_atom_size=held.non_coherent_atom_size,
        name=name,
    )
    for image in objects.aliasing.mapped_images(id, span):
        yield HostAccess(block.index, name, block.site, image.id, (image.whole,), image.id, write=False)


def _ranges(objects: ObjectState, call: Call) -> Iterator[tuple[int, Span]]:
    """(memory, bytes) of each VkMappedMemoryRange, as whole atoms."""
    for each in call.args["pMemoryRanges"] or ():
        held = objects.get(Memory, each["memory"])
        if held is None:
            continue
        end = held.size if each["size"] == VK_WHOLE_SIZE else min(held.size, each["offset"] + each["size"])
        begin = each["offset"] - each["offset"] % held.non_coherent_atom_size
        end = min(held.size, -(-end // held.non_coherent_atom_size) * held.non_coherent_atom_size)
        if begin < end:
            yield held.id, (begin, end)
