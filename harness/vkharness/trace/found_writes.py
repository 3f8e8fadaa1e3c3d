"""Contents of mapped memory, as writes of the host.

A capture holds whole pages or whole mappings where the host wrote anything, at the next submit, flush or unmap. What
the bytes were before is known from what the capture held of them earlier. So the words that changed are the host's
writes. Of words that were never held before, those that are not zero count as written; the others are contents that
the memory had (`HostWrite.initial`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from vkharness.spans import subtract
from vkharness.trace.calls import FOUND_WRITES, Call, HostWrite
from vkharness.trace.work_budget import spend_reading

PAGE = 4096
"""Bytes that are compared at a time and kept as one piece."""
WORD = 4
"""Bytes of the unit in which changes are found."""
BRIDGE = 64
"""The most bytes of zeros that count as written between others, in memory that was never held before."""
MOST_RUNS = 1024
"""The most runs of one block. Of more, neighbours are joined, with the words between them."""
MOST_KEPT = 256 << 20
"""The most bytes that are kept to compare with. Beyond them, all that a block holds counts as written."""
BYTES_A_UNIT, ZEROS_A_UNIT = 16, 256
"""Bytes that are one unit of work to compare and to keep, and bytes of nothing but zeros."""

Run = tuple[int, int]
"""First byte and the byte after the last one, from the start of the memory object."""
Held = tuple[int, bytes]
"""Known contents of one page: the first byte from the start of the memory object, and the bytes from there on."""


class FoundWrites:
    """Contents of each memory object that a capture held so far, and where each one is mapped from."""

    def __init__(self) -> None:
        self._pages: dict[int, dict[int, Held]] = {}
        self._starts: dict[int, int] = {}
        self._kept = 0

    def follow(self, call: Call) -> None:
        """Takes note of what maps and frees memory, and marks new devices (`FOUND_WRITES`)."""
        args = call.args
        if call.name == "vkCreateDevice":
            args[FOUND_WRITES] = 1
        elif call.name.startswith("vkMapMemory"):
            info = args.get("pMemoryMapInfo") or args
            self._starts[info["memory"]] = info["offset"]
        elif call.name == "vkFreeMemory":
            self._starts.pop(args["memory"], None)
            self._kept -= sum(len(held) for _, held in self._pages.pop(args["memory"], {}).values())

    def found(self, index: int, memory: int, offset: int, data: bytes) -> Iterator[HostWrite]:
        """Yields the writes of the host that block `index` shows with the bytes from `offset` on, which counts from
        where the mapping starts."""
        _spend(data)
        first = offset + self._starts.get(memory, 0)
        written: list[Run] = []
        fresh: list[Run] = []
        pages = self._pages.setdefault(memory, {})
        for page in range(first // PAGE, -(-(first + len(data)) // PAGE)):
            begin, end = max(first, page * PAGE), min(first + len(data), (page + 1) * PAGE)
            new = data[begin - first : end - first]
            self._compare(pages, page, begin, new, written, fresh)
        for runs, is_initial in ((_fewer(written), False), (_fewer(subtract(fresh, written)), True)):
            for begin, end in runs:
                yield HostWrite(index, memory, begin, data[begin - first : end - first], None, is_initial)

    def contents(self, index: int, memory: int, begin: int, data: bytes) -> HostWrite:
        """Returns the contents of a memory object from a byte on that block `index` has: no write of the host."""
        _spend(data)
        pages = self._pages.setdefault(memory, {})
        for page in range(begin // PAGE, -(-(begin + len(data)) // PAGE)):
            low, high = max(begin, page * PAGE), min(begin + len(data), (page + 1) * PAGE)
            self._keep(pages, page, low, data[low - begin : high - begin])
        return HostWrite(index, memory, begin, data, None, True)

    def _compare(
        self, pages: dict[int, Held], page: int, begin: int, new: bytes, written: list[Run], fresh: list[Run]
    ) -> None:
        """Adds what one page's worth of bytes says to the runs, and keeps it."""
        start, old = pages.get(page, (begin, b""))
        end = begin + len(new)
        low, high = max(begin, start), min(end, start + len(old))
        parts: list[tuple[int, int, bytes | None]] = [(begin, end, None)]
        if low < high:
            parts = [(begin, low, None), (low, high, old[low - start : high - start]), (high, end, None)]
        for first, after, before in parts:
            here = new[first - begin : after - begin]
            if here == before or not here:
                continue
            words = _words_that_differ(here, bytes(len(here)) if before is None else before)
            runs = _runs(words, first, len(here))
            if before is None:
                _add(fresh, [(first, after)])
                runs = _bridged(runs)
            _add(written, runs)
        self._keep(pages, page, begin, new)

    def _keep(self, pages: dict[int, Held], page: int, begin: int, new: bytes) -> None:
        start, old = pages.get(page, (begin, b""))
        end = begin + len(new)
        if begin <= start + len(old) and start <= end:
            new = old[: max(0, begin - start)] + new + old[max(0, end - start) :]
            begin = min(begin, start)
        if self._kept + len(new) - len(old) <= MOST_KEPT:
            self._kept += len(new) - len(old)
            pages[page] = begin, new


def _spend(data: bytes) -> None:
    are_zeros = data.count(0) == len(data)
    spend_reading(len(data) // (ZEROS_A_UNIT if are_zeros else BYTES_A_UNIT), "bytes of the contents of memory")


def _words_that_differ(new: bytes, old: bytes) -> list[int]:
    whole = len(new) // WORD * WORD
    if new == old:
        return []
    pairs = zip(memoryview(new)[:whole].cast("I"), memoryview(old)[:whole].cast("I"), strict=True)
    found = [i for i, (x, y) in enumerate(pairs) if x != y]
    if new[whole:] != old[whole:]:
        found.append(whole // WORD)
    return found


def _runs(words: list[int], begin: int, size: int) -> list[Run]:
    """Numbers of words, in order, as runs of bytes."""
    found = []
    for _, group in groupby(enumerate(words), lambda pair: pair[1] - pair[0]):
        members = [word for _, word in group]
        found.append((begin + members[0] * WORD, begin + min((members[-1] + 1) * WORD, size)))
    return found


def _bridged(runs: list[Run]) -> list[Run]:
    """Runs of which those with small gaps are joined: zeros between other values were most likely written, too."""
    found: list[Run] = []
    for begin, end in runs:
        if found and begin - found[-1][1] <= BRIDGE:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def _add(runs: list[Run], more: list[Run]) -> None:
    """Appends runs that lie behind those that are there; two that touch become one."""
    if runs and more and runs[-1][1] == more[0][0]:
        runs[-1] = (runs[-1][0], more[0][1])
        more = more[1:]
    runs.extend(more)


def _fewer(runs: list[Run]) -> list[Run]:
    """The same runs; of too many, those with the smallest gaps are joined."""
    surplus = len(runs) - MOST_RUNS
    if surplus <= 0:
        return runs
    gaps = sorted(range(1, len(runs)), key=lambda i: runs[i][0] - runs[i - 1][1])
    joined = set(gaps[:surplus])
    found: list[Run] = []
    for i, run in enumerate(runs):
        if i in joined:
            found[-1] = (found[-1][0], run[1])
        else:
            found.append(run)
    return found
