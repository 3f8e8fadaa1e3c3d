"""A child process that does not outlive its parent, also while it is in a driver that does not return.

Two means, because each has a hole. Linux' parent-death signal comes when the *thread* that began the child ends, so it
is for children of a main thread. The other end of a pipe closes when every process that holds it has ended, so a
process that was forked from the parent holds it up.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import select
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

PR_SET_PDEATHSIG = 1


def kill_with_parent(parent: int) -> None:
    """This process is killed when the thread that began it ends. `parent` is the process that it was begun by.

    Does nothing where the system has no `prctl`."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:  # it ended before this process asked for the signal
            os.kill(os.getpid(), signal.SIGKILL)


def kill_after_parent() -> None:
    """This process, which `multiprocessing` began, is killed soon after its parent has ended.

    The parent-death signal is not for it: a thread of a pool begins processes, and ends while they hold locks of it."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "not begun by multiprocessing"
    kill_after_closing(parent.sentinel, 1)


def kill_after_closing(pipe: int, seconds: int) -> None:
    """When the other end of this pipe closes, this process has some seconds to leave, and is killed then.

    The system does that, so that neither a call into a driver nor the end of the interpreter holds it up.
    """

    def watch() -> None:
        poll = select.poll()
        poll.register(pipe, 0)  # the end of the pipe is told without being asked for
        poll.poll()
        signal.alarm(seconds)  # the default action of SIGALRM ends the process

    threading.Thread(target=watch, name="parent", daemon=True).start()


def command_that_dies(command: Sequence[str]) -> list[str]:
    """The command line under which `command` is killed when the thread that began it ends."""
    return [sys.executable, "-P", str(Path(__file__)), str(os.getpid()), *command]


def main(arguments: Sequence[str]) -> None:
    """PARENT COMMAND...: becomes this command, which the parent's death kills."""
    parent, *command = arguments
    kill_with_parent(int(parent))
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
