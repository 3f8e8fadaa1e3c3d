"""Bytes that changed in mapped memory: each mapping has a shadow copy, and comparing finds what was written.

Ranges are bytes from the start of the memory object, (start, end) half open. Comparing walks the mapping once in
chunks; a chunk that is equal costs a vectorised comparison and no copy.

Memory that nobody could have written before (`fresh`) holds arbitrary bytes, and what the host writes may happen to be
there already. So the first comparison gives all of it, as one run: what a replay needs to start from, and the same
number of runs whatever the driver left there. Where it matters which bytes the host wrote, since it must flush those
(`exact`), what fresh memory held comes apart from what changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vkharness.spans import merge

Range = tuple[int, int]
CHUNK = 1 << 20
"""Bytes compared at a time; a multiple of 8."""
WORD = 4
"""Bytes of the unit in which changes are found."""
MAX_RUNS = 1024
"""Runs that one comparison gives, about. Of more, those that lie closest are joined, with the words between."""
FRESH_LIMIT = 16 << 20
"""Bytes of fresh memory that are given whole; of a larger mapping, the chunks that are not all zero."""


class Mapping:
    """One mapped range of one memory object: `view` is the live memory, `shadow` what it held when last looked at."""

    def __init__(self, memory: int, offset: int, view: Any, fresh: Iterable[Range] = (), exact: bool = False) -> None:
        """`memory` is the object's id, `offset` where the mapping starts in it, `view` a buffer of the mapped bytes.

        `fresh` are the ranges of the memory object that nobody can have written before; with `exact` they are compared
        like others, and `initial` gives what they held.
        """
        self.memory = memory
        self.offset = offset
        self.view: NDArray[np.uint8] = np.frombuffer(view, dtype=np.uint8)
        self._fresh = [self._inside(each) for each in merge(fresh)]
        self._initial: list[Range] = []
        if exact:
            self._initial, self._fresh = self._fresh, []
        if self._fresh == [(0, self.size)]:
            self.shadow = np.zeros_like(self.view)  # costs no memory before it is written
        else:
            self.shadow = self.view.copy()
            for start, end in self._fresh:
                self.shadow[start:end] = 0

    @property
    def size(self) -> int:
        """Bytes mapped."""
        return len(self.view)

    def changes(self, ignored: Sequence[Range] = ()) -> list[tuple[int, bytes]]:
        """Runs of changed words as (offset in the memory object, new bytes), in order; the shadow takes them over.

        Words that touch an `ignored` range are left as they are, in the shadow too.
        """
        ignored = merge(ignored)
        found = [self._take(start, end) for start, end in self._fresh_runs()]
        changed = [runs for runs in self._changed_runs(ignored) if len(runs)]
        if changed:
            found += [self._take(start, end) for start, end in self._joined(np.concatenate(changed), ignored).tolist()]
        return sorted(found)

    def initial(self) -> list[tuple[int, bytes]]:
        """What fresh memory held when it was mapped, in the form of `changes`; once, before the first of those."""
        runs, self._initial = list(self._runs(self._initial)), []
        return [(self.offset + start, self.shadow[start:end].tobytes()) for start, end in runs]

    def refresh(self, ranges: Iterable[Range]) -> None:
        """Takes the bytes of `ranges` over into the shadow: whatever changed there was not the host's doing."""
        for start, end in map(self._inside, merge(ranges)):
            if start < end:
                self.shadow[start:end] = self.view[start:end]

    def _inside(self, span: Range) -> Range:
        """The part of a range that is mapped, in bytes from the mapping's start; empty when start is not below end."""
        return max(span[0] - self.offset, 0), min(span[1] - self.offset, self.size)

    def _take(self, start: int, end: int) -> tuple[int, bytes]:
        data = self.view[start:end].tobytes()
        self.shadow[start:end] = np.frombuffer(data, dtype=np.uint8)
        return self.offset + start, data

    def _fresh_runs(self) -> Iterator[Range]:
        """What the first comparison gives of fresh memory."""
        fresh, self._fresh = self._fresh, []
        yield from self._runs(fresh)

    def _runs(self, fresh: list[Range]) -> Iterator[Range]:
        """Fresh ranges whole, unless they are large and mostly zero."""
        for start, end in fresh:
            if end - start <= FRESH_LIMIT:
                yield start, end
            else:
                pieces = ((at, min(at + CHUNK, end)) for at in range(start, end, CHUNK))
                yield from merge(piece for piece in pieces if self.view[slice(*piece)].any())

    def _joined(self, runs: NDArray[np.int64], ignored: list[Range]) -> NDArray[np.int64]:
        """Runs in order, with those joined that touch and, when there are too many, those with the smallest gaps.

        No join covers an ignored byte.
        """
        gaps = runs[1:, 0] - runs[:-1, 1]
        join = gaps == 0
        surplus = len(runs) - MAX_RUNS
        if surplus > 0:
            near = gaps <= np.partition(gaps, surplus - 1)[surplus - 1]
            low, high = (np.array([span[i] for span in ignored], dtype=np.int64) - self.offset for i in (0, 1))
            after = np.searchsorted(high, runs[:-1, 1], side="right")
            blocked = np.append(low, np.iinfo(np.int64).max)[after] < runs[1:, 0]
            join |= near & ~blocked
        starts = runs[np.append(True, ~join), 0]
        ends = runs[np.append(~join, True), 1]
        return np.stack((starts, ends), axis=1)

    def _changed_runs(self, ignored: list[Range]) -> Iterator[NDArray[np.int64]]:
        for start in range(0, self.size, CHUNK):
            end = min(start + CHUNK, self.size)
            whole = start + (end - start) // 8 * 8
            same = np.array_equal(
                self.view[start:whole].view(np.uint64), self.shadow[start:whole].view(np.uint64)
            ) and np.array_equal(self.view[whole:end], self.shadow[whole:end])
            if not same:
                yield self._runs_of_chunk(start, end, ignored)

    def _runs_of_chunk(self, start: int, end: int, ignored: list[Range]) -> NDArray[np.int64]:
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
        found: NDArray[np.int64] = np.minimum(start + edges.reshape(-1, 2) * WORD, end)
        return found
