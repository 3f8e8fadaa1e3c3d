"""A hunt in several processes, each of which makes its inputs and has them tried; and what they came to together.

A process that dies, or that the system kills, costs the batch that it was at, and another one takes its place.
"""

from __future__ import annotations

import gc
import json
import os
import selectors
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from vkharness.device.drivers import find_driver, find_drivers
from vkharness.device.parent_death import kill_with_parent
from vkharness.fuzz.hostile.hunt import BATCH, Hunt
from vkharness.fuzz.hostile.samples import Sample, remove_left
from vkharness.fuzz.hostile.tally import HuntFile, HuntPlan, Tally
from vkharness.fuzz.hostile.trial import Limits, Main, Trials, load_all
from vkharness.temporary import temporary_folder

GRACE = 60.0
"""Seconds that a batch may take behind the end of a hunt."""
MOST_DEATHS = 100
"""Processes of jobs that may die before a hunt gives up."""
LOST = "lost-"
"""At the beginning of the names of folders with the last inputs of jobs that died."""
IN_MEMORY = Path("/dev/shm")
"""Files there cost no disk: a hunt writes some thousand a second."""


class Ends(NamedTuple):
    """When a hunt is over; 0 stands for no such end."""

    inputs: int = 0
    minutes: float = 0.0


def device_of(name: str) -> str:
    """The driver that a hunt replays on: `auto` is the first of this machine, `none` and no driver are empty."""
    if name == "none":
        return ""
    found = find_drivers() if name == "auto" else [find_driver(name)]
    return found[0].name if found else ""


class _Job(NamedTuple):
    """One process, which does the batches whose numbers it is sent, and answers a line of JSON for each."""

    process: int
    numbers: int
    """Where numbers are written to."""
    answers: int
    """Where lines are read from."""


def conduct(
    main: Main,
    plan: HuntPlan,
    samples: list[Sample],
    keep: Path,
    output: Path | None,
    limits: Limits,
    ends: Ends,
    jobs: int,
    told: Callable[[Tally], None],
) -> Tally:
    """Goes on from what a file has, if one is given, until the hunt is over.

    `told` is called after each batch. Returns the sums.
    """
    until = time.monotonic() + 60 * ends.minutes if ends.minutes else None
    with ExitStack() as stack:
        place = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
        folder = stack.enter_context(temporary_folder(place))
        file = None if output is None else stack.enter_context(HuntFile(output, plan))
        tally = Tally() if file is None else file.tally
        remove_left(keep)
        gc.freeze()  # what is here already is looked through before no command
        stack.callback(gc.unfreeze)
        load_all(main, folder, samples)

        def lost(at: int, number: int) -> None:
            """Keeps the last two inputs of a job that died."""
            if (folder / str(at)).is_dir():
                shutil.copytree(folder / str(at), keep / f"{LOST}{number}", dirs_exist_ok=True)

        pool = _Pool(lambda at: _hunt(main, plan, samples, keep, folder / str(at), limits, jobs), lost)
        stack.callback(pool.close)
        done, begun = set() if file is None else file.done, tally.inputs

        def numbers() -> Iterator[int]:
            """Of the batches that are still to be done."""
            given = number = 0
            while not (ends.inputs and begun + given >= ends.inputs) and (until is None or time.monotonic() < until):
                if number not in done:
                    given += BATCH
                    yield number
                number += 1

        for line in pool.run(numbers(), jobs, until):
            if file is not None:
                file.append(line)
            tally.add(line)
            told(tally)
    return tally


def _hunt(
    main: Main, plan: HuntPlan, samples: list[Sample], keep: Path, folder: Path, limits: Limits, jobs: int
) -> Callable[[int], dict[str, Any]]:
    """Makes the function that runs the batch of a number; called in a job's own process."""
    folder.mkdir(exist_ok=True)
    return Hunt(plan, samples, Trials(main, folder, limits, False), keep, jobs).batch


class _Pool:
    """The processes."""

    def __init__(
        self,
        begin: Callable[[int], Callable[[int], dict[str, Any]]],
        lost: Callable[[int, int], None] = lambda _at, _number: None,
    ) -> None:
        """`begin` makes the function of the job at a place; `lost` is told of the place and the batch of one that
        died."""
        self._begin, self._lost = begin, lost
        self._jobs: dict[int, _Job] = {}
        """By their place."""
        self._deaths = 0
        gc.collect()
        gc.freeze()  # what is loaded since then stays shared between the processes

    def run(self, numbers: Iterator[int], jobs: int, until: float | None) -> Iterator[dict[str, Any]]:
        """A line for each number, as they are done. What is not done soon after `until` is given up."""
        with selectors.DefaultSelector() as ready:
            busy: dict[int, int] = {}
            for at in range(jobs):
                self._give(at, numbers, busy, ready)
            while busy:
                wait = None if until is None else max(0.0, until + GRACE - time.monotonic())
                events = ready.select(wait)
                if not events:
                    return
                for key, _ in events:
                    at = key.data
                    line = _line(self._jobs[at].answers)
                    if line is None:
                        self._bury(at, ready)
                        line = {"inputs": 0, "lost": 1}
                        if at in busy:
                            self._lost(at, busy[at])
                    if at in busy:  # one that has nothing to do any more may die, too
                        yield {"number": busy.pop(at), **line}
                        self._give(at, numbers, busy, ready)

    def _give(self, at: int, numbers: Iterator[int], busy: dict[int, int], ready: selectors.BaseSelector) -> None:
        """Sends the next number to a job, which is begun if there is none."""
        if self._deaths > MOST_DEATHS or (number := next(numbers, None)) is None:
            return
        if at not in self._jobs:
            self._jobs[at] = self._new(at)
            ready.register(self._jobs[at].answers, selectors.EVENT_READ, at)
        busy[at] = number
        with suppress(BrokenPipeError):  # it has just died, and its pipe says so
            os.write(self._jobs[at].numbers, number.to_bytes(8, "little"))

    def _new(self, at: int) -> _Job:
        sys.stdout.flush()
        sys.stderr.flush()
        taking, numbers = os.pipe()
        answers, giving = os.pipe()
        parent = os.getpid()
        process = os.fork()
        if process:
            os.close(taking)
            os.close(giving)
            return _Job(process, numbers, answers)
        try:
            kill_with_parent(parent)
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            for other in self._jobs.values():
                os.close(other.numbers)
                os.close(other.answers)
            os.close(numbers)
            os.close(answers)
            batch = self._begin(at)
            while number := os.read(taking, 8):
                line = json.dumps(batch(int.from_bytes(number, "little"))).encode()
                _write_all(giving, len(line).to_bytes(8, "little") + line)
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            os._exit(0)

    def _bury(self, at: int, ready: selectors.BaseSelector) -> None:
        self._deaths += 1
        job = self._jobs.pop(at)
        ready.unregister(job.answers)
        _end(job)

    def close(self) -> None:
        """Ends all of them."""
        for job in self._jobs.values():
            _end(job)
        self._jobs.clear()
        gc.unfreeze()


def _end(job: _Job) -> None:
    with suppress(ProcessLookupError):
        os.kill(job.process, signal.SIGKILL)
    os.waitpid(job.process, 0)
    os.close(job.numbers)
    os.close(job.answers)


def _write_all(pipe: int, data: bytes) -> None:
    unsent = memoryview(data)
    while unsent:
        unsent = unsent[os.write(pipe, unsent) :]


def _line(pipe: int) -> dict[str, Any] | None:
    """Reads a job's answer; None where it died."""
    size = _read(pipe, 8)
    data = b"" if size is None else _read(pipe, int.from_bytes(size, "little"))
    return json.loads(data) if data else None


def _read(pipe: int, size: int) -> bytes | None:
    data = b""
    while len(data) < size:
        more = os.read(pipe, size - len(data))
        if not more:
            return None
        data += more
    return data
