"""The states of all ranges: slots that are shared, and what is forgotten once the host knows it to be complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from harness.findings import Place
from harness.spans import Span, SpanMap, subtract
from harness.syncval.completion import after_completion
from harness.syncval.entries import RangeEntry
from harness.syncval.host_knowledge import (
    NOTHING_MORE,
    Clock,
    HostKnowledge,
    after_host_reads,
    after_mark,
    after_settling,
    host_reads,
    is_settled,
    later,
)
from harness.syncval.journal import Journal
from harness.syncval.race import HOST_QUEUE, NEVER, BatchIndex, batch_index_of
from harness.syncval.slots import Slot, Slots
from harness.syncval.state import Change, State, intern
from harness.syncval.tokens import Tokens

T = TypeVar("T")


class TrackedRanges:
    """Which state each range of each address space has. `context` explains slots and retirement.

    Costs: an operation over everything is O(number of distinct states, of which at most `slots.AWAKE` count), one over
    a range O(k log n) for k ranges that it meets.
    """

    def __init__(self) -> None:
        self.retired: dict[int, BatchIndex] = {}
        """By queue: what was submitted up to this tag is known by the host to be complete, and to all that is
        judged from now on."""
        self.learnt: HostKnowledge = NOTHING_MORE
        """What the host learned since a batch waits."""
        self.era = 0
        """How often all batches that waited have gone on."""
        self.tokens = Tokens(1)
        """The tokens of events."""
        self._signaled: list[int] = []
        """The tokens on what the host read before it signaled."""
        self.defers = False
        """Whether something is to be forgotten when no batch waits any more."""
        self.journal = Journal(self.retired)
        self.must_remember: Callable[[int, RangeEntry], bool] = lambda space, entry: False
        """Whether a write that is complete must be remembered: its space, and what its range points to."""
        self.holds_back: Callable[[], bool] = lambda: False
        """Whether a batch waits for a signal or an event."""
        self._maps: dict[int, SpanMap[RangeEntry]] = {}
        self._slots = Slots()
        self._forget_at = 1024
        self._uncounted = 0
        """How often ranges were retired since they were last counted."""
        self.reads_are_over = False
        """Whether any read may be `over` in a state."""
        self._host_read = False
        """Whether the host read while a batch waited."""
        self._to_settle: list[tuple[int, Span]] = []
        """What a batch that waits keeps from being forgotten: spaces with spans."""

    @property
    def ranges(self) -> int:
        """How many ranges are tracked."""
        return sum(len(held) for held in self._maps.values())

    @property
    def slots(self) -> int:
        """How many distinct states each change maps at once."""
        return len(self._slots)

    @property
    def sleeping(self) -> int:
        """How many slots sleep, to which a range points."""
        return sum(1 for _ in self._slots.sleeping())

    @property
    def steps(self) -> int:
        """How often a change has met a state so far: what operations over everything have cost."""
        return self._slots.steps

    def map_slots(self, change: Change) -> None:
        """Maps the state of every range; slots that come to hold one state are joined. Visits no range."""
        self._slots.map(change)

    def retire(self, queue: int, tag: BatchIndex) -> None:
        """The host knows that what a queue was given up to this tag is complete: it no longer matters."""
        if tag > self.retired.get(queue, NEVER):
            self.retired[queue] = tag
            self._uncounted += 1
            if self._uncounted > len(self._maps) >> 6:  # to count them visits every space
                self._uncounted = 0
                if self.ranges > self._forget_at:
                    self.sweep_retired()
                    self._forget_at = max(1024, 2 * self.ranges)

    def _live(self, entry: RangeEntry, retired: Clock | None = None) -> RangeEntry:
        """The entry without what is retired, or is complete up to another clock. This runs for each range that an
        access meets: `batch_index_of` is written out."""
        retired = self.retired if retired is None else retired
        if not retired and not self.reads_are_over:
            return entry
        slot, write, reads = entry
        done = reads and [
            at for at, read in enumerate(reads) if (read.submit or 0, read.batch) <= retired.get(read.queue or 0, NEVER)
        ]
        if reads and self.reads_are_over:
            done = sorted({*done, *slot.find().state.over})
        if done:
            # A read that is complete happened after the write that it did not conflict with.
            before = slot.find().state
            after = before.without_reads(tuple(done))
            reads = tuple(read for at, read in enumerate(reads) if at not in done)
        elif write is not None and (write.submit or 0, write.batch) <= retired.get(write.queue or 0, NEVER):
            before = slot.find().state
            after = before.finished()
        else:
            return entry
        return entry if after is before else RangeEntry(Slot(after), write, reads)

    def _as_host_knows(self, entry: RangeEntry) -> RangeEntry:
        """The entry as the host knows it now."""
        entry = self._live(entry)
        if not self.defers:
            return entry
        slot, write, reads = self._live(entry, self.learnt.complete)
        state, reads = self.learnt.seen_by_host(slot.find().state, reads)
        return _settled(RangeEntry(Slot(state), write, reads))

    @property
    def known_complete(self) -> Clock:
        """By queue, up to where the host knows all work to be complete now."""
        return later(self.retired, self.learnt.complete) if self.learnt.complete else self.retired

    def learn(self, knowledge: HostKnowledge) -> None:
        """The host learned something, and a batch waits that was submitted before."""
        self.learnt, self.defers = replace(knowledge, era=self.era), True

    def at_host_signal(self) -> HostKnowledge:
        """What a signal by the host now hands on, to those that do not know it from their submit."""
        known = self.learnt.of_device() if self.defers else NOTHING_MORE
        if self._host_read:
            token = self.tokens.take()
            self._signaled.append(token)
            self.map_slots(Change(("host reads", token), lambda state: after_host_reads(state, token)))
            known = known.with_more({}, {}, ((token, HOST_QUEUE),))
        return replace(known, era=self.era)

    def forget_settled(self) -> None:
        """No batch waits any more: forgets the accesses that only such a batch could meet."""
        self.learnt, self.defers = NOTHING_MORE, False
        self.era += 1
        for space, span in self._to_settle:
            held = self._maps.get(space)
            for begin, end, entry in held.pieces(*span) if held is not None else ():
                slot, write, reads = _settled(entry)
                if held is not None and write is None and not reads:
                    held.erase(begin, end)
                elif held is not None:
                    held.put(begin, end, RangeEntry(self._slots.get(slot.state), write, reads))
        self._to_settle.clear()
        self._host_read = False
        for token in self._signaled:
            self.tokens.give(token)
        self._signaled.clear()

    def settle_later(self, space: int, spans: Iterable[Span]) -> None:
        """The host read while a batch waits: that is forgotten when none does."""
        self._host_read = True
        self._to_settle += [(space, span) for span in spans]

    def mark_known(self, viewer: int, known: HostKnowledge, token: int) -> None:
        """Marks for a viewer what the host knows to be complete. Visits every range."""
        for held in self._maps.values():
            for begin, end, entry in list(held):
                slot, write, reads = entry = self._live(entry)
                if not known.marks and not any(map(known.includes, (write, *reads) if write is not None else reads)):
                    continue
                before = slot.find().state
                written, read = known.part(before, write, reads)
                if written or read:
                    after = after_mark(before, token, viewer, written, read)
                    held.set_exact(begin, end, entry._replace(slot=self._slots.get(after)))

    def sweep_retired(self) -> None:
        """Forgets ranges whose accesses are all retired, but for writes that the host may have to see; bounds memory in
        long programs."""
        for space in list(self._maps):
            held = self._maps[space]
            for begin, end, entry in list(held):
                write = entry.write
                places = entry.reads if write is None else (write, *entry.reads)
                if all(map(self._is_retired, places)) and (write is None or not self.must_remember(space, entry)):
                    held.erase(begin, end)
                    continue
                if entry.slot.sleeps:  # nobody touches it: it stays as it is
                    continue
                live = self._live(entry)
                state = live.slot.find().state
                done = state.write is None or state.write.done
                if not live.reads and done and (write is None or not self.must_remember(space, live)):
                    held.erase(begin, end)
                elif live is not entry:
                    held.set_exact(begin, end, live._replace(slot=self._slots.get(state)))
            if not len(held):
                del self._maps[space]

    def _is_retired(self, place: Place) -> bool:
        return batch_index_of(place) <= self.retired.get(place.queue or 0, NEVER)

    def unfinished(self, space: int, begin: int, end: int) -> Iterator[tuple[Span, RangeEntry]]:
        """Ranges of [begin, end) with accesses of the device that the host does not know to be complete."""
        for span, entry in self.known(space, begin, end):
            write = entry.slot.find().state.write
            if write is not None and (write.done or write.queue == HOST_QUEUE):
                entry = entry._replace(write=None)
            if entry.write is not None or entry.reads:
                yield span, entry

    def known(self, space: int, begin: int, end: int) -> Iterator[tuple[Span, RangeEntry]]:
        """Ranges of [begin, end) with all that the host knows of them, complete or not."""
        held = self._maps.get(space)
        for piece_begin, piece_end, entry in held.pieces(begin, end) if held is not None else ():
            yield (piece_begin, piece_end), self._as_host_knows(entry)

    def drop_writes(self, space: int, span: Span, which: Callable[[State, Place], bool]) -> None:
        """Forgets the last writes of a range where `which` says so; reads since stay. While a batch waits that may not
        see them, they are settled for the host alone."""
        held = self._maps.get(space)
        for begin, end, entry in held.pieces(*span) if held is not None else ():
            if self.holds_back():
                seen = self._as_host_knows(entry)
                if held is not None and seen.write is not None and which(seen.slot.find().state, seen.write):
                    settled = after_settling(entry.slot.find().state)
                    held.assign(begin, end, entry._replace(slot=self._slots.get(settled)))
                    self._to_settle.append((space, (begin, end)))
                    self.defers = True
                continue
            live = self._live(entry)
            state = live.slot.find().state
            if held is None or live.write is None or not which(state, live.write):
                continue
            if live.reads:
                held.assign(begin, end, RangeEntry(self._slots.get(state.without_write()), None, live.reads))
            else:
                held.erase(begin, end)

    def change(self, space: int, span: Span, rule: Callable[[State], State]) -> None:
        """Changes the states of a range."""
        held = self._maps.get(space)
        for begin, end, entry in held.pieces(*span) if held is not None else ():
            before = entry.slot.find().state
            after = rule(before)
            if held is not None and after is not before:
                held.assign(begin, end, entry._replace(slot=self._slots.get(after)))

    def entry(self, state: State, reads: tuple[Place, ...]) -> RangeEntry:
        """What a range points to that has a state without a write."""
        return RangeEntry(self._slots.get(state), None, reads)

    def live_map(self, space: int, spans: Iterable[Span]) -> SpanMap[RangeEntry]:
        """The ranges of a space, with those at some addresses brought up to what is retired."""
        held = self._maps.setdefault(space, SpanMap())
        for begin, end in spans:
            for low, high, entry in held.pieces(begin, end):
                live = self._live(entry)
                if live is not entry:
                    held.assign(low, high, live._replace(slot=self._slots.get(live.slot.find().state)))
        return held

    def complete(self, token: int, viewer: int) -> None:
        """What has a token is complete."""
        self.reads_are_over = True
        self.map_slots(Change(("complete", token, viewer), lambda state: after_completion(state, token, viewer)))

    def finish(self, space: int, queue: int) -> None:
        """What a queue did to a space is complete, and what it wrote matters to nobody: the presentation engine's."""
        held = self._maps.get(space)
        for begin, end, entry in list(held) if held is not None else ():
            state, write, reads = entry.slot.find().state, entry.write, entry.reads
            done = tuple(at for at, read in enumerate(state.reads) if read.queue == queue)
            if done:
                state = state.without_reads(done)
                reads = tuple(read for at, read in enumerate(reads) if at not in done)
            if state.write is not None and state.write.queue == queue:
                state, write = state.without_write(), None
            if held is not None and write is None and not reads:
                held.erase(begin, end)
            elif held is not None:
                held.set_exact(begin, end, RangeEntry(self._slots.get(state), write, reads))

    def forget(self, space: int, span: Span | None, submitted: bool = False) -> None:
        """Erases the accesses of addresses that no longer exist; of a `span`, which other resources may get, not what
        was `submitted` and is not known to be complete.

        Rule: rules.md#destroyed-resources-take-their-accesses-along.
        """
        held = self._maps.get(space)
        if held is not None and span is not None:
            pending = [each for each, _ in self.unfinished(space, *span)] if submitted else []
            for begin, end in subtract([span], pending):
                held.erase(begin, end)
            for each in pending:
                self.drop_writes(space, each, lambda state, _: state.write is not None and state.write.done)
        if span is None or not held:
            self._maps.pop(space, None)
            self.journal.forget(space)

    def _check(self) -> None:
        """Raises AssertionError when an invariant is broken."""
        for held in self._maps.values():
            held._check()
            for _, _, entry in held:
                self._slots._check_reachable(entry.slot)
                state = entry.slot.peek()
                assert (entry.write is None) == (state.write is None), "a write without its place"
                assert len(entry.reads) == len(state.reads), "reads without their places"
        self._slots._check()


def _settled(entry: RangeEntry) -> RangeEntry:
    """An entry without a write that the host has done with, and without the host's own reads."""
    slot, write, reads = entry
    state = slot.find().state
    own = host_reads(state)
    if is_settled(state):
        state, write = state.without_write(), None
    views = tuple(view._replace(reads=_but(view.reads, own)) for view in state.views)
    return RangeEntry(Slot(intern(state.write, _but(state.reads, own), views)), write, _but(reads, own))


def _but(several: tuple[T, ...], positions: tuple[int, ...]) -> tuple[T, ...]:
    """All but those at some positions."""
    return tuple(each for at, each in enumerate(several) if at not in positions)
