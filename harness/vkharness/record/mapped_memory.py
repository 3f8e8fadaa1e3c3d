"""Bytes that changed in mapped memory: each mapping has a shadow copy, and comparing finds what was written.

Ranges are bytes from the start of the memory object, (start, end) half open. What was written since the last time
(`written_pages`) is compared in chunks; a chunk that is equal costs a vectorised comparison and no copy. The shadow
takes no memory where nothing but zeros was ever seen.

Memory that nobody could have written before (`fresh`) holds arbitrary bytes, and what the host writes may happen to be
there already. So the first comparison gives all of it, as one run: what a replay needs to start from, and the same
number of runs whatever the driver left there. Of large memory it gives what somebody touched and is not zero. Where it
matters which bytes the host wrote, since it must flush those (`exact`), what fresh memory held comes apart from what
changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vkharness.native import core
from vkharness.record.written_pages import OWN_PAGES, MappedPages
from vkharness.spans import merge, overlap, subtract

Range = tuple[int, int]
CHUNK = 1 << 20
"""Bytes compared at a time; a multiple of 8."""
WORD = 4
"""Bytes of the unit in which changes are found."""
MAX_RUNS = 1024
"""Runs that one comparison gives, about. Of more, those that lie closest are joined, with the words between."""
FRESH_LIMIT = 16 << 20
"""Bytes of fresh memory that are given whole; of more, the chunks that were touched and are not all zero."""
SERIALS = count()


class Mapping:
    """One mapped range of one memory object: `view` is the live memory, `shadow` what it held when last looked at."""

    def __init__(
        self,
        memory: int,
        offset: int,
        view: Any,
        fresh: Iterable[Range] = (),
        exact: bool = False,
        trusted: bool = True,
        source: MappedPages = OWN_PAGES,
    ) -> None:
        """`memory` is the object's id, `offset` where the mapping starts in it, `view` a buffer of the mapped bytes.

        `fresh` are the ranges of the memory object that nobody can have written before; with `exact` they are compared
        like others, and `initial` gives what they held. Of what is not `trusted`, others may write the same bytes
        through other mappings. `source` says what is written.
        """
        self._source = source
        self.memory = memory
        self.offset = offset
        self.serial = next(SERIALS)
        """Mappings are told in the order in which they were made."""
        self.view: NDArray[np.uint8] = np.frombuffer(view, dtype=np.uint8)
        first = merge(self._inside(each) for each in fresh)
        self.pages = source.follow(memory, offset, self.view, first == [(0, self.size)], trusted)
        self._fresh, self._initial = ([], first) if exact else (first, [])
        self._written: list[Range] = overlap(self.pages.held, first)
        """Ranges that may differ from the shadow or must be reported: in bytes from the mapping's start, in order."""
        self.shadow = np.zeros(self.size, dtype=np.uint8)  # takes no memory before it is written
        for start, end in _chunks(subtract(self.pages.held, self._fresh)):
            if self.view[start:end].any():
                self.shadow[start:end] = self.view[start:end]

    @property
    def size(self) -> int:
        """Bytes mapped."""
        return len(self.view)

    @property
    def has_more(self) -> bool:
        """Whether there is something to tell, or to look at again, that `written_numbers` does not name."""
        return self.pages.number is None or bool(self._written or self._fresh or self._initial)

    def changes(self, ignored: Sequence[Range] = ()) -> list[tuple[int, bytes]]:
        """Runs of changed words as (offset in the memory object, new bytes), in order; the shadow takes them over.

        Words that touch an `ignored` range are left as they are, in the shadow too. Only what was written since the
        last time is looked at, as `written_pages` says.
        """
        self._look()
        ignored = merge(ignored)
        found = [self._take(start, end) for start, end in self._fresh_runs()]
        left_out = merge(self._words((start - self.offset, end - self.offset)) for start, end in ignored)
        changed = [runs for runs in self._changed_runs(subtract(self._written, left_out)) if len(runs)]
        self._written = overlap(self._written, left_out)
        if changed:
            found += [self._take(start, end) for start, end in self._joined(np.concatenate(changed), ignored).tolist()]
        return sorted(found)

    def initial(self) -> list[tuple[int, bytes]]:
        """Gives the contents that fresh memory had when it was mapped, in the form of `changes`. Call it once, before
        `changes`."""
        self._look()
        runs, self._initial = list(self._runs(self._initial)), []
        return [(self.offset + start, self.shadow[start:end].tobytes()) for start, end in runs]

    def _look(self) -> None:
        taken = self.pages.take()
        self._written = merge((*self._written, *map(self._words, taken))) if taken else self._written

    def _words(self, span: Range) -> Range:
        """The words that a range touches, both in bytes from the mapping's start. The last word may be cut short."""
        start, end = span
        return max(start // WORD * WORD, 0), min(-(-end // WORD) * WORD, self.size)

    def follow(self) -> None:
        """From now on what is written is compared, after all of it once more: where the kernel says what that is."""
        self.pages = self._source.follow(self.memory, self.offset, self.view)
        self._written = [(0, self.size)]

    def mapped_again(self) -> None:
        """Takes over what was written while the memory was unmapped: by nobody who must be told of."""
        self.serial = next(SERIALS)
        for start, end in self.pages.take():
            self.shadow[start:end] = self.view[start:end]

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
        """Yields the ranges of fresh memory that the first comparison reports; none later."""
        fresh, self._fresh = self._fresh, []
        yield from self._runs(fresh)

    def _runs(self, fresh: list[Range]) -> Iterator[Range]:
        """Fresh ranges whole; of large ones the chunks that somebody touched and that are not all zero."""
        for start, end in fresh:
            if end - start <= FRESH_LIMIT:
                yield start, end
            else:
                touched = overlap(self._written, [(start, end)])
                chunks = {
                    at for low, high in touched for at in range((low - start) // CHUNK, -((start - high) // CHUNK))
                }
                pieces = ((start + at * CHUNK, min(start + (at + 1) * CHUNK, end)) for at in sorted(chunks))
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

    def _changed_runs(self, parts: list[Range]) -> Iterator[NDArray[np.int64]]:
        """Changed runs of words in parts of whole words."""
        if core is not None:
            found = core.changed_words(self.view.ctypes.data, self.shadow.ctypes.data, parts)
            yield np.frombuffer(found, dtype=np.int64).reshape(-1, 2)
            return
        for start, end in _chunks(parts):
            whole = start + (end - start) // 8 * 8
            same = np.array_equal(
                self.view[start:whole].view(np.uint64), self.shadow[start:whole].view(np.uint64)
            ) and np.array_equal(self.view[whole:end], self.shadow[whole:end])
            if not same:
                yield self._runs_of_chunk(start, end)

    def _runs_of_chunk(self, start: int, end: int) -> NDArray[np.int64]:
        """Changed runs in one chunk, from the mapping's start; the last word may be cut short by the mapping's end."""
        whole = start + (end - start) // WORD * WORD
        differs = self.view[start:whole].view(np.uint32) != self.shadow[start:whole].view(np.uint32)
        if whole < end:
            differs = np.append(differs, bool((self.view[whole:end] != self.shadow[whole:end]).any()))
        edges = np.flatnonzero(np.diff(np.concatenate(([False], differs, [False])).astype(np.int8)))
        found: NDArray[np.int64] = np.minimum(start + edges.reshape(-1, 2) * WORD, end)
        return found


def _chunks(ranges: Iterable[Range]) -> Iterator[Range]:
    """Ranges in pieces of at most a chunk."""
    for low, high in ranges:
        for start in range(low, high, CHUNK):
            yield start, min(start + CHUNK, high)
