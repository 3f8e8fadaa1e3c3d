"""The process that processes of tests are copies of (`copied_processes`): `ADDRESS LISTENER_FD LIFE_FD`.

Each connection to its socket asks for one process. Its number goes back, and how it ended. The template ends with the
other side of LIFE_FD.
"""

from __future__ import annotations

import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import struct
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from tests.support.copied_processes import LENGTH, ROOT, STATUS, Template, copy_from, of_the_start, received

MOST_FILES = 64
LATER = ("vkharness.device.worker", "vkharness.__main__", "vkharness.pytest_plugin")
"""Modules that are run as programs, or that pytest wants to load itself."""


class Asked(NamedTuple):
    """A process that is to be. `held` are files of the template, and `files` their numbers in the process."""

    words: list[str]
    parent: int
    folder: str
    variables: dict[str, str]
    files: list[int]
    held: list[int]


class Server:
    """The template while it waits."""

    def __init__(self, listener: socket.socket, life: socket.socket) -> None:
        self._listener, self._life = listener, life
        self._copies: dict[int, tuple[int, socket.socket]] = {}
        """By the file that tells of the end of a process: its number, and the connection."""

    def serve(self) -> Asked | None:
        """Returns in each copy, with what it is to be; None when the tests are over."""
        while True:
            watched: list[socket.socket | int] = [self._listener, self._life, *self._copies]
            with selectors.DefaultSelector() as selector:
                for each in watched:
                    selector.register(each, selectors.EVENT_READ)
                ready = [key.fileobj for key, _ in selector.select()]
            if self._life in ready:
                return None
            for file in ready:
                if isinstance(file, int):
                    self._reap(file)
            if self._listener in ready:
                asked = self._answer(self._listener.accept()[0])
                if asked is not None:
                    return asked

    def _answer(self, end: socket.socket) -> Asked | None:
        """Takes one request. Who leaves in the middle of it, as a process that a test ends, gets nothing."""
        try:
            return self._fork(end)
        except (OSError, struct.error, ValueError, TypeError):
            end.close()
            return None

    def _reap(self, file: int) -> None:
        pid, end = self._copies.pop(file)
        _, status = os.waitpid(pid, 0)
        os.close(file)
        with end, suppress(OSError):  # nobody may wait for it any more
            end.sendall(STATUS.pack(pid, status))

    def _fork(self, end: socket.socket) -> Asked | None:
        length, held, _, _ = socket.recv_fds(end, LENGTH.size, MOST_FILES)
        try:
            asked = Asked(held=held, **json.loads(received(end, *LENGTH.unpack(length))))
        except BaseException:
            for file in held:
                os.close(file)
            raise
        pid = os.fork()
        if not pid:
            for each in (self._listener, self._life, end, *(one for _, one in self._copies.values())):
                each.close()
            for file in self._copies:
                os.close(file)
            return asked
        for file in held:
            os.close(file)
        self._copies[os.pidfd_open(pid)] = pid, end
        with suppress(OSError):
            end.sendall(STATUS.pack(pid, 0))
        return None


def take(asked: Asked, path: Sequence[str]) -> None:
    """Gives this process the files, parent, folder, variables and module path that it is to have."""
    above = max([*asked.files, *asked.held]) + 1
    moved = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, above) for file in asked.held]
    for file in asked.held:
        os.close(file)
    for file, number in zip(moved, asked.files, strict=True):
        os.dup2(file, number)
        os.close(file)
    template, parent = os.getppid(), os.getppid
    # Who asks whether its parent is still there means the process that began it.
    os.getppid = lambda: asked.parent if parent() == template else parent()
    os.chdir(asked.folder)
    os.environ.clear()
    os.environ.update(asked.variables)
    sys.dont_write_bytecode = bool(asked.variables.get("PYTHONDONTWRITEBYTECODE"))
    given = asked.variables.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:] = [*(os.path.abspath(each) for each in given if each), *path]
    importlib.invalidate_caches()


def become(words: Sequence[str]) -> None:
    """Runs what Python's command line says."""
    kind, *rest = words
    safe = "PYTHONSAFEPATH" in os.environ
    while kind == "-P":
        safe, (kind, *rest) = True, rest
    main = sys.modules["__main__"] = ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    if not safe:
        sys.path.insert(0, {"-c": "", "-m": os.getcwd()}.get(kind, str(Path(kind).resolve().parent)))
    if kind == "-c":
        sys.argv = [kind, *rest[1:]]
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    elif kind == "-m":
        sys.argv = [kind, *rest[1:]]
        runpy._run_module_as_main(rest[0])  # type: ignore[attr-defined]
    else:
        sys.argv = [kind, *rest]
        runpy.run_path(kind, run_name="__main__")


def run(words: Sequence[str]) -> int:
    """Becomes the program and ends as Python does, but takes no module apart, which would cost more than to begin.

    Returns the code to exit with.
    """
    code: object = None
    try:
        become(words)
    except SystemExit as leaving:
        code = leaving.code
    except KeyboardInterrupt as error:
        _show(error)
        code = -signal.SIGINT
    except BaseException as error:
        _show(error)
        code = 1
    if not isinstance(code, int | None):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if code == -signal.SIGINT:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return (code or 0) & 0xFF


def _show(error: BaseException) -> None:
    """Prints it as Python does, without the lines of this module."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.excepthook(type(error), error.with_traceback(trace), trace)


def load() -> None:
    """Imports what most processes of tests import, and leaves no package of the tests to them."""
    import vkharness

    for found in pkgutil.walk_packages(vkharness.__path__, "vkharness."):
        if found.name not in LATER:
            importlib.import_module(found.name)
    vkharness.__doc__ = "PYTEST_DONT_REWRITE"  # else a run of pytest warns that it is too late to rewrite its plugins
    for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
        del sys.modules[name]
    gc.collect()
    gc.freeze()  # what nobody looks at stays shared


def main() -> None:
    """Waits, and ends in each copy as that one does."""
    address, *numbers = sys.argv[1:]
    listener, life = (socket.socket(fileno=int(number)) for number in numbers)
    template = Template(address, of_the_start(os.environ))
    copy_from(lambda: template)
    path = [each for each in sys.path if each != ROOT]
    load()
    asked = Server(listener, life).serve()
    if asked is not None:
        take(asked, path)
        ctypes.PyDLL(None).exit(run(asked.words))  # libraries write what they hold back


if __name__ == "__main__":
    main()
