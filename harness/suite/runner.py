"""Runs the tasks of the suite in worker processes of a driver, and collects an answer for each.

A task is the JSON-able keyword arguments of one public function that returns a dictionary: one variant of a scenario,
one cell of the matrix, all mutants of one scenario. Drivers crash, so that a task has either an answer or a `NoAnswer`
with the status and the problem of its row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, NamedTuple

from harness.device.drivers import find_driver
from harness.device.pool import run_jobs
from harness.device.process import Died, JobError, Worker
from harness.findings import UserError
from harness.verdicts import Status

ENTRY = "harness.suite.runner:work"
Task = Mapping[str, Any]


class NoAnswer(NamedTuple):
    """The reason why a task has no answer."""

    status: Status
    problem: str


Answer = dict[str, Any] | NoAnswer


def work(function: str, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """The entry in the worker process: calls `function` ("package.module:name") with each task.

    `{"answers": [...]}`, each `{"value": dict}` or, for a `UserError`, `{"unavailable": line}`.
    """
    return {"answers": [_answer(resolve_name(function), task) for task in tasks]}


def _answer(function: Callable[..., dict[str, Any]], task: Task) -> dict[str, Any]:
    try:
        return {"value": function(**task)}
    except UserError as error:
        return {"unavailable": str(error)}


class Runner:
    """Runs tasks one at a time and keeps the worker process of each device."""

    def __init__(self) -> None:
        self._workers: dict[str, Worker] = {}

    def run(self, function: str, task: Task, device: str) -> Answer:
        """The answer to one task. An exception of the task is `NoAnswer` with its traceback."""
        try:
            if device not in self._workers:
                self._workers[device] = Worker(find_driver(device))
            reply = self._workers[device].call(ENTRY, {"function": function, "tasks": [task]})
        except JobError as error:
            return NoAnswer(Status.FAILED, str(error))
        except UserError as error:
            return NoAnswer(Status.UNAVAILABLE, str(error))
        return _died(reply) if isinstance(reply, Died) else _answers(reply)[0]

    def close(self) -> None:
        """Ends the worker processes."""
        for worker in self._workers.values():
            worker.close()


def run_tasks(
    function: str,
    tasks: Sequence[Task],
    device: str,
    processes: int,
    batch: int = 1,
    advance: Callable[[int], object] = lambda count: None,
) -> Iterator[tuple[int, Answer]]:
    """(position, answer) of each task as they finish, `batch` tasks to a job; `advance` gets how many are done.

    When a driver dies, the tasks of its job run again one by one, so that one task is to blame. Raises `JobError` when
    a task raises anything but `UserError`.
    """
    batches = [range(len(tasks))[at : at + batch] for at in range(0, len(tasks), batch)]
    while batches:
        jobs = [{"function": function, "tasks": [tasks[at] for at in several]} for several in batches]
        again: list[range] = []
        for job, reply in run_jobs(find_driver(device), ENTRY, jobs, processes):
            several = batches[job]
            if isinstance(reply, Died) and len(several) > 1:
                again += [range(at, at + 1) for at in several]
                continue
            advance(len(several))
            yield from zip(several, _replied(reply, len(several)), strict=True)
        batches = again


def _replied(reply: dict[str, Any] | Died | UserError, count: int) -> list[Answer]:
    if isinstance(reply, UserError):
        return [NoAnswer(Status.UNAVAILABLE, str(reply))] * count
    return [_died(reply)] * count if isinstance(reply, Died) else _answers(reply)


def _answers(reply: dict[str, Any]) -> list[Answer]:
    return [
        each["value"] if "value" in each else NoAnswer(Status.UNAVAILABLE, each["unavailable"])
        for each in reply["answers"]
    ]


def _died(died: Died) -> NoAnswer:
    status = Status.TIMED_OUT if died.timed_out else Status.DIED
    return NoAnswer(status, f"the driver process was {died.reason}\n{died.stderr_tail}".rstrip())
