"""Where each queue accessed memory lately: what came after a signal is found there, without a visit of every range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from sortedcontainers import SortedDict

from vkharness.spans import ENDLESS, Span
from vkharness.syncval.entries import RangeEntry
from vkharness.syncval.places import PlaceTable
from vkharness.syncval.race import NEVER, BatchIndex
from vkharness.syncval.range_store import RangeStore

LENGTH = 256
"""Accesses of a queue that are remembered."""
PROGRAMS = 1 << 62
"""Queues from this number on belong to the host and to the presentation engine, not to the program."""
EVERYTHING: Span = (0, ENDLESS)


Notes = list[tuple[int, tuple[Span, ...]]]
"""(address space, spans) of accesses."""
VectorClock = Mapping[int, BatchIndex]
"""By queue, up to which batch."""


class LateAccess(NamedTuple):
    """A range with accesses beyond some tags: whether its write is one, and which of its reads."""

    space: int
    begin: int
    end: int
    entry: RangeEntry
    write: bool
    reads: frozenset[int]


@dataclass(slots=True)
class Log:
    """The last accesses of one queue, by batch. Every access of a batch later than `since` is here."""

    since: BatchIndex
    batches: SortedDict[BatchIndex, Notes] = field(default_factory=SortedDict)
    size: int = 0
    """Accesses of all batches together."""

    def add(self, tag: BatchIndex, space: int, spans: tuple[Span, ...], retired: BatchIndex) -> None:
        """Takes note of an access; lets go of batches up to `retired`, and of the oldest when there are too many
        accesses."""
        if tag not in self.batches:
            while self.batches and self.batches.peekitem(0)[0] <= retired:
                self._drop()
            self.batches[tag] = []
        self.batches[tag].append((space, spans))
        self.size += 1
        while self.size > LENGTH:
            self.since = self._drop()

    def add_several(self, tag: BatchIndex, count: int, last: Notes, retired: BatchIndex) -> None:
        """The same for many accesses of one batch, which is the latest one: how many there are, and the last of them,
        at least `LENGTH` or all. Oldest batches go as if each access had been added alone; the batch itself goes, too,
        whenever it has more than `LENGTH` accesses."""
        if tag not in self.batches:
            while self.batches and self.batches.peekitem(0)[0] <= retired:
                self._drop()
            self.batches[tag] = []
        own = len(self.batches[tag]) + count
        while self.size + count > LENGTH and self.batches:
            self.since = self._drop()
        if tag in self.batches:
            self.batches[tag] += last
            self.size += count
            return
        left = own % (LENGTH + 1)
        if left:
            self.batches[tag] = [*last[len(last) - left :]]
            self.size = left

    def _drop(self) -> BatchIndex:
        tag, accesses = self.batches.popitem(0)
        self.size -= len(accesses)
        return tag

    def after(self, tag: BatchIndex) -> Iterator[tuple[int, tuple[Span, ...]]]:
        """The accesses of later batches."""
        for later in self.batches.irange(tag, inclusive=(False, True)):
            yield from self.batches[later]


class Journal:
    """The last accesses of each queue, in the order in which they were judged: kept from `start` on, until the host
    knows them to be complete (`retired`)."""

    def __init__(self, retired: VectorClock) -> None:
        self.on = False
        self._retired = retired
        self._whole = False
        """It begins with the first access of all."""
        self._logs: dict[int, Log] = {}
        self._others: set[int] = set()
        """Spaces that were accessed by what is no queue of the program."""

    def start(self, whole: bool) -> None:
        """From now on accesses are added; `whole` when there was none before."""
        self.on, self._whole = True, whole

    def add(self, queue: int, tag: BatchIndex, space: int, spans: tuple[Span, ...]) -> None:
        """Takes note of an access of the batch with this tag."""
        if queue >= PROGRAMS:
            self._others.add(space)
            return
        log = self._logs.get(queue)
        if log is None:
            log = self._logs[queue] = Log(NEVER if self._whole else tag)
        log.add(tag, space, spans, self._retired.get(queue, NEVER))

    def add_several(self, queue: int, tag: BatchIndex, count: int, last: Notes) -> None:
        """Takes note of many accesses of the batch that a queue of the program executes; `last` are the last of them,
        at least `LENGTH` or all."""
        log = self._logs.get(queue)
        if log is None:
            log = self._logs[queue] = Log(NEVER if self._whole else tag)
        log.add_several(tag, count, last, self._retired.get(queue, NEVER))

    def forget(self, space: int) -> None:
        """A space no longer exists."""
        self._others.discard(space)

    def late(
        self, store: RangeStore, places: PlaceTable, clock: VectorClock, queues: Iterable[int]
    ) -> list[LateAccess]:
        """The ranges with accesses of some queues beyond `clock`; nobody knows of the others. Visits what the journal
        names; all ranges when it does not go back far enough."""
        found: list[LateAccess] = []
        named = self._since(clock, queues)
        for space, begin, end in ((each, *EVERYTHING) for each in store.spaces()) if named is None else named:
            found += self._late(store, places, clock, (space, begin, end))
        return found

    def _late(
        self, store: RangeStore, places: PlaceTable, clock: VectorClock, where: tuple[int, int, int]
    ) -> Iterator[LateAccess]:
        space = where[0]
        for begin, end, entry in store.pieces(*where):
            write = entry.write is not None and not places.batch(entry.write).is_complete(clock)
            reads = frozenset(at for at, read in enumerate(entry.reads) if not places.batch(read).is_complete(clock))
            if write or reads:
                yield LateAccess(space, begin, end, entry, write, reads)

    def _since(self, clock: VectorClock, queues: Iterable[int]) -> Iterable[tuple[int, int, int]] | None:
        """(space, begin, end) of what may be beyond `clock` and not retired; None when that is not known."""
        found = dict.fromkeys((space, *EVERYTHING) for space in self._others)
        for queue in queues:
            log = self._logs.get(queue)
            if log is None:
                if not self._whole:
                    return None
                continue
            upto = max(clock.get(queue, NEVER), self._retired.get(queue, NEVER))
            if upto < log.since:
                return None
            for space, spans in log.after(upto):
                for begin, end in spans:
                    found[space, begin, end] = None
        return found if self.on else None
