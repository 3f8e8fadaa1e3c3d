"""Observing a trace file in worker processes: a driver that dies costs one command, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.findings import UserError
from vkharness.replay.observation.experiments import Budget
from vkharness.replay.observation.observing import commands_at
from vkharness.trace.codec import load
from vkharness.trace.observations import Observation

JOB = "vkharness.replay.observation.observing:observe_some"
AT_ONCE = 8
"""Commands of one job."""


def observe_in_worker(
    trace: Path, device: str, budget: Budget, timeout: float, advance: Callable[[int, int], object] = lambda done, of: 0
) -> Iterator[Observation]:
    """The observation of each command of a trace file; `advance` gets how many are done, of how many.

    A command whose experiments end the driver gives an observation with a problem, and runs without experiments when
    the trace is begun anew. Raises `UserError` when the trace cannot run at all.
    """
    passed_over: list[int] = []
    first, done, count, total, shaders, deaths = 0, 0, AT_ONCE, 0, True, 0
    with Worker(find_driver(device), timeout=timeout) as worker:
        while True:
            left = {"bytes": budget.bytes, "runs": budget.runs, "spent": budget.spent}
            arguments = {"trace": str(trace), "device": device, "first": first, "passed_over": passed_over}
            answer = worker.call(JOB, {**arguments, "shaders": shaders, "count": count, "budget": left})
            if not isinstance(answer, Died):
                total, deaths, budget.spent = answer["total"] or total, 0, answer["spent"]
                yield from (Observation.from_dict(each) for each in answer["found"])
                done += len(answer["found"])
                advance(done, total)
                if len(answer["found"]) < count:
                    return
                count = AT_ONCE
                continue
            first, deaths = done, deaths + 1
            if count > 1:  # which of them it was shows when they come one by one
                count = 1
            elif deaths <= 2:
                problem = f"{device} {answer.reason}: {_last(answer)}".rstrip(": ")
                yield Observation(commands_at(load(trace), done), problem=problem)
                passed_over.append(done)
                done += 1
            elif shaders:  # it was not the command, then
                shaders = False
            else:
                raise UserError(f"{device} {answer.reason} while it ran {trace} without experiments")


def _last(died: Died) -> str:
    return (died.stderr_tail.splitlines() or [""])[-1]
