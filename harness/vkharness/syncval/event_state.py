"""The operations on one event that a later one may still meet, and which of its sets a wait may see (rules.md#event).

A set of an event that is signaled has no effect, and neither has a reset of one that is not. So of several sets the one
that counts is the first that is executed after the last reset. Operations that nothing orders may be executed in any
order: then a wait may see any of several sets, and only what all of them cover is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field
from enum import Enum

from vkharness.findings import Place
from vkharness.syncval.host_knowledge import NOTHING_MORE, HostKnowledge
from vkharness.trace.effects import Barrier


class OperationKind(Enum):
    """Kinds of operations on an event."""

    SET = "set"
    RESET = "reset"
    WAIT = "wait"
    QUERIES = "queries"
    """A run of commands on queries, which stands in the order of operations like one on an event."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Contents of one first scope of a set: a token for accesses, and operations on events by number."""

    token: int
    operations: frozenset[int]


@dataclass(slots=True)
class ExecutedOperation:
    """One operation on an event. Operations are numbered as they are executed."""

    number: int
    event: int
    kind: OperationKind
    place: Place
    before: frozenset[int] = frozenset()
    """The operations, on any event, that are ordered before it."""
    sync2: bool = False
    barrier: Barrier | None = None
    """Of a set of the device."""
    marks: dict[int, Mark] = field(default_factory=dict)
    """Of a set, by source stage mask."""
    certain: bool = True
    """Of a wait, whether it is known which set it saw."""
    known: HostKnowledge = NOTHING_MORE
    """Of a set by the host, what the host knew then and commands that wait for it may not know."""
    is_complete: bool = False
    """Whether the host waited for a signal of some stages that comes after it."""

    @property
    def on_host(self) -> bool:
        """Whether the host set or reset the event."""
        return self.place.queue is None and self.place.command_buffer is None

    @property
    def stages(self) -> int:
        """Of a set, its source stage masks together."""
        return union_of(self.marks)


KEPT = 32
"""Operations of one event that are kept. Only a program that orders none of them makes so many."""


class EventState:
    """The operations on one event, in the order of execution, as far as nothing made them irrelevant."""

    def __init__(self) -> None:
        self.operations: list[ExecutedOperation] = []

    def of(self, kind: OperationKind) -> list[ExecutedOperation]:
        """The operations of one kind."""
        return [each for each in self.operations if each.kind is kind]

    @property
    def last(self) -> ExecutedOperation | None:
        """The last set or reset."""
        return next((each for each in reversed(self.operations) if each.kind is not OperationKind.WAIT), None)

    def seen(self, is_over: Callable[[ExecutedOperation], bool] = lambda reset: False) -> list[ExecutedOperation]:
        """The sets that a wait may see; `is_over` tells of a reset whether it comes before that wait.

        A set is not seen when a reset came after it that the wait, or a later set, comes after. It has no effect when
        another set came before it, and no reset can have come between the two.
        """
        sets, resets = self.of(OperationKind.SET), self.of(OperationKind.RESET)
        found = []
        for each in sets:
            after = [reset for reset in resets if each.number in reset.before]
            if any(is_over(reset) or any(reset.number in later.before for later in sets) for reset in after):
                continue
            earlier = [other for other in sets if other.number in each.before]
            between = (
                reset
                for reset in resets
                if reset not in after and not any(reset.number in other.before for other in earlier)
            )
            if not earlier or next(between, None) is not None:
                found.append(each)
        return found

    def add(self, made: ExecutedOperation) -> list[ExecutedOperation]:
        """Adds an operation; answers with those that no longer matter."""
        held = self.operations
        if made.kind is not OperationKind.WAIT and all(each.number in made.before for each in held):
            held = self._left_by(made)
        kept = [*held, made][-KEPT:]
        numbers = {each.number for each in kept}
        gone = [each for each in self.operations if each.number not in numbers]
        self.operations = kept
        return gone

    def _left_by(self, made: ExecutedOperation) -> list[ExecutedOperation]:
        """Returns the earlier operations that still matter once `made`, a set or a reset, comes after all of them."""
        sets, resets = self.of(OperationKind.SET), self.of(OperationKind.RESET)
        if made.kind is OperationKind.RESET:
            return self.seen()
        if not sets or any(all(each.number in reset.before for each in sets) for reset in resets):
            return []  # the event is unsignaled
        if any(all(reset.number in each.before for reset in resets) for each in sets):
            return self.seen()  # the event is signaled
        return [*sets, *resets]


def common(several: Iterable[Set[int]]) -> frozenset[int]:
    """Returns the intersection of all sets of numbers; the empty set when there is none."""
    found = [frozenset(each) for each in several]
    return frozenset.intersection(*found) if found else frozenset()


def union_of(masks: Iterable[int]) -> int:
    """All bits of several masks."""
    total = 0
    for mask in masks:
        total |= mask
    return total
