"""Meanings of the bytes of descriptors, from the calls that made them, and the offsets of bindings in a set.

Specification: "Putting Descriptors in Memory"; rules.md#descriptors-in-memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from vkharness.spec.enums import VkDescriptorType
from vkharness.trace.resources import Binding, SetLayout

MOST_DESCRIPTORS = 1 << 18
"""The most descriptors of which the bytes are remembered."""
MOST_LAYOUTS = 1 << 12
"""The most set layouts of which the offsets are remembered."""
INLINE = VkDescriptorType.INLINE_UNIFORM_BLOCK


class MadeDescriptor(NamedTuple):
    """A descriptor that a call gave as bytes: its VkDescriptorType, and the object (0 for none) or device address."""

    type: int
    object: int = 0
    address: int = 0
    range: int = 0
    """Bytes from the address on."""


NOTHING_MADE = MadeDescriptor(VkDescriptorType.SAMPLER)
"""Descriptors that mean no memory: samplers and null descriptors."""


class DescriptorBytes:
    """The descriptors that one program has made as bytes."""

    def __init__(self) -> None:
        self._made: dict[tuple[int, bytes], MadeDescriptor] = {}
        self._sizes: dict[int, int] = {INLINE: 1}
        """Bytes of a descriptor by VkDescriptorType."""
        self._offsets: dict[tuple[Any, ...], dict[int, int]] = {}
        """By what a set layout says, the offset of each binding in bytes."""
        self._views: dict[tuple[Any, ...], int] = {}
        """The ids of views that only descriptors have, by what they say."""
        self._last_view = 0
        self.changes = 0
        """How often anything was noted that was not known."""

    def note(self, type: int, data: bytes, made: MadeDescriptor) -> None:
        """The device gave these bytes for a descriptor of this VkDescriptorType. What it gave them for last counts."""
        if self._made.get((type, data)) == made:
            return
        self.changes += 1
        if len(self._made) >= MOST_DESCRIPTORS:
            del self._made[next(iter(self._made))]
        self._made.pop((type, data), None)
        self._made[type, data] = made
        self._sizes[type] = len(data)

    def note_offset(self, layout: SetLayout, binding: int, offset: int) -> None:
        """The device says where a binding begins in a set of a layout. It says the same of equal layouts."""
        key = _key(layout)
        if len(self._offsets) >= MOST_LAYOUTS and key not in self._offsets:
            self._offsets.clear()
        self._offsets.setdefault(key, {})[binding] = offset
        self.changes += 1

    def view(self, says: tuple[Any, ...]) -> int:
        """The id of the view of an image that a descriptor is made of: below 0, as no object has."""
        id = self._views.get(says)
        if id is None:
            if len(self._views) >= MOST_DESCRIPTORS:
                self._views.clear()
            self._last_view -= 1
            id = self._views[says] = self._last_view
        return id

    def offsets(self, layout: SetLayout) -> dict[int, int]:
        """The offset of each binding in a set of this layout, as far as the program asked for it."""
        return self._offsets.get(_key(layout), {})

    def size(self, binding: Binding) -> int | None:
        """Bytes from one descriptor of a binding to the next; None where the program made none of its type."""
        sizes = [self._sizes.get(each) for each in _types(binding)]
        known = [each for each in sizes if each is not None]
        # Of a mutable descriptor every type counts, and the types that are not known have a size, too.
        return max(known) if known and (len(known) == len(sizes) or not binding.types) else None

    def meanings(self, binding: Binding) -> Iterator[tuple[int, int]]:
        """(VkDescriptorType, bytes) of each descriptor that a place of a binding may hold, the longest first."""
        found = [(each, self._sizes[each]) for each in _types(binding) if each in self._sizes]
        yield from sorted(found, key=lambda item: -item[1])

    def made(self, type: int, data: bytes) -> MadeDescriptor | None:
        """Gives the descriptor of a type that bytes stand for; None where the device did not give these bytes."""
        return self._made.get((type, data))


def _types(binding: Binding) -> tuple[int, ...]:
    return binding.types or (binding.type,)


def _key(layout: SetLayout) -> tuple[Any, ...]:
    return tuple((each.binding, each.type, each.count, each.flags, each.types) for each in layout.bindings.values())
