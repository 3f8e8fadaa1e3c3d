"""Runs the tasks of the suite in worker processes of a driver, and collects an answer for each.

A task is the JSON-able keyword arguments of one public function that returns a dictionary: one variant of a scenario,
one cell of the matrix, all mutants of one scenario. Drivers crash, so that a task has either an answer or a `NoAnswer`
with the status and the problem of its row.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pkgutil import resolve_name
from typing import Any, NamedTuple

from harness.device.drivers import Driver, find_driver
from harness.device.pool import run_jobs
from harness.device.process import DEFAULT_TIMEOUT, Died, JobError, Worker
from harness.findings import DeviceLostError, LacksError, UserError
from harness.verdicts import Status

ENTRY = "harness.suite.runner:work"
DEVICE_LOST = "VkErrorDeviceLost"
"""The exception that the `vulkan` package makes of VK_ERROR_DEVICE_LOST."""
Task = Mapping[str, Any]


class NoAnswer(NamedTuple):
    """The reason why a task has no answer."""

    status: Status
    problem: str


Answer = dict[str, Any] | NoAnswer


def work(function: str, tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """The entry in the worker process: calls `function` ("package.module:name") with each task.

    `{"answers": [...]}`, each `{"value": dict}` or, for a `UserError` or a lost device, `{"status", "problem"}`.
    """
    return {"answers": [_answer(resolve_name(function), task) for task in tasks]}


def _answer(function: Callable[..., dict[str, Any]], task: Task) -> dict[str, Any]:
    try:
        return {"value": function(**task)}
    except UserError as error:
        return {"status": _refused(error).status, "problem": str(error)}
    except Exception as error:
        if type(error).__name__ != DEVICE_LOST:
            raise
        return {"status": Status.DEVICE_LOST, "problem": traceback.format_exc()}


class Runner:
    """Runs tasks one at a time and keeps the worker process of each driver."""

    def __init__(self) -> None:
        self._workers: dict[str, Worker] = {}

    def run(self, function: str, task: Task, driver: Driver, timeout: float = DEFAULT_TIMEOUT) -> Answer:
        """The answer to one task, within `timeout` seconds. `NoAnswer` has the traceback of an exception."""
        if driver.name not in self._workers:
            self._workers[driver.name] = Worker(driver)
        worker = self._workers[driver.name]
        worker.timeout = timeout
        try:
            reply = worker.call(ENTRY, {"function": function, "tasks": [task]})
        except JobError as error:
            return NoAnswer(Status.FAILED, str(error))
        except UserError as error:
            return _refused(error)
        if isinstance(reply, Died):
            return _died(reply)
        answer = _answers(reply)[0]
        if isinstance(answer, NoAnswer) and answer.status is Status.DEVICE_LOST:
            worker.close()  # the next row gets a process that has lost no device
        return answer

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
        return [_refused(reply)] * count
    return [_died(reply)] * count if isinstance(reply, Died) else _answers(reply)


def _answers(reply: dict[str, Any]) -> list[Answer]:
    return [_of_task(each) for each in reply["answers"]]


def _of_task(reply: dict[str, Any]) -> Answer:
    if "value" in reply:
        value: dict[str, Any] = reply["value"]
        return value
    return NoAnswer(Status(reply["status"]), reply["problem"])


def _refused(error: UserError) -> NoAnswer:
    statuses = {LacksError: Status.UNAVAILABLE, DeviceLostError: Status.DEVICE_LOST}
    return NoAnswer(statuses.get(type(error), Status.FAILED), str(error))


def _died(died: Died) -> NoAnswer:
    status = Status.TIMED_OUT if died.timed_out else Status.DIED
    return NoAnswer(status, f"the driver process {died.told}\n{died.stderr_tail}".rstrip())
