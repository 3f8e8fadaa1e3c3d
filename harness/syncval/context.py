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
points to a `Slot`, and the slot holds the state; ranges with one state share one slot. An operation over everything is
a *change*: it maps the slots, of which there are as many as there are distinct states: usually fewer than twenty.

Two slots may come to hold one state after a barrier. Then one of them is *joined* to the other, as in a union-find
structure: ranges that point to the joined slot find the other through it, and their paths are shortened as they do.

Who made an access, and when (its `Place`), takes no part in any rule. It stays with the range, in a `RangeEntry`
beside the pointer to the slot.

Sleep
-----
A program that keeps what it made, and waits seldom, leaves more and more states behind: of resources that nobody
touches again. A change would map all of them, for ever. So at most `slots.AWAKE` slots are mapped at once. The others,
those that came first, are *asleep*: their states stay as they were, and the changes that they miss are kept in a list.
When an access meets a range whose slot sleeps, the slot *wakes*: what it missed is applied, in order, each change by
one look-up where its state has met that change before. A change is a function of the state alone, so that it makes no
difference when it is applied, and a state that is never asked for is never worked out.

A slot that is in use and goes to sleep wakes at its next access, and is then the last to sleep again. So a program with
many states in use pays for those that it meets what it would have paid anyway.

The list of changes would grow for ever, too. Now and then the slots that have slept longest are brought forward
together, joined where they come to hold one state, and the changes that nobody misses any more are dropped. The changes
since the last time pay for it, a fixed number of steps each. A program that repeats itself keeps few changes. In one
whose states never repeat, the list grows by a machine word a change.

Nothing may ask all states something, then. What used to is known otherwise: which ranges the host read or settled while
a batch waited (`settle_later`), and that reads are over which only a token tells of: these stay in the state, marked
`over`, until their range is met.

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
grow with the program. It wakes no slot: whether the host may still have to see a write is known of those awake alone.

A worked example
----------------
A copy writes two buffers; a third range was cleared. The two copies share a slot:

>>> from harness.spec.masks import scope
>>> from harness.syncval.barrier import expand
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

`_check()` verifies that ranges, slots and states agree, and that every change reaches every slot: at once, or when
it wakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from harness.findings import Certainty, Hazard, Place, weaker
from harness.spans import Span, SpanMap
from harness.spec.scopes import ACCESS_KIND
from harness.syncval.access import AccessRequest, after_access, after_instance, written_by_atomic
from harness.syncval.barrier import Scope, after_barrier
from harness.syncval.cross_dependency import withheld
from harness.syncval.entries import DetectedHazard, RangeEntry, RangeScope, ScopesOnRange
from harness.syncval.layout_transition import Sources, after_transition, shown_as_well, shown_to, transition_hazard
from harness.syncval.race import NO_RACING_WORK, BatchIndex, RacingWork, race
from harness.syncval.slots import Slot
from harness.syncval.state import EMPTY, LAYOUT_TRANSITION, AccessOutcome, Change, State
from harness.syncval.tracked_ranges import TrackedRanges
from harness.trace.effects import Access, Alias


class Context(TrackedRanges):
    """Access states of a device, seen by one viewer at a time. While recording, `queue` and `viewer` are 0.

    Costs: an access is O(k log n) for k ranges that it meets (O(1) when it meets exactly one), an operation over
    everything O(number of distinct states, of which at most `slots.AWAKE` count), one over a range O(k log n) more. The
    first access of a range whose slot sleeps is O(changes since) more.
    """

    def __init__(self, queue: int = 0) -> None:
        super().__init__()
        self.queue = queue
        self.viewer = queue
        self.racing: RacingWork = NO_RACING_WORK
        """Whose accesses race with those of the current viewer."""
        self.host_token: Callable[[bool, bool], int] = lambda everywhere, reads: 0
        """The token of dependencies that make writes available to the host now: everywhere, or in some ranges; and
        visible to its reads, or not."""
        self._requests: dict[tuple[int | bool | Certainty, ...], AccessRequest] = {}
        self._closed: set[int] = set()
        """The queues of which no access is `open` while no render pass instance goes on."""

    # -- accesses ---------------------------------------------------------------------------------------------------

    def request(self, access: Access) -> AccessRequest:
        """An access by the current viewer, as the rules see it: one object for equal ones."""
        key = (
            access.access_kind, self.queue, self.viewer, access.atomic, access.order, access.operation, access.marker,
            access.certainty,
        )  # fmt: skip
        request = self._requests.get(key)
        if request is None:
            request = self._requests[key] = AccessRequest(
                *key[:4], int(access.order), int(access.operation), access.marker, access.certainty
            )
        return request

    def check(self, access: Access) -> Iterator[DetectedHazard]:
        """The hazards that an access meets; nothing changes."""
        held = self._maps.get(access.space)
        if held is None:
            return
        request = self.request(access)
        for begin, end in access.spans:
            for piece_begin, piece_end, entry in _pieces(held, begin, end):
                live = self._live(entry)
                outcome = after_access(live.slot.find().state, request)
                if outcome.hazard or self.racing is not NO_RACING_WORK:
                    yield from self._hazards((piece_begin, piece_end), live, access, outcome)

    def through_aliases(self, access: Access) -> Iterator[DetectedHazard]:
        """The hazards that an access meets at other addresses of the same memory."""
        for alias in access.aliases:
            there = replace(access, space=alias.space, spans=alias.spans, resource=alias.resource)
            yield from self.report_alias_hazards(alias, access.resource, list(self.check(there)))

    def report_alias_hazards(
        self, alias: Alias, through: int, hazards: list[DetectedHazard]
    ) -> Iterator[DetectedHazard]:
        """Hazards met through an alias.

        The earlier access is dropped after it is reported. It lies at other addresses of the same memory, which this
        access never overwrites, so that it would be reported again and again.
        Rule: rules.md#an-image-overlaps-all-of-its-memory.
        """
        for detected in hazards:
            self.forget(alias.space, detected.span)
            yield detected._replace(through=through)

    def _hazards(
        self, span: Span, entry: RangeEntry, access: Access, outcome: AccessOutcome
    ) -> Iterator[DetectedHazard]:
        if self.racing is not NO_RACING_WORK:
            raced = race(entry.slot.find().state, entry.write, entry.reads, access.access_kind, self.racing, access)
            if raced is not None:
                yield self._detected(raced[0], raced[1], span, access, entry)
                return
        if outcome.hazard:
            yield self._detected(outcome.hazard, outcome.prior, span, access, entry)

    def apply(self, access: Access, place: Place, same_command: bool = False) -> list[DetectedHazard]:
        """Makes an access the most recent one of its addresses, and returns the hazards that it meets there.

        `same_command` marks a read of what its own command has just written, which is no hazard.
        """
        held = self._maps.get(access.space)
        if held is None:
            held = self._maps[access.space] = SpanMap()
        request = self.request(access)._replace(same_command=True) if same_command else self.request(access)
        if self.journal.on:
            self.journal.add(self.queue, place, access.space, access.spans)
        hazards: list[DetectedHazard] = []
        for begin, end in access.spans:
            entry = held.exact(begin, end)
            if entry is not None:
                held.set_exact(begin, end, self._after(entry, (begin, end), access, request, place, hazards))
            else:
                held.update(
                    begin,
                    end,
                    lambda low, high, entry: self._after(entry or _NEVER, (low, high), access, request, place, hazards),
                )
        return hazards

    def _after(
        self,
        entry: RangeEntry,
        span: Span,
        access: Access,
        request: AccessRequest,
        place: Place,
        hazards: list[DetectedHazard],
    ) -> RangeEntry:
        """What a range points to after an access, whose hazards there are added to `hazards`."""
        if self.retired or self.reads_are_over:
            entry = self._live(entry)
        slot, write, reads = entry
        state = slot.state if slot.elsewhere is None else slot.find().state
        hazard, _, after, position, gone = outcome = state.results.get(request) or after_access(state, request)
        if hazard or self.racing is not NO_RACING_WORK:
            hazards.extend(self._hazards(span, entry, access, outcome))
        slot = self._slots.awake.get(after) or self._slots.get(after)
        if position < 0:
            return _new(RangeEntry, (slot, place, ()))
        if gone:
            reads = tuple(each for at, each in enumerate(reads) if at not in gone)
        alone = position == 0 and len(reads) < 2
        now = (place,) if alone else (*reads[:position], place, *reads[position + 1 :])
        return _new(RangeEntry, (slot, write, now))

    def _detected(self, hazard: Hazard, prior: int, span: Span, access: Access, entry: RangeEntry) -> DetectedHazard:
        state = entry.slot.find().state
        if prior < 0:
            assert entry.write is not None and state.write is not None
            prior_place, prior_access_kind, access_kind = entry.write, state.write.access_kind, access.access_kind
            certainty = state.write.certainty
        else:
            # What conflicts with a read is the writing half of an atomic.
            access_kind = written_by_atomic(access.access_kind) if access.atomic else access.access_kind
            prior_place, prior_access_kind = entry.reads[prior], state.reads[prior].access_kind
            certainty = state.reads[prior].certainty
        return DetectedHazard(
            hazard,
            span,
            access_kind,
            prior_place,
            prior_access_kind,
            state,
            access.resource,
            self.viewer,
            certainty=weaker(certainty, access.certainty),
        )

    def begin_instance(self, of_render_pass: bool) -> None:
        """A render pass instance begins: accesses of earlier ones of this queue are in order with none of its own.

        The end of a render pass has seen to that (`after_render_pass`); only dynamic rendering leaves it to the next.
        """
        queue = self.queue
        if of_render_pass and queue in self._closed:
            return
        self.map_slots(Change(("instance", queue), lambda state: after_instance(state, queue)))
        if of_render_pass:
            self._closed.add(queue)
        else:
            self._closed.discard(queue)

    # -- barriers ---------------------------------------------------------------------------------------------------

    def check_transition(
        self, space: int, spans: Iterable[Span], sources: Sources, resource: int, access_kind: int = LAYOUT_TRANSITION
    ) -> Iterator[DetectedHazard]:
        """The hazards that a layout transition (or what else `access_kind` is) after these dependencies meets; nothing
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
                if self.racing is not NO_RACING_WORK:
                    raced = race(state, entry.write, entry.reads, access_kind, self.racing)
                hazard, prior = raced or transition_hazard(state, sources, self.queue, access_kind)
                if hazard:
                    yield self._detected(hazard, prior, (piece_begin, piece_end), access, entry)

    def barrier(self, everything: tuple[Scope, ...], ranges: list[RangeScope], place: Place) -> None:
        """Applies one synchronization command: dependencies over everything, and over ranges.

        All of them apply to the states as they were before the command.
        """
        everything = tuple(map(self.with_host_token, everything))
        met = [(*each, self._met(*each[:3])) for each in self._covers(ranges)] if ranges else ()
        if everything:
            viewer = self.viewer
            self.map_slots(Change((everything, viewer), lambda state: after_barrier(state, everything, viewer)))
        for space, begin, end, cover, pieces in met:
            if cover.moved:
                self._transition(space, (begin, end), pieces, cover, place)
            elif pieces:
                scopes, put = cover.scopes + everything, self._maps[space].put
                slots: dict[State, Slot] = {}  # what ranges with one state before point to now
                for low, high, (_, write, reads), state in pieces:
                    slot = slots.get(state)
                    if slot is None:
                        slot = slots[state] = self._slots.get(after_barrier(state, scopes, self.viewer))
                    put(low, high, _new(RangeEntry, (slot, write, reads)))

    def show_transition(
        self, space: int, spans: Iterable[Span], maker: int, receivers: Sources, anew: bool = True
    ) -> None:
        """Lets other viewers than the current one assume something of a transition that was just made, or (without
        `anew`) that `maker` made and nothing has written over."""
        held = self._maps[space]
        for begin, end in spans:
            for low, high, entry in _pieces(held, begin, end):
                state = entry.slot.find().state
                state = shown_to(state, maker, receivers) if anew else shown_as_well(state, maker, receivers)
                held.put(low, high, RangeEntry(self._slots.get(state), entry.write, entry.reads))

    def with_host_token(self, scope: Scope, everywhere: bool = True) -> Scope:
        """The scope with the token of the current batch, when it makes writes available to the host; else unchanged."""
        if not scope.dst_accesses & HOST_ACCESSES:
            return scope
        reads = bool(scope.dst_accesses & HOST_READ_BIT)
        return scope._replace(host=self.host_token(everywhere and not scope.event, reads))

    def map_before(self, change: Change, clock: Mapping[int, BatchIndex], queues: Iterable[int]) -> None:
        """Maps the state of every range, as it would be without the accesses of some queues beyond `clock` (tags)."""
        found = self.journal.late(self._maps, clock, queues)
        late = [(each, each.entry.slot.find().state) for each in found]
        self.map_slots(change)
        for (held, begin, end, entry, write, reads), state in late:
            after = withheld(state, change(state), self.viewer, write, reads)
            held.put(begin, end, entry._replace(slot=self._slots.get(after)))

    def _covers(self, ranges: list[RangeScope]) -> list[tuple[int, int, int, ScopesOnRange]]:
        """(space, begin, end) of addresses that barriers over ranges cover, each with every scope that covers it.
        Rule: rules.md#a-ranged-barrier-covers-its-range.
        """
        if len(ranges) == 1:
            space, (begin, end), scope, moved, access_kind = ranges[0]
            return [(space, begin, end, ScopesOnRange((self.with_host_token(scope, False),), moved, access_kind))]
        by_space: dict[int, SpanMap[ScopesOnRange]] = {}
        for each in ranges:

            def add(_begin: int, _end: int, known: ScopesOnRange | None, each: RangeScope = each) -> ScopesOnRange:
                # A plain barrier acts on what a transition beside it replaces, not on the transition.
                scope = self.with_host_token(each.scope, False)
                if known is None or (each.moved and not known.moved):
                    return ScopesOnRange((scope,), each.moved, each.access_kind)
                return known._replace(scopes=(*known.scopes, scope)) if each.moved == known.moved else known

            by_space.setdefault(each.space, SpanMap()).update(*each.span, add)
        return [(space, *span_and_cover) for space, covers in by_space.items() for span_and_cover in covers]

    def _met(self, space: int, begin: int, end: int) -> list[tuple[int, int, RangeEntry, State]]:
        """The tracked ranges of [begin, end) with their states before a synchronization command. A barrier over memory
        that was never accessed changes nothing."""
        held = self._maps.get(space)
        found = []
        for low, high, entry in _pieces(held, begin, end) if held is not None else ():
            entry = self._live(entry)
            found.append((low, high, entry, entry[0].find().state))
        return found

    def _transition(
        self,
        space: int,
        span: Span,
        pieces: list[tuple[int, int, RangeEntry, State]],
        cover: ScopesOnRange,
        place: Place,
    ) -> None:
        """A transition is a new write of all its addresses, also of those that were never accessed; nothing that was
        known of them before remains."""
        at, end = span
        spans = []
        for low, high, _, _ in pieces:
            if low > at:
                spans.append((at, low))
            spans.append((low, high))
            at = high
        if at < end:
            spans.append((at, end))
        held = self._maps.setdefault(space, SpanMap())
        slot = self._slots.get(after_transition(cover.scopes, self.queue, self.viewer, cover.access_kind))
        for begin, end in spans:
            if self.journal.on:
                self.journal.add(self.queue, place, space, ((begin, end),))
            held.put(begin, end, RangeEntry(slot, place, ()))


HOST_READ_BIT = 1 << ACCESS_KIND["SYNC_HOST_HOST_READ"].index
HOST_ACCESSES = HOST_READ_BIT | 1 << ACCESS_KIND["SYNC_HOST_HOST_WRITE"].index
_NEVER = RangeEntry(Slot(EMPTY), None, ())
_new = tuple.__new__
"""Makes a `RangeEntry` in half the time, where one is made for each access and each range of a barrier."""


def _pieces(held: SpanMap[RangeEntry], begin: int, end: int) -> list[tuple[int, int, RangeEntry]]:
    entry = held.exact(begin, end)
    return [(begin, end, entry)] if entry is not None else held.pieces(begin, end)
