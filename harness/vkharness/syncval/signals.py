"""Signals of semaphores and fences, and which of them a wait comes after."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from sortedcontainers import SortedKeyList

from vkharness.spec.enums import VkPipelineStage2
from vkharness.syncval.host_knowledge import NOTHING_MORE, HostKnowledge
from vkharness.syncval.race import BatchIndex

HOST = -1
"""The queue of signals made by the host."""
SIGNALS_KEPT = 100
"""Signals of one timeline that are kept; older ones are covered by later ones."""
NARROW_KEPT = 16
"""The same for signals with marks, which every state has to hold."""


@dataclass(frozen=True, slots=True)
class Signal:
    """One signal operation: what it covers on its queue, and what that queue knew of others."""

    queue: int
    tag: BatchIndex
    stages: int
    queue_flags: int
    clock: dict[int, BatchIndex]
    token: int = 0
    """Marks what a narrow first scope holds. Not needed (0) when that is everything so far."""
    operations: frozenset[int] = frozenset()
    """The operations on events that it comes after, by number."""
    sure: dict[int, BatchIndex] = field(default_factory=dict)
    """As `clock`: up to where all work of other queues came before it, in whatever stages."""
    earlier: Signal | None = None
    """For a signal with a token, the last one before it on its queue without. It comes after that."""
    accesses: int | None = None
    """Its first access scope as bits of ACCESS_KINDS indices, if that is not every access in its stages."""
    known: HostKnowledge = NOTHING_MORE
    """For a signal made by the host, what the host knew then and batches that wait for it may not know."""

    @property
    def reach(self) -> dict[int, BatchIndex]:
        """Up to where each queue's work came before it."""
        return {**self.clock, self.queue: self.tag}

    @property
    def whole_reach(self) -> dict[int, BatchIndex]:
        """Up to where all work of each queue came before it, in whatever stages."""
        whole = self.earlier if self.token else self
        return {} if whole is None or whole.queue == HOST else {**whole.sure, whole.queue: whole.tag}


@dataclass(slots=True)
class SemaphoreState:
    """The signals of a timeline by value, or the pending signal of a binary semaphore, whose value is 0."""

    initial: int | None = None
    signals: SortedKeyList[tuple[int, Signal], int] = field(default_factory=lambda: SortedKeyList(key=itemgetter(0)))

    def add(self, value: int, signal: Signal, is_shared: bool = False) -> Signal | None:
        """Records a signal operation; answers with an old one that is no longer kept. Of a binary semaphore that is
        shared, each queue's last one is kept: it comes after those before it."""
        if is_shared and self.initial is None:
            old = next((each for each in self.signals if each[1].queue == signal.queue), None)
            self.signals.add((value, signal))
            if old is not None:
                self.signals.remove(old)
            return None if old is None else old[1]
        self.signals.add((value, signal))
        if self.initial is None or len(self.signals) <= (NARROW_KEPT if signal.token else SIGNALS_KEPT):
            return None
        return self.signals.pop(0)[1]

    def take(self) -> Signal | None:
        """The pending signal of a binary semaphore, which a wait unsignals.

        Rule: rules.md#a-wait-takes-a-binary-semaphore-back.
        """
        return self.signals.pop(0)[1] if self.signals else None

    def find(self, value: int) -> Signal | None:
        """The first signal that reaches a timeline value; None when none does.

        Rule: rules.md#a-timeline-wait-meets-the-first-signal-that-reaches-it.
        """
        at = self.signals.bisect_key_left(value)
        return self.signals[at][1] if at < len(self.signals) else None

    def is_exact(self, value: int) -> bool:
        """Whether the stream itself signals a timeline value, or begins with it."""
        if self.initial is None:
            return False
        at = self.signals.bisect_key_left(value)
        return value <= self.initial or (at < len(self.signals) and self.signals[at][0] == value)

    def last(self) -> list[Signal]:
        """The last signal of each queue, or several of one batch: the others come before them."""
        tags: dict[int, BatchIndex] = {}
        for _, signal in self.signals:
            tags[signal.queue] = max(signal.tag, tags.get(signal.queue, signal.tag))
        return [signal for _, signal in self.signals if signal.tag == tags[signal.queue]]


@dataclass(slots=True)
class QueueMark:
    """How far a queue had got, and what it knew of other queues, when a fence was given to it."""

    queue: int
    tag: BatchIndex
    sure: dict[int, BatchIndex]
    token: int = 0
    """Marks what the queue knew of that `sure` does not tell."""
    reach: dict[int, BatchIndex] = field(default_factory=dict)
    """Up to where it knew of other queues' work, if it has a token."""

    def signal(self) -> Signal:
        """The fence as a signal: it comes after the same."""
        clock = {**self.sure, **self.reach}
        return Signal(self.queue, self.tag, VkPipelineStage2.ALL_COMMANDS, -1, clock, self.token, sure=self.sure)


@dataclass(slots=True)
class SignalOrder:
    """Work of all queues that comes before the signal operations of one queue, so far."""

    sure: dict[int, BatchIndex] = field(default_factory=dict)
    """Up to where all work of other queues came before the queue's."""
    waited: dict[int, BatchIndex] = field(default_factory=dict)
    """Up to where it waited for all work of other queues, in whatever stages: a fence covers whole batches, waits of
    no stage among them."""
    is_partial: bool = False
    """Whether it waited for a signal with a token."""
    last: Signal | None = None
    """The last signal without a token."""
    token: int = 0
    """Marks what came before signals with tokens."""
    operations: frozenset[int] = frozenset()


class BeforeWait(NamedTuple):
    """The signal operations that a semaphore wait comes after."""

    signals: list[Signal]
    used: Signal | None = None
    """The signal that the wait uses up."""


class Semaphores:
    """All semaphores of a device, and which payloads are shared with somebody outside of the stream."""

    def __init__(self, fence_signals: Callable[[Iterable[int]], list[Signal]]) -> None:
        """`fence_signals` gives the signals of those of some fences that have one."""
        self._states: dict[int, SemaphoreState] = {}
        self._shared: set[int] = set()
        self._fence_signals = fence_signals

    def create(self, semaphore: int, initial: int | None) -> None:
        """A new semaphore: timeline with a value, or binary."""
        self._states[semaphore] = SemaphoreState(initial)

    def destroy(self, semaphore: int) -> list[Signal]:
        """A semaphore is gone; anything else is ignored. The signals that nothing waited for."""
        self._shared.discard(semaphore)
        held = self._states.pop(semaphore, None)
        return [signal for _, signal in held.signals] if held is not None else []

    def share(self, payload: int, outside: bool) -> list[Signal]:
        """Whether somebody outside may signal a payload from now on, and wait for it. The signals of a binary semaphore
        which are no longer kept: nobody outside waits for them, and one wait here takes one."""
        if outside:
            self._shared.add(payload)
            return []
        self._shared.discard(payload)
        held = self._states.get(payload)
        if held is None or held.initial is not None:
            return []
        return [held.signals.pop(0)[1] for _ in range(len(held.signals) - 1)]

    def is_shared(self, payload: int) -> bool:
        """Whether somebody outside may signal a payload."""
        return payload in self._shared

    def state(self, semaphore: int) -> SemaphoreState:
        """A semaphore. One whose creation was not seen is binary."""
        return self._states.setdefault(semaphore, SemaphoreState())

    def add(self, semaphore: int, value: int, signal: Signal) -> Signal | None:
        """Records a signal operation; answers with an old one that is no longer kept."""
        return self.state(semaphore).add(value, signal, semaphore in self._shared)

    def before_wait(self, semaphore: int, value: int) -> BeforeWait:
        """Returns the signal operations that a wait for a semaphore comes after. Unsignals a binary semaphore.

        Rule: rules.md#a-wait-for-a-signal-from-outside.
        """
        held = self.state(semaphore)
        if semaphore in self._shared and not held.is_exact(value):
            return BeforeWait(self.from_outside())
        if held.initial is None:
            taken = held.take()
            return BeforeWait([taken], taken) if taken is not None else BeforeWait([])
        signal = held.find(value) if value > held.initial else None
        return BeforeWait([signal] if signal is not None else [])

    def reaches(self, semaphore: int, value: int) -> bool:
        """Whether a timeline is known to reach a value."""
        held = self.state(semaphore)
        known = held.initial is None or value <= held.initial or held.find(value) is not None
        return known or semaphore in self._shared

    def from_outside(self) -> list[Signal]:
        """Returns the signals that one from outside may come after: all those so far of payloads that are shared with
        somebody outside."""
        if not self._shared:
            return []
        made = [each for semaphore in self._shared & self._states.keys() for each in self._states[semaphore].last()]
        return made + self._fence_signals(self._shared)
