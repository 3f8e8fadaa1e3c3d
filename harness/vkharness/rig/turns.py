"""Threads that take turns, so that what several threads record is the same in every run."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence


class _Worker(threading.Thread):
    """A thread that runs one step when it is its turn."""

    def __init__(self, steps: Iterator[object]) -> None:
        super().__init__(daemon=True)
        self.steps = steps
        self.mine, self.done = threading.Semaphore(0), threading.Semaphore(0)
        self.ended = False
        self.error: BaseException | None = None

    def run(self) -> None:
        while not self.ended:
            self.mine.acquire()
            try:
                next(self.steps)
            except StopIteration:
                self.ended = True
            except BaseException as error:  # the thread that started the turns raises it
                self.error, self.ended = error, True
            self.done.release()


def in_turns(several: Sequence[Iterator[object]]) -> None:
    """Runs each iterator on a thread of its own. At each step the turn passes on, in order, to the next one.

    Returns when all have ended. Raises what the first of them raised; the others go no further then.
    """
    workers = [_Worker(steps) for steps in several]
    for worker in workers:
        worker.start()
    while running := [worker for worker in workers if not worker.ended]:
        for worker in running:
            worker.mine.release()
            worker.done.acquire()
            if worker.error is not None:
                raise worker.error
    for worker in workers:
        worker.join()
