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

from vkharness.device.drivers import Driver, find_driver
from vkharness.device.failed_calls import failed_call
from vkharness.device.pool import run_jobs
from vkharness.device.process import DEFAULT_TIMEOUT, Died, JobError, Worker
from vkharness.findings import DeviceLostError, LacksError, UnwrittenError, UserError
from vkharness.results.result_lines import reason_of
from vkharness.suite.row import Row
from vkharness.verdicts import Status

ENTRY = "vkharness.suite.runner:work"
ROW = "vkharness.suite.judge_scenario:run"
"""The function of one variant of a scenario."""
Task = Mapping[str, Any]


class NoAnswer(NamedTuple):
    """The reason why a task has no answer."""

    status: Status
    problem: str

    def __str__(self) -> str:
        """In one line: 'died: the driver process was killed by SIGSEGV'."""
        return f"{self.status}: {reason_of({'problem': self.problem, 'reasons': ()})}"


Answer = dict[str, Any] | NoAnswer


def row_of(answer: Answer, scenario: str, variant: str, device: str) -> Row:
    """The row that a task answers with, before anybody settles it; without an answer, the row that says why."""
    if isinstance(answer, NoAnswer):
        return Row(scenario, variant, device, [], problem=answer.problem, status=answer.status)
    return Row.from_dict(answer)


def work(function: str, task: Task) -> dict[str, Any]:
    """The entry in the worker process: calls `function` ("package.module:name") with a task.

    `{"value": dict}` or, where the task raised, `{"status", "problem"}`.
    """
    try:
        return {"value": resolve_name(function)(**task)}
    except UnwrittenError:
        raise  # that is no answer: a run that goes on asks again
    except Exception as error:
        failed = failed_call(error)
        lost = failed is not None and failed.is_lost
        if isinstance(error, UserError) and not lost:
            return {"status": _refused(error).status, "problem": str(error)}
        told = f"{failed}\n{traceback.format_exc()}" if failed else traceback.format_exc()
        return {"status": Status.DEVICE_LOST if lost else Status.FAILED, "problem": told}


def _is_spent(reply: Mapping[str, Any]) -> bool:
    """Whether a process has lost its device. The next task gets another process, with a device that is not lost."""
    return reply.get("status") == Status.DEVICE_LOST


class Runner:
    """Runs tasks one at a time and keeps the worker process of each driver."""

    def __init__(self) -> None:
        self._workers: dict[str, Worker] = {}

    def run(self, function: str, task: Task, driver: Driver, timeout: float = DEFAULT_TIMEOUT) -> Answer:
        """The answer to one task, within `timeout` seconds. `NoAnswer` has the failed call and the traceback of an
        exception. Raises `UnwrittenError` when the disk did not take what the task writes."""
        if driver.name not in self._workers:
            self._workers[driver.name] = Worker(driver)
        worker = self._workers[driver.name]
        worker.timeout = timeout
        try:
            reply = worker.call(ENTRY, {"function": function, "task": task})
        except JobError as error:
            return NoAnswer(Status.FAILED, str(error))
        except UnwrittenError:
            raise
        except UserError as error:
            return _refused(error)
        if not isinstance(reply, Died) and _is_spent(reply):
            worker.close()
        return _replied(reply)

    @property
    def pids(self) -> list[int]:
        """The worker processes that there are."""
        return [worker.pid for worker in self._workers.values() if worker.pid is not None]

    def close(self) -> None:
        """Ends the worker processes."""
        for worker in self._workers.values():
            worker.close()


def run_tasks(
    function: str,
    tasks: Sequence[Task],
    device: str,
    processes: int,
    advance: Callable[[int], object] = lambda count: None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Iterator[tuple[int, Answer]]:
    """(position, answer) of each task as they finish, each within `timeout` seconds; `advance` gets how many are done.

    A task that raises costs itself alone, and so does one of which the driver dies or loses the device.
    """
    jobs = [{"function": function, "task": task} for task in tasks]
    for at, reply in run_jobs(find_driver(device), ENTRY, jobs, processes, timeout=timeout, is_spent=_is_spent):
        advance(1)
        yield at, _replied(reply)


def _replied(reply: dict[str, Any] | Died | UserError) -> Answer:
    if isinstance(reply, UserError):
        return _refused(reply)
    if isinstance(reply, Died):
        return _died(reply)
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
