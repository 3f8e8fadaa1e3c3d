"""The access states of all memory of a device, or of one command buffer while it is recorded.

Theory of operation
===================

`state` says what is known of one range. A context holds the states of all ranges, and has to answer three kinds of
operation quickly:

* **an access** touches a few ranges: look them up, replace their states;
* **a barrier over a buffer or an image** touches the ranges of that resource;
* **a global barrier, a semaphore, an event** concerns everything. A frame can hold 100,000 ranges and 1,000 such
  operations, so an operation over everything must not visit the ranges.

Slots
-----
What a barrier makes of a state depends on the state alone, not on the address. So a range does not hold its state. It
points to a `Slot`, and the slot holds the state; ranges with one state share one slot. An operation over everything
maps the slots, of which there are as many as there are distinct states: usually fewer than twenty.

Two slots may come to hold one state after a barrier. Then one of them is *joined* to the other, as in a union-find
structure: ranges that point to the joined slot find the other through it, and their paths are shortened as they do.

Who made an access, and when (its `Place`), takes no part in any rule. It stays with the range, in a `RangeEntry`
beside the pointer to the slot.

The exception
-------------
A wait for a semaphore covers what came before the signal. When the signalling queue has
submitted more work since, that newer work must not be covered. `journal` keeps a log of the recent accesses of each
queue: the ranges with newer work are found there, the slots are mapped as always, and these few ranges get back what
they had. When the log does not go back far enough, all ranges are visited.

Retirement
----------
When the host has waited for a batch, everything up to that batch is complete and conflicts with
no later work. Ranges are not visited then, either: `retired` says up to where each queue is complete, and a range is
brought up to date when it is next met (`_live`). A sweep drops retired ranges now and then, so that memory does not
grow with the program.

A worked example
----------------
A copy writes two buffers; a third range was cleared. The two copies share a slot:

>>> from harness.spec.masks import scope
>>> from harness.syncval.scope import expand
>>> from harness.trace.effects import Dependency
>>> def access(name, space):
...     return Access(ACCESS_KIND[f"SYNC_{name}"].index, space, ((0, 64),), resource=space)
>>> context, copy, clear = Context(queue=1), Place(1, "vkCmdCopyBuffer", None), Place(2, "vkCmdFillBuffer", None)
>>> for space in (10, 11):
...     hazards = context.apply(access("COPY_TRANSFER_WRITE", space), copy)
>>> hazards = context.apply(access("CLEAR_TRANSFER_WRITE", 12), clear)
>>> context.ranges, context.slots
(3, 2)

A global barrier maps two slots, whatever the number of ranges. The copies' bytes may be read now, the cleared ones
not:

>>> dependency = Dependency(*scope("COPY/TRANSFER_WRITE"), *scope("COPY/TRANSFER_READ"))
>>> context.barrier((expand(dependency, 0x7FFFFFFF),), [], Place(3, "vkCmdPipelineBarrier2", None))
>>> [len(context.apply(access("COPY_TRANSFER_READ", space), copy)) for space in (10, 11, 12)]
[0, 0, 1]

`_check()` verifies that ranges, slots and states agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from harness.findings import Hazard, Place
from harness.spans import Span, SpanMap
from harness.spec.scopes import ACCESS_KIND
from harness.syncval.access import AccessRequest, after_use, written_by_atomic
from harness.syncval.barrier import Scope, after_barrier
from harness.syncval.cross_dependency import kept_back
from harness.syncval.journal import Journal
from harness.syncval.layout_transition import after_transition
from harness.syncval.race import HOST_QUEUE, NO_UNSYNCHRONIZED, Tag, UnsynchronizedWith, race
from harness.syncval.race import NEVER as NEVER  # noqa: PLC0414
from harness.syncval.state import EMPTY, LAYOUT_TRANSITION, AccessOutcome, Change, State
from harness.syncval.tokens import Tokens
from harness.trace.effects import Access, Alias


class Slot:
    """Holds the state of every range that points here. Two slots that came to hold one state are joined."""

    __slots__ = ("joined", "state")

    def __init__(self, state: State) -> None:
        self.state = state
        self.joined: Slot | None = None

    def find(self) -> Slot:
        """The slot that this one was joined to, itself when it was not."""
        if self.joined is None:
            return self
        root = self.joined
        while root.joined is not None:
            root = root.joined
        at = self
        while at.joined is not None and at.joined is not root:
            at.joined, at = root, at.joined
        return root


class RangeEntry(NamedTuple):
    """What a range points to: the slot, and who made the accesses that its state holds (reads in the state's order)."""

    slot: Slot
    write: Place | None
    reads: tuple[Place, ...]


class DetectedHazard(NamedTuple):
    """A hazard on some addresses: its kind, the access that conflicts and the earlier one that it conflicts with."""

    hazard: Hazard
    span: Span
    access_kind: int
    prior: Place
    prior_access_kind: int
    state: State
    resource: int
    viewer: int = 0
    missing: str = ""
    """What would prevent it, where that does not follow from the two accesses."""
    through: int = 0
    """The resource by which the access came, when it is an alias of `resource`."""


class RangeScope(NamedTuple):
    """One dependency over one span of a space; `moved` when it transitions an image's layout there, or does something
    else that counts as a write: `access_kind`."""

    space: int
    span: Span
    scope: Scope
    moved: bool
    access_kind: int = LAYOUT_TRANSITION


class ScopesOnRange(NamedTuple):
    """Every scope of one command that covers some addresses, and whether (and as what) any of them writes them."""

    scopes: tuple[Scope, ...]
    moved: bool
    access_kind: int


class RangePiece(NamedTuple):
    """Addresses with one state, before a synchronization command, and what of the command covers them."""

    space: int
    span: Span
    entry: RangeEntry | None
    state: State
    cover: ScopesOnRange


class Context:
    """Access states of a device, seen by one viewer at a time. While recording, `queue` and `viewer` are 0.

    Costs: an access is O(k log n) for k ranges that it meets (O(1) when it meets exactly one), an operation over
    everything O(number of distinct states), one over a range O(k log n) more.
    """

    def __init__(self, queue: int = 0) -> None:
        self.queue = queue
        self.viewer = queue
        self.rivals: UnsynchronizedWith = NO_UNSYNCHRONIZED
        """Whose accesses race with those of the current viewer."""
        self.retired: dict[int, Tag] = {}
        """By queue: what was submitted up to this tag is known by the host to be complete."""
        self.journal = Journal(self.retired)
        self.host_mark: Callable[[bool], int] = lambda everywhere: 0
        """The token of dependencies that make writes visible to the host now: everywhere, or in some ranges."""
        self.kept: Callable[[int, State, Place], bool] = lambda space, state, place: False
        """Whether a write that is complete must be remembered: its space, its state and who made it."""
        self.tokens = Tokens(1)
        """Those of events."""
        self._maps: dict[int, SpanMap[RangeEntry]] = {}
        self._slots: dict[State, Slot] = {}
        self._uses: dict[tuple[int | bool, ...], AccessRequest] = {}
        self._sweep_at = 64
        self._forget_at = 1024

    @property
    def ranges(self) -> int:
        """How many ranges are tracked."""
        return sum(len(held) for held in self._maps.values())

    @property
    def slots(self) -> int:
        """How many distinct states are held."""
        return len(self._slots)

    # -- accesses ---------------------------------------------------------------------------------------------------

    def use(self, access: Access) -> AccessRequest:
        """An access by the current viewer, as the rules see it: one object for equal ones."""
        key = (
            access.access_kind, self.queue, self.viewer, access.atomic, access.order, access.operation, access.marker,
        )  # fmt: skip
        use = self._uses.get(key)
        if use is None:
            use = self._uses[key] = AccessRequest(*key[:4], int(access.order), int(access.operation), access.marker)
        return use

    def check(self, access: Access) -> Iterator[DetectedHazard]:
        """The hazards that an access meets; nothing changes."""
        held = self._maps.get(access.space)
        if held is None:
            return
        use = self.use(access)
        for begin, end in access.spans:
            for piece_begin, piece_end, entry in _pieces(held, begin, end):
                live = self._live(entry)
                outcome = after_use(live.slot.find().state, use)
                if outcome.hazard or self.rivals is not NO_UNSYNCHRONIZED:
                    yield from self._hits((piece_begin, piece_end), live, access, outcome)

    def through_aliases(self, access: Access) -> Iterator[DetectedHazard]:
        """The hazards that an access meets at other addresses of the same memory."""
        for alias in access.aliases:
            there = replace(access, space=alias.space, spans=alias.spans, resource=alias.resource)
            yield from self.told(alias, access.resource, list(self.check(there)))

    def told(self, alias: Alias, through: int, hits: list[DetectedHazard]) -> Iterator[DetectedHazard]:
        """Hazards met through an alias. What they are with is forgotten, so that each is told once: it stands at
        addresses that the access does not overwrite."""
        for hit in hits:
            self.forget(alias.space, hit.span)
            yield hit._replace(through=through)

    def _hits(self, span: Span, entry: RangeEntry, access: Access, outcome: AccessOutcome) -> Iterator[DetectedHazard]:
        if self.rivals is not NO_UNSYNCHRONIZED:
            raced = race(entry.slot.find().state, entry.write, entry.reads, access.access_kind, self.rivals)
            if raced is not None:
                yield self._hit(raced[0], raced[1], span, access, entry)
                return
        if outcome.hazard:
            yield self._hit(outcome.hazard, outcome.prior, span, access, entry)

    def apply(self, access: Access, place: Place, beside: bool = False) -> list[DetectedHazard]:
        """Makes an access the most recent one of its addresses; answers with the hazards that it meets there. One that
        is `beside` reads what its own command has just written: that is none."""
        held = self._maps.get(access.space)
        if held is None:
            held = self._maps[access.space] = SpanMap()
        use = self.use(access)._replace(beside=True) if beside else self.use(access)
        if self.journal.on:
            self.journal.add(self.queue, place, access.space, access.spans)
        hits: list[DetectedHazard] = []
        for begin, end in access.spans:
            entry = held.exact(begin, end)
            if entry is not None:
                held.set_exact(begin, end, self._after(entry, (begin, end), access, use, place, hits))
            else:
                held.update(
                    begin,
                    end,
                    lambda low, high, entry: self._after(entry or _NEVER, (low, high), access, use, place, hits),
                )
        return hits

    def _after(
        self,
        entry: RangeEntry,
        span: Span,
        access: Access,
        use: AccessRequest,
        place: Place,
        hits: list[DetectedHazard],
    ) -> RangeEntry:
        """What a range points to after an access, whose hazards there are added to `hits`."""
        if self.retired:
            entry = self._live(entry)
        slot, write, reads = entry
        state = slot.state if slot.joined is None else slot.find().state
        hazard, _, after, position = outcome = state.made.get(use) or after_use(state, use)
        if hazard or self.rivals is not NO_UNSYNCHRONIZED:
            hits.extend(self._hits(span, entry, access, outcome))
        slot = self._slots.get(after) or self._slot(after)
        if position < 0:
            return RangeEntry(slot, place, ())
        alone = position == 0 and len(reads) < 2
        return RangeEntry(slot, write, (place,) if alone else (*reads[:position], place, *reads[position + 1 :]))

    def _hit(self, hazard: Hazard, prior: int, span: Span, access: Access, entry: RangeEntry) -> DetectedHazard:
        state = entry.slot.find().state
        if prior < 0:
            assert entry.write is not None and state.write is not None
            prior_place, prior_access_kind, access_kind = entry.write, state.write.access_kind, access.access_kind
        else:
            # What conflicts with a read is the writing half of an atomic.
            access_kind = written_by_atomic(access.access_kind) if access.atomic else access.access_kind
            prior_place, prior_access_kind = entry.reads[prior], state.reads[prior].access_kind
        return DetectedHazard(
            hazard, span, access_kind, prior_place, prior_access_kind, state, access.resource, self.viewer
        )

    # -- barriers ---------------------------------------------------------------------------------------------------

    def check_transition(
        self,
        space: int,
        spans: Iterable[Span],
        scopes: tuple[Scope, ...],
        resource: int,
        access_kind: int = LAYOUT_TRANSITION,
    ) -> Iterator[DetectedHazard]:
        """The hazards that a layout transition (or what else `access_kind` is) between these scopes meets; nothing
        changes."""
        held = self._maps.get(space)
        if held is None:
            return
        access = Access(access_kind, space, (), resource)
        for begin, end in spans:
            for piece_begin, piece_end, entry in _pieces(held, begin, end):
                entry = self._live(entry)
                state = entry.slot.find().state
                raced = None
                if self.rivals is not NO_UNSYNCHRONIZED:
                    raced = race(state, entry.write, entry.reads, access_kind, self.rivals)
                outcome = after_transition(state, scopes, self.queue, self.viewer, access_kind)
                hazard, prior = raced or (outcome.hazard, outcome.prior)
                if hazard:
                    yield self._hit(hazard, prior, (piece_begin, piece_end), access, entry)

    def barrier(self, everything: tuple[Scope, ...], ranges: list[RangeScope], place: Place) -> None:
        """Applies one synchronization command: dependencies over everything, and over ranges. All are held against
        the states as they were before the command."""
        everything = tuple(map(self.marked, everything))
        pieces = self._gather(ranges) if ranges else []
        if everything:
            viewer = self.viewer
            self.map_slots(Change((everything, viewer), lambda state: after_barrier(state, everything, viewer)))
        cover: ScopesOnRange | None = None
        for piece in pieces:
            space, (begin, end), entry, state, now = piece
            if entry is None or now.moved:
                self._settle(piece, everything, place)
                continue
            if now is not cover:
                cover, scopes = now, now.scopes + everything
                slots: dict[State, Slot] = {}  # what ranges with one state before point to now
            slot = slots.get(state)
            if slot is None:
                slot = slots[state] = self._slot(after_barrier(state, scopes, self.viewer))
            self._maps[space].put(begin, end, RangeEntry(slot, entry.write, entry.reads))

    def marked(self, scope: Scope, everywhere: bool = True) -> Scope:
        """A scope that says of what it makes visible to the host when that is; others are as they were."""
        if not scope.dst_accesses & HOST_READ_BIT or not (scope.src_stages or scope.event):
            return scope
        return scope._replace(host=self.host_mark(everywhere and not scope.event))

    def map_slots(self, change: Callable[[State], State]) -> None:
        """Maps the state of every range; slots that come to hold one state are joined. Visits no range."""
        mapped: dict[State, Slot] = {}
        for state, slot in self._slots.items():
            after = change(state)
            other = mapped.get(after)
            if other is None:
                slot.state = after
                mapped[after] = slot
            else:
                slot.joined = other
        self._slots = mapped
        if len(self._slots) > self._sweep_at:
            self._sweep()

    def map_before(self, change: Callable[[State], State], reach: Mapping[int, Tag], queues: Iterable[int]) -> None:
        """Maps the state of every range, as it would be without the accesses of some queues beyond `reach` (tags)."""
        found = self.journal.late(self._maps, reach, queues)
        late = [(each, each.entry.slot.find().state) for each in found]
        self.map_slots(change)
        for (held, begin, end, entry, write, reads), state in late:
            after = kept_back(state, change(state), self.viewer, write, reads)
            held.put(begin, end, entry._replace(slot=self._slot(after)))

    def _gather(self, ranges: list[RangeScope]) -> list[RangePiece]:
        """The pieces that barriers over ranges touch, each with every scope that covers it. A gap counts only when
        its layout is transitioned: a barrier over memory that was never accessed changes nothing."""
        if len(ranges) == 1:
            space, span, scope, moved, access_kind = ranges[0]
            return list(self._split(space, *span, ScopesOnRange((self.marked(scope, False),), moved, access_kind)))
        by_space: dict[int, SpanMap[ScopesOnRange]] = {}
        for each in ranges:

            def add(_begin: int, _end: int, known: ScopesOnRange | None, each: RangeScope = each) -> ScopesOnRange:
                # A plain barrier acts on what a transition beside it replaces, not on the transition.
                scope = self.marked(each.scope, False)
                if known is None or (each.moved and not known.moved):
                    return ScopesOnRange((scope,), each.moved, each.access_kind)
                return known._replace(scopes=(*known.scopes, scope)) if each.moved == known.moved else known

            by_space.setdefault(each.space, SpanMap()).update(*each.span, add)
        return [
            piece
            for space, covers in by_space.items()
            for begin, end, cover in covers
            for piece in self._split(space, begin, end, cover)
        ]

    def _split(self, space: int, begin: int, end: int, cover: ScopesOnRange) -> Iterator[RangePiece]:
        held = self._maps.get(space)
        if held is None:
            held = self._maps[space] = SpanMap()
        at = begin
        for piece_begin, piece_end, entry in _pieces(held, begin, end):
            if cover.moved and piece_begin > at:
                yield RangePiece(space, (at, piece_begin), None, EMPTY, cover)
            live = self._live(entry)
            yield RangePiece(space, (piece_begin, piece_end), live, live.slot.find().state, cover)
            at = piece_end
        if cover.moved and at < end:
            yield RangePiece(space, (at, end), None, EMPTY, cover)

    def _settle(self, piece: RangePiece, everything: tuple[Scope, ...], place: Place) -> None:
        """A transition of one piece is a new write; nothing that was known of the range before it remains."""
        space, (begin, end), _, state, (scopes, _, access_kind) = piece
        outcome = after_transition(state, scopes, self.queue, self.viewer, access_kind)
        if self.journal.on:
            self.journal.add(self.queue, place, space, (piece.span,))
        self._maps[space].put(begin, end, RangeEntry(self._slot(outcome.state), place, ()))

    def _slot(self, state: State) -> Slot:
        slot = self._slots.get(state)
        if slot is None:
            slot = self._slots[state] = Slot(state)
        return slot

    def _sweep(self) -> None:
        """Drops slots that no range points to. Visits every range, but only after the slots have doubled."""
        used: dict[State, Slot] = {}
        for held in self._maps.values():
            for _, _, entry in held:
                slot = entry.slot.find()
                used[slot.state] = slot
        self._slots = used
        self._sweep_at = max(64, 2 * len(used))

    # -- what the host knows to be complete ---------------------------------------------------------------------------

    def retire(self, queue: int, tag: Tag) -> None:
        """The host knows that what a queue was given up to this tag is complete: it no longer matters."""
        if tag > self.retired.get(queue, NEVER):
            self.retired[queue] = tag
            if self.ranges > self._forget_at:
                self.sweep_retired()
                self._forget_at = max(1024, 2 * self.ranges)

    def _live(self, entry: RangeEntry) -> RangeEntry:
        """The entry without what is retired. This runs for each range that an access meets: `tag_of` is written out."""
        retired = self.retired
        if not retired:
            return entry
        slot, write, reads = entry
        done = [
            at for at, read in enumerate(reads) if (read.submit or 0, read.batch) <= retired.get(read.queue or 0, NEVER)
        ]
        before = slot.find().state
        if done:
            # A read that is complete happened after the write that it did not conflict with.
            after = before.without_reads(tuple(done))
            reads = tuple(read for at, read in enumerate(reads) if at not in done)
        elif write is not None and (write.submit or 0, write.batch) <= retired.get(write.queue or 0, NEVER):
            after = before.finished()
        else:
            return entry
        return entry if after is before else RangeEntry(Slot(after), write, reads)

    def sweep_retired(self) -> None:
        """Forgets ranges whose accesses are all retired, but for writes that the host may have to see; bounds memory in
        long programs."""
        for space in list(self._maps):
            held = self._maps[space]
            for begin, end, entry in list(held):
                live = self._live(entry)
                state, write = live.slot.find().state, live.write
                done = state.write is None or write is None or state.write.done
                if not live.reads and done and not (write and self.kept(space, state, write)):
                    held.erase(begin, end)
                elif live is not entry:
                    held.set_exact(begin, end, live._replace(slot=self._slot(state)))
            if not len(held):
                del self._maps[space]
        self._sweep()

    def unfinished(self, space: int, begin: int, end: int) -> Iterator[tuple[Span, RangeEntry]]:
        """Ranges of [begin, end) with accesses of the device that the host does not know to be complete."""
        for span, entry in self.known(space, begin, end):
            write = entry.slot.find().state.write
            if write is not None and (write.done or write.queue == HOST_QUEUE):
                entry = entry._replace(write=None)
            if entry.write is not None or entry.reads:
                yield span, entry

    def known(self, space: int, begin: int, end: int) -> Iterator[tuple[Span, RangeEntry]]:
        """Ranges of [begin, end) with all that is known of them, complete or not."""
        held = self._maps.get(space)
        for piece_begin, piece_end, entry in held.pieces(begin, end) if held is not None else ():
            yield (piece_begin, piece_end), self._live(entry)

    def drop_writes(self, space: int, span: Span, which: Callable[[State, Place], bool]) -> None:
        """Forgets the last writes of a range where `which` says so; reads since stay."""
        held = self._maps.get(space)
        for begin, end, entry in held.pieces(*span) if held is not None else ():
            live = self._live(entry)
            state = live.slot.find().state
            if held is None or live.write is None or not which(state, live.write):
                continue
            if live.reads:
                held.assign(begin, end, RangeEntry(self._slot(state.without_write()), None, live.reads))
            else:
                held.erase(begin, end)

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
                held.set_exact(begin, end, RangeEntry(self._slot(state), write, reads))

    def forget(self, space: int, span: Span | None) -> None:
        """Erases the accesses of addresses that no longer exist."""
        held = self._maps.get(space)
        if held is not None and span is not None:
            held.erase(*span)
        if span is None or not held:
            self._maps.pop(space, None)
            self.journal.forget(space)

    def _check(self) -> None:
        """Raises AssertionError when an invariant is broken."""
        for held in self._maps.values():
            held._check()
            for _, _, entry in held:
                slot = entry.slot.find()
                slot.state._check()
                assert self._slots.get(slot.state) is slot, "a range points to a slot that barriers do not reach"
                assert (entry.write is None) == (slot.state.write is None), "a write without its place"
                assert len(entry.reads) == len(slot.state.reads), "reads without their places"


HOST_READ_BIT = 1 << ACCESS_KIND["SYNC_HOST_HOST_READ"].index
_NEVER = RangeEntry(Slot(EMPTY), None, ())


def _pieces(held: SpanMap[RangeEntry], begin: int, end: int) -> list[tuple[int, int, RangeEntry]]:
    entry = held.exact(begin, end)
    return [(begin, end, entry)] if entry is not None else held.pieces(begin, end)
