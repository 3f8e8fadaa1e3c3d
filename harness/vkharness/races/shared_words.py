"""Accesses of one dispatch by their place in memory, and the pairs of them that nothing orders ("Data Race")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from vkharness.races.knowledge import (
    Domain,
    Home,
    Invocation,
    Known,
    MissingOrder,
    Passed,
    PassedVia,
    ScopeReach,
    Semantics,
    Storage,
    domains,
    joined_facts,
)

WORD = 4
TOGETHER = 16
"""Accesses that are looked at in the time of one instruction."""


class Atomic(NamedTuple):
    """What an atomic instruction says of itself."""

    reach: ScopeReach
    semantics: Semantics


class Instruction(NamedTuple):
    """An instruction that accesses memory."""

    number: int
    """Its place among all such instructions of the module."""
    storage: Storage
    variable: int
    """The id of the variable that its pointer came from; 0 for an address."""
    line: tuple[str, int] | None = None
    """File and line, from debug information."""
    reads: bool = True
    writes: bool = False
    atomic: Atomic | None = None
    non_private: bool = True
    available: ScopeReach = ScopeReach.ALL
    """How far a write makes itself available (`MakePointerAvailable`, `MakeTexelAvailable`)."""
    visible: ScopeReach = ScopeReach.ALL
    """From where a read makes visible what it reads."""
    reference: int = 0
    """What stands for the descriptor or the addresses that it goes through ("Reference"): the id of the image's
    variable; of a buffer, which each access names anew, of what its pointer came from. 0: that is not asked for."""


class AccessSort(NamedTuple):
    """What accesses of one word have in common: of each invocation the last of them stands for all."""

    begin: int
    end: int
    storage: Storage
    reads: bool
    writes: bool
    reach: ScopeReach | None
    """That of atomics; None for others."""
    non_private: bool
    available: ScopeReach
    visible: ScopeReach
    reference: int
    concerned: tuple[Storage, ...]
    """Classes by whose order it is ordered: its own, and those of its semantics."""

    @classmethod
    def of(cls, said: Instruction, begin: int, end: int, reference: int) -> AccessSort:
        """That of accesses of these bytes by an instruction, through this descriptor."""
        reach, classes = None, Semantics(0)
        if said.atomic is not None:
            reach, classes = said.atomic.reach, said.atomic.semantics.classes
        concerned = tuple(each for each in Storage if each is said.storage or classes & each.value)
        return cls(
            begin, end, said.storage, said.reads, said.writes, reach, said.non_private, said.available, said.visible,
            reference, concerned,
        )  # fmt: skip

    def stands_for(self, earlier: AccessSort) -> bool:
        """Whether whatever is ordered behind an access of this sort, which is no atomic, is ordered behind one before
        it."""
        covers = self.begin <= earlier.begin and earlier.end <= self.end and self.storage is earlier.storage
        covers = covers and self.reference == earlier.reference
        return self == earlier or (self.writes and covers and (earlier.non_private or not self.non_private))

    def is_mutual(self, other: AccessSort) -> bool:
        """Whether two atomics go to the same bytes by the same reference."""
        atomics = self.reach is not None and other.reach is not None
        return atomics and (self.begin, self.end) == (other.begin, other.end) and self.shares_reference(other)

    def shares_reference(self, other: AccessSort) -> bool:
        """Whether two accesses go through one descriptor."""
        return not self.reference or not other.reference or self.reference == other.reference

    def is_ordered_when_over(self, earlier: AccessSort) -> bool:
        """Whether an access of an earlier sort is ordered before one of this sort that it happens before, without any
        other availability or visibility operation."""
        if not (self.non_private and earlier.non_private) or self.storage is not earlier.storage:
            return False
        reaches = earlier.available is ScopeReach.ALL and (self.writes or self.visible is ScopeReach.ALL)
        return earlier.reads or (reaches and self.shares_reference(earlier))


class InvocationAccess(NamedTuple):
    """One access by one invocation."""

    instruction: Instruction
    invocation: int
    serial: int
    """How many accesses the invocation had made, this one included."""
    interval: int
    """How many control barriers it had passed."""
    sort: AccessSort
    at: int = 0
    """How many accesses all invocations had made, this one included."""


class Word(NamedTuple):
    """A word of memory: of which object, and which of its words."""

    space: int
    """A number for the memory object, the copy of a subresource or the array of shared memory, during one execution."""
    word: Any
    """The number of the word or scalar; (z, y, x) of a texel."""


class RacingPair(NamedTuple):
    """Two accesses of one place that nothing orders."""

    place: Word
    first: InvocationAccess
    second: InvocationAccess
    lacks: MissingOrder


class _Head(NamedTuple):
    """Atomic writes whose release sequences the value of a word belongs to, and whom these reach alike."""

    begin: int
    end: int
    atomic: ScopeReach
    release: ScopeReach
    home: Home
    reference: int


class _Several:
    """The last accesses of one sort, by invocation."""

    __slots__ = ("accesses", "over_for")

    def __init__(self) -> None:
        self.accesses: dict[int, InvocationAccess] = {}
        self.over_for: Known | None = None
        """Knowledge by which all of them are over; several invocations may hold it."""

    def are_over(self, known: Known) -> bool:
        """Whether all happen before what knows this."""
        if self.over_for is known:
            return True
        if any(known.get(number, 0) < each.serial for number, each in self.accesses.items()):
            return False
        self.over_for = known
        return True


class _Cell:
    """One word: its accesses since the last plain write that they happen before, and what its value passes on."""

    __slots__ = ("heads", "raced", "sorts")

    def __init__(self, first: InvocationAccess | None) -> None:
        self.sorts: dict[AccessSort, _Several] = {}
        self.heads: dict[_Head, Passed] = {}
        self.raced: set[tuple[int, int]] = set()
        """Instructions, earlier and later, of which a pair of accesses raced here: that is told once."""
        if first is not None:
            self.sorts[first.sort] = several = _Several()
            several.accesses[first.invocation] = first

    def saw(self, write: InvocationAccess, own: AccessSort, by: Invocation) -> bool:
        """Whether reads by the same invocation, before the next access, made all bytes visible that this and a write
        have in common: they raced then, or were ordered."""
        unseen = {*range(max(own.begin, write.sort.begin), min(own.end, write.sort.end))} if own.reads else {-1}
        for sort, several in self.sorts.items():
            last = several.accesses.get(by.number)
            is_same = sort.visible and sort.reads and sort.reach is None and sort.shares_reference(own)
            if is_same and last is not None and last.at > write.at:
                unseen.difference_update(range(sort.begin, sort.end))
        return not unseen

    def make_available(self, own: AccessSort, by: Invocation) -> None:
        """An atomic write makes available what the same invocation wrote there before."""
        for sort, several in [*self.sorts.items()]:
            narrower = sort.writes and sort.available < own.available and sort.reference == own.reference
            if narrower and own.begin <= sort.begin and sort.end <= own.end and by.number in several.accesses:
                farther = self.sorts.setdefault(sort._replace(available=own.available), _Several())
                last = several.accesses.pop(by.number)
                last = max(last, farther.accesses.get(by.number, last), key=lambda each: each.at)
                farther.accesses[by.number], farther.over_for = last, None


class SharedWords:
    """All words that a dispatch accesses."""

    def __init__(self) -> None:
        self._cells: dict[Word, _Cell | InvocationAccess] = {}
        """A word that one invocation alone has accessed, in one way, has its last access here."""
        self._count = 0
        self._sorts: dict[tuple[int, tuple[int, int], int], AccessSort] = {}
        """By the number of an instruction, the bytes and the reference."""

    def access(
        self,
        place: Word,
        span: tuple[int, int],
        instruction: Instruction,
        by: Invocation,
        interval: int,
        reference: int,
    ) -> Iterator[RacingPair]:
        """Notes an access of the bytes [begin, end) of a word through this descriptor, and yields those that it races
        with."""
        self._count += 1
        key = (instruction.number, span, reference)
        own = self._sorts.get(key)
        if own is None:
            own = self._sorts[key] = AccessSort.of(instruction, *span, reference)
        access, atomic = (
            InvocationAccess(instruction, by.number, by.accesses, interval, own, self._count),
            instruction.atomic,
        )
        cell = self._cells.get(place)
        if not isinstance(cell, _Cell):
            if atomic is None and (cell is None or (cell.invocation == by.number and own.stands_for(cell.sort))):
                self._cells[place] = access
                return
            cell = self._cells[place] = _Cell(cell)
        if atomic is not None:  # what a release passes on happens before the atomic that acquires it, too
            self._acquire(cell, own, atomic, by)
        for sort, several in [*cell.sorts.items()]:
            if sort.begin < own.end and own.begin < sort.end and (sort.writes or own.writes):
                for other, lack in _racing(sort, several, access, by, cell.raced):
                    if (
                        lack in (MissingOrder.ORDER, MissingOrder.VISIBILITY)
                        and other.instruction.writes
                        and cell.saw(other, own, by)
                    ):
                        continue
                    cell.raced.add((other.instruction.number, instruction.number))
                    yield RacingPair(place, other, access, lack)
        if atomic is not None:
            self._release(cell, own, atomic, by)
            if instruction.writes:
                cell.make_available(own, by)
        elif instruction.writes:
            cell.heads = {}
            self._drop(cell, own, by)
        several = cell.sorts.setdefault(own, _Several())
        several.accesses[by.number] = access
        several.over_for = None

    def _drop(self, cell: _Cell, own: AccessSort, by: Invocation) -> None:
        """Forgets what a plain write happens after: whoever is ordered behind the write is behind that, too."""
        for sort, several in [*cell.sorts.items()]:
            if not own.stands_for(sort):
                continue
            by.spend(len(several.accesses) // TOGETHER)
            is_plain = own.available is ScopeReach.ALL and own.is_ordered_when_over(sort)
            kept = {
                number: each
                for number, each in several.accesses.items()
                if number != by.number and not (is_plain and _happens_before(each, sort, own, by))
            }
            if not kept:
                del cell.sorts[sort]
            elif len(kept) < len(several.accesses):
                several.accesses = kept

    def _acquire(self, cell: _Cell, own: AccessSort, atomic: Atomic, by: Invocation) -> None:
        """An atomic takes over what the writes released whose value it reads ("Release Sequence")."""
        by.spend(len(cell.heads))
        taken: list[tuple[PassedVia, Passed]] = []
        for head, passed in cell.heads.items() if own.reads else ():
            reaches = (head.atomic, head.release, atomic.reach)
            is_mutual = (head.begin, head.end, head.reference) == (own.begin, own.end, own.reference)
            if is_mutual and all(each.joins(head.home, by.home) for each in reaches):
                taken.append((PassedVia(head.home, own.storage), passed))
        if own.writes:
            by.make_available(atomic.semantics, atomic.reach)
        for way, passed in taken:
            by.acquire(atomic.semantics, way, passed)

    def _release(self, cell: _Cell, own: AccessSort, atomic: Atomic, by: Invocation) -> None:
        """It passes on its own to who reads what it writes."""
        if own.writes and not own.reads:
            cell.heads = {}
        for release, passed in by.released(atomic.semantics, atomic.reach, own.storage) if own.writes else ():
            head = _Head(own.begin, own.end, atomic.reach, release, by.home, own.reference)
            held = cell.heads.get(head, {})
            by.spend(sum(map(len, held.values())) // TOGETHER)
            cell.heads[head] = joined_facts((held, passed))
        if own.reads:
            by.make_visible(atomic.semantics, atomic.reach)


def _racing(
    sort: AccessSort, several: _Several, access: InvocationAccess, by: Invocation, raced: set[tuple[int, int]]
) -> Iterator[tuple[InvocationAccess, MissingOrder]]:
    """The accesses of a sort that conflict with an access that nothing orders behind them, but of instructions that
    raced there already."""
    own = access.sort
    atomics = sort.is_mutual(own)
    if atomics and sort.reach is ScopeReach.ALL and own.reach is ScopeReach.ALL:
        return
    by.spend(len(several.accesses) // TOGETHER)
    if own.is_ordered_when_over(sort) and several.are_over(by.known(own.storage)):
        return
    for number, other in several.accesses.items():
        is_told = number == by.number or (other.instruction.number, access.instruction.number) in raced
        lack = None if is_told else _lack(other, sort, own, by)
        if lack is None:
            continue
        # "mutually-ordered": each atomic is in the other's scope
        home = by.layout.home(number)
        if not (atomics and all(e is not None and e.joins(home, by.home) for e in (sort.reach, own.reach))):
            yield other, lack


def _lack(other: InvocationAccess, sort: AccessSort, own: AccessSort, by: Invocation) -> MissingOrder | None:
    """What an access lacks that is not ordered before the next one, of this sort ("Location-Ordered")."""
    is_over = _happens_before(other, sort, own, by)
    if not (sort.non_private and own.non_private):
        return MissingOrder.ORDER
    if sort.reads and is_over:
        return None
    if is_over and own.is_ordered_when_over(sort):
        return None
    if not sort.writes or not (is_over or by.knows_availability()):
        return MissingOrder.ORDER
    if not own.shares_reference(sort) or sort.storage is not own.storage:
        return MissingOrder.REFERENCE if is_over else MissingOrder.ORDER
    if own.writes:
        common = [each for each in domains(ScopeReach.ALL, by.home) if each.holds(by.layout.home(other.invocation))]
        if _is_available(other, sort, by, common):
            return None
    else:
        is_visible = by.sees_visible(own.storage, other.invocation, sort.available) >= other.serial
        if is_visible or _is_available(other, sort, by, domains(own.visible, by.home)):
            return None
    if not is_over:
        return MissingOrder.ORDER
    reaches = _is_available(other, sort, by, domains(ScopeReach.ALL, by.home))
    return MissingOrder.VISIBILITY if reaches and not own.writes else MissingOrder.AVAILABILITY


def _happens_before(other: InvocationAccess, sort: AccessSort, own: AccessSort, by: Invocation) -> bool:
    """Whether an access happens before the next one: by a class that concerns both, else by both of their classes."""
    common = [each for each in sort.concerned if each in own.concerned]
    if common:
        return any(by.knows(each, other.invocation) >= other.serial for each in common)
    return all(by.knows(each.storage, other.invocation) >= other.serial for each in (sort, own))


def _is_available(other: InvocationAccess, sort: AccessSort, by: Invocation, among: Sequence[Domain]) -> bool:
    """Whether a write is available to one of these domains before the next access."""
    at = (sort.storage, other.invocation, sort.available)
    return any(by.sees_available(each, *at) >= other.serial for each in among)
