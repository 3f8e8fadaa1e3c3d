"""Exceptions that come from outside in the mirror: of signal handlers, of other threads, in the judge."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import vkharness
from hunts.front_programs import deaf_driver
from tests.record.interrupted_program import calls_of, held_locks, run
from vkharness.findings import Finding
from vkharness.late_analysis import LateAnalysis
from vkharness.native import core
from vkharness.record.critical import is_the_mirrors
from vkharness.trace import work_budget
from vkharness.trace.calls import Block, block_name

pytestmark = pytest.mark.driver
ROOT = Path(__file__).parents[2]
native = pytest.mark.skipif(core is None, reason="without the native core signals do not wait")

FILLS = 10
INTERRUPTED = 4
"""The fill that is judged when the interrupt comes."""
PLACES = (
    "record.session:Session.record_at",
    "record.session_stream:SessionStream._judged",
    "record.session_stream:SessionStream._step",
    "record.in_flight:CallsInFlight.enter",
    "record.in_flight:CallsInFlight.returned",
    "record.in_flight:CallsInFlight.leave",
    "trace.handles:HandleRegistry.see",
    "record.host:HostMemory._compare",
    "record.work:DeviceWork.submit",
    "late_analysis:LateAnalysis._judge",
    "syncval.validator:Validator.consume",
    "record.proxy:Proxy.take_out",
    "record.session_stream:SessionStream.end",
)
"""Functions of the mirror that the program of `interrupted_program` enters."""


class TimeLimit(Exception):
    """The exception of a program's signal handler."""


def at_each_call(monkeypatch: pytest.MonkeyPatch, place: str, act: Callable[[], None]) -> None:
    """Lets a function of the mirror act before and behind what it does."""
    module, path = place.split(":")
    owner, name = path.split(".")
    held = getattr(importlib.import_module(f"vkharness.{module}"), owner)
    real = getattr(held, name)

    def acting(*arguments: Any, **named: Any) -> Any:
        act()
        answer = real(*arguments, **named)
        act()
        return answer

    monkeypatch.setattr(held, name, acting)


@contextlib.contextmanager
def handler(number: int, function: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    before = signal.signal(number, function)
    try:
        yield
    finally:
        signal.signal(number, before)


def raise_limit(number: int, frame: FrameType | None) -> None:
    raise TimeLimit(f"signal {number}")


@native
@pytest.mark.parametrize("keeps_trace", [True, False])
@pytest.mark.parametrize("place", PLACES)
def test_a_signal_that_comes_in_the_mirror_is_handled_behind_the_call(
    place: str, keeps_trace: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program hears of each, at the call in which it came, and all calls are recorded and judged."""
    sent: list[int] = []

    def send() -> None:
        if threading.current_thread() is threading.main_thread():
            sent.append(1)
            signal.raise_signal(signal.SIGUSR1)

    at_each_call(monkeypatch, place, send)
    with handler(signal.SIGUSR1, raise_limit):
        session, outcome = run((TimeLimit,), keeps_trace)
    assert sent and outcome.arrived, "the program does not enter this function"
    assert (outcome.verdict, outcome.errors, session.unmodelled) == ("clean", [], {})
    assert not keeps_trace or outcome.is_whole
    assert held_locks(session) == []


@native
def test_signals_that_come_at_any_time_all_arrive() -> None:
    """A timer of the process, so short that it meets all that the mirror does. Whoever is told is told once."""
    told: list[int] = []

    def limit(number: int, frame: FrameType | None) -> None:
        told.append(1)
        raise TimeLimit

    met = 0
    with handler(signal.SIGALRM, limit), deaf_driver() as vk, vkharness.attach(keep_trace=True) as session:
        calls = calls_of(vk)
        for _ in range(300):
            for call in calls:
                try:
                    signal.setitimer(signal.ITIMER_REAL, 20e-6)
                    call()
                    while not session.blocks and not told:  # let it come
                        pass
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except TimeLimit:
                    met += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert met == len(told) > 0
    assert session.internal_errors == [] and held_locks(session) == []
    names = [*map(block_name, session.blocks or ())]
    assert len(names) >= 7 * 300 - met


@native
def test_python_says_of_handlers_what_it_says_without_the_mirror() -> None:
    def other(number: int, frame: FrameType | None) -> None: ...

    with handler(signal.SIGUSR1, raise_limit):
        with vkharness.attach():
            assert signal.getsignal(signal.SIGUSR1) is raise_limit
            assert signal.signal(signal.SIGUSR1, other) is raise_limit
            assert signal.signal(signal.SIGUSR1, signal.SIG_IGN) is other
            signal.raise_signal(signal.SIGUSR1)
            assert signal.signal(signal.SIGUSR1, raise_limit) is signal.SIG_IGN
            with pytest.raises(TimeLimit):
                signal.raise_signal(signal.SIGUSR1)
        with pytest.raises(TimeLimit):
            signal.raise_signal(signal.SIGUSR1)
    assert signal.signal.__code__.co_filename == signal.__file__


@native
def test_a_forked_child_that_was_made_in_a_critical_section_gets_its_signals() -> None:
    """Of another thread: the main thread was in the middle of one, which the child does not have."""
    read, write = os.pipe()

    def fork() -> None:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGUSR1, lambda number, frame: os.write(write, b"x"))
            signal.raise_signal(signal.SIGUSR1)
            os._exit(0)
        os.waitpid(child, 0)

    def section() -> None:
        thread = threading.Thread(target=fork)
        thread.start()
        thread.join()

    assert core is not None
    core.Critical(section, "")()
    os.close(write)
    with os.fdopen(read, "rb") as file:
        assert file.read() == b"x"


@native
def test_an_interrupt_in_a_callback_of_c_is_raised_when_python_is_back() -> None:
    """C called the function pointer, and would swallow what it raises."""
    assert core is not None
    told: list[str] = []

    def body() -> None:
        told.append("body")
        signal.raise_signal(signal.SIGUSR1)
        told.append("whole")

    callback = ctypes.CFUNCTYPE(None)(core.Critical(body, "callback"))
    with handler(signal.SIGUSR1, raise_limit), vkharness.attach(), pytest.raises(TimeLimit):
        callback()
        told.append("behind")
    assert told == ["body", "whole"]


@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
@pytest.mark.parametrize("place", [*PLACES, "record.proxy:Proxy.put_in"])
def test_what_another_thread_raises_in_the_mirror_is_passed_on_and_marked(
    place: str, kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot wait. It arrives once, no lock stays taken, and no verdict is clean that misses a call. Who attaches
    has no session then, and who detaches none any more."""
    left = [1]

    def interrupt() -> None:
        if left and threading.current_thread() is threading.main_thread():
            left.clear()
            ident = ctypes.c_ulong(threading.get_ident())
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(kind))

    at_each_call(monkeypatch, place, interrupt)
    session, outcome = run((kind,))
    assert not left, "the program does not enter this function"
    assert outcome.fault(1) == "" and held_locks(session) == []


@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "TimeoutError"])
def test_pure_python_passes_on_what_is_raised_anywhere(kind: str) -> None:
    """Each place where Python may raise is tried by a run with `--every 1`."""
    words = [sys.executable, "-m", "tests.record.interrupted_program", "places", "--kinds", kind, "--every", "41"]
    environment = {**os.environ, "VKHARNESS_PURE": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["points"] > 20 and found["faults"] == []


def test_faults_of_the_mirror_are_told_from_what_the_program_raises() -> None:
    def raised(act: Callable[[], object]) -> BaseException:
        with pytest.raises(BaseException) as told:
            act()
        return told.value

    from vkharness.trace.handles import HandleRegistry

    assert is_the_mirrors(raised(lambda: HandleRegistry().table("VkBuffer")[raised]))
    with handler(signal.SIGUSR1, raise_limit):
        assert not is_the_mirrors(raised(lambda: signal.raise_signal(signal.SIGUSR1)))
    assert not is_the_mirrors(KeyboardInterrupt()) and not is_the_mirrors(TimeoutError())


class Interrupted(LateAnalysis):
    """One that is interrupted once."""

    def __init__(self) -> None:
        super().__init__()
        self.fills: list[int] = []
        self.ended = 0

    def step(self, block: Block) -> list[Finding]:
        self.ended += block_name(block) == "vkEndCommandBuffer"
        return super().step(block)

    def _record(self, index: int, name: str, args: dict[str, Any], *more: Any) -> None:
        if name == "vkCmdFillBuffer":
            self.fills.append(args["dstOffset"])
            if len(self.fills) == INTERRUPTED:
                raise KeyboardInterrupt
        super()._record(index, name, args, *more)


@pytest.mark.parametrize("asks", [False, True])
def test_nothing_is_judged_behind_what_interrupts_the_judge(asks: bool) -> None:
    """Nobody knows what it left. The interrupt arrives, and the verdict says so."""
    mirror, raised = Interrupted(), list[str]()
    with deaf_driver() as vk, vkharness.attach(mirror=mirror) as session:
        commands, buffer = vk.ffi.cast("VkCommandBuffer", 16), vk.ffi.cast("VkBuffer", 0)

        def call(name: str, *arguments: Any) -> None:
            try:
                getattr(vk, name)(commands, *arguments)
            except KeyboardInterrupt:
                raised.append(name)

        call("vkBeginCommandBuffer", vk.ffi.new("VkCommandBufferBeginInfo *"))
        for at in range(FILLS):
            call("vkCmdFillBuffer", buffer, 4 * at, 4, 0)
        if asks:
            with contextlib.suppress(KeyboardInterrupt):
                session.findings  # noqa: B018
        call("vkEndCommandBuffer")
        assert session.verdict == "unknown"
    assert mirror.fills == [4 * at for at in range(INTERRUPTED)] and mirror.ended == 0
    assert len(raised) == (session.log is None or not asks)
    (named,) = session.unmodelled
    assert "vkCmdFillBuffer" in named and "KeyboardInterrupt" in named and session.internal_errors == []


def test_more_work_than_a_stream_may_ask_for_is_no_error_of_the_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_budget, "AT_FIRST", 0)
    monkeypatch.setattr(work_budget.UNITS, "a_call", 0)
    with deaf_driver() as vk, vkharness.attach() as session:
        for call in calls_of(vk):
            call()
    assert (session.verdict, session.internal_errors) == ("unknown", [])
    (why,) = session.unmodelled
    assert "out of proportion to the size of its stream" in why and why.endswith("what comes behind that")
