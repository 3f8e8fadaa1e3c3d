"""The states of all ranges: slots that are shared, and what is forgotten once the host knows it to be complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from vkharness.spans import Span, subtract
from vkharness.syncval.completion import after_completion
from vkharness.syncval.entries import RangeEntry
from vkharness.syncval.host_knowledge import (
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
from vkharness.syncval.journal import Journal
from vkharness.syncval.places import PlaceTable
from vkharness.syncval.race import NEVER, BatchIndex
from vkharness.syncval.range_store import live, make_range_store
from vkharness.syncval.state import EMPTY, HOST_QUEUE, Change, State, intern
from vkharness.syncval.tokens import Tokens

T = TypeVar("T")
ALL_ADDRESSES: Span = (-1 << 126, 1 << 126)
NOTHING_KNOWN = RangeEntry(EMPTY, None, ())
"""Of a range that was never accessed."""


class TrackedRanges:
    """Which state each range of each address space has. `context` explains slots and retirement.

    Costs: an operation over everything is O(number of distinct states, of which at most `slots.AWAKE` count), one over
    a range O(k log n) for k ranges that it meets.
    """

    def __init__(self) -> None:
        self.learnt: HostKnowledge = NOTHING_MORE
        """Knowledge of the host that it gained since a batch waits."""
        self.era = 0
        """How often all batches that waited have gone on."""
        self.tokens = Tokens(1)
        """The tokens of events."""
        self._signaled: list[int] = []
        """The tokens on what the host read before it signaled."""
        self.defers = False
        """Whether something is to be forgotten when no batch waits any more."""
        self.store = make_range_store()
        """The entries of all ranges."""
        self.places = PlaceTable(self.store)
        """The batches whose accesses ranges may hold."""
        self.retired: Clock = self.places.retired
        self.journal = Journal(self.retired)
        self.remembers: Callable[[int], bool] = lambda space: False
        """Whether writes of a space may have to be remembered when they are complete."""
        self.must_remember: Callable[[int, State | None], bool] = lambda write, state: False
        """Whether a write of such a space must be remembered: its place number, and its state; None where that
        sleeps."""
        self.holds_back: Callable[[], bool] = lambda: False
        """Whether a batch waits for a signal or an event."""
        self._forget_at = 1024
        self._uncounted = 0
        """How often ranges were retired since they were last counted."""
        self.reads_are_over = False
        """Whether any read may be `over` in a state."""
        self._host_read = False
        """Whether the host read while a batch waited."""
        self._to_settle: list[tuple[int, Span]] = []
        """Ranges, by address space, that are settled or read by the host, but not forgotten while a batch waits."""

    @property
    def ranges(self) -> int:
        """How many ranges are tracked."""
        return self.store.ranges()

    def map_slots(self, change: Change) -> None:
        """Maps the state of every range; slots that come to hold one state are joined. Visits no range."""
        self.store.map(change)

    def retire(self, queue: int, tag: BatchIndex) -> None:
        """The host knows that what a queue was given up to this tag is complete: it no longer matters."""
        if tag > self.retired.get(queue, NEVER):
            self.places.retire(queue, tag)
            self._uncounted += 1
            if self._uncounted > self._forget_at >> 11:  # to count them may visit every space
                self._uncounted = 0
                if self.ranges > self._forget_at:
                    self.sweep_retired()
                    self._forget_at = max(1024, 2 * self.ranges)

    def _live(self, entry: RangeEntry, complete: Clock | None = None) -> RangeEntry:
        """The entry without what is retired, or is complete up to another clock."""
        if complete is None and not self.retired and not self.reads_are_over:
            return entry
        batches = map(self.places.batch, entry.places)
        clock = self.retired if complete is None else complete
        return live(entry, {each.number for each in batches if each.is_complete(clock)}, self.reads_are_over)

    def _as_host_knows(self, entry: RangeEntry) -> RangeEntry:
        """The entry as the host knows it now."""
        entry = self._live(entry)
        if not self.defers:
            return entry
        state, write, reads = self._live(entry, self.learnt.complete)
        state, reads = self.learnt.seen_by_host(state, reads)
        return _settled(RangeEntry(state, write, reads))

    @property
    def known_complete(self) -> Clock:
        """By queue, up to where the host knows all work to be complete now."""
        return later(self.retired, self.learnt.complete) if self.learnt.complete else self.retired

    def learn(self, knowledge: HostKnowledge) -> None:
        """The host learned something, and a batch waits that was submitted before."""
        self.learnt, self.defers = replace(knowledge, era=self.era), True

    def at_host_signal(self) -> HostKnowledge:
        """Returns knowledge that a signal by the host now hands on to those that do not have it from their submit."""
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
            for begin, end, entry in self.store.pieces(space, *span):
                settled = _settled(entry)
                if settled.places:
                    self.store.put(space, begin, end, settled)
                else:
                    self.store.erase(space, begin, end)
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

        def includes(number: int) -> bool:
            return self.places.batch(number).is_complete(known.complete)

        for space in self.store.spaces():
            for begin, end, held in self.store.pieces(space, *ALL_ADDRESSES):
                state, write, reads = entry = self._live(held)
                if not known.marks and not any(map(includes, entry.places)):
                    continue
                written, read = known.part(state, write, reads, includes)
                if written or read:
                    after = after_mark(state, token, viewer, written, read)
                    self.store.put(space, begin, end, entry._replace(state=after))

    def sweep_retired(self) -> None:
        """Forgets ranges whose accesses are all retired, but for writes that the host may have to see; bounds memory in
        long programs."""
        store = self.store
        for space in store.spaces():
            left, remembers = False, self.remembers(space)
            some = store.forget_over(space, not remembers)
            for begin, end, entry, sleeps in store.everything(space) if some else ():
                write = entry.write
                if all(map(store.is_finished, entry.places)) and (
                    write is None or not remembers or not self.must_remember(write, None if sleeps else entry.state)
                ):
                    store.erase(space, begin, end)
                    continue
                left = True
                if sleeps:  # nobody touches it: it stays as it is
                    continue
                state, _, reads = now = self._live(entry)
                done = state.write is None or state.write.done
                if not reads and done and (write is None or not remembers or not self.must_remember(write, state)):
                    store.erase(space, begin, end)
                elif now is not entry:
                    store.put(space, begin, end, now)
            if not left:
                store.drop(space)

    def unfinished(self, space: int, begin: int, end: int) -> Iterator[tuple[Span, RangeEntry]]:
        """Ranges of [begin, end) with accesses of the device that the host does not know to be complete."""
        for span, entry in self.known(space, begin, end):
            write = entry.state.write
            if write is not None and (write.done or write.queue == HOST_QUEUE):
                entry = entry._replace(write=None)
            if entry.write is not None or entry.reads:
                yield span, entry

    def known(self, space: int, begin: int, end: int) -> Iterator[tuple[Span, RangeEntry]]:
        """Ranges of [begin, end) with all that the host knows of them, complete or not."""
        for piece_begin, piece_end, entry in self.store.pieces(space, begin, end):
            yield (piece_begin, piece_end), self._as_host_knows(entry)

    def drop_writes(self, space: int, span: Span, which: Callable[[State, int], bool]) -> None:
        """Forgets the last writes of a range where `which` says so, by state and place number; reads since stay.
        While a batch waits that may not see them, they are settled for the host alone."""
        for begin, end, entry in self.store.pieces(space, *span):
            if self.holds_back():
                seen = self._as_host_knows(entry)
                if seen.write is not None and which(seen.state, seen.write):
                    self.store.assign(space, begin, end, entry._replace(state=after_settling(entry.state)))
                    self._to_settle.append((space, (begin, end)))
                    self.defers = True
                continue
            state, write, reads = self._live(entry)
            if write is None or not which(state, write):
                continue
            if reads:
                self.store.assign(space, begin, end, RangeEntry(state.without_write(), None, reads))
            else:
                self.store.erase(space, begin, end)

    def change(self, space: int, span: Span, rule: Callable[[State], State]) -> None:
        """Changes the states of a range."""
        for begin, end, entry in self.store.pieces(space, *span):
            after = rule(entry.state)
            if after is not entry.state:
                self.store.assign(space, begin, end, entry._replace(state=after))

    def update(self, space: int, span: Span, rule: Callable[[int, int, RangeEntry], RangeEntry]) -> None:
        """Replaces what is known of the ranges of a span, without what is retired, and of the gaps between."""
        at, end = span
        for low, high, entry in [*self.store.pieces(space, *span), (end, end, NOTHING_KNOWN)]:
            if at < low:
                self.store.assign(space, at, low, rule(at, low, NOTHING_KNOWN))
            if low < high:
                self.store.assign(space, low, high, rule(low, high, self._live(entry)))
            at = high

    def complete(self, token: int, viewer: int) -> None:
        """Marks accesses that a viewer gave a token as complete."""
        self.reads_are_over = True
        self.store.let_reads_be_over()
        self.map_slots(Change(("complete", token, viewer), lambda state: after_completion(state, token, viewer)))

    def finish(self, space: int, queue: int) -> None:
        """Forgets the accesses of a queue to an address space: they are complete, and nobody needs to see the writes.
        Used for the presentation engine."""
        for begin, end, (state, write, reads) in self.store.pieces(space, *ALL_ADDRESSES):
            done = tuple(at for at, read in enumerate(state.reads) if read.queue == queue)
            if done:
                state = state.without_reads(done)
                reads = tuple(read for at, read in enumerate(reads) if at not in done)
            if state.write is not None and state.write.queue == queue:
                state, write = state.without_write(), None
            if write is None and not reads:
                self.store.erase(space, begin, end)
            else:
                self.store.put(space, begin, end, RangeEntry(state, write, reads))

    def forget(self, space: int, span: Span | None, submitted: bool = False) -> None:
        """Erases the accesses of addresses that no longer exist; of a `span`, which other resources may get, not what
        was `submitted` and is not known to be complete.

        Rule: rules.md#destroyed-resources-take-their-accesses-along.
        """
        if span is not None:
            pending = [each for each, _ in self.unfinished(space, *span)] if submitted else []
            for begin, end in subtract([span], pending):
                self.store.erase(space, begin, end)
            for each in pending:
                self.drop_writes(space, each, lambda state, _: state.write is not None and state.write.done)
        if span is None or not self.store.has(space):
            self.store.drop(space)
            self.journal.forget(space)

    def _check(self) -> None:
        """Raises AssertionError when an invariant is broken."""
        self.store._check()
        for space in self.store.spaces():
            for *_, (state, write, reads), sleeps in self.store.everything(space):
                if not sleeps:
                    state._check()
                    assert (write is None) == (state.write is None), "a write without its place"
                    assert len(reads) == len(state.reads), "reads without their places"
                assert all(map(self.places.batch, (*reads, *(() if write is None else (write,))))), "no batch"


def _settled(entry: RangeEntry) -> RangeEntry:
    """An entry without a write that the host has done with, and without the host's own reads."""
    state, write, reads = entry
    own = host_reads(state)
    if is_settled(state):
        state, write = state.without_write(), None
    views = tuple(view._replace(reads=_but(view.reads, own)) for view in state.views)
    return RangeEntry(intern(state.write, _but(state.reads, own), views), write, _but(reads, own))


def _but(several: tuple[T, ...], positions: tuple[int, ...]) -> tuple[T, ...]:
    """All but those at some positions."""
    return tuple(each for at, each in enumerate(several) if at not in positions)
