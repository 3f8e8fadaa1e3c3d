"""Plans the device memory of a trace for the target device.

Another driver wants other sizes and alignments. A memory object keeps its layout when every resource fits where it was.
Otherwise each set of overlapping resources gets an allocation of its own, so that aliases stay together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from vkharness.findings import UserError
from vkharness.replay.objects.target import MemoryType, ReplayDevice
from vkharness.spec.enums import VK_WHOLE_SIZE, VkMemoryAllocate, VkMemoryProperty
from vkharness.spec.shapes import new_struct

DIRECT = VkMemoryProperty.HOST_VISIBLE | VkMemoryProperty.HOST_COHERENT
SIZE_LIMIT = 1 << 32
"""The most bytes that one replay may allocate, since the sizes come from a file."""


@dataclass(frozen=True, slots=True)
class WantedResource:
    """A resource that the trace binds at `offset` of a memory object. All numbers are bytes.

    `was` is the size on the original device. `size`, `alignment` and `type_bits` are the target's.
    """

    resource: int
    offset: int
    was: int
    size: int
    alignment: int
    type_bits: int
    linear: bool = True


@dataclass(slots=True)
class AllocationGroup:
    """Resources that share one allocation of `size` bytes, with their offsets in it."""

    offsets: dict[int, int]
    size: int
    type_bits: int
    base: int = 0
    """The offset in the original memory object to which offset 0 of the allocation corresponds."""


def plan(wanted: list[WantedResource], granularity: int = 1) -> list[AllocationGroup]:
    """The groups for the resources of one memory object.

    Raises `UserError` when aliases cannot stay aliased on the target.
    """
    whole = _group(wanted, 0)
    if whole is not None and not _new_clash(wanted, granularity):
        return [whole]
    groups = []
    for component in _components(wanted):
        base = min(item.offset for item in component)
        group = _group(component, base)
        if group is None or _new_clash(component, granularity):
            names = ", ".join(str(item.resource) for item in component)
            raise UserError(f"resources {names} alias one another in a way that the target cannot repeat")
        groups.append(group)
    return groups


def _group(items: list[WantedResource], base: int) -> AllocationGroup | None:
    """One allocation with the original relative offsets, or None where alignments or memory types forbid it."""
    bits = 0xFFFFFFFF
    for item in items:
        bits &= item.type_bits
        if (item.offset - base) % item.alignment:
            return None
    if not bits:
        return None
    offsets = {item.resource: item.offset - base for item in items}
    return AllocationGroup(offsets, max(item.offset - base + item.size for item in items), bits, base)


def _new_clash(items: list[WantedResource], granularity: int) -> bool:
    """Whether resources that were apart would overlap with the target's sizes (or share a page they must not)."""
    ordered = sorted(items, key=lambda item: item.offset)
    for index, first in enumerate(ordered):
        end = first.offset + first.size
        shared = -(-end // granularity) * granularity
        for at in range(index + 1, len(ordered)):
            second = ordered[at]
            if second.offset >= shared:
                break
            apart = first.offset + first.was <= second.offset
            if apart and second.offset < (end if first.linear == second.linear else shared):
                return True
    return False


def _components(items: list[WantedResource]) -> list[list[WantedResource]]:
    """Resources joined by overlap in the original memory."""
    components: list[list[WantedResource]] = []
    end = -1
    for item in sorted(items, key=lambda item: item.offset):
        if item.offset < end:
            components[-1].append(item)
        else:
            components.append([item])
        end = max(end, item.offset + item.was)
    return components


@dataclass(slots=True)
class Allocation:
    """One VkDeviceMemory on the target. `mapping` is a cffi buffer over all of it, or None. Where it is not `coherent`,
    flushes and invalidates carry bytes between the mapping and the device."""

    raw: Any
    group: AllocationGroup
    mapping: Any
    coherent: bool = True


@dataclass(slots=True)
class Memories:
    """All allocations of one replay, by the id of the memory object in the trace."""

    device: ReplayDevice
    by_memory: dict[int, list[Allocation]] = field(default_factory=dict)
    total: int = 0

    def allocate(
        self, memory: int, groups: list[AllocationGroup], mapped: bool, flags: int, coherent: bool = True
    ) -> list[Allocation]:
        """Allocates the groups of a memory object; `mapped` asks for memory that the host can write, without `coherent`
        for such memory that is not HOST_COHERENT, where the driver has it.

        Raises UserError beyond SIZE_LIMIT or when the driver refuses.
        """
        made = []
        for group in groups:
            self.total += group.size
            index = choose_type(self.device.target.memory_types, group.type_bits, mapped, coherent)
            kind = self.device.target.memory_types[index]
            if self.total > min(SIZE_LIMIT, kind.heap_size):
                raise UserError(f"memory {memory}: the trace needs more memory than {self.device.target.name} gives")
            made.append(self._allocate(memory, group, index, kind, flags, coherent))
        self.by_memory.setdefault(memory, []).extend(made)
        return made

    def _allocate(
        self, memory: int, group: AllocationGroup, index: int, kind: MemoryType, flags: int, wanted_coherent: bool
    ) -> Allocation:
        ffi = self.device.target.ffi
        chain = new_struct(ffi, "VkMemoryAllocateFlagsInfo", flags=flags & VkMemoryAllocate.DEVICE_ADDRESS)
        info = new_struct(
            ffi,
            "VkMemoryAllocateInfo",
            pNext=chain if flags & VkMemoryAllocate.DEVICE_ADDRESS else ffi.NULL,
            allocationSize=group.size,
            memoryTypeIndex=index,
        )
        out = ffi.new("VkDeviceMemory *")
        result = self.device.function("vkAllocateMemory")(self.device.handle, info, ffi.NULL, out)
        self.device.check(result, f"vkAllocateMemory for memory {memory}")
        mapping, coherent = None, kind.flags & DIRECT == DIRECT
        if coherent or (not wanted_coherent and kind.flags & VkMemoryProperty.HOST_VISIBLE):
            address = ffi.new("void **")
            result = self.device.function("vkMapMemory")(self.device.handle, out[0], 0, group.size, 0, address)
            self.device.check(result, f"vkMapMemory for memory {memory}")
            mapping = ffi.buffer(address[0], group.size)
        return Allocation(out[0], group, mapping, coherent or mapping is None)

    def write(self, memory: int, offset: int, data: bytes, sizes: dict[int, int]) -> None:
        """A host write of the trace; bytes outside every bound resource have no place and are dropped.

        `sizes` gives the bytes of each resource. UserError when the target's memory cannot be mapped.
        """
        for allocation in self.by_memory.get(memory, []):
            group = allocation.group
            for resource, start in group.offsets.items():
                low = max(offset, group.base + start)
                high = min(offset + len(data), group.base + start + sizes[resource])
                if low >= high:
                    continue
                if allocation.mapping is None:
                    raise UserError(f"the host writes memory {memory}, which {self.device.target.name} cannot map")
                allocation.mapping[low - group.base : high - group.base] = data[low - offset : high - offset]

    def carry(self, command: str, ranges: list[dict[str, Any]]) -> None:
        """Flushes or invalidates VkMappedMemoryRanges of the trace, in memory that is not coherent."""
        made = [part for each in ranges for part in self._mapped_ranges(each["memory"], each["offset"], each["size"])]
        if made:
            given = self.device.target.ffi.new("VkMappedMemoryRange[]", [part[0] for part in made])
            self.device.check(self.device.function(command)(self.device.handle, len(made), given), command)

    def carry_all(self, command: str) -> None:
        """The same with all that is mapped."""
        self.carry(command, [{"memory": each, "offset": 0, "size": VK_WHOLE_SIZE} for each in self.by_memory])

    def _mapped_ranges(self, memory: int, offset: int, size: int) -> Iterator[Any]:
        """A range of the trace in whole atoms of the target, in each allocation that stands for a part of it."""
        atom = self.device.target.atom_size
        for each in self.by_memory.get(memory, []):
            low = max(offset - each.group.base, 0)
            high = min(offset + size - each.group.base, each.group.size)
            if not each.coherent and low < high:
                low, high = low // atom * atom, -(-high // atom) * atom
                length = VK_WHOLE_SIZE if high >= each.group.size else high - low
                yield new_struct(
                    self.device.target.ffi, "VkMappedMemoryRange", memory=each.raw, offset=low, size=length
                )

    def ends(self) -> dict[int, int]:
        """Where the resources of each memory object end in it, in bytes."""
        return {
            memory: max(each.group.base + each.group.size for each in allocations)
            for memory, allocations in self.by_memory.items()
        }

    def read(self, memory: int, offset: int, size: int, sizes: dict[int, int]) -> bytes:
        """Returns the bytes that the host sees of a memory object of the trace; those outside bound resources are 0.

        `sizes` as in `write`. UserError when the target's memory cannot be mapped.
        """
        seen = bytearray(size)
        for allocation in self.by_memory.get(memory, []):
            group = allocation.group
            for resource, start in group.offsets.items():
                low = max(offset, group.base + start)
                high = min(offset + size, group.base + start + sizes[resource])
                if low >= high:
                    continue
                if allocation.mapping is None:
                    raise UserError(f"the host reads memory {memory}, which {self.device.target.name} cannot map")
                seen[low - offset : high - offset] = allocation.mapping[low - group.base : high - group.base]
        return bytes(seen)

    def close(self) -> None:
        """Frees everything."""
        free, null = self.device.function("vkFreeMemory"), self.device.target.ffi.NULL
        for allocations in self.by_memory.values():
            for allocation in allocations:
                free(self.device.handle, allocation.raw, null)
        self.by_memory.clear()


def choose_type(types: tuple[MemoryType, ...], bits: int, mapped: bool, coherent: bool = True) -> int:
    """The index of the memory type to use among `bits`: one that can be mapped when `mapped`, not HOST_COHERENT where
    there is such a one and `coherent` is not asked for; otherwise device local."""
    allowed = [index for index in range(len(types)) if bits >> index & 1]
    wanted = DIRECT if mapped else VkMemoryProperty.DEVICE_LOCAL
    if mapped and not coherent:
        loose = [index for index in allowed if types[index].flags & DIRECT == VkMemoryProperty.HOST_VISIBLE]
        allowed = loose[:1] or allowed
    for index in allowed:
        if types[index].flags & wanted == wanted:
            return index
    if not allowed:
        raise UserError("no memory type of the target suits the resources that share a memory")
    return allowed[0]
