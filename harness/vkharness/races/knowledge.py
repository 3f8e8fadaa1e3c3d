"""What one invocation knows to be over in others: the relations of the memory model, as a vector of numbers.

Each invocation counts its accesses. What it knows of another one is a number: that many accesses of that one happen
before its next one. A release passes on what an invocation knows, and that its own accesses so far are over; an acquire
takes over what was passed on. Knowledge is kept by storage class, since semantics order those alone that they name
("Inter-Thread-Happens-Before").

>>> one, other = Invocation(0), Invocation(1)
>>> one.accesses = 3
>>> passed = one.released(Semantics.RELEASE | Semantics.BUFFERS)
>>> other.acquire(Semantics.ACQUIRE | Semantics.BUFFERS, passed)
>>> other.knows(Storage.BUFFER, 0), other.knows(Storage.SHARED, 0)
(3, 0)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, IntFlag


class Semantics(IntFlag):
    """Memory semantics of SPIR-V that Vulkan knows ("Memory Semantics")."""

    ACQUIRE = 0x2
    RELEASE = 0x4
    ACQUIRE_RELEASE = 0x8
    BUFFERS = 0x40
    """UniformMemory."""
    SHARED = 0x100
    """WorkgroupMemory."""
    IMAGES = 0x800
    """ImageMemory."""

    @property
    def acquires(self) -> bool:
        """Whether an instruction with these takes over."""
        return bool(self & (Semantics.ACQUIRE | Semantics.ACQUIRE_RELEASE))

    @property
    def releases(self) -> bool:
        """Whether an instruction with these passes on."""
        return bool(self & (Semantics.RELEASE | Semantics.ACQUIRE_RELEASE))


class Storage(Enum):
    """Classes of memory that invocations share, each with the semantics that name it."""

    SHARED = Semantics.SHARED
    BUFFER = Semantics.BUFFERS
    IMAGE = Semantics.IMAGES


Known = Mapping[int, int]
"""Invocation to the number of its accesses that are over. A value that others may hold: never changed."""
Passed = Mapping[Storage, Known]
NOTHING: Known = {}


def joined(several: Iterable[Known]) -> Known:
    """All that any of them knows."""
    distinct = [*{id(each): each for each in several if each}.values()]
    if len(distinct) < 2:
        return distinct[0] if distinct else NOTHING
    made = dict(distinct[0])
    for each in distinct[1:]:
        for invocation, count in each.items():
            if made.get(invocation, 0) < count:
                made[invocation] = count
    return made


class Invocation:
    """One invocation, by its number in the dispatch: its accesses so far, and what it knows of others."""

    __slots__ = ("_fenced", "_known", "_read", "accesses", "fenced_at", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.accesses = 0
        self.fenced_at: dict[Storage, int] = {}
        """The accesses that were made when a fence last released a class."""
        self._known: dict[Storage, Known] = {}
        self._fenced: dict[Storage, Known] = {}
        """What the last fences passed on, to whom reads what an atomic writes from now on."""
        self._read: dict[Storage, Known] = {}
        """What atomics and barriers brought, that a later fence takes over."""

    def knows(self, storage: Storage, other: int) -> int:
        """How many accesses of another invocation happen before the next one to this class."""
        return self._known.get(storage, NOTHING).get(other, 0)

    def _all(self, storage: Storage) -> Known:
        """What it knows, itself included."""
        return {**self._known.get(storage, NOTHING), self.number: self.accesses}

    def known(self, storage: Storage) -> Known:
        """What it knows of others."""
        return self._known.get(storage, NOTHING)

    def released(self, semantics: Semantics) -> Passed:
        """What a release with these semantics passes on, and the fences before it."""
        own = {each: self._all(each) for each in Storage if semantics.releases and semantics & each.value}
        return {**self._fenced, **own}

    def acquire(self, semantics: Semantics, passed: Passed) -> None:
        """Takes over what was passed on, at once for classes that the semantics name, and at a later fence for all."""
        for storage, known in passed.items():
            if semantics.acquires and semantics & storage.value:
                self.learn(storage, known)
            self._read[storage] = joined((self._read.get(storage, NOTHING), known))

    def learn(self, storage: Storage, known: Known) -> None:
        """From now on this happens before its accesses to a class."""
        self._known[storage] = joined((self._known.get(storage, NOTHING), known))

    def take(self, storage: Storage, known: Known) -> None:
        """As `learn`, of what holds all that it knows already."""
        self._known[storage] = known

    def fence(self, semantics: Semantics) -> None:
        """OpMemoryBarrier."""
        for storage in Storage:
            if not semantics & storage.value:
                continue
            if semantics.acquires and storage in self._read:
                self.learn(storage, self._read.pop(storage))
            if semantics.releases:
                self._fenced[storage] = self._all(storage)
                self.fenced_at[storage] = self.accesses


def meet(group: Iterable[Invocation], semantics: Semantics, classes: Iterable[Storage], by_fences: bool) -> None:
    """A control barrier of a work group with these semantics.

    Fences order through it: one before it releases, and one behind it acquires. With `by_fences` a fence directly
    before it does both: so GLSL is written (`memoryBarrierBuffer(); barrier();`), and a control barrier is not
    reordered against fences.
    """
    every = [*group]
    for storage in classes:
        own = bool(semantics & storage.value)
        fenced = by_fences and all(each.fenced_at.get(storage) == each.accesses for each in every)
        if (own and semantics.releases) or fenced:
            passed = dict(joined(each.known(storage) for each in every))
            passed.update((each.number, each.accesses) for each in every)
        else:
            passed = dict(joined(each.released(Semantics(0)).get(storage, NOTHING) for each in every))
        for each in every if passed else ():
            if own and semantics.acquires and not (semantics.releases or fenced):
                each.learn(storage, passed)
            elif (own and semantics.acquires) or fenced:
                each.take(storage, passed)
            else:
                each.acquire(Semantics(0), {storage: passed})
