"""Memory that is not HOST_COHERENT: buffers there, and what carries bytes between the host and the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vkharness.findings import LacksError
from vkharness.rig.buffers_images import DIRECT, BuffersImages
from vkharness.rig.core import MemoryPlace, RigBuffer
from vkharness.spec.enums import VkMemoryProperty

Part = tuple[RigBuffer, int, int]
"""A buffer with the offset and the size of a part of it, in bytes."""


class NonCoherentMemory(BuffersImages):
    """Buffers that the host sees through a mapping that stays, and has to flush and invalidate."""

    @property
    def atom(self) -> int:
        """nonCoherentAtomSize in bytes."""
        return int(self.gpu.properties.limits.nonCoherentAtomSize)

    def non_coherent(self, size: int = 256, *, data: bytes = b"") -> RigBuffer:
        """A buffer in mapped memory of its own that is HOST_VISIBLE and not HOST_COHERENT, with zeros, or `data` at its
        beginning, that are flushed.

        Raises `LacksError` where the device has no such memory.
        """

        def place(handle: Any) -> MemoryPlace:
            needs = self.vk.vkGetBufferMemoryRequirements(self.device, handle)
            types = enumerate(self.gpu.memory_types)
            loose = sum(1 << index for index, flags in types if flags & DIRECT == VkMemoryProperty.HOST_VISIBLE)
            if not loose & needs.memoryTypeBits:
                raise LacksError(f"cannot run here: {self.gpu.device_name} has no memory that is not HOST_COHERENT")
            allocated = -(-needs.size // self.atom) * self.atom  # so that each atom of the buffer can be named
            memory = self.memory(allocated, loose & needs.memoryTypeBits, 0)
            mapped = self.vk.vkMapMemory(self.device, memory, 0, allocated, 0)
            mapped[:] = data + bytes(allocated - len(data))
            self._mapped_ranges("vkFlushMappedMemoryRanges", [(memory, 0, allocated)])
            return MemoryPlace(memory, 0, mapped)

        return self.buffer(size, placed=place)

    def flush(self, name: str, *parts: Part, weaker: Mapping[str, Sequence[Part]] | None = None) -> None:
        """vkFlushMappedMemoryRanges of parts of buffers, unless a twin leaves it out or flushes a `weaker` choice."""
        self._carry("vkFlushMappedMemoryRanges", name, parts, weaker)

    def invalidate(self, name: str, *parts: Part, weaker: Mapping[str, Sequence[Part]] | None = None) -> None:
        """vkInvalidateMappedMemoryRanges of parts of buffers, as `flush`."""
        self._carry("vkInvalidateMappedMemoryRanges", name, parts, weaker)

    def _carry(
        self, command: str, name: str, parts: Sequence[Part], weaker: Mapping[str, Sequence[Part]] | None
    ) -> None:
        chosen = self.choose(name, parts, weaker or {})
        if chosen is not None:
            ranges = [(buffer.memory, buffer.offset + offset, size) for buffer, offset, size in chosen]
            self._mapped_ranges(command, ranges)

    def _mapped_ranges(self, command: str, ranges: Sequence[tuple[Any, int, int]]) -> None:
        made = [self.vk.VkMappedMemoryRange(memory=memory, offset=at, size=size) for memory, at, size in ranges]
        getattr(self.vk, command)(self.device, len(made), made)
