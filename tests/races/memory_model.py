"""The Vulkan memory model as relations, in the words of "Memory Model": which accesses of one execution race.

This is written to be read beside the specification, and is slow. `vkharness.races` decides the same by vectors of
numbers; `test_litmus.py` holds the two against each other. An execution is a list of operations in the order in which
they were executed: a read gets what was last written. Sets of operations are the bits of a number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from vkharness.races.knowledge import DispatchLayout, ScopeReach, Semantics, Storage

NOTHING, NEVER = Semantics(0), ScopeReach.SELF


class Operation(NamedTuple):
    """One operation of an invocation."""

    invocation: int
    location: int = -1
    """That it accesses; -1 for barriers."""
    reference: int = 0
    storage: Storage = Storage.BUFFER
    reads: bool = False
    writes: bool = False
    atomic: bool = False
    scope: ScopeReach = ScopeReach.SELF
    """Memory scope of atomics and barriers."""
    semantics: Semantics = NOTHING
    available: ScopeReach = ScopeReach.SELF
    """Scope of MakePointerAvailable; SELF without."""
    visible: ScopeReach = ScopeReach.SELF
    private: bool = False
    control: int = -1
    """Which control barrier of its invocation it is; -1 for none."""


class Relation:
    """Pairs of operations: of each one the set of those that it is related to."""

    def __init__(self, rows: Iterable[int]) -> None:
        self.rows = [*rows]

    def __or__(self, other: Relation) -> Relation:
        return Relation(one | two for one, two in zip(self.rows, other.rows, strict=True))

    def __and__(self, other: Relation) -> Relation:
        return Relation(one & two for one, two in zip(self.rows, other.rows, strict=True))

    def __matmul__(self, other: Relation) -> Relation:
        """First this one, then the other one."""
        return Relation(_union(other.rows[at] for at in _bits(row)) for row in self.rows)

    def holds(self, one: int, other: int) -> bool:
        """Whether a pair is in it."""
        return bool(self.rows[one] >> other & 1)

    def closed(self) -> Relation:
        """The transitive closure."""
        rows = self.rows[:]
        for middle, _ in enumerate(rows):
            for at, row in enumerate(rows):
                if row >> middle & 1:
                    rows[at] |= rows[middle]
        return Relation(rows)


def _bits(mask: int) -> Iterable[int]:
    return (at for at in range(mask.bit_length()) if mask >> at & 1)


def _union(several: Iterable[int]) -> int:
    found = 0
    for each in several:
        found |= each
    return found


class Node(NamedTuple):
    """An operation, which makes available what it writes, or the availability or visibility operation of semantics."""

    of: Operation
    is_operation: bool = True
    available: ScopeReach = ScopeReach.SELF
    visible: ScopeReach = ScopeReach.SELF

    def classes(self) -> set[Storage]:
        """Storage classes on which it is an operation."""
        if not self.is_operation:
            return set(self.of.semantics.storages)
        return {self.of.storage} if self.of.location >= 0 else set()

    def includes(self, access: Operation) -> bool:
        """Whether it makes available or visible what an access accesses."""
        if not self.is_operation:
            return access.storage in self.of.semantics.storages
        return (access.location, access.reference) == (self.of.location, self.of.reference)


class Execution:
    """Operations in the order in which they were executed, with the relations among them."""

    def __init__(self, operations: Sequence[Operation], layout: DispatchLayout) -> None:
        self._layout = layout
        self.nodes = [node for each in operations for node in _nodes(each)]
        self._operations = [at for at, node in enumerate(self.nodes) if node.is_operation]
        self.program = self._relation(lambda a, b: a < b and self._of(a).invocation == self._of(b).invocation)
        self.from_program = self.program | self._only(lambda _: True)
        self.synchronizes = self._synchronizes()
        self.happens = self._happens()

    def _of(self, at: int) -> Operation:
        return self.nodes[at].of

    def _relation(self, holds: Callable[[int, int], bool]) -> Relation:
        every = range(len(self.nodes))
        return Relation(_union(1 << b for b in every if holds(a, b)) for a in every)

    def _only(self, holds: Callable[[Operation], bool]) -> Relation:
        return self._relation(lambda a, b: a == b and self.nodes[a].is_operation and holds(self._of(a)))

    def _in_scope(self, a: int, b: int) -> bool:
        """Whether each is in the instance of the other's memory scope."""
        one, other = self._of(a), self._of(b)
        homes = self._layout.home(one.invocation), self._layout.home(other.invocation)
        return all(each.joins(*homes) or one.invocation == other.invocation for each in (one.scope, other.scope))

    def mutual(self, a: int, b: int) -> bool:
        """Whether two operations are mutually-ordered atomics."""
        one, other = self._of(a), self._of(b)
        same = (one.location, one.reference) == (other.location, other.reference)
        return a != b and one.atomic and other.atomic and same and self._in_scope(a, b)

    def _sequences(self) -> Relation:
        """From each atomic write to the operations of the release sequence that it heads, or would head."""
        rows = [0] * len(self.nodes)
        for at in self._operations:
            if self._of(at).atomic and self._of(at).writes:
                rows[at] = 1 << at
                for later in (each for each in self._operations if each > at and self.mutual(at, each)):
                    if self._of(later).writes and not self._of(later).reads:
                        break
                    rows[at] |= self._of(later).writes << later
        return Relation(rows)

    def _reads_from(self) -> Relation:
        """From each write to the mutually-ordered atomics that read it."""
        rows = [0] * len(self.nodes)
        for at in self._operations:
            before = [e for e in self._operations if e < at and self._of(e).location == self._of(at).location]
            last = next((each for each in reversed(before) if self._of(each).writes), None)
            if self._of(at).reads and self._of(at).atomic and last is not None and self.mutual(last, at):
                rows[last] |= 1 << at
        return Relation(rows)

    def _synchronizes(self) -> Relation:
        """ "Synchronizes-With"."""
        releases = self._only(lambda e: e.semantics.releases and bool(e.semantics.classes))
        acquires = self._only(lambda e: e.semantics.acquires and bool(e.semantics.classes))
        atomics = self._only(lambda e: e.atomic)
        fences = self._only(lambda e: e.location < 0)
        passed = self._sequences() @ self._reads_from()
        named = self._relation(lambda a, b: bool(self._of(a).semantics & self._of(b).storage.value))
        naming = self._relation(lambda a, b: bool(self._of(b).semantics & self._of(a).storage.value))
        from_fence = releases @ fences @ (self.program & named) @ atomics
        to_fence = atomics @ (self.program & naming) @ fences @ acquires
        meets = self._relation(self._meet)
        return self._relation(self._in_scope) & (
            (releases @ atomics @ passed @ acquires @ atomics)
            | (from_fence @ passed @ acquires @ atomics)
            | (releases @ atomics @ passed @ to_fence)
            | (from_fence @ passed @ to_fence)
            | (releases @ fences @ self.from_program @ meets @ self.from_program @ fences @ acquires)
        )

    def _meet(self, a: int, b: int) -> bool:
        """Whether two are one control barrier, in two invocations. Its execution scope is its memory scope."""
        one, other = self._of(a), self._of(b)
        together = one.scope.joins(*(self._layout.home(each.invocation) for each in (one, other)))
        plain = self.nodes[a].is_operation and self.nodes[b].is_operation
        return plain and a != b and one.control == other.control >= 0 and together

    def _happens(self) -> Relation:
        """ "Happens-Before"."""
        found = self.program
        present = [each for each in Storage if any(each in node.classes() for node in self.nodes)]
        for number in range(1, 1 << len(present)):
            classes = {each for at, each in enumerate(present) if number >> at & 1}
            found |= self._before_by(classes)
        return found

    def _before_by(self, classes: set[Storage]) -> Relation:
        """ "Inter-Thread-Happens-Before", of a set of storage classes."""

        def names(at: int) -> bool:
            return self.nodes[at].is_operation and classes <= {*self._of(at).semantics.storages}

        def concerns(at: int) -> bool:
            return names(at) or bool(classes & self.nodes[at].classes())

        named = self._relation(lambda a, b: a == b and names(a))
        concerned = self._relation(lambda a, b: a == b and concerns(a))
        releases = named @ self._only(lambda e: e.semantics.releases)
        acquires = named @ self._only(lambda e: e.semantics.acquires)
        once = (named @ self.synchronizes @ named) | (concerned @ self.program @ releases)
        return (once | (acquires @ self.program @ concerned)).closed()

    # Availability and visibility

    def _domain(self, at: int, reach: ScopeReach) -> tuple[ScopeReach, int]:
        home = self._layout.home(self._of(at).invocation)
        return reach, (0, home.subgroup, home.group, 0)[reach]

    def _available(self, write: int) -> dict[tuple[ScopeReach, int], set[int]]:
        """Domains to which availability chains make a write available, each with the last elements of these."""
        found: dict[tuple[ScopeReach, int], set[int]] = {}
        for at, node in enumerate(self.nodes):
            if not node.includes(self._of(write)):
                continue
            for reach in _up_to(node.available):
                is_first = write == at or self.program.holds(write, at)
                smaller = [self._domain(at, each) for each in _up_to(ScopeReach(reach - 1))]
                before = {each for domain in smaller for each in found.get(domain, ())}
                if is_first or any(self.happens.holds(each, at) for each in before):
                    found.setdefault(self._domain(at, reach), set()).add(at)
        return found

    def _visible(self, read: int, domain: tuple[ScopeReach, int], behind: set[int]) -> bool:
        """Whether a visibility chain that begins in a domain, behind one of these operations, ends before a read."""
        chains: dict[tuple[ScopeReach, int], set[int]] = {}
        for at, node in enumerate(self.nodes):
            if not node.includes(self._of(read)):
                continue
            for reach in _up_to(node.visible):
                source = self._domain(at, reach)
                starts = source == domain and any(self.happens.holds(each, at) for each in behind)
                if starts or any(self.happens.holds(each, at) for each in chains.get(source, ())):
                    for each in _up_to(ScopeReach(reach - 1)):
                        chains.setdefault(self._domain(at, each), set()).add(at)
                    if at == read or self.program.holds(at, read):
                        return True
        return False

    def ordered(self, one: int, other: int) -> bool:
        """Whether one access is location-ordered before another one ("Location-Ordered")."""
        first, second = self._of(one), self._of(other)
        if not self.happens.holds(one, other) and not first.writes:
            return False
        if first.invocation == second.invocation and first.reference == second.reference:
            return self.happens.holds(one, other)
        if first.private or second.private:
            return False
        if first.reads and self.happens.holds(one, other):
            return True
        if not first.writes or first.reference != second.reference:
            return False
        for domain, last in self._available(one).items():
            common = self._domain(one, domain[0]) == self._domain(other, domain[0]) == domain
            if second.writes and common and any(self.happens.holds(each, other) for each in last):
                return True
            if second.reads and self._visible(other, domain, last):
                return True
        return False

    def races(self) -> set[tuple[int, int]]:
        """Pairs of accesses, by their numbers among the operations, that race ("Data Race")."""
        found = set()
        for number, one in enumerate(self._operations):
            for later, other in enumerate(self._operations[number + 1 :], number + 1):
                first, second = self._of(one), self._of(other)
                conflict = first.location == second.location >= 0 and (first.writes or second.writes)
                if conflict and not self.mutual(one, other) and not self.ordered(one, other):
                    found.add((number, later))
        return found


def _up_to(reach: ScopeReach) -> list[ScopeReach]:
    return [each for each in ScopeReach if ScopeReach.SELF < each <= reach]


def _nodes(operation: Operation) -> Iterable[Node]:
    """An operation between the availability and visibility operations of its semantics."""
    semantics, scope = operation.semantics, operation.scope
    if semantics & Semantics.MAKE_AVAILABLE:
        yield Node(operation, False, available=scope)
    available, visible = (scope, scope) if operation.atomic else (operation.available, operation.visible)
    is_write, is_read = operation.writes, operation.reads
    yield Node(operation, True, available if is_write else NEVER, visible if is_read else NEVER)
    if semantics & Semantics.MAKE_VISIBLE:
        yield Node(operation, False, visible=scope)
