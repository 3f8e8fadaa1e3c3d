"""Wait before signal: the order in which batches can run when some wait for timeline values without a signal yet.

A batch, and every later batch of its queue, is held until the values that it waits for have signals (specification:
"Semaphore Waiting"). Binary semaphores hold nothing: their signals must have been submitted before their waits
(VUID-vkQueueSubmit2-semaphore-03873).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")

Values = tuple[tuple[int, int], ...]
"""Pairs of a semaphore and a value. The value counts for timeline semaphores only."""


class PendingBatch(NamedTuple, Generic[Item]):
    """A batch that has not run: its waits, its signals, and the caller's item for it."""

    waits: Values
    signals: Values
    item: Item


class PendingBatches(Generic[Item]):
    """The batches of all queues of one device. Queues and semaphores are named by any integers.

    `submit` and `signal` give the items that can run now, of any queue, in an order in which they can.
    """

    def __init__(self) -> None:
        self._reached: dict[int, int] = {}
        self._held: dict[int, deque[PendingBatch[Item]]] = {}

    def create(self, semaphore: int, initial: int | None) -> None:
        """Adds a semaphore: a timeline with a value, or a binary semaphore."""
        if initial is not None:
            self._reached[semaphore] = initial

    def destroy(self, semaphore: int) -> None:
        """Removes a semaphore."""
        self._reached.pop(semaphore, None)

    def signal(self, semaphore: int, value: int) -> Iterator[Item]:
        """The host signals a timeline semaphore. Yields the items that can run now."""
        self._reach(((semaphore, value),))
        yield from self._release()

    def submit(self, queue: int, batches: Iterable[PendingBatch[Item]]) -> Iterator[Item]:
        """Takes the batches of one submit. Yields the items that can run now."""
        self._held.setdefault(queue, deque()).extend(batches)
        yield from self._release()

    @property
    def held(self) -> list[PendingBatch[Item]]:
        """All items that have not run, by queue."""
        return [batch for queue in self._held.values() for batch in queue]

    def _release(self) -> Iterator[Item]:
        progress = True
        while progress:
            progress = False
            for queue in self._held.values():
                while queue and self._ready(queue[0].waits):
                    batch = queue.popleft()
                    self._reach(batch.signals)
                    progress = True
                    yield batch.item

    def _ready(self, waits: Values) -> bool:
        return all(value <= self._reached.get(semaphore, value) for semaphore, value in waits)

    def _reach(self, signals: Values) -> None:
        for semaphore, value in signals:
            if semaphore in self._reached:
                self._reached[semaphore] = max(self._reached[semaphore], value)
