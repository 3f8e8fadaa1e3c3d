"""Programs in whose mirror something is raised everywhere, and a small clean one for tests that raise in places.

Python raises what comes from outside behind some instructions, so `hunt` raises at each instruction of the mirror where
that may be, one run for each, and lets each allocation fail. A hunt with the native core takes the one of
`hunted_core`. As a program of its own this prints what was found:

    python -m tests.record.interrupted_program places --programs 0-30 [--core FILE] [--every 97] [--kinds SystemExit]
    python -m tests.record.interrupted_program allocations --programs 0-30 --core FILE [--only-new]
"""

from __future__ import annotations

import argparse
import builtins
import dis
import gc
import json
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

if __name__ == "__main__" and "--core" in sys.argv:
    from tests.record.hunted_core import load

    hunted: Any = load(Path(sys.argv[sys.argv.index("--core") + 1]))
    hunted.hunted_show("--show" in sys.argv)
    hunted.hunted_only_new("--only-new" in sys.argv)

import vkharness
from hunts.frame_hunt import program_of
from hunts.front_programs import CallProgram, FrontProgram, deaf_driver, heard, random_calls
from vkharness.check import Analysis
from vkharness.native import core
from vkharness.record import critical, proxy
from vkharness.record.session import Session
from vkharness.record.sites import GENERATED
from vkharness.trace.calls import Block, Call, block_name

HERE = str(Path(vkharness.__file__).parent)
TRANSFER, TRANSFER_WRITE = 0x1000, 0x1000
KINDS = (KeyboardInterrupt, TimeoutError, MemoryError, SystemExit)
LONGEST = 160
"""Calls of a program of a hunt."""
LATEST = 100
"""How many times as late as it should an exception may arrive that C callbacks pass on."""
ASKED = "vkEnumerateDeviceExtensionProperties"
"""The mirror's own query to the driver behind a vkCreateDevice, which it may omit where that is interrupted."""
LEAKS = "the session is not garbage"
FORGOTTEN = "SystemError: error return without exception set"
"""How an error of the mirror ends that is an exception which Python forgot."""
TIMES = 2
"""How many allocations of a step on one call path fail, one after the other."""
ATTACH = -1
"""The step before the first call; that behind the last one is the end of the session."""


def calls_of(vk: Any) -> list[Callable[[], object]]:
    """Two fills of no buffer with a barrier between. The driver that does nothing takes any handle."""
    commands, buffer = vk.ffi.cast("VkCommandBuffer", 16), vk.ffi.cast("VkBuffer", 0)
    queue = vk.ffi.cast("VkQueue", 48)
    begin = vk.VkCommandBufferBeginInfo()
    barrier = vk.VkMemoryBarrier(srcAccessMask=TRANSFER_WRITE, dstAccessMask=TRANSFER_WRITE)
    submit = vk.VkSubmitInfo(pCommandBuffers=[commands])
    return [
        lambda: vk.vkBeginCommandBuffer(commands, begin),
        lambda: vk.vkCmdFillBuffer(commands, buffer, 0, 64, 1),
        lambda: vk.vkCmdPipelineBarrier(commands, TRANSFER, TRANSFER, 0, 1, [barrier], 0, None, 0, None),
        lambda: vk.vkCmdFillBuffer(commands, buffer, 0, 64, 2),
        lambda: vk.vkEndCommandBuffer(commands),
        lambda: vk.vkQueueSubmit(queue, 1, [submit], vk.ffi.cast("VkFence", 0)),
        lambda: vk.vkQueueWaitIdle(queue),
    ]  # fmt: skip


class Outcome(NamedTuple):
    """Result of a run."""

    arrived: list[int]
    """The calls at which an exception reached the program."""
    heard: list[str]
    """The calls that the driver got."""
    blocks: list[Block]
    verdict: str
    errors: list[str]

    @property
    def is_whole(self) -> bool:
        """Whether each call that the driver got is in the stream, once."""
        return [*map(block_name, self.blocks)] == self.heard

    def fault(self, told: int) -> str:
        """Describes the fault of a run in which `told` exceptions were raised in the mirror; empty for a right one."""
        if len(self.arrived) != told:
            return f"{len(self.arrived)} of {told} exceptions arrived"
        if self.errors:
            return f"an error of the mirror: {self.errors[0]}"
        checked = Analysis().follow(self.blocks).verdict
        right = ("clean", "unknown") if self.is_whole else ("unknown",)
        if self.verdict not in right or checked not in right:
            names = [*map(block_name, self.blocks)]
            return f"the verdict is {self.verdict}, that of the trace {checked}, of {names} for {self.heard}"
        return ""


def run(kinds: tuple[type[BaseException], ...], keeps_trace: bool = True) -> tuple[Session, Outcome]:
    """Runs the program under the mirror; it catches these exceptions at each call."""
    arrived = []
    with deaf_driver() as vk:
        calls = calls_of(vk)
        try:
            session = vkharness.attach(keep_trace=keeps_trace)
        except kinds:
            arrived.append(ATTACH)
            session = vkharness.attach(keep_trace=keeps_trace)
        for place, call in enumerate(calls):
            try:
                call()
            except kinds:
                arrived.append(place)
        try:
            session.detach()
        except kinds:
            arrived.append(len(calls))
    assert not session.attached
    return session, Outcome(arrived, heard(), list(session.blocks or ()), session.verdict, session.internal_errors)


def held_locks(session: Session) -> list[str]:
    """The locks that another thread cannot have."""
    locks: dict[str, Any] = {"stream": session._lock, "host memory": session.host._lock, "attaching": proxy._attaching}
    held: list[str] = []

    def look() -> None:
        for name, lock in locks.items():
            if lock.acquire(timeout=1):
                lock.release()
            else:
                held.append(name)

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return held + [f"in flight: {ident}" for ident in session._in_flight.threads]


class Watch:
    """Hooks around the steps of a program; they do nothing."""

    has_raised = False
    """Whether something was raised in this step."""

    def begin(self, step: int) -> None:
        """A step of the program begins in which the mirror may run."""

    def end(self) -> None:
        """It has ended."""


class Steps(FrontProgram):
    """A program of calls of which each is a step."""

    def __init__(self, seed: int, program: CallProgram, vk: Any, watch: Watch) -> None:
        super().__init__(seed, program, vk)
        self._watch, self._step = watch, 0

    def step(self, number: int) -> str:
        """Makes a call. What it raises, in words."""
        self._step = number
        return " ".join(self.run([number]))

    def _made(self, name: str, arguments: list[Any]) -> str:
        self._watch.begin(self._step)
        try:
            told = super()._made(name, arguments)
            self._watch.end()
            if not told and self._watch.has_raised and core is None:
                for _ in range(LATEST):  # without the core C callbacks pass it on later
                    time.sleep(critical.BACK_IN_THE_PROGRAM)
            return told
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
        finally:
            self._watch.end()


class Program(NamedTuple):
    """One of a hunt: its calls; of program 0 those of `calls_of`."""

    number: int

    @property
    def calls(self) -> CallProgram:
        """Half are frames as programs record them, half are calls that the registry makes."""
        made = (program_of if self.number % 2 else random_calls)(self.number)
        return made._replace(hostile=0.0, calls=made.calls[:LONGEST])

    @property
    def keeps_trace(self) -> bool:
        """Whether the session hears of each call."""
        return self.number % 3 == 0

    def steps(self, vk: Any, watch: Watch) -> list[Callable[[], str]]:
        """Returns the steps of the program."""
        if self.number:
            calls = self.calls
            made = Steps(self.number, calls, vk, watch)
            return [lambda number=number: made.step(number) for number in range(len(calls.calls))]  # type: ignore[misc]

        return [lambda n=n, call=call: _told(watch, n, call) for n, call in enumerate(calls_of(vk))]  # type: ignore[misc]


def _told(watch: Watch, step: int, act: Callable[[], object]) -> str:
    watch.begin(step)
    try:
        act()
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        watch.end()
    return ""


class Ran(NamedTuple):
    """All that can be seen of a run."""

    told: list[str]
    """Exceptions of each step; that of attaching comes first, and that of detaching last."""
    heard: list[str]
    blocks: list[Block] | None
    findings: list[str]
    unmodelled: dict[str, int]
    verdict: str
    troubles: list[str]
    """Faults that no run may have."""
    forgotten: Sequence[str] = ()
    """Faults that the mirror takes for errors of its own, of which Python forgot the exceptions."""

    @property
    def names(self) -> list[str]:
        """The calls that are kept."""
        return [block_name(each) for each in self.blocks or () if isinstance(each, Call)]

    @property
    def is_marked(self) -> bool:
        """Whether it says that something is missing, and that no verdict is clean for that reason."""
        said = [*self.unmodelled, *self.forgotten]
        return self.verdict != "clean" and any("interrupted" in each or each.endswith(FORGOTTEN) for each in said)


def carried_out(program: Program, watch: Watch, left_out: int | None = None) -> Ran:
    """Runs a program; `left_out` is a step that it does not make."""
    made: list[Session] = []
    keeps = program.keeps_trace
    with deaf_driver() as vk:
        steps = program.steps(vk, watch)
        told = [_told(watch, ATTACH, lambda: made.append(vkharness.attach(keep_trace=keeps)))]
        if not made:
            made.append(vkharness.attach(keep_trace=keeps))
        told += ["" if n == left_out else step() for n, step in enumerate(steps)]
        told.append(_told(watch, len(steps), made[0].detach))
    (session,) = made
    troubles = [*session.internal_errors, *(f"held: {each}" for each in held_locks(session))]
    troubles += ["the session is attached"] if session.attached else []
    found = Ran(
        told, heard(), session.blocks, [f"{each.message} {each}" for each in session.findings], session.unmodelled,
        session.verdict, troubles,
    )  # fmt: skip
    gone = weakref.ref(session)
    made.clear()
    del session, steps
    gc.collect()
    return found if gone() is None else found._replace(troubles=[*troubles, LEAKS])


RAISES = ("CALL", "RESUME", "JUMP_BACKWARD", "POP_JUMP_BACKWARD", "SEND")
"""How the names of the instructions begin behind which Python raises what comes from outside."""
NEVER_RAISES = "CALL_INTRINSIC"
"""How those begin that are called so and look at nothing: from 3.12 on, each generator that is closed ends in one."""


@cache
def points_of(code: CodeType) -> dict[int, tuple[int, ...]]:
    """By offset, where in a function Python may raise: the offsets of instructions that may come before it, which raise
    then, and are protected by the same handlers."""
    body = dis.Bytecode(code)
    protected = [(each.start, each.end, each.target) for each in body.exception_entries]  # type: ignore[attr-defined]

    def handler(offset: int) -> int:
        return next((target for start, end, target in protected if start <= offset < end), -1)

    looking = [each for each in body if each.opname.startswith(RAISES) and not each.opname.startswith(NEVER_RAISES)]
    raising = [each.offset for each in looking]
    return {each.offset: tuple(at for at in raising if handler(at) == handler(each.offset)) for each in body}


class Tracer(Watch):
    """Meets the points where Python would raise what comes from outside."""

    def __init__(self) -> None:
        self._before: dict[FrameType, int] = {}

    def end(self) -> None:
        sys.settrace(None)
        self._before.clear()

    def met(self, frame: FrameType) -> None:
        """One was met."""
        raise NotImplementedError

    def traced(self, frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith((HERE, GENERATED)) or name.startswith(f"{HERE}/fuzz/"):
            return None
        frame.f_trace_opcodes = True
        frame.f_trace_lines = False
        if event == "opcode":
            before, self._before[frame] = self._before.get(frame, -1), frame.f_lasti
            if before in points_of(frame.f_code)[frame.f_lasti]:
                self.met(frame)
        return self.traced


class Census(Tracer):
    """Notes the points of each step."""

    def __init__(self) -> None:
        super().__init__()
        self.points: dict[int, list[tuple[str, int, int]]] = {}
        self._now: list[tuple[str, int, int]] = []

    def begin(self, step: int) -> None:
        self._now = self.points[step] = []
        sys.settrace(self.traced)

    def met(self, frame: FrameType) -> None:
        code = frame.f_code
        self._now.append((code.co_filename.removeprefix(HERE), code.co_firstlineno, frame.f_lasti))


class Raiser(Tracer):
    """Raises at the point of a step with a number."""

    def __init__(self, kind: type[BaseException], step: int, at: int) -> None:
        super().__init__()
        self.kind, self.where = kind, ""
        self._step, self._left = step, at

    def begin(self, step: int) -> None:
        self.has_raised = False
        if step == self._step and not self.where:
            sys.settrace(self.traced)

    def met(self, frame: FrameType) -> None:
        if self.where:
            return
        self._left -= 1
        if self._left < 0:
            self.where = f"{frame.f_code.co_filename.removeprefix(HERE)}:{frame.f_lineno}"
            self.has_raised = True
            raise self.kind


class Allocations(Watch):
    """Notes the call paths of the allocations of the mirror in each step, or lets that of a step with a number fail."""

    kind = MemoryError

    def __init__(self, step: int | None = None, at: int = 0) -> None:
        self.paths: dict[int, list[int]] = {}
        self.where = f"allocation {at}"
        self.is_cores = False
        """Whether the core made the one that failed, and not Python, which has faults of its own then."""
        self._step, self._at = step, at
        self._now: int | None = None

    def begin(self, step: int) -> None:
        self._now = step
        hunted.hunted_note(self._step is None)
        hunted.hunted_fail(self._at if step == self._step else sys.maxsize)

    def end(self) -> None:
        if self._now is None:  # a step ends where its call does, and where it raised
            return
        hunted.hunted_note(False)
        if self._step is None:
            self.paths[self._now] = [hunted.hunted_path(at) for at in range(hunted.hunted_made())]
        if self._now == self._step:
            self.is_cores = bool(hunted.hunted_is_cores())
        hunted.hunted_fail(-1)
        self._now = None


class Judge:
    """Says what is wrong with the runs of one program."""

    def __init__(self, program: Program) -> None:
        self.program = program
        for _ in range(3):  # what is made once is made
            self.bare = carried_out(program, Watch())
        self._without: dict[int, Ran] = {}

    def without(self, step: int) -> Ran:
        """The run of a program that does not make this step."""
        if step not in self._without:
            self._without[step] = carried_out(self.program, Watch(), step)
        return self._without[step]

    def fault(self, ran: Ran, step: int, kind: type[BaseException], may_vanish: bool, is_pythons: bool) -> str:
        """Describes the fault of a run in whose step this was raised; empty for a right one. Where an allocation of
        Python failed (`is_pythons`), Python 3.11 leaks the first arguments of functions and makes other exceptions of
        it. It also forgets the one that leaves a frame, where there is no memory for what a traceback keeps of that."""
        if is_pythons:
            ran = ran._replace(
                troubles=[each for each in ran.troubles if each != LEAKS and not each.endswith(FORGOTTEN)],
                forgotten=[each for each in ran.troubles if each.endswith(FORGOTTEN)],
                told=[
                    each.replace("SystemError", kind.__name__).replace("RuntimeError", kind.__name__)
                    for each in ran.told
                ],
            )
        differ = [n - 1 for n, (one, other) in enumerate(zip(ran.told, self.bare.told, strict=True)) if one != other]
        others = [ran.told[n + 1] for n in differ if kind.__name__ not in ran.told[n + 1]]
        if ran.troubles or others:
            return f"{ran.troubles[:1]}, raised: {others}"
        if (len(differ) != 1 and (differ or not may_vanish)) or not {*differ} <= {step, step + 1}:
            return f"of step {step}, arrives at {differ}"
        expected = self.bare if _of_program(ran) == _of_program(self.bare) else self.without(step)
        if _of_program(ran) != _of_program(expected):
            return f"the driver heard {len(ran.heard)} calls, and not {len(expected.heard)}"
        return _wrong(ran, expected)


def _of_program(ran: Ran) -> list[str]:
    """The calls that the driver got, without those of the mirror."""
    return [each for each in ran.heard if each != ASKED]


def _wrong(ran: Ran, expected: Ran) -> str:
    """Describes a fault in the answers about a run. A run that says that something is missing may say less."""
    if ran.names != expected.names:
        checked = Analysis().follow(ran.blocks or ())
        if checked.verdict == "clean" or not any("interrupted" in each for each in checked.unmodelled):
            first = [*zip(ran.names, expected.names, strict=False)]
            differ = next(((n, *both) for n, both in enumerate(first) if both[0] != both[1]), "at the end")
            return f"calls are missing, {differ}, and the trace is {checked.verdict}, {checked.unmodelled}"
    if ran.is_marked:
        more = set(ran.findings) - set(expected.findings)
        return f"finds more: {more}" if more else ""
    if (ran.findings, ran.unmodelled, ran.verdict) != (expected.findings, expected.unmodelled, expected.verdict):
        return (
            f"{ran.verdict} and not {expected.verdict}, {len(ran.findings)} findings and not {len(expected.findings)}, "
            f"unmodelled {ran.unmodelled} and not {expected.unmodelled}"
        )
    return ""


class Point(NamedTuple):
    """Where something is raised in a run."""

    step: int
    at: int
    kind: type[BaseException]


def places(program: Program, kinds: Sequence[type[BaseException]], known: set[Any]) -> Iterator[Point]:
    """A point for each instruction of the mirror that no program before reached, each with the next kind."""
    census = Census()
    carried_out(program, census)
    for step, points in census.points.items():
        for at, place in enumerate(points):
            if place not in known:
                known.add(place)
                yield Point(step, at, kinds[len(known) % len(kinds)])


def allocations(program: Program, kinds: Sequence[type[BaseException]], known: set[Any]) -> Iterator[Point]:
    """A point for the first and the second allocation on each call path in a step, if none on it failed before: the
    first leaves nothing, the second what the first one made. Each program has a driver of its own, through which paths
    lead."""
    counting = Allocations()
    carried_out(program, counting)
    for step, paths in counting.paths.items():
        times: Counter[int] = Counter()
        for at, path in enumerate(paths):
            times[path] += 1
            if times[path] <= TIMES and (path, times[path]) not in known:
                known.add((path, times[path]))
                yield Point(step, at, MemoryError)


def hunt(
    way: str, numbers: Sequence[int], kinds: Sequence[type[BaseException]], every: int = 1, first: int = 0
) -> dict[str, Any]:
    """Raises at each `every`th point of programs from the `first` one on, one run for each."""
    known: set[Any] = set()
    points, tried, cores, faults = 0, 0, 0, list[str]()
    for number in numbers:
        judge = Judge(Program(number))
        if judge.bare.troubles:
            faults.append(f"program {number}: {judge.bare.troubles}")
            continue
        gc.freeze()
        for point in [*{"places": places, "allocations": allocations}[way](judge.program, kinds, known)]:
            points += 1
            if (points - 1 - first) % every or points <= first:
                continue
            raises = way == "places"
            watch = Raiser(point.kind, point.step, point.at) if raises else Allocations(point.step, point.at)
            ran = carried_out(judge.program, watch)
            tried += bool(watch.where)
            pythons = isinstance(watch, Allocations) and not watch.is_cores
            cores += not pythons
            if watch.where and (fault := judge.fault(ran, point.step, point.kind, not raises, pythons)):
                faults.append(
                    f"program {number}, step {point.step}, {point.at}, {watch.where}: {point.kind.__name__}: {fault}"
                )
                print(faults[-1][:600], file=sys.stderr, flush=True)
        print(f"program {number}: {tried} of {points} points, {len(faults)} faults", file=sys.stderr, flush=True)
    return {"points": tried, "in the core": cores, "faults": faults}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("way", choices=("places", "allocations"))
    parser.add_argument("--programs", default="0-1")
    parser.add_argument("--kinds", default=",".join(each.__name__ for each in KINDS))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--core")
    parser.add_argument("--show", action="store_true", help="prints the stacks of allocations that fail")
    parser.add_argument("--only-new", action="store_true", help="allocations of C++ alone")
    given = parser.parse_args()
    begin, end = map(int, given.programs.split("-"))
    kinds = [getattr(builtins, each) for each in given.kinds.split(",")]
    print(json.dumps(hunt(given.way, range(begin, end), kinds, given.every, given.first)))


if __name__ == "__main__":
    main()
