"""Map from ranges of addresses to their entries: `RangeStore`, in two forms with the same methods and results.

`NativeRangeStore` keeps everything in C++ (harness/vkharness/native/range_store.hpp); `PythonRangeStore` is what it is
held against, and runs where there is no native core. Neither knows a rule. Python's rules say what an access or a
change makes of a state, and the native form asks each question once: its `Automaton` gives states numbers, and
remembers the answers in tables. All stores of a process share one, so that a recording meets what others asked before.
`AUTOMATON_LIMIT` bounds it: beyond that many states, or sixteen times as many answers, all answers are forgotten, and
the numbers of states that no slot holds are used again.
"""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

from vkharness import native
from vkharness.spans import Span, SpanMap
from vkharness.syncval import slots
from vkharness.syncval.access import AccessRequest, after_access
from vkharness.syncval.entries import RangeEntry
from vkharness.syncval.places import COMMAND_BITS
from vkharness.syncval.race import BatchIndex
from vkharness.syncval.slots import Slot, Slots
from vkharness.syncval.state import EMPTY, Change, State
from vkharness.trace.effects import Access, EffectPlan

AUTOMATON_LIMIT = 1 << 15
"""States that native stores number before they give numbers up."""
NO_RACE, BY_CLOCK, ALWAYS, WRITES_BY_CLOCK = range(4)
"""How the store finds races of an access: it has none (NO_RACE); it races with work later than the clock of `set_clock`
(BY_CLOCK), or with writes of that work, as a read does (WRITES_BY_CLOCK); the caller decides (ALWAYS)."""

Piece = tuple[int, int, RangeEntry]
"""A begin, an end and what is known between the two."""


class Cover(NamedTuple):
    """Effect of a command that synchronizes on a range: a change of each state there, or, without one, a write of all
    addresses, with the state that these have then."""

    space: int
    begin: int
    end: int
    change: Change | None
    state: State | None


class StoreSizes(NamedTuple):
    """How much a store holds."""

    awake: int
    """Distinct states, which each change maps at once."""
    sleeping: int
    """Slots that sleep, to which a range points."""
    kept: int
    """Changes that are kept for slots that sleep."""
    steps: int
    """How often a change met a state so far: what operations over everything have cost."""


MetSteps = list[tuple[int, Piece]]
"""Ranges where a command may have met a hazard: the number of a step of its form, and the range as it was before."""


class FormsRun(NamedTuple):
    """How far the execution of forms came, and why it stopped."""

    stopped: int
    """The place of the command before which it stopped."""
    standpoint: Any
    """Where that command stands."""
    before: Any
    """Where the last command that was executed stands."""
    noted: int
    """How many accesses a journal takes note of."""
    notes: list[tuple[int, tuple[Span, ...]]]
    """Address space and spans of the last of them, `journal.LENGTH` at most; empty where nobody wants to know."""
    left: bool
    """Whether the command at which it stopped is left to Python."""
    met: MetSteps
    """Possible hazards of the last command that was executed. All others met none."""


class RangeStore(Protocol):
    """The entries of all ranges of a context."""

    def add_batch(self, number: int, queue: int, tag: BatchIndex, over: bool) -> None:
        """Ranges may hold accesses of a batch; `over` where these are known to be complete."""

    def finish_batch(self, number: int) -> None:
        """The accesses of a batch are over."""

    def is_finished(self, place: int) -> bool:
        """Whether the batch of a place number is over."""

    def keep_batches(self, numbers: Sequence[int]) -> None:
        """No range holds an access of any other batch."""

    def let_reads_be_over(self) -> None:
        """Reads may be `over` in a state from now on."""

    def ranges(self) -> int:
        """How many it holds."""

    def sizes(self) -> StoreSizes:
        """How much it holds beside them."""

    def states(self) -> list[State]:
        """The states that are awake, in the order in which they came or woke."""

    def has(self, space: int) -> bool:
        """Whether any range of a space is held."""

    def place_numbers(self) -> list[int]:
        """Those of all accesses."""

    def spaces(self) -> list[int]:
        """The spaces that have ranges, or had some."""

    def pieces(self, space: int, begin: int, end: int) -> list[Piece]:
        """The ranges of [begin, end), clipped to it, in order, with the states that they have now."""

    def everything(self, space: int) -> list[tuple[int, int, RangeEntry, bool]]:
        """All ranges of a space, in order, and whether they sleep: such ones sleep on, and EMPTY stands for the state
        that nobody worked out."""

    def put(self, space: int, begin: int, end: int, entry: RangeEntry) -> None:
        """Makes an entry that of a range. Precisely this range is not joined to equal neighbours."""

    def assign(self, space: int, begin: int, end: int, entry: RangeEntry) -> None:
        """Makes an entry that of a range, joined to equal neighbours."""

    def erase(self, space: int, begin: int, end: int) -> None:
        """Forgets a range."""

    def drop(self, space: int) -> None:
        """Forgets a space."""

    def forget_over(self, space: int, writes: bool) -> bool:
        """Forgets the ranges of a space of which all accesses are over; those with a write only if `writes`. Whether
        any is left."""

    def map(self, change: Change) -> None:
        """Maps the state of every range; visits none."""

    def set_clock(self, queue: int, clock: Mapping[int, BatchIndex]) -> None:
        """For `BY_CLOCK`: up to where the work of each other queue is ordered before that of this one."""

    def apply(
        self, space: int, spans: tuple[Span, ...], request: AccessRequest, place: int, racing: int
    ) -> list[Piece]:
        """Makes an access the most recent one of its addresses. The pieces are those with a hazard, or that may race,
        as they were before."""

    def synchronize(self, everything: Change | None, place: int, covers: list[Cover]) -> None:
        """Maps the states of everything and of ranges, all as they were before the command with this place number."""

    def form(self, forms: Any, standpoint: Any, behind: Any, steps: tuple[Any, ...] | None) -> Any:
        """The forms of a plan (None for none) with one more, which is that of its commands at a standpoint: steps of
        `command_forms`, the standpoint behind it, and whether it does more than access memory. Without steps it says
        that such commands have none. A native store alone has forms."""

    def run(
        self, plans: list[EffectPlan], begin: int, end: int, place: int, standpoint: Any, notes: int, keeps: bool
    ) -> FormsRun:
        """Executes the forms of commands, of which the first has this place number and this standpoint. It stops behind
        one that met something, and at one that has no form. So many `notes` are wanted at most. `keeps`: forms that it
        makes itself are kept, from their second time on."""

    def _check(self) -> None:
        """Raises AssertionError when an invariant is broken."""


class SlotEntry(NamedTuple):
    """A `RangeEntry` with the slot that holds its state."""

    slot: Slot
    write: int | None
    reads: tuple[int, ...]


class PythonRangeStore:
    """The entries in a `SpanMap` for each space."""

    def __init__(self) -> None:
        self._maps: dict[int, SpanMap[SlotEntry]] = {}
        self._slots = Slots()
        self._over: set[int] = set()
        self._reads_are_over = False

    # -- batches ------------------------------------------------------------------------------------------------------

    def add_batch(self, number: int, queue: int, tag: BatchIndex, over: bool) -> None:
        """See `RangeStore`."""
        if over:
            self._over.add(number)

    def finish_batch(self, number: int) -> None:
        """See `RangeStore`."""
        self._over.add(number)

    def is_finished(self, place: int) -> bool:
        """See `RangeStore`."""
        return place >> COMMAND_BITS in self._over

    def keep_batches(self, numbers: Sequence[int]) -> None:
        """See `RangeStore`."""
        self._over.intersection_update(numbers)

    def let_reads_be_over(self) -> None:
        """See `RangeStore`."""
        self._reads_are_over = True

    # -- ranges -------------------------------------------------------------------------------------------------------

    def ranges(self) -> int:
        """See `RangeStore`. Visits every space."""
        return sum(map(len, self._maps.values()))

    def sizes(self) -> StoreSizes:
        """See `RangeStore`."""
        held = self._slots
        return StoreSizes(len(held), sum(1 for _ in held.sleeping()), held.kept, held.steps)

    def states(self) -> list[State]:
        """See `RangeStore`."""
        return list(self._slots.awake)

    def has(self, space: int) -> bool:
        """See `RangeStore`."""
        return bool(len(self._maps.get(space, ())))

    def place_numbers(self) -> list[int]:
        """See `RangeStore`."""
        entries = (entry for held in self._maps.values() for *_, entry in held)
        return [number for _, write, reads in entries for number in (reads if write is None else (write, *reads))]

    def spaces(self) -> list[int]:
        """See `RangeStore`."""
        return list(self._maps)

    def pieces(self, space: int, begin: int, end: int) -> list[Piece]:
        """See `RangeStore`."""
        held = self._maps.get(space)
        return [
            (low, high, RangeEntry(slot.find().state, write, reads))
            for low, high, (slot, write, reads) in (_pieces(held, begin, end) if held is not None else ())
        ]

    def everything(self, space: int) -> list[tuple[int, int, RangeEntry, bool]]:
        """See `RangeStore`."""
        return [
            (begin, end, RangeEntry(EMPTY if slot.sleeps else slot.find().state, write, reads), slot.sleeps)
            for begin, end, (slot, write, reads) in self._maps.get(space, ())
        ]

    def put(self, space: int, begin: int, end: int, entry: RangeEntry) -> None:
        """See `RangeStore`."""
        self._map(space).put(begin, end, self._held(entry))

    def assign(self, space: int, begin: int, end: int, entry: RangeEntry) -> None:
        """See `RangeStore`."""
        self._map(space).assign(begin, end, self._held(entry))

    def _map(self, space: int) -> SpanMap[SlotEntry]:
        held = self._maps.get(space)
        if held is None:
            held = self._maps[space] = SpanMap()
        return held

    def _held(self, entry: RangeEntry) -> SlotEntry:
        state, write, reads = entry
        return SlotEntry(self._slots.get(state), write, reads)

    def erase(self, space: int, begin: int, end: int) -> None:
        """See `RangeStore`."""
        held = self._maps.get(space)
        if held is not None:
            held.erase(begin, end)

    def drop(self, space: int) -> None:
        """See `RangeStore`."""
        self._maps.pop(space, None)

    def forget_over(self, space: int, writes: bool) -> bool:
        """See `RangeStore`."""
        held = self._maps.get(space)
        if held is None:
            return False
        for begin, end, (_, write, reads) in list(held):
            places = reads if write is None else (write, *reads)
            if all(map(self.is_finished, places)) and (writes or write is None):
                held.erase(begin, end)
        return len(held) > 0

    # -- what commands do ---------------------------------------------------------------------------------------------

    def map(self, change: Change) -> None:
        """See `RangeStore`."""
        self._slots.map(change)

    def set_clock(self, queue: int, clock: Mapping[int, BatchIndex]) -> None:
        """See `RangeStore`. Whatever may race is looked at."""

    def apply(
        self, space: int, spans: tuple[Span, ...], request: AccessRequest, place: int, racing: int
    ) -> list[Piece]:
        """See `RangeStore`."""
        held = self._map(space)
        met: list[Piece] = []

        def after(begin: int, end: int, entry: SlotEntry | None) -> SlotEntry:
            return self._after(begin, end, entry or _NEVER, request, place, racing, met)

        for begin, end in spans:
            entry = held.exact(begin, end)
            if entry is not None:
                held.set_exact(begin, end, after(begin, end, entry))
            else:
                held.update(begin, end, after)
        return met

    def _after(
        self, begin: int, end: int, entry: SlotEntry, request: AccessRequest, place: int, racing: int, met: list[Piece]
    ) -> SlotEntry:
        """Returns the entry of a range after an access. Adds the range as it was to `met` if a hazard is possible."""
        state, write, reads = before = self._live(entry)
        hazard, _, after, position, gone = state.results.get(request) or after_access(state, request)
        if hazard or (racing and (write is not None or reads)):
            met.append((begin, end, before))
        slot = self._slots.get(after)
        if position < 0:
            return _new(SlotEntry, (slot, place, ()))
        if gone:
            reads = tuple(each for at, each in enumerate(reads) if at not in gone)
        alone = position == 0 and len(reads) < 2
        now = (place,) if alone else (*reads[:position], place, *reads[position + 1 :])
        return _new(SlotEntry, (slot, write, now))

    def _live(self, entry: SlotEntry) -> RangeEntry:
        """The entry without what is over. This runs for each range that an access meets."""
        slot, write, reads = entry
        state = slot.state if slot.elsewhere is None else slot.find().state
        if self._over or self._reads_are_over:
            return live(RangeEntry(state, write, reads), self._over, self._reads_are_over)
        return _new(RangeEntry, (state, write, reads))

    def synchronize(self, everything: Change | None, place: int, covers: list[Cover]) -> None:
        """See `RangeStore`."""
        met = []
        for cover in covers:
            held = self._maps.get(cover.space) if cover.change is not None else None
            pieces = _pieces(held, cover.begin, cover.end) if held is not None else []
            met.append((cover, [(low, high, self._live(entry)) for low, high, entry in pieces]))
        if everything is not None:
            self._slots.map(everything)
        for cover, found in met:
            if cover.change is None:
                assert cover.state is not None
                written = SlotEntry(self._slots.get(cover.state), place, ())
                self._map(cover.space).put(cover.begin, cover.end, written)
                continue
            into: dict[State, Slot] = {}  # what ranges with one state before point to now
            for low, high, (state, write, reads) in found:
                slot = into.get(state)
                if slot is None:
                    slot = into[state] = self._slots.get(cover.change(state))
                self._map(cover.space).put(low, high, _new(SlotEntry, (slot, write, reads)))

    def form(self, forms: Any, standpoint: Any, behind: Any, steps: tuple[Any, ...] | None) -> Any:
        """See `RangeStore`."""
        raise NotImplementedError

    def run(self, *arguments: Any) -> FormsRun:
        """See `RangeStore`."""
        raise NotImplementedError

    def _check(self) -> None:
        steps = self._slots.steps
        for held in self._maps.values():
            held._check()
            for _, _, entry in held:
                self._slots._check_reachable(entry.slot)
                state = entry.slot.peek()
                assert (entry.write is None) == (state.write is None), "a write without its place"
                assert len(entry.reads) == len(state.reads), "reads without their places"
        self._slots._check()
        self._slots.steps = steps  # to look is no work


_NEVER = SlotEntry(Slot(EMPTY), None, ())
_NOTHING = RangeEntry(EMPTY, None, ())
_new = tuple.__new__
"""Makes an entry in half the time, where one is made for each access and each range of a barrier."""


def live(entry: RangeEntry, over: Container[int], reads_are_over: bool) -> RangeEntry:
    """An entry without the accesses of batches that are `over`."""
    state, write, reads = entry
    done = [at for at, read in enumerate(reads) if read >> COMMAND_BITS in over]
    if reads and reads_are_over:
        done = sorted({*done, *state.over})
    if done:
        # A read that is complete happened after the write that it did not conflict with.
        reads = tuple(read for at, read in enumerate(reads) if at not in done)
        state = state.without_reads(tuple(done))
    if write is not None and write >> COMMAND_BITS in over:
        state = state.finished()
    return entry if state is entry.state else RangeEntry(state, write, reads)


def _pieces(held: SpanMap[SlotEntry], begin: int, end: int) -> list[tuple[int, int, SlotEntry]]:
    entry = held.exact(begin, end)
    return [(begin, end, entry)] if entry is not None else held.pieces(begin, end)


class NativeRangeStore:
    """Makes native stores: `vkharness.native._core.RangeStore`."""

    def __new__(cls, automaton: Any = None) -> Any:
        """With an `automaton` of its own, or the one that is shared."""
        limits = slots.AWAKE, slots.STEPS, slots.NEW_STEP, slots.KEPT
        return _core().RangeStore(automaton or _automaton(), RangeEntry, StoreSizes, FormsRun, EMPTY, limits)


def automaton(limit: int) -> Any:
    """Makes the table in which native stores remember states and transitions between them, for about `limit` states."""
    return _core().Automaton(after_access, limit, Access)


def _core() -> Any:
    assert native.core is not None
    return native.core


@cache
def _shared_automaton() -> Any:
    return automaton(AUTOMATON_LIMIT)


def _automaton() -> Any:
    """The one that all stores share. Without the interpreter's lock, a store has one of its own, since two threads may
    use two stores at once."""
    has_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    return _shared_automaton() if has_lock else automaton(AUTOMATON_LIMIT)


def make_range_store() -> RangeStore:
    """A store of the form that is in use."""
    made: RangeStore = PythonRangeStore() if native.core is None else NativeRangeStore()
    return made
