"""Wait before signal: the order in which batches can run when some wait for timeline values without a signal yet.

A batch, and every later batch of its queue, is held until the values that it waits for have signals (specification:
"Semaphore Waiting"). A binary semaphore holds a batch only while the batch that signals it is held, too: that one must
have been submitted before (VUID-vkQueueSubmit2-semaphore-03873).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from vkharness.trace.work_budget import spend

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
        self._signaled: set[int] = set()
        """Binary semaphores with a signal that nothing waited for."""
        self._outside: set[int] = set()
        """Semaphores that somebody outside may signal at any time: they hold nothing back."""
        self._stopped: dict[int, Values] = {}
        """By queue, the signals of a batch that has begun and has not ended."""

    def create(self, semaphore: int, initial: int | None) -> None:
        """Adds a semaphore: a timeline with a value, or a binary semaphore."""
        if initial is not None:
            self._reached[semaphore] = initial

    def share(self, semaphore: int, outside: bool) -> Iterator[Item]:
        """Whether somebody outside may signal a semaphore from now on. Yields the items that can run now."""
        if outside:
            self._outside.add(semaphore)
        else:
            self._outside.discard(semaphore)
        yield from self._release()

    def destroy(self, semaphore: int) -> None:
        """Removes a semaphore."""
        self._outside.discard(semaphore)
        self._reached.pop(semaphore, None)
        self._signaled.discard(semaphore)

    def signal(self, semaphore: int, value: int) -> Iterator[Item]:
        """The host signals a timeline semaphore. Yields the items that can run now."""
        self._reach(((semaphore, value),))
        yield from self._release()

    def submit(self, queue: int, batches: Iterable[PendingBatch[Item]]) -> Iterator[Item]:
        """Takes the batches of one submit. Yields the items that can run now."""
        self._held.setdefault(queue, deque()).extend(batches)
        yield from self._release()

    def stop(self, queue: int) -> None:
        """The batch of a queue that was given last does not end yet, so that no later one of the queue can run."""
        self._stopped[queue] = ()

    def go_on(self, queue: int) -> Iterator[Item]:
        """That batch has ended. Yields the items that can run now, those of its queue first."""
        self._reach(self._stopped.pop(queue))
        yield from self._release(queue)

    @property
    def held(self) -> list[PendingBatch[Item]]:
        """All items that have not run, by queue."""
        return [batch for queue in self._held.values() for batch in queue]

    def _release(self, first: int | None = None) -> Iterator[Item]:
        """Yields what can run, queue after queue, from the `first` one on."""
        names = [*self._held]
        begin = 0 if first is None else names.index(first)
        progress = True
        while progress:
            progress = begin > 0
            spend(len(self._held), "steps of queues that wait")
            for name in names[begin:]:
                queue = self._held[name]
                while queue and name not in self._stopped and self._ready(name, queue[0].waits):
                    batch = queue.popleft()
                    self._signaled.difference_update(semaphore for semaphore, _ in batch.waits)
                    progress = True
                    yield batch.item
                    if name in self._stopped:
                        self._stopped[name] = batch.signals
                    else:
                        self._reach(batch.signals)
            begin = 0

    def _ready(self, queue: int, waits: Values) -> bool:
        for semaphore, value in waits:
            if semaphore in self._outside:
                continue
            reached = self._reached.get(semaphore)
            if reached is not None and value > reached:
                return False
            if reached is None and semaphore not in self._signaled and self._is_coming(queue, semaphore):
                return False
        return True

    def _is_coming(self, queue: int, semaphore: int) -> bool:
        """Whether a batch of another queue signals a binary semaphore and has not ended."""
        if any(semaphore == each for signals in self._stopped.values() for each, _ in signals):
            return True
        held = (batch for other, several in self._held.items() if other != queue for batch in several)
        return any(semaphore == each for batch in held for each, _ in batch.signals)

    def _reach(self, signals: Values) -> None:
        for semaphore, value in signals:
            if semaphore in self._reached:
                self._reached[semaphore] = max(self._reached[semaphore], value)
            else:
                self._signaled.add(semaphore)
