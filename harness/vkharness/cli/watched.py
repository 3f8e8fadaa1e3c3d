"""A program that runs in a process of its own, so that there is a verdict when that process dies.

A signal, `abort` or `_exit` ends the process in which the mirror is, with all that it knows. The process that was
started waits for it, and speaks where it could not.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import signal
import sys
from collections.abc import Callable
from enum import IntEnum

from vkharness.device.parent_death import kill_with_parent
from vkharness.verdicts import JudgedShare, ProgramEnd

_FAULTS = {signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS}
_JOBS = {signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT, signal.SIGWINCH, signal.SIGURG}
PASSED_ON = frozenset(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD} - _FAULTS - _JOBS
"""Signals that are meant for the program when somebody sends them to the process that was started."""


class RunStage(IntEnum):
    """How far the process of the program has come."""

    RUNS = 0
    ENDED = 1
    TOLD = 2
    """Its verdict is out, and the files are written."""


class Progress:
    """Messages of the program's process to the one that waits, in shared memory: programs close descriptors."""

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, 4)
        self.process = 0
        """The process of the program, for the one that waits."""

    @property
    def stage(self) -> RunStage:
        """How far it has come."""
        return RunStage(self._shared[0])

    def ended(self, status: int) -> None:
        """The program has ended, with this exit code."""
        self._shared[1] = status & 0xFF
        self._shared[0] = RunStage.ENDED

    def told(self) -> None:
        """There is a verdict."""
        self._shared[0] = RunStage.TOLD

    def end(self, code: int) -> ProgramEnd:
        """How the program ended whose process ended with this code before its verdict was out."""
        if self.stage is RunStage.RUNS:
            return ProgramEnd.of_process(code, JudgedShare.NOTHING)
        return ProgramEnd(self._shared[1], judged=JudgedShare.NOTHING)


def watched(run: Callable[[Progress], int], died: Callable[[Progress, int], int], *, alike: bool = True) -> int:
    """Returns the result of `run`, which runs in a process of its own. It ends with this one, and as it would alone.

    Where it dies before it has told its verdict, what `died` makes of its exit code (negative: a signal) is told here.
    Returns in both processes: in the first one with the exit code of the other, which it dies as where it is to end
    `alike`.
    """
    progress, here = Progress(), os.getpid()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON | {signal.SIGCHLD})
    progress.process = os.fork()
    if not progress.process:
        kill_with_parent(here)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        try:
            code = run(progress)
        except Exception:
            progress.told()  # by who catches it
            raise
        progress.told()
        return code
    code = _wait(progress.process)
    status = ProgramEnd.of_process(code).exit_code if progress.stage is RunStage.TOLD else died(progress, code)
    if code < 0 and alike:
        _die_alike(-code)
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return status


def _wait(process: int) -> int:
    """Waits for a process, and passes on what somebody sent here. What a terminal sends it has already."""
    while True:
        told = signal.sigwaitinfo(PASSED_ON | {signal.SIGCHLD})
        if told.si_signo == signal.SIGCHLD:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
        elif told.si_code <= 0 and told.si_pid != process:
            os.kill(process, told.si_signo)


def _die_alike(number: int) -> None:
    """Ends this process by the same signal, without a second core."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            stream.flush()
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    ctypes.CDLL(None).kill(os.getpid(), number)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
