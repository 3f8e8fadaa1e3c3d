"""Threads at once under the mirror: is anything found or lost that the same work in one thread does not show?

Each thread runs a program (`thread_programs`). The same programs then run in one thread, part by part, in the order in
which the parts of the first run are in its stream. Both must make the same calls and have the same findings. The kept
trace of the first run must be judged as the program was.
"""

from __future__ import annotations

import faulthandler
import gc
import re
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import vkharness
from hunts.thread_programs import QUEUES, Gate, SharedParts, program
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, JobError, Worker
from vkharness.device.queue_emulation import logical_queues
from vkharness.findings import Finding
from vkharness.fuzz.process_memory import resident_bytes
from vkharness.rig.requirements import queue_masks
from vkharness.rig.rig import Rig
from vkharness.spec.command_classes import HOST_POLLS, HOST_PUBLISHES, HOST_WAITS, SUBMITS
from vkharness.spec.shapes import main_name
from vkharness.temporary import temporary_folder
from vkharness.trace.calls import Block, Call, HostWrite
from vkharness.trace.codec import load, save

ORDERING = SUBMITS | HOST_WAITS | HOST_PUBLISHES | {"vkResetEvent"}
CREATES = ("vkCreate", "vkAllocateMemory")
"""How the names of calls begin whose last argument is the object that they make."""
WARNINGS = ("Warning: ", "Exception ignored")
"""Lines of Python's development mode about things that were not closed, and about errors that nobody can catch."""
MOST_TOLD = 8
"""Differences of a round that are told."""
OBJECT = re.compile(r"\b(Vk\w+) (\d+)\b")
"""An object in a text."""
STUCK = 100
"""Seconds after which a round prints where each of its threads is."""


@dataclass(slots=True)
class ThreadWork:
    """The program of one thread, and the number of the part that it runs."""

    number: int
    parts: Iterator[bool | None]
    part: int = -1
    is_waited_for: bool = False
    """Whether other threads may wait for the next part, which waits for none of them."""

    def advance(self) -> bool:
        """Runs the next part; False when there is none."""
        self.part += 1
        told = next(self.parts, self)
        self.is_waited_for = told is True
        return told is not self


class Origin(NamedTuple):
    """Where a block comes from, the same however the threads ran. A write of the host has no number in its part: who
    finds it may be another thread's call."""

    thread: int
    part: int
    number: int
    name: str


class Origins:
    """The origin of each block of a stream, noted while it is recorded."""

    def __init__(self) -> None:
        self.here = threading.local()
        """Its `work` is what this thread runs; it has none for what belongs to no program."""
        self.of_blocks: list[Origin] = []
        self.objects: dict[int, Origin] = {}
        """By id, the call that made it."""
        self._writers: dict[int, ThreadWork | None] = {}
        self._calls: Counter[tuple[int, int]] = Counter()
        self._places: dict[tuple[int, int], int] = {}
        """By thread and part, its place in the stream: that of its last block, or of its call that orders."""
        self._ordering: set[tuple[int, int]] = set()
        """Parts with a call that orders."""
        self.problems: list[str] = []

    def note(self, block: Block) -> None:
        """Takes the next block, on the thread that makes it."""
        work: ThreadWork | None = getattr(self.here, "work", None)
        if isinstance(block, HostWrite):
            work = self._writers.get(block.memory, work)
        thread, part = (work.number, work.part) if work is not None else (-1, 0)
        number = self._note_call(block, work, (thread, part)) if isinstance(block, Call) else 0
        if (thread, part) not in self._ordering:
            self._places[thread, part] = block.index
        self.of_blocks.append(Origin(thread, part, number, getattr(block, "name", type(block).__name__)))
        if isinstance(block, Call) and block.name.startswith(CREATES):
            made = list(block.args.values())[-1]
            self.objects.update((each, self.of_blocks[-1]) for each in (made if isinstance(made, list) else [made]))

    def _note_call(self, call: Call, work: ThreadWork | None, part: tuple[int, int]) -> int:
        command = main_name(call.name)
        if command in HOST_POLLS:
            return 0
        if command == "vkAllocateMemory":
            self._writers[call.args["pMemory"]] = work
        if command in ORDERING and work is not None:
            if part in self._ordering:
                self.problems.append(f"part {part} has a second call that orders: {call.name}")
            self._ordering.add(part)
            self._places[part] = call.index
        self._calls[part] += 1
        return self._calls[part]

    def order(self) -> list[tuple[int, int]]:
        """The (thread, part) of each part, in the order of the stream."""
        return sorted(self._places, key=self._places.__getitem__)

    def calls(self) -> Counter[Origin]:
        """Every call of a program. How often a program asks whether work is complete is chance."""
        return Counter(each for each in self.of_blocks if each.number and each.thread >= 0)

    def identity(self, found: Finding) -> tuple[Any, ...]:
        """Returns the subject of a finding, the same however the threads ran.

        Whether it comes up at recording or at a submit is not part of it: what is known of memory at recording may
        follow from what another thread has submitted by then.
        """
        place, prior = self.of_blocks[found.place.call - 1], self.of_blocks[found.prior.call - 1]
        by_host = "HostWrite" in (place.name, prior.name)
        where = () if by_host else (found.ranges, found.boxes)  # one write may be found in two pieces
        made = self.objects.get(abs(found.resource), found.resource)
        return (str(found.hazard), found.access, found.prior_access, place, prior, made, where)


class ThreadRun(NamedTuple):
    """Result of one run of the programs."""

    session: vkharness.Session
    origins: Origins

    def findings(self) -> Counter[tuple[Any, ...]]:
        """Counts the subjects of the findings, each once."""
        return Counter(set(map(self.origins.identity, self.session.findings)))

    def unmodelled(self) -> Counter[str]:
        """Counts unmodelled things. Objects are named by the call that made them: their numbers depend on the run."""
        found, made = Counter[str](), self.origins.objects
        for text, times in self.session.unmodelled.items():
            named = OBJECT.sub(lambda each: f"{each[1]} of {made.get(int(each[2]), each[2])}", text)
            found[named] += times
        return found


class ThreadStage(NamedTuple):
    """The surroundings in which programs are run."""

    works: Sequence[ThreadWork]
    origins: Origins
    look: Callable[[], object]
    """Looks at what is found so far."""
    gate: Gate


Runner = Callable[[ThreadStage], None]


def record(seed: int, threads: int, jobs: int, run: Runner, others: Sequence[str] = QUEUES) -> ThreadRun:
    """Runs the programs of a seed on this process' driver, under the mirror. `others` are kinds of queues beside the
    first one."""
    origins = Origins()
    with (
        logical_queues(queue_masks(others)),
        vkharness.attach(keep_trace=True, strict=True, sink=origins.note) as session,
        Rig(queues=others) as rig,
    ):
        shared = SharedParts(rig)
        queues = [rig.queues[number % len(rig.queues)] for number in range(threads)]
        works = [
            ThreadWork(number, program(shared, queue, seed * threads + number, jobs))
            for number, queue in enumerate(queues)
        ]
        look = lambda: (session.verdict, session.unmodelled, session.unjudged)  # noqa: E731
        run(ThreadStage(works, origins, look, shared.gate))
    return ThreadRun(session, origins)


def at_once(stage: ThreadStage) -> None:
    """Runs each program in a thread of its own, which looks at the verdict after each part."""
    works, origins, look, gate = stage
    begin = threading.Barrier(len(works))

    def work_on(work: ThreadWork) -> None:
        origins.here.work = work
        begin.wait()
        try:
            more = True
            while more:
                if not work.is_waited_for:
                    gate.enter()
                try:
                    more = work.advance()
                finally:
                    gate.leave()
                look()
        except Exception:
            origins.problems.append(f"thread {work.number}: {traceback.format_exc().strip()}")

    running = [threading.Thread(target=work_on, args=(work,), name=f"program {work.number}") for work in works]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def in_one_thread(stage: ThreadStage, order: Sequence[tuple[int, int]]) -> None:
    """Runs the programs part by part, in this order."""
    works, here = stage.works, stage.origins.here
    for number, part in order:
        if number >= 0:
            work = here.work = works[number]
            while work.part < part and work.advance():
                pass
    for work in works:
        here.work = work
        while work.advance():
            pass
    del here.work
    stage.look()


def judge(seed: int, threads: int, jobs: int) -> dict[str, Any]:
    """Runs the programs of a seed at once and in one thread, and judges the kept trace; JSON-able sums."""
    before = set(threading.enumerate())
    faulthandler.dump_traceback_later(STUCK)
    try:
        together = record(seed, threads, jobs, at_once)
        alone = record(seed, threads, jobs, partial(in_one_thread, order=together.origins.order()))
        problems = _differences(together, alone) + _judged_otherwise(together.session)
    finally:
        faulthandler.cancel_dump_traceback_later()
    for each in (together, alone):
        problems += each.session.internal_errors + each.origins.problems
    problems += [f"a thread is left: {each.name}" for each in threading.enumerate() if each not in before]
    gc.collect()
    return {
        "calls": len(together.origins.of_blocks),
        "findings": len(together.session.findings),
        "problems": problems,
        "memory": resident_bytes(),
    }


def _differences(together: ThreadRun, alone: ThreadRun) -> list[str]:
    problems = []
    pairs: dict[str, tuple[Counter[Any], Counter[Any]]] = {
        "finding": (together.findings(), alone.findings()),
        "call": (together.origins.calls(), alone.origins.calls()),
        "not modelled": (together.unmodelled(), alone.unmodelled()),
    }
    for what, (first, second) in pairs.items():
        problems += [f"{what} of the threads alone: {each}" for each in list((first - second).elements())[:MOST_TOLD]]
        problems += [f"{what} of one thread alone: {each}" for each in list((second - first).elements())[:MOST_TOLD]]
    if together.session.verdict != alone.session.verdict:
        problems.append(f"{together.session.verdict} at once, {alone.session.verdict} in one thread")
    return problems


def _judged_otherwise(session: vkharness.Session) -> list[str]:
    """Whether the kept trace, saved and read, is judged otherwise than the program was."""
    with temporary_folder() as folder:
        path = folder / "trace.jsonl"
        save(path, session.blocks or [])
        again = Analysis().follow(load(path))
    live, checked = ([each.to_dict() for each in of.findings] for of in (session, again))
    if live == checked and again.verdict == session.verdict:
        return []
    return [f"the kept trace has {len(checked)} findings, {again.verdict}; live {len(live)}, {session.verdict}"]


@dataclass
class ThreadTally:
    """Sums over rounds."""

    rounds: int = 0
    calls: int = 0
    findings: int = 0
    memory: list[int] = field(default_factory=list)
    """Bytes after each round."""
    bad: dict[int, list[str]] = field(default_factory=dict)
    """Problems by seed."""
    repeated: list[tuple[int, list[str]]] = field(default_factory=list)
    """The seed of each run that was repeated, with its problems."""

    def add(self, seed: int, answer: dict[str, Any]) -> None:
        """Adds one round's answer."""
        self.rounds += 1
        self.calls += answer["calls"]
        self.findings += answer["findings"]
        self.memory.append(answer["memory"])
        if answer["problems"]:
            self.bad[seed] = answer["problems"]

    def __str__(self) -> str:
        lines = [f"{self.rounds} rounds, {self.calls} calls, {self.findings} findings: {len(self.bad)} rounds differ"]
        if self.memory:
            half = len(self.memory) // 2
            first, second = (max(each, default=0) >> 20 for each in (self.memory[:half], self.memory[half:]))
            lines.append(f"memory: {first} MiB at most in the first half of the rounds, {second} MiB in the second")
        if self.repeated:
            lines.append(f"{len(self.repeated)} runs were repeated, as what was found differed:")
            lines += [f"  seed {seed}, repeated: {text}" for seed, several in self.repeated for text in several]
        lines += [f"  seed {seed}: {text}" for seed, several in self.bad.items() for text in several]
        return "\n".join(lines)


def interpreter() -> str:
    """Describes this interpreter: version, and whether threads run Python at once."""
    enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    mode = ", development mode" if sys.flags.dev_mode else ""
    return f"Python {sys.version.split()[0]}, {'with' if enabled else 'without'} the global interpreter lock{mode}"


def run(
    device: str, seed: int, threads: int, jobs: int, limits: tuple[int, float], told: Callable[[], object]
) -> ThreadTally:
    """Judges the seeds from `seed` on in one worker process, until a number of rounds or of minutes is reached; 0 is no
    limit. `told` is called after each round."""
    tally = ThreadTally()
    count, minutes = limits
    end = time.monotonic() + 60 * minutes
    with Worker(find_driver(device), packages=("hunts",)) as worker:
        while (not count or tally.rounds < count) and (not minutes or time.monotonic() < end):
            tally.add(seed + tally.rounds, ask(worker, seed + tally.rounds, threads, jobs))
            told()
    return tally


def ask(
    worker: Worker, seed: int, threads: int, jobs: int, target: str = "hunts.thread_hunt:judge", **more: str
) -> dict[str, Any]:
    """`judge`, or another target, in the worker. A process that died, a round that raises and a warning that is
    printed are problems."""
    try:
        answer = worker.call(target, {"seed": seed, "threads": threads, "jobs": jobs, **more})
    except JobError as error:
        answer = {"problems": [str(error)]}
    if isinstance(answer, Died):
        answer = {"problems": [f"the process {answer.told}: {answer.stderr_tail}"]}
    warned = [line for line in worker.printed.splitlines() if any(sign in line for sign in WARNINGS)]
    return {"calls": 0, "findings": 0, "memory": 0, **answer, "problems": answer["problems"] + warned}
