"""Python processes of tests that begin as copies of one that has imported the harness.

To start Python and to import takes longer than what most processes of tests are begun for. So a *template* does both
and runs nothing (`process_template`), and `subprocess.Popen` of a test has it fork what is to be Python. Arguments,
folder, variables, files and the module `__main__` of a copy are those that a new process would have, and what it begins
is a copy, too. What is not Python, or has other options or variables of the interpreter, is started as ever.

A copy does not take its modules apart at its end, so that a fault there does not show. It has the hashes of text, the
limits, the mask of new files and `/proc/self/cmdline` of the template. Tests of such things are in `FRESH` of
tests/conftest.py.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

ROOT = str(Path(__file__).resolve().parents[2])
LENGTH, STATUS = struct.Struct("<I"), struct.Struct("<ii")
"""The length of what is asked for, and a process with its status as `os.waitpid` gives it."""
OF_THE_START = ("PYTHON", "LD_", "TZ", "LC_", "LANG", "GLIBC_", "MALLOC_", "OMP_", "OPENBLAS_", "VKHARNESS_PURE")
"""How the names begin of variables that count when Python starts, or when it imports."""
OF_A_COPY = ("PYTHONPATH", "PYTHONSAFEPATH", "PYTHONDONTWRITEBYTECODE")
"""Those of them that a copy obeys."""
SCRIPTS = tuple(str(Path(sys.executable).with_name(name)) for name in ("vkharness", "pytest"))
PLAIN = [True, None, None, None, -1, False, -1]
"""What `subprocess.Popen` gets last where nobody asked for it: signals, groups, user, mask, session, process group."""

_started = subprocess.Popen
_template: Callable[[], Template] | None = None


class Template(NamedTuple):
    """The process that is copied: where it listens, and its variables of the start."""

    address: str
    variables: dict[str, str]


def of_the_start(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables for which each value needs another template."""
    return {name: text for name, text in environ.items() if name.startswith(OF_THE_START) and name not in OF_A_COPY}


def received(end: socket.socket, size: int) -> bytes:
    """So many bytes. Raises ChildProcessError where the other side has ended."""
    found = b""
    while len(found) < size:
        part = end.recv(size - len(found))
        if not part:
            raise ChildProcessError("the process that processes of tests are copies of has ended")
        found += part
    return found


def copy_from(template: Callable[[], Template] | None) -> None:
    """From now on processes begin as copies of this template, or are started as ever."""
    global _template  # noqa: PLW0603 (it is one of the process, as `subprocess.Popen` is)
    _template = template
    subprocess.Popen = _started if template is None else CopiedPopen  # type: ignore[misc]


def _python(command: object) -> list[str]:
    """The words behind this Python in a command that starts it with a program; none for another command."""
    if not isinstance(command, list | tuple):
        return []
    first, *words = map(os.fsdecode, command)
    if first in SCRIPTS:
        return [first, *words]
    at = next((at for at, word in enumerate(words) if word != "-P"), None)
    if first != sys.executable or at is None:
        return []
    if words[at].startswith("-m") and words[at] != "-m":
        words[at : at + 1] = "-m", words[at].removeprefix("-m")
    return words if words[at] in ("-c", "-m") or not words[at].startswith("-") else []


class CopiedPopen(subprocess.Popen[Any]):
    """`subprocess.Popen`, whose processes are copies where they can be."""

    _end: socket.socket | None = None
    """The connection that tells how a copy has ended."""

    def _execute_child(self, args: Any, executable: Any, preexec_fn: Any, close_fds: bool, *others: Any) -> None:
        pass_fds, cwd, env, _, _, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *rest = others
        words = [] if executable or preexec_fn or shell or not close_fds or rest != PLAIN else _python(args)
        variables = {os.fsdecode(name): os.fsdecode(text) for name, text in dict(env or os.environ).items()}
        template = _template() if _template and words else None
        if template is None or of_the_start(variables) != template.variables:
            super()._execute_child(args, executable, preexec_fn, close_fds, *others)  # type: ignore[misc]
            return
        sys.audit("subprocess.Popen", sys.executable, args, cwd, env)
        folder = os.path.join(os.getcwd(), os.fsdecode(cwd or ""))
        if not os.path.isdir(folder):
            raise FileNotFoundError(2, os.strerror(2), folder)
        own = [each if given == -1 else given for each, given in enumerate((p2cread, c2pwrite, errwrite))]
        asked = {"words": words, "parent": os.getpid(), "folder": folder, "variables": variables}
        message = json.dumps(asked | {"files": [0, 1, 2, *pass_fds]}).encode()
        end = socket.socket(socket.AF_UNIX)
        try:
            end.connect(template.address)
            socket.send_fds(end, [LENGTH.pack(len(message))], [*own, *pass_fds])
            end.sendall(message)
            self.pid, _ = STATUS.unpack(received(end, STATUS.size))
        except OSError:  # the template has ended: a process that is no copy will do
            end.close()
            super()._execute_child(args, executable, preexec_fn, close_fds, *others)  # type: ignore[misc]
            return
        self._end, self._child_created = end, True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def _try_wait(self, flags: int) -> tuple[int, int]:
        if self._end is None:
            return super()._try_wait(flags)  # type: ignore[misc,no-any-return]
        self._end.setblocking(not flags & os.WNOHANG)
        try:
            pid, status = STATUS.unpack(received(self._end, STATUS.size))
        except BlockingIOError:
            return 0, 0
        except OSError:  # the template has ended, and nobody can tell how this process does
            pid, status = self._without_template(flags)
        if pid:
            self._end.close()
        return pid, status

    def _without_template(self, flags: int) -> tuple[int, int]:
        """As `os.waitpid` of a process that is no child: one that has ended counts as killed."""
        try:
            file = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return self.pid, signal.SIGKILL
        try:
            ended, _, _ = select.select([file], [], [], 0 if flags & os.WNOHANG else None)
        finally:
            os.close(file)
        return (self.pid, signal.SIGKILL) if ended else (0, 0)

    def _internal_poll(self, _deadstate: int | None = None, **others: Any) -> int | None:
        if self._end is None:
            return super()._internal_poll(_deadstate, **others)  # type: ignore[misc,no-any-return]
        if self.returncode is None and self._waitpid_lock.acquire(False):  # type: ignore[attr-defined]
            try:
                pid, status = self._try_wait(os.WNOHANG)
                if pid:
                    self.returncode = os.waitstatus_to_exitcode(status)
            finally:
                self._waitpid_lock.release()  # type: ignore[attr-defined]
        return self.returncode


class CopiedProcesses:
    """The template of this process, which starts when the first copy is asked for."""

    def __init__(self) -> None:
        self._stack = ExitStack()

    @cached_property
    def template(self) -> Template:
        """The template, started."""
        address = os.path.join(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="copies-")), "socket")
        environ = {name: text for name, text in os.environ.items() if name not in OF_A_COPY}
        life, other = socket.socketpair()
        with socket.socket(socket.AF_UNIX) as listener, other:
            listener.bind(address)
            listener.listen()
            numbers = (listener.fileno(), other.fileno())
            as_here = ["-B"] if sys.dont_write_bytecode else []
            process = _started(
                [sys.executable, *as_here, "-P", "-m", "tests.support.process_template", address, *map(str, numbers)],
                env={**environ, "PYTHONPATH": ROOT},
                pass_fds=numbers,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self._stack.callback(process.wait)
        self._stack.callback(life.close)
        return Template(address, of_the_start(environ))

    @contextmanager
    def begun(self) -> Iterator[None]:
        """Within the `with` block processes begin as copies."""
        before = _template
        copy_from(lambda: self.template)
        try:
            yield
        finally:
            copy_from(before)

    def close(self) -> None:
        """Ends the template."""
        self._stack.close()
