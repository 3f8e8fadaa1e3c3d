"""Semaphores and fences as objects: whether they are used again too early (specification: "Semaphores", "Fences").

A binary semaphore has one payload. Whether an operation finds it as it must be follows from what is over. Each batch,
each present and each signal of a fence has a number. With each queue, presentation and signal goes the set of the
numbers that it comes after, and with the host the set of those that it knows to be complete. A queue comes after what
it has waited for in whatever stages: these sets order no access.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from vkharness.findings import Place
from vkharness.model.node_numbers import EMPTY, NodeNumbers


@dataclass(frozen=True, slots=True)
class ObjectUse:
    """A use of a semaphore or of a fence, with its number; None where only a wait for the object itself tells of it."""

    place: Place
    number: int | None = None

    def is_among(self, over: NodeNumbers) -> bool:
        """Whether it is one of those uses."""
        return self.number is not None and self.number in over

    @property
    def may_be_over(self) -> bool:
        """Whether it is a fence of a batch of binds: nothing orders that batch, but a wait for what it signals tells of
        it, too."""
        return self.number is None and self.place.queue is not None


@dataclass(slots=True)
class SemaphoreUses:
    """The last uses of a semaphore, and whether its payload was ever one of somebody outside."""

    created: Place | None = None
    signal: ObjectUse | None = None
    """The last signal operation."""
    wait: ObjectUse | None = None
    """The last wait."""
    is_signaled: bool = False
    """Of a binary semaphore, whether a signal is pending or was executed that no wait has taken."""
    foreign: bool = False


@dataclass(slots=True)
class FenceUses:
    """The submission of a fence, the operations before its signal, and whether the host knows that it is signaled."""

    use: ObjectUse
    before: NodeNumbers = EMPTY
    signaled: bool = False


@dataclass(slots=True)
class ObjectUses:
    """The uses of all semaphores and fences of a program."""

    semaphores: dict[int, SemaphoreUses] = field(default_factory=dict)
    fences: dict[int, FenceUses] = field(default_factory=dict)
    foreign: set[int] = field(default_factory=set)
    lost: bool = False
    """Whether the device is lost, so that no use is wrong any more."""
    queues: dict[int, NodeNumbers] = field(default_factory=dict)
    """For each queue, the uses that its operations so far come after."""
    presents: dict[int, NodeNumbers] = field(default_factory=dict)
    """For each queue, the uses that its last present comes after, and that present's own."""
    shown: dict[tuple[int, int], NodeNumbers] = field(default_factory=dict)
    """The same for the last presentation of each image (a swapchain and an image: another swapchain may have it, too).
    """
    host: NodeNumbers = EMPTY
    """The uses that the host knows to be over."""
    at: dict[int, NodeNumbers] = field(default_factory=dict)
    """By node of a signal or of a submit, the uses that it comes after."""
    count: int = 0

    def number(self) -> int:
        """The number of a new use."""
        self.count += 1
        return self.count - 1

    def semaphore(self, id: int) -> SemaphoreUses:
        """The uses of a semaphore."""
        return self.semaphores.setdefault(id, SemaphoreUses())

    def before(self, id: int, signals: Iterable[int]) -> NodeNumbers:
        """The uses that a wait for a semaphore comes after, whose signals are these nodes. Somebody outside may have
        waited for everything."""
        if self.semaphore(id).foreign:
            return NodeNumbers.of(range(self.count))
        known = EMPTY
        for node in signals:
            known |= self.at.get(node, EMPTY)
        return known

    def hear(self, queue: int, known: NodeNumbers) -> None:
        """Orders these uses before all later work of a queue."""
        self.queues[queue] = self.queues.get(queue, EMPTY) | known
