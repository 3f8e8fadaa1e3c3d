"""Mapped memory of one session, and the mappings that must be searched for host writes."""

from __future__ import annotations

from vkharness.record.mapped_memory import Mapping
from vkharness.record.written_pages import OWN_PAGES, MappedPages


class Mappings:
    """Mappings by memory object."""

    def __init__(self, source: MappedPages = OWN_PAGES) -> None:
        self._source = source
        self.by_memory: dict[int, Mapping] = {}
        self._followed: dict[int, int] = {}
        """The memory that is mapped, by the number of its pages."""
        self._restless: set[int] = set()
        """Memory with something to tell that nobody wrote since the last look (`Mapping.has_more`)."""
        self._small: set[int] = set()
        """Memory of which a little is mapped, and of which nobody knows yet whether that lasts."""

    def add(self, mapping: Mapping, is_small: bool) -> None:
        """Memory is mapped. A small mapping is followed when it lasts: to begin that costs more than a comparison."""
        memory = mapping.memory
        self.remove(memory)
        self.by_memory[memory] = mapping
        if mapping.pages.number is not None:
            self._followed[mapping.pages.number] = memory
        if is_small:
            self._small.add(memory)
        self.looked_at(mapping)

    def remove(self, memory: int) -> Mapping | None:
        """Memory is mapped no more. Its mapping."""
        mapping = self.by_memory.pop(memory, None)
        self._restless.discard(memory)
        self._small.discard(memory)
        if mapping is not None and mapping.pages.number is not None:
            del self._followed[mapping.pages.number]
        return mapping

    def to_look_at(self, only: int | None = None) -> list[Mapping]:
        """The mappings in which something may have been written, or of one memory object, in the order of mapping."""
        if not self.by_memory:
            return []
        if only is None:
            self._follow_small()
        written = {memory for number in self._source.written() if (memory := self._followed.get(number)) is not None}
        found = written | self._restless if only is None else {only} & self.by_memory.keys()
        return sorted((self.by_memory[memory] for memory in found), key=lambda mapping: mapping.serial)

    def looked_at(self, mapping: Mapping) -> None:
        """All that a mapping had to tell is told."""
        (self._restless.add if mapping.has_more else self._restless.discard)(mapping.memory)

    def _follow_small(self) -> None:
        for memory in self._small:
            mapping = self.by_memory[memory]
            mapping.follow()
            if mapping.pages.number is not None:
                self._followed[mapping.pages.number] = memory
        self._small.clear()

    def _check(self) -> None:
        """Raises AssertionError unless what is known beside the mappings fits them."""
        mapped = self.by_memory
        numbers = {each.pages.number: memory for memory, each in mapped.items() if each.pages.number is not None}
        assert self._followed == numbers
        assert {memory for memory, each in mapped.items() if each.has_more} <= self._restless <= mapped.keys()
        assert self._small <= self._restless
