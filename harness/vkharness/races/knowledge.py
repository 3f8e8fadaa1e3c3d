"""What one invocation knows to be over in others: the relations of the memory model, as a vector of numbers.

Each invocation counts its accesses. What it knows of another one is a number: that many accesses of that one happen
before its next one. A release passes on what an invocation knows, and that its own accesses so far are over; an acquire
takes over what was passed on. Knowledge is kept by storage class, since semantics order those alone that they name
("Inter-Thread-Happens-Before").

>>> one, other = Invocation(0), Invocation(1)
>>> one.accesses = 3
>>> ((reach, passed),) = one.released(Semantics.RELEASE | Semantics.BUFFERS, ScopeReach.ALL, Storage.BUFFER)
>>> other.acquire(Semantics.ACQUIRE | Semantics.BUFFERS, PassedVia(0, Storage.BUFFER), passed)
>>> other.knows(Storage.BUFFER, 0), other.knows(Storage.SHARED, 0)
(3, 0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum, IntEnum, IntFlag
from typing import NamedTuple


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

    @property
    def classes(self) -> Semantics:
        """The classes that these name."""
        return self & (Semantics.BUFFERS | Semantics.SHARED | Semantics.IMAGES)


class Storage(Enum):
    """Classes of memory that invocations share, each with the semantics that name it."""

    SHARED = Semantics.SHARED
    BUFFER = Semantics.BUFFERS
    IMAGE = Semantics.IMAGES


class ScopeReach(IntEnum):
    """Whom a scope of SPIR-V certainly reaches. Which invocations share a subgroup is not known: none do."""

    SELF = 0
    GROUP = 1
    ALL = 2
    """Every invocation of a dispatch."""

    @classmethod
    def of(cls, scope: int) -> ScopeReach:
        """That of a scope: CrossDevice, Device, QueueFamily and Workgroup reach others."""
        return cls.ALL if scope in (0, 1, 5) else cls.GROUP if scope == 2 else cls.SELF

    def joins(self, one: int, other: int) -> bool:
        """Whether invocations of two work groups are in one instance of it."""
        return self is ScopeReach.ALL or (self is ScopeReach.GROUP and one == other)


Known = Mapping[int, int]
"""Invocation to the number of its accesses that are over. A value that others may hold: never changed."""
Passed = dict[Storage, Known]
NOTHING: Known = {}
TOGETHER = 32
"""Numbers that are joined in the time of one instruction."""


class PassedVia(NamedTuple):
    """How something was passed on."""

    group: int
    """The work group of who released."""
    storage: Storage | None
    """The class of the atomic that it went through; None for a control barrier."""


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

    __slots__ = ("_fenced", "_known", "_read", "accesses", "fenced_at", "group", "last", "number", "spend")

    def __init__(self, number: int, group: int = 0, spend: Callable[[int], None] = lambda _: None) -> None:
        self.number, self.group = number, group
        self.spend = spend
        """Counts work that is done for it."""
        self.accesses = 0
        self.last: dict[Storage, int] = {}
        """The number of its last access to a class."""
        self.fenced_at: dict[Storage, int] = {}
        """The accesses that were made when a fence last released a class."""
        self._known: dict[Storage, Known] = {}
        self._fenced: dict[tuple[ScopeReach, Semantics], Passed] = {}
        """What the last fences of each sort passed on, to whom reads what an atomic writes from now on."""
        self._read: dict[PassedVia, dict[Storage, Known]] = {}
        """What atomics and barriers brought, that a later fence takes over."""

    def access(self, storage: Storage) -> None:
        """It makes an access."""
        self.accesses += 1
        self.last[storage] = self.accesses
        self.spend(1)

    def is_fenced(self, storage: Storage) -> bool:
        """Whether a fence released each access to a class."""
        return self.last.get(storage, 0) <= self.fenced_at.get(storage, 0)

    def knows(self, storage: Storage, other: int) -> int:
        """How many accesses of another invocation happen before the next one to this class."""
        return self._known.get(storage, NOTHING).get(other, 0)

    def _all(self, storage: Storage) -> Known:
        """What it knows, itself included."""
        known = self._known.get(storage, NOTHING)
        self.spend(len(known) // TOGETHER)
        return {**known, self.number: self.accesses}

    def known(self, storage: Storage) -> Known:
        """What it knows of others."""
        return self._known.get(storage, NOTHING)

    def released(
        self, semantics: Semantics, reach: ScopeReach, through: Storage
    ) -> Iterator[tuple[ScopeReach, Passed]]:
        """What an atomic of a class passes on, and to whom: by its own semantics, and by the fences before it that name
        its class."""
        if semantics.releases and semantics.classes:
            yield reach, {each: self._all(each) for each in Storage if semantics & each.value}
        for (fence, classes), passed in self._fenced.items():
            if classes & through.value:
                yield fence, passed

    def fenced(self, storage: Storage) -> Known:
        """What its fences pass on through a control barrier."""
        return joined(each.get(storage, NOTHING) for each in self._fenced.values())

    def acquire(self, semantics: Semantics, way: PassedVia, passed: Passed) -> None:
        """Takes over what was passed on, at once for classes that the semantics name, and at a later fence for all."""
        kept = self._read.setdefault(way, {})
        for storage, known in passed.items():
            if semantics.acquires and semantics & storage.value:
                self.learn(storage, known)
            else:
                self.spend(len(known) // TOGETHER)
                kept[storage] = joined((kept.get(storage, NOTHING), known))

    def learn(self, storage: Storage, known: Known) -> None:
        """From now on this happens before its accesses to a class."""
        self.spend(len(known) // TOGETHER)
        self._known[storage] = joined((self._known.get(storage, NOTHING), known))

    def take(self, storage: Storage, known: Known) -> None:
        """As `learn`, of what holds all that it knows already."""
        self._known[storage] = known

    def pass_on(self, reach: ScopeReach, semantics: Semantics, storage: Storage, known: Known) -> None:
        """A control barrier releases, behind which it knows this."""
        self._fenced.setdefault((reach, semantics.classes), {})[storage] = known

    def fence(self, semantics: Semantics, reach: ScopeReach) -> None:
        """OpMemoryBarrier: it takes over and passes on among those that its scope reaches ("Synchronizes-With")."""
        if reach is ScopeReach.SELF:
            return
        named = [each for each in Storage if semantics & each.value]
        for way, kept in self._read.items() if semantics.acquires else ():
            if reach.joins(way.group, self.group) and (way.storage is None or semantics & way.storage.value):
                for storage in named:
                    self.learn(storage, kept.pop(storage, NOTHING))
        if semantics.releases:
            self._fenced[reach, semantics.classes] = {each: self._all(each) for each in named}
            self.fenced_at.update((each, self.accesses) for each in named)


def meet(
    group: Iterable[Invocation], semantics: Semantics, reach: ScopeReach, classes: Iterable[Storage], by_fences: bool
) -> None:
    """A control barrier of a work group with these semantics for a memory scope; one narrower than the group has none.

    Fences order through it: one before it releases, and one behind it acquires. With `by_fences` a fence behind the
    last access to a class does both: so GLSL is written (`memoryBarrierBuffer(); barrier();`), and a control barrier is
    not reordered against fences.
    """
    every = [*group]
    semantics = semantics if reach >= ScopeReach.GROUP else Semantics(0)
    for each in every if semantics.acquires else ():
        each.fence(Semantics.ACQUIRE | semantics.classes, reach)
    for storage in classes:
        own = bool(semantics & storage.value)
        fenced = by_fences and all(each.is_fenced(storage) for each in every)
        if (own and semantics.releases) or fenced:
            passed = dict(joined(each.known(storage) for each in every))
            passed.update((each.number, each.accesses) for each in every)
        else:
            passed = dict(joined(each.fenced(storage) for each in every))
        for each in every if passed else ():
            each.spend(len(passed) // TOGETHER // len(every))
            if own and semantics.acquires and not (semantics.releases or fenced):
                each.learn(storage, passed)
            elif (own and semantics.acquires) or fenced:
                each.take(storage, passed)
                if own and semantics.releases:
                    each.pass_on(reach, semantics, storage, passed)
            else:
                each.acquire(Semantics(0), PassedVia(each.group, None), {storage: passed})
