"""Jobs in several worker processes side by side, all bound to one driver."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from queue import SimpleQueue
from typing import Any

from vkharness.device.drivers import Driver
from vkharness.device.process import DEFAULT_TIMEOUT, Died, Worker
from vkharness.findings import UserError

Answer = dict[str, Any] | Died | UserError
"""The result of a job: its dictionary, the death of its process, or the reason why it could not be done."""


def run_jobs(
    driver: Driver,
    target: str,
    jobs: Sequence[Mapping[str, Any]],
    processes: int,
    packages: Sequence[str] = (),
    *,
    timeout: float = DEFAULT_TIMEOUT,
    is_spent: Callable[[Mapping[str, Any]], bool] = lambda answer: False,
) -> Iterator[tuple[int, Answer]]:
    """Calls `target` ('package.module:function') with each job's arguments; yields (position, answer) as they finish.

    A process that dies takes one job with it, and one of which an answer says that it `is_spent` does no other job.
    `packages` and `timeout` as for `Worker`. Raises `JobError` when a job raises anything
    but `UserError`.
    """
    workers = [Worker(driver, packages=packages, timeout=timeout) for _ in range(max(1, min(processes, len(jobs))))]
    idle: SimpleQueue[Worker] = SimpleQueue()
    for worker in workers:
        idle.put(worker)

    def one(position: int) -> tuple[int, Answer]:
        worker = idle.get()
        try:
            answer = worker.call(target, jobs[position])
            if not isinstance(answer, Died) and is_spent(answer):
                worker.close()
            return position, answer
        except UserError as error:
            return position, error
        finally:
            idle.put(worker)

    pool = ThreadPoolExecutor(len(workers))
    try:
        for done in as_completed([pool.submit(one, position) for position in range(len(jobs))]):
            yield done.result()
    finally:
        pool.shutdown(cancel_futures=True)
        for worker in workers:
            worker.close()


def sample(total: int, count: int, seed: int) -> list[int]:
    """`count` of the numbers below `total` (all, when there are fewer), ascending, the same for the same seed."""
    return sorted(random.Random(seed).sample(range(total), min(count, total)))
