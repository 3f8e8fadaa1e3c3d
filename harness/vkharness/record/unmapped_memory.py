"""Mappings of memory that is unmapped for now: who maps the same again pays for what was written, not for all of it.

A mapping's shadow is what the memory held when it was unmapped. It stays true where nothing writes the memory: its
pages are followed on, and what was written meanwhile (by what else lies on them, or by a driver) is taken over when it
is mapped again. Memory that a submission may write is let go, since not all devices write through these pages. So is
memory that drivers unmap in truth: its pages are followed no more.
"""

from __future__ import annotations

from collections.abc import Iterable

from vkharness.record.mapped_memory import Mapping
from vkharness.record.written_pages import OWN_PAGES, MappedPages

MOST_BYTES = 256 << 20
"""Bytes of mappings that are kept; those that were unmapped first go first."""


class UnmappedMemory:
    """The mappings that are kept, by memory object."""

    def __init__(self, source: MappedPages = OWN_PAGES) -> None:
        self._source = source
        self._mappings: dict[int, Mapping] = {}
        self._bytes = 0

    def keep(self, mapping: Mapping) -> None:
        """Takes a mapping whose memory is about to be unmapped, and which has nothing more to tell."""
        if mapping.has_more:
            return
        self.let_go([mapping.memory])
        self._mappings[mapping.memory] = mapping
        self._bytes += mapping.size
        while self._bytes > MOST_BYTES:
            self.let_go([next(iter(self._mappings))])

    def let_go(self, memories: Iterable[int]) -> None:
        """These memory objects change unseen, or go."""
        for memory in memories:
            mapping = self._mappings.pop(memory, None)
            if mapping is not None:
                self._bytes -= mapping.size

    def let_go_of(self, address: int, size: int) -> None:
        """Other memory is at these addresses now: nothing follows from what their pages were."""
        ranges = {id: each.view.ctypes.data for id, each in self._mappings.items()}
        self.let_go([id for id, at in ranges.items() if at < address + size and address < at + self._mappings[id].size])

    def again(self, memory: int, offset: int, address: int, size: int) -> Mapping | None:
        """The mapping of memory that is mapped again as before; None where it must be looked at as a whole."""
        mapping = self._mappings.get(memory)
        self.let_go([memory])
        if mapping is None or (mapping.offset, mapping.view.ctypes.data, mapping.size) != (offset, address, size):
            return None
        if not mapping.pages.hold():
            return None
        self._source.written()
        mapping.mapped_again()
        return mapping
