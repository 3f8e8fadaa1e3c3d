"""What one invocation knows to be over in others: the relations of the memory model, as vectors of numbers.

Each invocation counts its accesses. What it knows of another one is a number: that many accesses of that one happen
before its next one. A release passes on what an invocation knows, and that its own accesses so far are over; an acquire
takes over what was passed on. Knowledge is kept by storage class, since semantics order those alone that they name
("Inter-Thread-Happens-Before"). That writes are available to a memory domain is knowledge of the same kind: it is
passed on and taken over like accesses are ("Availability and Visibility").

>>> layout = DispatchLayout(64)
>>> one, other = Invocation(0, layout), Invocation(1, layout)
>>> one.accesses = 3
>>> ((reach, passed),) = one.released(Semantics.RELEASE | Semantics.BUFFERS, ScopeReach.ALL, Storage.BUFFER)
>>> other.acquire(Semantics.ACQUIRE | Semantics.BUFFERS, PassedVia(one.home, Storage.BUFFER), passed)
>>> other.knows(Storage.BUFFER, 0), other.knows(Storage.SHARED, 0)
(3, 0)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    MAKE_AVAILABLE = 0x2000
    MAKE_VISIBLE = 0x4000

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

    @property
    def storages(self) -> list[Storage]:
        """The same, one by one."""
        return [each for each in Storage if self & each.value]


class Storage(Enum):
    """Classes of memory that invocations share, each with the semantics that name it."""

    SHARED = Semantics.SHARED
    BUFFER = Semantics.BUFFERS
    IMAGE = Semantics.IMAGES


class Home(NamedTuple):
    """Where an invocation is."""

    subgroup: int
    """The number of its subgroup in the dispatch; -1 where nobody knows."""
    group: int
    """The number of its work group."""


class ScopeReach(IntEnum):
    """Whom a scope of SPIR-V certainly reaches."""

    SELF = 0
    SUBGROUP = 1
    GROUP = 2
    ALL = 3
    """Every invocation of a dispatch."""

    @classmethod
    def of(cls, scope: int) -> ScopeReach:
        """That of a scope: CrossDevice, Device and QueueFamily reach all."""
        return cls.ALL if scope in (0, 1, 5) else cls.GROUP if scope == 2 else cls.SUBGROUP if scope == 3 else cls.SELF

    def joins(self, one: Home, other: Home) -> bool:
        """Whether invocations at two places are in one instance of it."""
        if self is ScopeReach.GROUP:
            return one.group == other.group
        return self is ScopeReach.ALL or (self is ScopeReach.SUBGROUP and one.subgroup == other.subgroup >= 0)


class DispatchLayout(NamedTuple):
    """How the invocations of a dispatch are numbered: by work group, and in it by LocalInvocationIndex."""

    group_size: int
    subgroup_size: int = 0
    """0 where nobody knows which invocations share a subgroup: then none certainly do."""

    def home(self, number: int) -> Home:
        """Where an invocation is."""
        group, local = divmod(number, self.group_size)
        if not self.subgroup_size:
            return Home(-1, group)
        return Home(group * -(-self.group_size // self.subgroup_size) + local // self.subgroup_size, group)


class Domain(NamedTuple):
    """A memory domain: the dual of an instance of a scope."""

    reach: ScopeReach
    number: int

    def holds(self, home: Home) -> bool:
        """Whether the invocations there access it."""
        return self in domains(self.reach, home)


def domains(reach: ScopeReach, home: Home) -> Sequence[Domain]:
    """The memory domains that an availability or visibility operation of this scope includes, smallest first."""
    every = (Domain(ScopeReach.SUBGROUP, home.subgroup), Domain(ScopeReach.GROUP, home.group), SHADER_DOMAIN)
    return every[home.subgroup < 0 : reach]


SHADER_DOMAIN = Domain(ScopeReach.ALL, 0)


class Available(NamedTuple):
    """That writes are available to a domain."""

    storage: Storage
    """What they write to."""
    own: ScopeReach
    """The writes that say themselves that they are available so far, or farther."""
    domain: Domain


class Fact(NamedTuple):
    """What may be known of the first accesses of an invocation."""

    by: Storage
    """It happens before the next operation on this class."""
    available: Available | None = None
    """None: that they are over."""


OVER = {each: Fact(each) for each in Storage}
Known = Mapping[int, int]
"""Invocation to the number of its accesses of which a fact holds. A value that others may hold: never changed."""
Passed = dict[Fact, Known]
NOTHING: Known = {}
TOGETHER = 32
"""Numbers that are joined in the time of one instruction."""


class PassedVia(NamedTuple):
    """How something was passed on."""

    home: Home
    """Where who released is."""
    through: Storage | ScopeReach
    """The class of the atomic that it went through, or the execution scope of the control barrier."""

    def is_open(self, semantics: Semantics, reach: ScopeReach) -> bool:
        """Whether a fence behind it with these semantics and this scope takes over."""
        if isinstance(self.through, ScopeReach):
            return reach >= self.through
        return bool(semantics & self.through.value)


class MissingOrder(Enum):
    """Why two accesses are not location-ordered."""

    ORDER = "order"
    AVAILABILITY = "availability"
    VISIBILITY = "visibility"
    REFERENCE = "reference"


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

    __slots__ = (
        "_fenced", "_known", "_read", "_visible", "accesses", "fenced_at", "home", "last", "layout", "number", "spend",
    )  # fmt: skip

    def __init__(self, number: int, layout: DispatchLayout, spend: Callable[[int], None] = lambda _: None) -> None:
        self.number, self.layout, self.home = number, layout, layout.home(number)
        self.spend = spend
        """Counts work that is done for it."""
        self.accesses = 0
        self.last: dict[Storage, int] = {}
        """The number of its last access to a class."""
        self.fenced_at: dict[tuple[Storage, ScopeReach], int] = {}
        """The accesses that were made when a fence of this scope last released a class."""
        self._known: Passed = {}
        self._visible: dict[tuple[Storage, ScopeReach], Known] = {}
        """Writes of others that a visibility operation of its own made visible to it, by class and `Available.own`."""
        self._fenced: dict[tuple[ScopeReach, Semantics], Passed] = {}
        """What the last fences of each sort passed on, to whom reads what an atomic writes from now on."""
        self._read: dict[PassedVia, Passed] = {}
        """What atomics and barriers brought, that a later fence takes over."""

    def access(self, storage: Storage) -> None:
        """It makes an access."""
        self.accesses += 1
        self.last[storage] = self.accesses
        self.spend(1)

    def is_fenced(self, storage: Storage, execution: ScopeReach) -> bool:
        """Whether a fence released each access to a class to all who meet at a control barrier of this scope."""
        fenced = max(self.fenced_at.get((storage, each), 0) for each in ScopeReach if each >= execution)
        return self.last.get(storage, 0) <= fenced

    def knows(self, storage: Storage, other: int) -> int:
        """How many accesses of another invocation happen before the next one to this class."""
        return self.known(storage).get(other, 0)

    def known(self, storage: Storage) -> Known:
        """The same of all others."""
        return self._known.get(OVER[storage], NOTHING)

    def knows_availability(self) -> bool:
        """Whether it knows of any write that is available or visible by an operation of another access."""
        return bool(self._visible) or any(fact.available is not None for fact in self._known)

    def facts(self, storage: Storage) -> Passed:
        """What it knows by a class."""
        return _by(storage, self._known)

    def _all(self, storages: Iterable[Storage]) -> Passed:
        """What a release of these classes passes on: what it knows, and its own accesses."""
        passed: Passed = {}
        for storage in storages:
            passed |= self.facts(storage)
            known = self.known(storage)
            self.spend(len(known) // TOGETHER)
            passed[OVER[storage]] = {**known, self.number: self.accesses}
        return passed

    def released(
        self, semantics: Semantics, reach: ScopeReach, through: Storage
    ) -> Iterator[tuple[ScopeReach, Passed]]:
        """What an atomic of a class passes on, and to whom: by its own semantics, and by the fences before it that name
        its class."""
        if semantics.releases and semantics.classes:
            yield reach, self._all(semantics.storages)
        for (fence, classes), passed in self._fenced.items():
            if classes & through.value:
                yield fence, passed

    def fenced(self, execution: ScopeReach) -> Passed:
        """What its fences pass on through a control barrier of this scope."""
        return joined_facts(passed for (reach, _), passed in self._fenced.items() if reach >= execution)

    def acquire(self, semantics: Semantics, way: PassedVia, passed: Passed) -> None:
        """Takes over what was passed on, at once for classes that the semantics name, and at a later fence for all."""
        kept = self._read.setdefault(way, {})
        for fact, known in passed.items():
            if semantics.acquires and semantics & fact.by.value:
                self.learn(fact, known)
            else:
                self.spend(len(known) // TOGETHER)
                kept[fact] = joined((kept.get(fact, NOTHING), known))

    def learn(self, fact: Fact, known: Known) -> None:
        """From now on this happens before its operations on a class."""
        self.spend(len(known) // TOGETHER)
        self._known[fact] = joined((self._known.get(fact, NOTHING), known))

    def learn_all(self, passed: Passed) -> None:
        """As `learn`, of several facts."""
        for fact, known in passed.items():
            self.learn(fact, known)

    def take(self, passed: Passed) -> None:
        """As `learn`, of what holds all that it knows already."""
        self._known.update(passed)

    def pass_on(self, reach: ScopeReach, semantics: Semantics, passed: Passed) -> None:
        """A control barrier releases, behind which it knows this."""
        self._fenced.setdefault((reach, semantics.classes), {}).update(passed)

    def fence(self, semantics: Semantics, reach: ScopeReach) -> None:
        """OpMemoryBarrier: it takes over and passes on among those that its scope reaches ("Synchronizes-With")."""
        if reach is ScopeReach.SELF:
            return
        named = semantics.storages
        self.make_available(semantics, reach)
        for way, kept in self._read.items() if semantics.acquires else ():
            if way.is_open(semantics, reach) and reach.joins(way.home, self.home):
                for fact in [each for each in kept if each.by in named]:
                    self.learn(fact, kept.pop(fact))
        if semantics.releases:
            self._fenced[reach, semantics.classes] = self._all(named)
            self.fenced_at.update(((each, reach), self.accesses) for each in named)
        self.make_visible(semantics, reach)

    def make_available(self, semantics: Semantics, reach: ScopeReach) -> None:
        """The availability operation before a release: its own writes, and those that are available to a smaller domain
        of which it is ("availability chain")."""
        if not semantics & Semantics.MAKE_AVAILABLE or not semantics.releases:
            return
        own, named = domains(reach, self.home), semantics.storages
        made: list[tuple[Available, Known]] = []
        for at, domain in enumerate(own):
            for storage in named:
                made.append((Available(storage, ScopeReach.SELF, domain), {self.number: self.accesses}))
                for smaller in own[:at]:
                    for of, known in self._available(smaller, storage, named):
                        made.append((Available(storage, of, domain), known))
        self._learn_available(made, named)

    def make_visible(self, semantics: Semantics, reach: ScopeReach) -> None:
        """The visibility operation behind an acquire. What it brings is available to the smaller domains of which the
        invocation is ("visibility chain")."""
        if not semantics & Semantics.MAKE_VISIBLE or not semantics.acquires:
            return
        own, named = domains(reach, self.home), semantics.storages
        made: list[tuple[Available, Known]] = []
        for at, domain in enumerate(own):
            for storage in named:
                for of, known in self._available(domain, storage, named):
                    self.spend(len(known) // TOGETHER)
                    self._visible[storage, of] = joined((self._visible.get((storage, of), NOTHING), known))
                    made += [(Available(storage, of, smaller), known) for smaller in own[:at]]
        self._learn_available(made, named)

    def _learn_available(self, made: list[tuple[Available, Known]], named: list[Storage]) -> None:
        for each, known in made:
            for by in named:
                self.learn(Fact(by, each), known)

    def _available(self, domain: Domain, storage: Storage, named: list[Storage]) -> Iterator[tuple[ScopeReach, Known]]:
        """Writes to a class that are available to a domain before an operation on the named classes."""
        for fact, known in [*self._known.items()]:
            said = fact.available
            if fact.by in named and said is not None and said.storage is storage and said.domain == domain:
                yield said.own, known
        known = self.known(storage)
        self.spend(len(known) // TOGETHER)
        inside = {each: count for each, count in known.items() if domain.holds(self.layout.home(each))}
        if inside:
            yield domain.reach, inside

    def sees_available(self, domain: Domain, storage: Storage, other: int, own: ScopeReach) -> int:
        """How many accesses of another invocation, among them writes that say to be available so far, are available to
        a domain before the next access to the class."""
        facts = (Fact(storage, Available(storage, each, domain)) for each in ScopeReach if each <= own)
        count = max(self._known.get(fact, NOTHING).get(other, 0) for fact in facts)
        if own >= domain.reach and domain.holds(self.layout.home(other)):
            count = max(count, self.knows(storage, other))
        return count

    def sees_visible(self, storage: Storage, other: int, own: ScopeReach) -> int:
        """How many accesses of another invocation, among them such writes, were made visible to it."""
        return max(self._visible.get((storage, each), NOTHING).get(other, 0) for each in ScopeReach if each <= own)


def joined_facts(several: Iterable[Passed]) -> Passed:
    """All facts that any of them has."""
    held = [*several]
    facts = dict.fromkeys(fact for each in held for fact in each)
    return {fact: joined(each.get(fact, NOTHING) for each in held) for fact in facts}


def meet(
    every: Sequence[Invocation],
    execution: ScopeReach,
    semantics: Semantics,
    reach: ScopeReach,
    classes: Iterable[Storage],
    by_fences: bool,
) -> None:
    """A control barrier, at which all invocations of an instance of the execution scope are, with these semantics for a
    memory scope; one narrower than the execution scope has none.

    Fences order through it: one before it releases, and one behind it acquires. With `by_fences` a fence behind the
    last access to a class, of a scope as wide as the barrier's, does both: so GLSL is written (`memoryBarrierBuffer();
    barrier();`), and a control barrier is not reordered against fences.
    """
    semantics = semantics if reach >= execution else Semantics(0)
    for each in every:
        each.make_available(semantics, reach)
        if semantics.acquires:
            each.fence(Semantics.ACQUIRE | semantics.classes, reach)
    fenced = joined_facts(each.fenced(execution) for each in every)
    for storage in classes:
        own = bool(semantics & storage.value)
        is_fenced = by_fences and all(each.is_fenced(storage, execution) for each in every)
        releases = is_fenced or (own and semantics.releases)
        passed = _known_by(storage, every) if releases else _by(storage, fenced)
        size = sum(map(len, passed.values()))
        for each in every if passed else ():
            each.spend(size // TOGETHER // len(every))
            if not is_fenced and not (own and semantics.acquires):
                each.acquire(Semantics(0), PassedVia(each.home, execution), passed)
            elif not releases:
                each.learn_all(passed)
            else:
                each.take(passed)
                if own and semantics.releases:
                    each.pass_on(reach, semantics, passed)
    for each in every:
        each.make_visible(semantics, reach)


def _known_by(storage: Storage, every: Sequence[Invocation]) -> Passed:
    """All that they know by a class, and that their own accesses are over."""
    passed = joined_facts(each.facts(storage) for each in every)
    over = {**passed.get(OVER[storage], NOTHING)}
    over.update((each.number, each.accesses) for each in every)
    passed[OVER[storage]] = over
    return passed


def _by(storage: Storage, passed: Passed) -> Passed:
    return {fact: known for fact, known in passed.items() if fact.by is storage}
