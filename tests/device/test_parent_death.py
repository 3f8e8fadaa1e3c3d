"""Children of a parent that was killed: none is left."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from vkharness.device.parent_death import start_that_dies

PARENT = """
import os, sys
sys.path.append(os.getcwd())
from vkharness.device.process import Worker
worker = Worker(packages=["tests"])
print(worker.call("tests.support.process_jobs:echo")["pid"], flush=True)
worker.call("tests.support.process_jobs:hang")
"""
CHILD = """
import threading
from vkharness.device.parent_death import kill_after_closing
kill_after_closing(0, 1)
print("ready", flush=True)
threading.Event().wait()
"""
DISPLAY = """
import sys
from vkharness.device.parent_death import start_that_dies
child = start_that_dies([sys.executable, "-c", "import threading; threading.Event().wait()"])
print(child.pid, flush=True)
child.wait()
"""
POOL = """
import multiprocessing, os, threading
from vkharness.device.parent_death import kill_after_parent
with multiprocessing.get_context("fork").Pool(1, kill_after_parent, maxtasksperchild=1) as pool:
    assert pool.map(abs, [-1, -2, -3], chunksize=1) == [1, 2, 3]  # processes that a thread of the pool began
pool = multiprocessing.get_context("fork").Pool(1, kill_after_parent)
print(pool.apply(os.getpid), flush=True)
threading.Event().wait()
"""
SECONDS = 60


def assert_ends(pid: int) -> None:
    """Waits for the end of a process that is nobody's child here."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    ended, _, _ = select.select([process], [], [], SECONDS)
    os.close(process)
    assert ended, f"process {pid} outlives its parent"


def killed_parent(program: str, number: signal.Signals) -> int:
    """Runs a program that prints the process id of its child, kills it, and returns that id."""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.send_signal(number)
    return pid


def test_a_hanging_job_ends_with_its_parent() -> None:
    for number in (signal.SIGKILL, signal.SIGTERM):
        assert_ends(killed_parent(PARENT, number))


def test_a_command_ends_with_its_parent() -> None:
    assert_ends(killed_parent(DISPLAY, signal.SIGKILL))


def test_a_process_of_a_pool_ends_with_its_parent_and_not_with_a_thread_of_it() -> None:
    assert_ends(killed_parent(POOL, signal.SIGKILL))


def test_a_process_that_hangs_is_killed_after_its_pipe_closes() -> None:
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None and child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(SECONDS) == -signal.SIGALRM


def test_a_program_begins_as_from_a_shell(tmp_path: Path) -> None:
    """It ignores no signal, and Python's variables are for it alone."""
    told = 'echo "$PYTHONHOME" && grep SigIgn /proc/self/status'
    environment = {**os.environ, "PYTHONHOME": str(tmp_path), "PYTHONPROFILEIMPORTTIME": "1"}
    with start_that_dies(["sh", "-c", told], environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as program:
        assert program.stdout is not None
        lines = program.stdout.read().decode().split()
    assert lines == [str(tmp_path), "SigIgn:", "0" * 16]
