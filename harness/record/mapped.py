"""Bytes that changed in mapped memory: each mapping has a shadow copy, and comparing finds what was written.

Ranges are bytes from the start of the memory object, (start, end) half open. Comparing walks the mapping once in
chunks; a chunk that is equal costs a vectorised comparison and no copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Range = tuple[int, int]
CHUNK = 1 << 20
"""Bytes compared at a time; a multiple of 8."""
WORD = 4
"""Bytes of the unit in which changes are found."""


def merged(ranges: Iterable[Range]) -> list[Range]:
    """The same bytes as sorted ranges that neither overlap nor touch."""
    found: list[Range] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        elif start < end:
            found.append((start, end))
    return found


class Mapping:
    """One mapped range of one memory object: `view` is the live memory, `shadow` what it held when last looked at."""

    def __init__(self, memory: int, offset: int, view: Any) -> None:
        """`memory` is the object's id, `offset` where the mapping starts in it, `view` a buffer of the mapped bytes."""
        self.memory = memory
        self.offset = offset
        self.view: NDArray[np.uint8] = np.frombuffer(view, dtype=np.uint8)
        self.shadow = self.view.copy()

    @property
    def size(self) -> int:
        """Bytes mapped."""
        return len(self.view)

    def changes(self, ignored: Sequence[Range] = ()) -> list[tuple[int, bytes]]:
        """Runs of changed words as (offset in the memory object, new bytes), in order; the shadow takes them over.

        Words that touch an `ignored` range are left as they are, in the shadow too.
        """
        runs: list[Range] = []
        for start, end in self._changed_runs(merged(ignored)):
            if runs and runs[-1][1] == start:
                runs[-1] = (runs[-1][0], end)
            else:
                runs.append((start, end))
        found = []
        for start, end in runs:
            data = self.view[start:end].tobytes()
            self.shadow[start:end] = np.frombuffer(data, dtype=np.uint8)
            found.append((self.offset + start, data))
        return found

    def refresh(self, ranges: Iterable[Range]) -> None:
        """Takes the bytes of `ranges` over into the shadow: whatever changed there was not the host's doing."""
        for start, end in merged(ranges):
            low = max(start - self.offset, 0)
            high = min(end - self.offset, self.size)
            if low < high:
                self.shadow[low:high] = self.view[low:high]

    def _changed_runs(self, ignored: list[Range]) -> Iterator[Range]:
        for start in range(0, self.size, CHUNK):
            end = min(start + CHUNK, self.size)
            whole = start + (end - start) // 8 * 8
            same = np.array_equal(
                self.view[start:whole].view(np.uint64), self.shadow[start:whole].view(np.uint64)
            ) and np.array_equal(self.view[whole:end], self.shadow[whole:end])
            if not same:
                yield from self._runs_of_chunk(start, end, ignored)

    def _runs_of_chunk(self, start: int, end: int, ignored: list[Range]) -> Iterator[Range]:
        """Changed runs in one chunk, from the mapping's start; the last word may be cut short by the mapping's end."""
        whole = start + (end - start) // WORD * WORD
        differs = self.view[start:whole].view(np.uint32) != self.shadow[start:whole].view(np.uint32)
        if whole < end:
            differs = np.append(differs, bool((self.view[whole:end] != self.shadow[whole:end]).any()))
        for low, high in ignored:
            first = (low - self.offset - start) // WORD
            last = -(-(high - self.offset - start) // WORD)
            differs[max(first, 0) : max(last, 0)] = False
        edges = np.flatnonzero(np.diff(np.concatenate(([False], differs, [False])).astype(np.int8)))
        for first, last in edges.reshape(-1, 2).tolist():
            yield start + first * WORD, min(start + last * WORD, end)
