"""Wait before signal: the order in which batches can run when some wait for timeline values without a signal yet.

A batch, and every later batch of its queue, is held until the values that it waits for have signals (specification:
"Semaphore Waiting"). A binary semaphore holds a batch only while the batch that signals it is held, too: that one must
have been submitted before (VUID-vkQueueSubmit2-semaphore-03873).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
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

    `submit` and `signal` give the items that can run now, of any queue, in an order in which they can: queues take
    turns in the order of their first submits, each as far as it can go. A queue is looked at when something happened
    that its first batch waits for, so that a release costs what it releases, however many queues wait.
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
        self._turns: dict[int, int] = {}
        """By queue, its place in the order of turns."""
        self._names: list[int] = []
        """The queues in this order."""
        self._coming: dict[int, Counter[int]] = {}
        """By semaphore, how many held batches of each queue signal it; nothing of those that none signals."""
        self._waiting: dict[int, list[tuple[int, int]]] = {}
        """By semaphore, the values that first batches were found to wait for, with the turns of their queues; the least
        value first. The value is 0 for a binary semaphore."""
        self._woken: set[int] = set()
        """The turns of queues that are to be looked at."""

    def create(self, semaphore: int, initial: int | None) -> None:
        """Adds a semaphore: a timeline with a value, or a binary semaphore."""
        if initial is not None:
            self._reached[semaphore] = initial
            self._wake(semaphore)

    def share(self, semaphore: int, outside: bool) -> Iterator[Item]:
        """Whether somebody outside may signal a semaphore from now on. Yields the items that can run now."""
        if outside:
            self._outside.add(semaphore)
        else:
            self._outside.discard(semaphore)
        self._wake(semaphore)
        yield from self._release()

    def destroy(self, semaphore: int) -> None:
        """Removes a semaphore."""
        self._outside.discard(semaphore)
        self._reached.pop(semaphore, None)
        self._signaled.discard(semaphore)
        self._wake(semaphore)

    def signal(self, semaphore: int, value: int) -> Iterator[Item]:
        """The host signals a timeline semaphore. Yields the items that can run now."""
        self._reach(((semaphore, value),))
        yield from self._release()

    def submit(self, queue: int, batches: Iterable[PendingBatch[Item]]) -> Iterator[Item]:
        """Takes the batches of one submit. Yields the items that can run now."""
        if queue not in self._turns:
            self._turns[queue] = len(self._names)
            self._names.append(queue)
        held = self._held.setdefault(queue, deque())
        for batch in batches:
            held.append(batch)
            for semaphore, _ in batch.signals:
                self._coming.setdefault(semaphore, Counter())[queue] += 1
        self._woken.add(self._turns[queue])
        yield from self._release()

    def stop(self, queue: int) -> None:
        """The batch of a queue that was given last does not end yet, so that no later one of the queue can run."""
        self._stopped[queue] = ()

    def go_on(self, queue: int) -> Iterator[Item]:
        """That batch has ended. Yields the items that can run now, those of its queue first."""
        self._reach(self._stopped.pop(queue))
        self._woken.add(self._turns[queue])
        yield from self._release(self._turns[queue])

    @property
    def held(self) -> list[PendingBatch[Item]]:
        """All items that have not run, by queue."""
        return [batch for queue in self._held.values() for batch in queue]

    def _release(self, first: int = 0) -> Iterator[Item]:
        """Round after round of turns, the first one from the turn `first` on: a queue that one behind it in the order
        has woken is in the next round."""
        turns, current = sorted((int(turn < first), turn) for turn in self._woken), (0, -1)
        self._woken.clear()
        while turns:
            if turns[0] == current:  # woken twice
                heappop(turns)
                continue
            current = heappop(turns)
            spend(1, "steps of queues that wait")
            yield from self._turn(self._names[current[1]])
            for turn in self._woken:
                heappush(turns, (current[0] + (turn <= current[1]), turn))
            self._woken.clear()

    def _turn(self, name: int) -> Iterator[Item]:
        queue = self._held[name]
        while queue and name not in self._stopped and self._ready(name, queue[0].waits):
            batch = queue.popleft()
            self._signaled.difference_update(semaphore for semaphore, _ in batch.waits)
            yield batch.item
            self._give_up(name, batch.signals)
            if name in self._stopped:
                self._stopped[name] = batch.signals
            else:
                self._reach(batch.signals)

    def _give_up(self, name: int, signals: Values) -> None:
        """Forgets that a batch of a queue, which is not held any more, is to signal."""
        for semaphore, _ in signals:
            coming = self._coming[semaphore]
            coming[name] -= 1
            if not coming[name]:
                del coming[name]
            if not coming:
                del self._coming[semaphore]

    def _ready(self, queue: int, waits: Values) -> bool:
        for semaphore, value in waits:
            if semaphore in self._outside:
                continue
            reached = self._reached.get(semaphore)
            is_short = reached is not None and value > reached
            if is_short or (reached is None and semaphore not in self._signaled and self._is_coming(queue, semaphore)):
                heappush(self._waiting.setdefault(semaphore, []), (value if is_short else 0, self._turns[queue]))
                return False
        return True

    def _is_coming(self, queue: int, semaphore: int) -> bool:
        """Whether a batch of another queue signals a binary semaphore and has not ended."""
        if any(semaphore == each for signals in self._stopped.values() for each, _ in signals):
            return True
        coming = self._coming.get(semaphore)
        return coming is not None and any(other != queue for other in coming)

    def _reach(self, signals: Values) -> None:
        for semaphore, value in signals:
            if semaphore in self._reached:
                self._reached[semaphore] = max(self._reached[semaphore], value)
            else:
                self._signaled.add(semaphore)
            waiting = self._waiting.pop(semaphore, [])
            while waiting and waiting[0][0] <= self._reached.get(semaphore, 0):
                self._woken.add(heappop(waiting)[1])
            if waiting:
                self._waiting[semaphore] = waiting

    def _wake(self, semaphore: int) -> None:
        """Looks again at all that wait for a semaphore, which is another one than before."""
        self._woken.update(turn for _, turn in self._waiting.pop(semaphore, ()))
