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

A slot to which no range points goes with the next operation over everything.

Two slots may come to hold one state after a barrier. Then one of them is *joined* to the other, as in a union-find
structure: ranges that point to the joined slot find the other through it, and their paths are shortened as they do.

Who made an access, and when, takes no part in any rule. It stays with the range as a number, in a `RangeEntry` beside
the pointer to the slot. `places` makes a `Place` of it for a finding.

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

>>> from vkharness.findings import Place
>>> from vkharness.spec.masks import scope
>>> from vkharness.spec.scopes import ACCESS_KIND
>>> from vkharness.syncval.barrier import expand
>>> from vkharness.trace.effects import Dependency
>>> def access(name, space):
...     return Access(ACCESS_KIND[f"SYNC_{name}"].index, space, ((0, 64),), resource=space)
>>> context = Context(queue=1)
>>> copy = context.places.single(Place(1, "vkCmdCopyBuffer", None))
>>> clear = context.places.single(Place(2, "vkCmdFillBuffer", None))
>>> for space in (10, 11):
...     hazards = context.apply(access("COPY_TRANSFER_WRITE", space), copy)
>>> hazards = context.apply(access("CLEAR_TRANSFER_WRITE", 12), clear)
>>> context.ranges, context.store.sizes().awake
(3, 2)

A global barrier maps two slots, whatever the number of ranges. The copies' bytes may be read now, the cleared ones
not:

>>> dependency = Dependency(*scope("COPY/TRANSFER_WRITE"), *scope("COPY/TRANSFER_READ"))
>>> barrier = context.places.single(Place(3, "vkCmdPipelineBarrier2", None))
>>> context.barrier((expand(dependency, 0x7FFFFFFF),), [], barrier)
>>> [len(context.apply(access("COPY_TRANSFER_READ", space), copy)) for space in (10, 11, 12)]
[0, 0, 1]

`_check()` verifies that ranges, slots and states agree, and that every change reaches every slot: at once, or when
it wakes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from vkharness.findings import Certainty, Hazard, weaker
from vkharness.spans import Span, SpanMap
from vkharness.syncval.access import AccessRequest, after_access, after_instance, requested, written_by_atomic
from vkharness.syncval.barrier import HOST_ACCESSES, HOST_READ_BIT, Scope, after_barrier
from vkharness.syncval.cross_dependency import withheld
from vkharness.syncval.entries import DetectedHazard, RangeEntry, RangeScope, ScopesOnRange
from vkharness.syncval.layout_transition import Sources, after_transition, shown_as_well, shown_to, transition_hazard
from vkharness.syncval.race import NO_RACING_WORK, BatchIndex, RacingWork, is_surer, race
from vkharness.syncval.range_store import ALWAYS, BY_CLOCK, NO_RACE, Cover
from vkharness.syncval.state import LAYOUT_TRANSITION, AccessOutcome, Change, State
from vkharness.syncval.tracked_ranges import TrackedRanges
from vkharness.trace.effects import Access, Alias


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
        self.inside = 0
        """The subpass in which the current viewer makes operations that count for several subpasses; 0 for none."""
        self.racing: RacingWork = NO_RACING_WORK
        """Whose accesses race with those of the current viewer."""
        self.host_token: Callable[[bool, bool], int] = lambda everywhere, reads: 0
        """The token of dependencies that make writes available to the host now: everywhere, or in some ranges; and
        visible to its reads, or not."""
        self._requests: dict[tuple[int | bool | Certainty, ...], AccessRequest] = {}
        self.closed: set[int] = set()
        """The queues of which no access is `open` while no render pass instance goes on."""

    # -- accesses ---------------------------------------------------------------------------------------------------

    def request(self, access: Access) -> AccessRequest:
        """An access by the current viewer, as the rules see it: one object for equal ones."""
        key = (
            access.access_kind, self.queue, self.viewer, access.atomic, access.order, access.operation, access.marker,
            access.certainty, self.inside,
        )  # fmt: skip
        request = self._requests.get(key)
        if request is None:
            request = self._requests[key] = requested(access, self.queue, self.viewer, self.inside)
        return request

    def check(self, access: Access) -> Iterator[DetectedHazard]:
        """The hazards that an access meets; nothing changes."""
        request = self.request(access)
        for span in access.spans:
            for begin, end, entry in self.store.pieces(access.space, *span):
                live = self._live(entry)
                outcome = after_access(live.state, request)
                if outcome.hazard or self.racing is not NO_RACING_WORK:
                    yield from self._hazards((begin, end), live, access, outcome)

    def access_hazards(self, span: Span, entry: RangeEntry, access: Access) -> Iterator[DetectedHazard]:
        """The hazard that an access meets at a range, if it meets one."""
        return self._hazards(span, entry, access, after_access(entry.state, self.request(access)))

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
            raced = race(entry.state, entry.write, entry.reads, self.places, access.access_kind, self.racing, access)
            if raced is not None and not (outcome.hazard and is_surer(entry.state, outcome.prior, raced[1])):
                yield self._detected(raced[0], raced[1], span, access, entry)
                return
        if outcome.hazard:
            yield self._detected(outcome.hazard, outcome.prior, span, access, entry)

    def apply(self, access: Access, place: int, same_command: bool = False) -> list[DetectedHazard]:
        """Makes an access, by its place number, the most recent one of its addresses, and returns the hazards that it
        meets there.

        `same_command` marks a read of what its own command has just written, which is no hazard.
        """
        request = self.request(access)._replace(same_command=True) if same_command else self.request(access)
        if self.journal.on:
            self.journal.add(self.queue, self.places.batch(place).tag, access.space, access.spans)
        racing = NO_RACE if self.racing is NO_RACING_WORK else self._racing_by()
        hazards: list[DetectedHazard] = []
        for begin, end, entry in self.store.apply(access.space, access.spans, request, place, racing):
            hazards += self._hazards((begin, end), entry, access, after_access(entry.state, request))
        return hazards

    def apply_checked(self, access: Access, place: int, same_command: bool = False) -> None:
        """The same for an access of which the hazards are known."""
        self.apply(access, place, same_command)

    def _racing_by(self) -> int:
        """How the store finds what may race with the current viewer."""
        if self.racing.subpasses:
            return ALWAYS
        self.store.set_clock(self.racing.queue, self.racing.clock)
        return BY_CLOCK

    def _detected(self, hazard: Hazard, prior: int, span: Span, access: Access, entry: RangeEntry) -> DetectedHazard:
        state = entry.state
        if prior < 0:
            assert entry.write is not None and state.write is not None
            prior_number, prior_access_kind, access_kind = entry.write, state.write.access_kind, access.access_kind
            certainty = state.write.certainty
        else:
            # The writing half of an atomic is the half that conflicts with a read.
            access_kind = written_by_atomic(access.access_kind) if access.atomic else access.access_kind
            prior_number, prior_access_kind = entry.reads[prior], state.reads[prior].access_kind
            certainty = state.reads[prior].certainty
        return DetectedHazard(
            hazard,
            span,
            access_kind,
            self.places.place(prior_number),
            prior_number,
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
        if of_render_pass and queue in self.closed:
            return
        self.map_slots(Change(("instance", queue), lambda state: after_instance(state, queue)))
        if of_render_pass:
            self.closed.add(queue)
        else:
            self.closed.discard(queue)

    # -- barriers ---------------------------------------------------------------------------------------------------

    def check_transition(
        self, space: int, spans: Iterable[Span], sources: Sources, resource: int, access_kind: int = LAYOUT_TRANSITION
    ) -> Iterator[DetectedHazard]:
        """The hazards that a layout transition (or what else `access_kind` is) after these dependencies meets; nothing
        changes."""
        access = Access(access_kind, space, (), resource)
        for span in spans:
            for begin, end, held in self.store.pieces(space, *span):
                yield from self.transition_hazards((begin, end), self._live(held), access, sources)

    def transition_hazards(
        self, span: Span, entry: RangeEntry, access: Access, sources: Sources
    ) -> Iterator[DetectedHazard]:
        """The hazard that a transition meets at a range, if it meets one."""
        raced = None
        if self.racing is not NO_RACING_WORK:
            raced = race(entry.state, entry.write, entry.reads, self.places, access.access_kind, self.racing)
        hazard, prior = transition_hazard(entry.state, sources, self.queue, access.access_kind)
        if raced is not None and not (hazard and is_surer(entry.state, prior, raced[1])):
            hazard, prior = raced
        if hazard:
            yield self._detected(hazard, prior, span, access, entry)

    def barrier(self, everything: tuple[Scope, ...], ranges: list[RangeScope], place: int) -> None:
        """Applies one synchronization command: dependencies over everything, and over ranges.

        All of them apply to the states as they were before the command.
        """
        everything = tuple(map(self.with_host_token, everything))
        covers = [self._cover(each, everything, place) for each in self._covers(ranges)] if ranges else []
        if everything or covers:
            self.store.synchronize(self._after(everything) if everything else None, place, covers)

    def _after(self, scopes: tuple[Scope, ...]) -> Change:
        """Returns the change of a state by the dependencies of one command."""
        viewer = self.viewer
        return Change((scopes, viewer), lambda state: after_barrier(state, scopes, viewer))

    def _cover(self, on: ScopesOnRange, everything: tuple[Scope, ...], place: int) -> Cover:
        if not on.moved:
            return Cover(on.space, on.begin, on.end, self._after(on.scopes + everything), None)
        if self.journal.on:
            self.journal.add(self.queue, self.places.batch(place).tag, on.space, ((on.begin, on.end),))
        after = after_transition(on.scopes, self.queue, self.viewer, on.access_kind)
        return Cover(on.space, on.begin, on.end, None, after)

    def show_transition(
        self, space: int, spans: Iterable[Span], maker: int, receivers: Sources, anew: bool = True
    ) -> None:
        """Lets other viewers than the current one assume something of a transition that was just made, or (without
        `anew`) that `maker` made and nothing has written over."""
        show = shown_to if anew else shown_as_well
        for span in spans:
            for begin, end, entry in self.store.pieces(space, *span):
                self.store.put(space, begin, end, entry._replace(state=show(entry.state, maker, receivers)))

    def with_host_token(self, scope: Scope, everywhere: bool = True) -> Scope:
        """The scope with the token of the current batch, when it makes writes available to the host; else unchanged."""
        if not scope.dst_accesses & HOST_ACCESSES:
            return scope
        reads = bool(scope.dst_accesses & HOST_READ_BIT)
        return scope._replace(host=self.host_token(everywhere and not scope.event, reads))

    def map_before(self, change: Change, clock: Mapping[int, BatchIndex], queues: Iterable[int]) -> None:
        """Maps the state of every range, as it would be without the accesses of some queues beyond `clock` (tags)."""
        late = self.journal.late(self.store, self.places, clock, queues)
        self.map_slots(change)
        known: dict[tuple[State, bool, frozenset[int]], State] = {}
        for space, begin, end, entry, write, reads in late:
            key = entry.state, write, reads
            if key not in known:
                known[key] = withheld(entry.state, change(entry.state), self.viewer, write, reads)
            self.store.put(space, begin, end, entry._replace(state=known[key]))

    def _covers(self, ranges: list[RangeScope]) -> list[ScopesOnRange]:
        """The addresses that barriers over ranges cover, each with every scope that covers it.
        Rule: rules.md#a-ranged-barrier-covers-its-range.
        """
        if len(ranges) == 1:
            space, span, scope, moved, access_kind = ranges[0]
            return [ScopesOnRange(space, *span, (self.with_host_token(scope, False),), moved, access_kind)]
        by_space: dict[int, SpanMap[ScopesOnRange]] = {}
        for each in ranges:

            def add(_begin: int, _end: int, known: ScopesOnRange | None, each: RangeScope = each) -> ScopesOnRange:
                # A plain barrier acts on what a transition beside it replaces, not on the transition.
                scope = self.with_host_token(each.scope, False)
                if known is None or (each.moved and not known.moved):
                    return ScopesOnRange(each.space, 0, 0, (scope,), each.moved, each.access_kind)
                return known._replace(scopes=(*known.scopes, scope)) if each.moved == known.moved else known

            by_space.setdefault(each.space, SpanMap()).update(*each.span, add)
        return [on._replace(begin=low, end=high) for covers in by_space.values() for low, high, on in covers]
