"""Batches that wait for signals run in the order of turns, and a release costs what it releases."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from vkharness.trace import work_budget
from vkharness.trace.pending_batches import PendingBatch, PendingBatches
from vkharness.trace.work_budget import UNITS

SEMAPHORES = range(100, 106)


class Patient:
    """The same in short: after everything that happens, all queues are looked at in turn until none can go on, first
    of all the one whose batch has ended."""

    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.signaled: set[int] = set()
        self.queues: dict[int, deque[PendingBatch[Any]]] = {}
        self.stopped: dict[int, PendingBatch[Any] | None] = {}

    def submit(self, queue: int, batches: list[PendingBatch[Any]]) -> Iterator[Any]:
        self.queues.setdefault(queue, deque()).extend(batches)
        yield from self.run()

    def signal(self, semaphore: int, value: int) -> Iterator[Any]:
        self.reach(((semaphore, value),))
        yield from self.run()

    def stop(self, queue: int) -> None:
        self.stopped[queue] = None

    def go_on(self, queue: int) -> Iterator[Any]:
        ended = self.stopped.pop(queue)
        self.reach(ended.signals if ended else ())
        yield from self.run([*self.queues].index(queue))

    def run(self, first: int = 0) -> Iterator[Any]:
        moved = True
        while moved:
            moved = first > 0
            for name, queue in [*self.queues.items()][first:]:
                while queue and name not in self.stopped and all(self.holds(name, *each) for each in queue[0].waits):
                    batch, moved = queue.popleft(), True
                    self.signaled -= {each for each, _ in batch.waits}
                    yield batch.item
                    if name in self.stopped:
                        self.stopped[name] = batch
                    else:
                        self.reach(batch.signals)
            first = 0

    def holds(self, queue: int, semaphore: int, value: int) -> bool:
        if semaphore in self.values:
            return self.values[semaphore] >= value
        others = [batch for name, held in self.queues.items() if name != queue for batch in held]
        coming = [*others, *(each for each in self.stopped.values() if each)]
        return semaphore in self.signaled or all(semaphore not in dict(each.signals) for each in coming)

    def reach(self, signals: Any) -> None:
        for semaphore, value in signals:
            if semaphore in self.values:
                self.values[semaphore] = max(self.values[semaphore], value)
            else:
                self.signaled.add(semaphore)


def played(seed: int, batches: Any, stopped: dict[int, Any]) -> list[Any]:
    """Returns the batches that ran, step by step, of random submits, signals, and queues that stop at a batch."""
    chosen, ran = random.Random(seed), []

    def pairs(most: int) -> Any:
        return tuple((chosen.choice(SEMAPHORES), chosen.randint(0, 5)) for _ in range(chosen.randint(0, most)))

    for number in range(chosen.randint(5, 40)):
        choice = chosen.random()
        if choice < 0.7:
            queue = chosen.randint(1, 5)
            made = [PendingBatch(pairs(2), pairs(2), (queue, number, at)) for at in range(chosen.randint(0, 3))]
            items = batches.submit(queue, made)
        elif choice < 0.9 or not stopped:
            items = batches.signal(chosen.choice(SEMAPHORES), chosen.randint(0, 5))
        else:
            items = batches.go_on(chosen.choice(sorted(stopped)))
        for item in items:
            ran.append(item)
            if (item[1] + item[2] + seed) % 9 == 0:
                batches.stop(item[0])
        ran.append("then")
    return ran


def test_turns_are_taken_as_if_all_queues_were_looked_at() -> None:
    at_once = 0
    for seed in range(600):
        ours, theirs = PendingBatches[Any](), Patient()
        for semaphore in SEMAPHORES[: seed % 7]:
            ours.create(semaphore, 0)
            theirs.values[semaphore] = 0
        found = played(seed, ours, ours._stopped)
        assert found == played(seed, theirs, theirs.stopped), seed
        at_once += sum(one != "then" != other for one, other in pairwise(found))
    assert at_once > 1000


def units(queues: int) -> int:
    """Units of work to hold so many queues, each of which waits for another one's value, and to let them go on."""
    work_budget.share(1e6)
    before, waiting = UNITS.left, PendingBatches[int]()
    waiting.create(7, 0)
    for queue in range(queues):
        assert not list(waiting.submit(queue, [PendingBatch(((7, queue + 1),), ((7, queue + 2),), queue)]))
    assert list(waiting.signal(7, 1)) == list(range(queues))
    return before - UNITS.left


def test_a_release_costs_what_it_releases() -> None:
    assert 1.8 < units(400) / units(200) < 2.2
