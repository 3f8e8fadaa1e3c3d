"""Writes of the device to mapped memory that no dependency makes visible to the host.

Nothing tells whether the program reads them, so that they are no hazards. The bytes are counted by resource and command
when the memory is unmapped, when its resource is destroyed, and when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from vkharness.findings import Place, UnseenWrite
from vkharness.spans import Span
from vkharness.syncval.context import Context
from vkharness.syncval.state import State
from vkharness.trace.effects import Destroyed
from vkharness.trace.host_effects import MemoryMapped

MOST_UNSEEN = 256
"""The most pairs of a resource and a command that are told apart."""

BuffersOf = Callable[[int], list[tuple[int, int, int]]]
"""Gives (begin, end, id) of the buffers that live on a memory object, in order."""
Found = dict[tuple[int, int], UnseenWrite]
"""By resource and recorded call."""


class UnseenWrites:
    """Follows mappings. `is_unseen` says of a state and the place number of its last write whether nothing shows the
    write to the host."""

    def __init__(self, context: Context, is_unseen: Callable[[State, int], bool], buffers_of: BuffersOf) -> None:
        self._context, self._is_unseen, self._buffers_of = context, is_unseen, buffers_of
        self._mapped: dict[int, Span] = {}
        self._found: Found = {}

    def mapped(self, event: MemoryMapped) -> None:
        """The program sees memory from now on."""
        self._mapped[event.memory] = event.span

    def unmapped(self, memory: int) -> None:
        """The program has seen what there is to see."""
        span = self._mapped.pop(memory, None)
        if span is not None:
            self._collect(self._found, memory, span)

    def destroyed(self, event: Destroyed) -> None:
        """A resource is about to be forgotten, or a memory object with all that is on it."""
        span = self._mapped.get(event.space)
        if span is None:
            return
        if event.span is None:
            self.unmapped(event.space)
        else:
            begin, end = max(span[0], event.span[0]), min(span[1], event.span[1])
            self._collect(self._found, event.space, (begin, end), event.resource)

    def all(self) -> list[UnseenWrite]:
        """Returns the writes that were found so far, and those in memory that is still mapped."""
        found = dict(self._found)
        for memory, span in self._mapped.items():
            self._collect(found, memory, span)
        return list(found.values())

    def _collect(self, into: Found, memory: int, span: Span, resource: int = 0) -> None:
        """The writes in a range. Of one that was found before, the larger size counts."""
        buffers = None if resource else self._buffers_of(memory)
        sizes: dict[tuple[int, int], tuple[int, str, Place]] = {}
        places = self._context.places
        for (begin, end), entry in self._context.known(memory, *span) if span[0] < span[1] else ():
            if entry.write is None or not self._is_unseen(entry.state, entry.write):
                continue
            place = places.place(entry.write)
            owner, kind = (resource, "VkBuffer") if buffers is None else _owner(buffers, begin, memory)
            size = sizes[owner, place.call][0] if (owner, place.call) in sizes else 0
            sizes[owner, place.call] = size + end - begin, kind, place
        for key, (size, kind, place) in sizes.items():
            if key in into or len(into) < MOST_UNSEEN:
                size = max(size, into[key].size if key in into else 0)
                into[key] = UnseenWrite(key[0], kind, size, place, memory=memory)


def _owner(buffers: list[tuple[int, int, int]], address: int, memory: int) -> tuple[int, str]:
    """The buffer at an address and what it is; the memory object where there is none."""
    at = bisect_right(buffers, address, key=lambda each: each[0]) - 1
    if at >= 0 and address < buffers[at][1]:
        return buffers[at][2], "VkBuffer"
    return memory, "VkDeviceMemory"
