"""Mapped memory of another process: a copy of each memory object, to which the stream brings what changed.

The layer has the same copy. It sends what differs before each call that publishes host writes, or behind which the host
may read. It does not know who wrote: that is what `vkharness.record.host` is for, as in a program of this process.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from vkharness.record.mapped_memory import Range
from vkharness.record.written_pages import FollowedPages
from vkharness.spans import merge, overlap
from vkharness.trace.work_budget import spend_reading

LARGEST = 1 << 38
"""Bytes of a memory object at most. A copy takes memory only where something was written."""
BYTES_A_UNIT = 1 << 12
"""Bytes of mapped memory that are one unit of work to look at."""
PAGE = 1 << 12


class _FollowedCopy(FollowedPages):
    """One mapping of a memory object."""

    def __init__(self, number: int, begin: int, end: int, held: list[Range], told: set[int]) -> None:
        """`told` has the numbers of those in which something was written."""
        super().__init__(held, self._take, number)
        self._number, self._told = number, told
        self._begin, self._end = begin, end
        self._written: list[Range] = []

    def wrote(self, begin: int, end: int) -> None:
        """Bytes of the memory object were written."""
        begin, end = max(begin, self._begin), min(end, self._end)
        if begin < end:
            self._written.append((begin - self._begin, end - self._begin))
            self._told.add(self._number)

    def hold(self) -> bool:
        """True: what is written is told, whether the memory is mapped or not."""
        return True

    def _take(self) -> list[Range]:
        found, self._written = merge(self._written), []
        self._told.discard(self._number)
        return found


class _Copy:
    """One memory object."""

    def __init__(self) -> None:
        self.bytes: NDArray[np.uint8] = np.zeros(0, dtype=np.uint8)
        self.pages: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        """Those in which anything was ever written."""
        self.followed = WeakSet[_FollowedCopy]()

    def reach(self, end: int) -> None:
        """Makes it so long at least. Raises BufferError."""
        if end > LARGEST:
            raise BufferError(f"a memory object of {end} bytes")
        if end > len(self.bytes):
            try:
                longer = np.zeros(end, dtype=np.uint8)
                pages = np.zeros(-(-end // PAGE), dtype=np.bool_)
            except MemoryError:
                raise BufferError(f"no memory for a copy of {end} bytes") from None
            pages[: len(self.pages)] = self.pages
            for begin, stop in self.held(0, len(self.bytes)):
                longer[begin:stop] = self.bytes[begin:stop]
            self.bytes, self.pages = longer, pages

    def held(self, begin: int, end: int) -> list[Range]:
        """The ranges from `begin` on in which anything was written, in bytes from there."""
        edges = np.flatnonzero(np.diff(np.concatenate(([False], self.pages, [False])).astype(np.int8)))
        ranges = [(int(low) * PAGE, int(high) * PAGE) for low, high in edges.reshape(-1, 2)]
        return [(low - begin, high - begin) for low, high in overlap(ranges, [(begin, end)])]


class CopiedMemory:
    """The memory objects of one process, by id. `vkharness.record.written_pages.MappedPages` for `HostMemory`."""

    small = 0
    """To follow a copy costs nothing."""

    def __init__(self) -> None:
        self._copies: dict[int, _Copy] = {}
        self._numbers = count(1)
        self._told: set[int] = set()
        self.size_of: Callable[[int], int | None] = lambda memory: None
        """Bytes of a memory object, where they are known."""

    def changed(self, memory: int, offset: int, data: bytes) -> None:
        """The stream tells what memory holds. Raises BufferError for what no memory object can be."""
        end = offset + len(data)
        copy = self._copy(memory, end)
        copy.bytes[offset:end] = np.frombuffer(data, dtype=np.uint8)
        copy.pages[offset // PAGE : -(-end // PAGE)] = True
        for each in copy.followed:
            each.wrote(offset, end)

    def view(self, memory: int, offset: int, address: int, size: int) -> NDArray[np.uint8]:
        """The copy of what is mapped."""
        spend_reading(size // BYTES_A_UNIT, "bytes of mapped memory")
        return self._copy(memory, offset + size).bytes[offset : offset + size]

    def follow(
        self, memory: int, offset: int, view: NDArray[np.uint8], fresh: bool = False, trusted: bool = True
    ) -> FollowedPages:
        """Follows what the stream tells of a view."""
        copy, end = self._copies[memory], offset + len(view)
        made = _FollowedCopy(next(self._numbers), offset, end, copy.held(offset, end), self._told)
        copy.followed.add(made)
        return made

    def written(self) -> list[int]:
        """The numbers of the views in which something was written and not taken."""
        return sorted(self._told)

    def freed(self, memory: int) -> None:
        """The memory object is gone."""
        self._copies.pop(memory, None)

    def _copy(self, memory: int, end: int) -> _Copy:
        """The copy of a memory object, which has so many bytes at least."""
        copy = self._copies.get(memory)
        if copy is None:
            copy = self._copies[memory] = _Copy()
            copy.reach(max(end, self.size_of(memory) or 0))
        elif end > len(copy.bytes):
            copy.reach(end)
        return copy
