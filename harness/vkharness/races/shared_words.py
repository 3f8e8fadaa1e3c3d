"""Accesses of one dispatch by their place in memory, and the pairs of them that nothing orders ("Data Race")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from vkharness.races.knowledge import Invocation, Known, Passed, PassedVia, ScopeReach, Semantics, Storage, joined

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


class InvocationAccess(NamedTuple):
    """One access by one invocation."""

    instruction: Instruction
    invocation: int
    serial: int
    """How many accesses the invocation had made, this one included."""
    interval: int
    """How many control barriers it had passed."""
    begin: int
    end: int
    """Bytes of the word."""


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


class _Sort(NamedTuple):
    """What accesses of one word have in common: of each invocation the last of them stands for all."""

    begin: int
    end: int
    storage: Storage
    writes: bool
    reach: ScopeReach | None
    """That of atomics; None for others."""
    non_private: bool

    @classmethod
    def of(cls, access: InvocationAccess) -> _Sort:
        """That of an access."""
        said = access.instruction
        reach = None if said.atomic is None else said.atomic.reach
        return cls(access.begin, access.end, said.storage, said.writes, reach, said.non_private)

    def stands_for(self, earlier: _Sort) -> bool:
        """Whether whatever is ordered behind an access of this sort, which is no atomic, is ordered behind one before
        it."""
        covers = self.begin <= earlier.begin and earlier.end <= self.end and self.storage is earlier.storage
        return self == earlier or (self.writes and covers and (earlier.non_private or not self.non_private))


class _Head(NamedTuple):
    """Atomic writes whose release sequences the value of a word belongs to, and whom these reach alike."""

    begin: int
    end: int
    atomic: ScopeReach
    release: ScopeReach
    group: int


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

    __slots__ = ("heads", "sorts")

    def __init__(self, first: InvocationAccess | None) -> None:
        self.sorts: dict[_Sort, _Several] = {}
        self.heads: dict[_Head, Passed] = {}
        if first is not None:
            self.sorts[_Sort.of(first)] = several = _Several()
            several.accesses[first.invocation] = first


class SharedWords:
    """All words that a dispatch accesses."""

    def __init__(self) -> None:
        self._cells: dict[Word, _Cell | InvocationAccess] = {}
        """A word that one invocation alone has accessed, in one way, has its last access here."""

    def access(
        self, place: Word, span: tuple[int, int], instruction: Instruction, by: Invocation, interval: int, size: int
    ) -> Iterator[RacingPair]:
        """Notes an access of the bytes [begin, end) of a word, and yields those that it races with. A work group has
        `size` invocations."""
        access = InvocationAccess(instruction, by.number, by.accesses, interval, *span)
        atomic, own = instruction.atomic, _Sort.of(access)
        cell = self._cells.get(place)
        if not isinstance(cell, _Cell):
            if atomic is None and (cell is None or (cell.invocation == by.number and own.stands_for(_Sort.of(cell)))):
                self._cells[place] = access
                return
            cell = self._cells[place] = _Cell(cell)
        for sort, several in [*cell.sorts.items()]:
            if sort.begin < own.end and own.begin < sort.end and (sort.writes or own.writes):
                for other in _racing(sort, several, own, by, size):
                    yield RacingPair(place, other, access)
        if atomic is not None:
            self._order(cell, own, instruction.reads, atomic, by)
        elif instruction.writes:
            cell.heads = {}
            self._drop(cell, own, by)
        several = cell.sorts.setdefault(own, _Several())
        several.accesses[by.number] = access
        several.over_for = None

    def _drop(self, cell: _Cell, own: _Sort, by: Invocation) -> None:
        """Forgets what a plain write happens after: whoever is ordered behind the write is behind that, too."""
        for sort, several in [*cell.sorts.items()]:
            if not own.stands_for(sort):
                continue
            by.spend(len(several.accesses) // TOGETHER)
            kept = {
                number: each
                for number, each in several.accesses.items()
                if number != by.number and not _is_over(each, own, by)
            }
            if not kept:
                del cell.sorts[sort]
            elif len(kept) < len(several.accesses):
                several.accesses = kept

    def _order(self, cell: _Cell, own: _Sort, reads: bool, atomic: Atomic, by: Invocation) -> None:
        """An atomic takes over what the writes released whose value it reads, and passes on its own ("Release
        Sequence")."""
        by.spend(len(cell.heads))
        for head, passed in cell.heads.items() if reads else ():
            reaches = (head.atomic, head.release, atomic.reach)
            if (head.begin, head.end) == (own.begin, own.end) and all(e.joins(head.group, by.group) for e in reaches):
                by.acquire(atomic.semantics, PassedVia(head.group, own.storage), passed)
        if not own.writes:
            return
        if not reads:
            cell.heads = {}
        for release, passed in by.released(atomic.semantics, atomic.reach, own.storage):
            head = _Head(own.begin, own.end, atomic.reach, release, by.group)
            held = cell.heads.get(head, {})
            by.spend(sum(map(len, held.values())) // TOGETHER)
            cell.heads[head] = {
                each: joined(known[each] for known in (held, passed) if each in known) for each in {**held, **passed}
            }


def _racing(sort: _Sort, several: _Several, own: _Sort, by: Invocation, size: int) -> Iterator[InvocationAccess]:
    """The accesses of a sort that conflict with an access that nothing orders behind them."""
    atomics = sort.reach is not None and own.reach is not None and (sort.begin, sort.end) == (own.begin, own.end)
    if atomics and sort.reach is ScopeReach.ALL and own.reach is ScopeReach.ALL:
        return
    by.spend(len(several.accesses) // TOGETHER)
    are_public = sort.non_private and own.non_private
    if are_public and sort.storage is own.storage and several.are_over(by.known(own.storage)):
        return
    for number, other in several.accesses.items():
        if number == by.number or (are_public and _is_over(other, own, by)):
            continue
        # "mutually-ordered": each atomic is in the other's scope
        if not (atomics and all(e is not None and e.joins(number // size, by.group) for e in (sort.reach, own.reach))):
            yield other


def _is_over(other: InvocationAccess, own: _Sort, by: Invocation) -> bool:
    """Whether an access happens before the next one, of this sort."""
    storages = {other.instruction.storage, own.storage}
    return all(by.knows(each, other.invocation) >= other.serial for each in storages)
