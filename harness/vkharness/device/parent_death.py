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
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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


def start_that_dies(
    command: Sequence[str], environment: Mapping[str, str] | None = None, keep: Sequence[int] = (), **how: Any
) -> subprocess.Popen[bytes]:
    """Begins a program that is killed when the thread that began it ends. It gets the descriptors in `keep`; `how` is
    as `subprocess.Popen` takes it. Raises `OSError` where the program cannot be started."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as told:
        try:
            # The variables for Python are the program's: a home of another Python would keep this one from beginning.
            become = [sys.executable, "-I", "-S", str(Path(__file__)), str(os.getpid()), str(writing), *command]
            process = subprocess.Popen(become, env=environment, pass_fds=[writing, *keep], **how)
        finally:
            os.close(writing)
        error = told.read()
    if error:
        process.wait()
        raise OSError(int(error), os.strerror(int(error)))
    return process


def main(arguments: Sequence[str]) -> None:
    """PARENT PIPE COMMAND...: becomes this command, which the parent's death kills; what keeps it from that goes into
    the pipe, as the number of an error."""
    parent, pipe, *command = arguments
    kill_with_parent(int(parent))
    os.set_inheritable(int(pipe), False)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and a program would inherit that
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        os.write(int(pipe), str(error.errno).encode())
        sys.exit(127)


if __name__ == "__main__":
    main(sys.argv[1:])
