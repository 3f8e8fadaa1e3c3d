"""Contents of mapped memory, as writes of the host.

A capture holds whole pages or whole mappings where the host wrote anything, at the next submit, flush or unmap. What
the bytes were before is known from what the capture held of them earlier. So the words that changed are the host's
writes. Of words that were never held before, those that are not zero count as written; the others are contents that
the memory had (`HostWrite.initial`).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from harness.spans import subtract
from harness.trace.calls import FOUND_WRITES, Call, HostWrite

PAGE = 4096
"""Bytes that are compared at a time and kept as one piece."""
WORD = 4
"""Bytes of the unit in which changes are found."""
MOST_RUNS = 1024
"""The most runs of one block. Of more, neighbours are joined, with the words between them."""
MOST_KEPT = 1 << 30
"""The most bytes that are kept to compare with. Beyond them, all that a block holds counts as written."""

Run = tuple[int, int]
"""First byte and the byte after the last one, from the start of the memory object."""


class FoundWrites:
    """What a capture held of each memory object so far, and where each one is mapped from."""

    def __init__(self) -> None:
        self._pages: dict[int, dict[int, bytes]] = {}
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
            self._kept -= PAGE * len(self._pages.pop(args["memory"], ()))

    def found(self, index: int, memory: int, offset: int, data: bytes) -> Iterator[HostWrite]:
        """What block `index` says with the bytes from `offset` on, which counts from where the mapping starts."""
        first = offset + self._starts.get(memory, 0)
        written: list[Run] = []
        initial: list[Run] = []
        pages = self._pages.setdefault(memory, {})
        for page in range(first // PAGE, -(-(first + len(data)) // PAGE)):
            begin, end = max(first, page * PAGE), min(first + len(data), (page + 1) * PAGE)
            new = data[begin - first : end - first]
            self._compare(pages, page, begin, new, written, initial)
        for runs, is_initial in ((_fewer(written), False), (_fewer(subtract(initial, written)), True)):
            for begin, end in runs:
                yield HostWrite(index, memory, begin, data[begin - first : end - first], None, is_initial)

    def _compare(
        self, pages: dict[int, bytes], page: int, begin: int, new: bytes, written: list[Run], initial: list[Run]
    ) -> None:
        """Adds what one page's worth of bytes says to the runs, and keeps it."""
        old = pages.get(page)
        inside = begin - page * PAGE
        if old is None:
            words = _words_that_differ(new, bytes(len(new)))
            if len(new) == PAGE and self._kept < MOST_KEPT:
                pages[page] = new
                self._kept += PAGE
            _add(initial, [(begin, begin + len(new))])
            _add(written, _runs(words, begin, len(new)))
        elif old[inside : inside + len(new)] != new:
            pages[page] = old[:inside] + new + old[inside + len(new) :]
            _add(written, _runs(_words_that_differ(new, old[inside : inside + len(new)]), begin, len(new)))


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
