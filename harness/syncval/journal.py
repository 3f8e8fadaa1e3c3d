"""Where each queue accessed memory lately: what came after a signal is found there, without a visit of every range."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from harness.findings import Place
from harness.spans import Span, SpanMap
from harness.syncval.race import NEVER, Tag, tag_of

if TYPE_CHECKING:
    from harness.syncval.context import RangeEntry

    Maps = Mapping[int, SpanMap[RangeEntry]]
    Piece = tuple[SpanMap[RangeEntry], int, int, RangeEntry]

LENGTH = 256
"""Accesses of a queue that are remembered."""
PROGRAMS = 1 << 62
"""Queues from here on are no program's: the host's, the presentation engine's."""
EVERYTHING: Span = (0, 1 << 62)


Reach = Mapping[int, Tag]
"""By queue, up to which batch."""


class LateAccess(NamedTuple):
    """A range with accesses beyond some tags: whether its write is one, and which of its reads."""

    held: SpanMap[RangeEntry]
    begin: int
    end: int
    entry: RangeEntry
    write: bool
    reads: frozenset[int]


class Journal:
    """The last accesses of each queue, in the order in which they were judged: kept from `start` on, until the host
    knows them to be complete (`retired`)."""

    def __init__(self, retired: Reach) -> None:
        self.on = False
        self._retired = retired
        self._whole = False
        """It begins with the first access of all."""
        self._accesses: dict[int, deque[tuple[Place, int, tuple[Span, ...]]]] = {}
        self._others: set[int] = set()
        """Spaces that were accessed by what is no queue of the program."""

    def start(self, whole: bool) -> None:
        """From now on accesses are added; `whole` when there was none before."""
        self.on, self._whole = True, whole

    def add(self, queue: int, place: Place, space: int, spans: tuple[Span, ...]) -> None:
        """Takes note of an access."""
        if queue >= PROGRAMS:
            self._others.add(space)
            return
        log = self._accesses.get(queue)
        if log is None:
            log = self._accesses[queue] = deque(maxlen=LENGTH)
        done = self._retired.get(queue, NEVER)
        while log and tag_of(log[0][0]) <= done:
            log.popleft()
        log.append((place, space, spans))

    def forget(self, space: int) -> None:
        """A space no longer exists."""
        self._others.discard(space)

    def late(self, maps: Maps, reach: Reach, queues: Iterable[int]) -> list[LateAccess]:
        """The ranges with accesses of some queues beyond `reach`; nobody knows of the others. Visits what the journal
        names; all ranges when it does not go back far enough."""
        found = []
        for held, begin, end, entry in self._entries(maps, self._since(reach, queues)):
            write = entry.write is not None and _is_beyond(reach, entry.write)
            reads = frozenset(at for at, read in enumerate(entry.reads) if _is_beyond(reach, read))
            if write or reads:
                found.append(LateAccess(held, begin, end, entry, write, reads))
        return found

    def _entries(self, maps: Maps, named: Iterable[tuple[int, int, int]] | None) -> Iterator[Piece]:
        if named is None:
            yield from ((held, *piece) for held in maps.values() for piece in held)
            return
        for space, begin, end in named:
            if space in maps:
                yield from ((maps[space], *piece) for piece in maps[space].pieces(begin, end))

    def _since(self, reach: Reach, queues: Iterable[int]) -> Iterable[tuple[int, int, int]] | None:
        """(space, begin, end) of what may be beyond `reach` and not retired; None when that is not known."""
        found = dict.fromkeys((space, *EVERYTHING) for space in self._others)
        for queue in queues:
            log = self._accesses.get(queue, ())
            upto = max(reach.get(queue, NEVER), self._retired.get(queue, NEVER))
            for place, space, spans in reversed(log):
                if tag_of(place) <= upto:
                    break
                for begin, end in spans:
                    found[space, begin, end] = None
            else:
                if len(log) == LENGTH or not self._whole:
                    return None
        return found if self.on else None


def _is_beyond(reach: Reach, place: Place) -> bool:
    return tag_of(place) > reach.get(place.queue or 0, NEVER)
