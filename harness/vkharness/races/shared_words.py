"""Accesses of one dispatch by their place in memory, and the pairs of them that nothing orders ("Data Race")."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from vkharness.races.knowledge import Invocation, Passed, Semantics, Storage

DEVICE, WORK_GROUP, SUBGROUP, QUEUE_FAMILY, INVOCATION = 1, 2, 3, 5, 4
"""Scopes of SPIR-V."""
WIDE = (0, DEVICE, QUEUE_FAMILY)
"""Those that every invocation of a dispatch is in."""
MOST_READERS = 64
"""Reads of one place that are kept since its last write."""
WORD = 4


class Atomic(NamedTuple):
    """What an atomic instruction says of itself."""

    scope: int
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


class _Cell:
    """One word: its accesses since the last write that all of them happen after, and what its value passes on."""

    __slots__ = ("heads", "reads", "write")

    def __init__(self) -> None:
        self.write: InvocationAccess | None = None
        self.reads: list[InvocationAccess] = []
        self.heads: list[tuple[InvocationAccess, Passed]] = []
        """Writes whose release sequence the value belongs to, each with what it released."""


class SharedWords:
    """All words that a dispatch accesses."""

    def __init__(self, group_size: int) -> None:
        self._group_size = group_size
        self._cells: dict[Word, _Cell] = {}

    def access(
        self, place: Word, span: tuple[int, int], instruction: Instruction, by: Invocation, interval: int
    ) -> Iterator[RacingPair]:
        """Notes an access of the bytes [begin, end) of a word, and yields those that it races with."""
        cell = self._cells.setdefault(place, _Cell())
        access = InvocationAccess(instruction, by.number, by.accesses, interval, *span)
        others = [cell.write] if cell.write is not None else []
        others += cell.reads if instruction.writes else []
        for other in others:
            if self._race(other, access, by):
                yield RacingPair(place, other, access)
        if instruction.atomic is not None:
            self._order(cell, access, instruction.atomic, by)
        elif instruction.writes:
            cell.heads = []
        if instruction.writes:
            cell.write, cell.reads = access, []
        elif len(cell.reads) < MOST_READERS:
            cell.reads.append(access)

    def _race(self, other: InvocationAccess, access: InvocationAccess, by: Invocation) -> bool:
        if other.invocation == access.invocation or other.end <= access.begin or access.end <= other.begin:
            return False
        if self._mutually_ordered(other, access):
            return False
        is_over = by.knows(access.instruction.storage, other.invocation) >= other.serial
        return not (is_over and other.instruction.non_private and access.instruction.non_private)

    def _mutually_ordered(self, one: InvocationAccess, other: InvocationAccess) -> bool:
        """Whether both are atomics, of the same bytes, each in the other's scope."""
        first, second = one.instruction.atomic, other.instruction.atomic
        if first is None or second is None or (one.begin, one.end) != (other.begin, other.end):
            return False
        return all(self.is_in(each.scope, one.invocation, other.invocation) for each in (first, second))

    def is_in(self, scope: int, one: int, other: int) -> bool:
        """Whether two invocations are in one instance of a scope. Which share a subgroup is not known, so none do."""
        return scope in WIDE or (scope == WORK_GROUP and one // self._group_size == other // self._group_size)

    def _order(self, cell: _Cell, access: InvocationAccess, atomic: Atomic, by: Invocation) -> None:
        """An atomic takes over what the writes released whose value it reads, and passes on its own ("Release
        Sequence")."""
        instruction = access.instruction
        heads = [each for each in cell.heads if self._mutually_ordered(each[0], access)]
        if instruction.reads:
            for _, passed in heads:
                by.acquire(atomic.semantics, passed)
        if instruction.writes:
            released = (access, by.released(atomic.semantics))
            cell.heads = [*heads, released] if instruction.reads else [released]
