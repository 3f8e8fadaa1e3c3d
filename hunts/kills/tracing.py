"""A command under `ptrace`: what all its processes do to files of one folder is counted, and one of these operations is
where the command is killed.

A seccomp filter stops the processes at the system calls of `_CALLS` only, so that the rest runs at full speed. The
process that traces must have no other children while it does. Linux on x86-64.
"""

from __future__ import annotations

import ctypes
import os
import platform
import signal
import struct
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

from vkharness.findings import UserError

TRACEME, CONT, KILL_OPTIONS, SYSCALL_INFO = 0, 7, 0x4200, 0x420E
"""Requests of `ptrace`."""
OPTIONS = (1 << 20) | (1 << 7) | (1 << 4) | (1 << 3) | (1 << 2) | (1 << 1)
"""PTRACE_O_EXITKILL, _TRACESECCOMP, _TRACEEXEC, _TRACECLONE, _TRACEVFORK and _TRACEFORK."""
EVENT_SECCOMP = 7
ALL_KINDS = 0x40000000
"""__WALL of `waitpid`: threads, too."""
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2
RETURN_TRACE, RETURN_ALLOW = 0x7FF00000, 0x7FFF0000
CLONE_THREAD = 0x10000
CURRENT_FOLDER = -100
"""AT_FDCWD."""
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_CALLS = {
    1: "write",
    18: "pwrite64",
    20: "writev",
    40: "sendfile",
    56: "clone",
    57: "fork",
    58: "vfork",
    59: "execve",
    74: "fsync",
    75: "fdatasync",
    76: "truncate",
    77: "ftruncate",
    82: "rename",
    83: "mkdir",
    84: "rmdir",
    86: "link",
    87: "unlink",
    88: "symlink",
    90: "chmod",
    91: "fchmod",
    231: "exit_group",
    257: "openat",
    258: "mkdirat",
    263: "unlinkat",
    264: "renameat",
    268: "fchmodat",
    316: "renameat2",
    326: "copy_file_range",
    435: "clone3",
}
"""System calls by their numbers on x86-64: those that change files, begin processes or end them."""
_OF_HANDLES = {"write", "pwrite64", "writev", "sendfile", "fsync", "fdatasync", "ftruncate", "fchmod"}
_OF_FOLDERS = {"openat", "mkdirat", "unlinkat", "renameat", "fchmodat", "renameat2"}
"""Those whose first argument is the folder to which a path is relative."""
_OF_PROCESSES = {"fork", "vfork", "execve", "exit_group"}


class Operation(NamedTuple):
    """An operation that a process is about to do."""

    number: int
    """Counted over all processes, from 1."""
    name: str
    """The system call."""
    path: str
    """The file, relative to the folder; empty for what is about processes."""
    process: int


class Ending(NamedTuple):
    """How a command ended."""

    status: int
    """As `waitpid` gave it."""
    operations: list[Operation]
    """All of them, up to the one that was chosen."""
    orphans: list[str]
    """Command lines of processes that were left when the time to leave was over. They are killed then."""
    seconds: float
    """From the end of the command to that of its last process."""

    @property
    def code(self) -> int:
        """As `subprocess` gives it: minus the signal, or the exit code."""
        return os.waitstatus_to_exitcode(self.status)


class _Leaving(Exception):
    """The time is over."""


class _SyscallInfo(ctypes.Structure):
    _fields_ = (("op", ctypes.c_uint8), ("arch", ctypes.c_uint32), ("at", ctypes.c_uint64 * 2),
                ("number", ctypes.c_uint64), ("arguments", ctypes.c_uint64 * 6), ("data", ctypes.c_uint32))  # fmt: skip


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


_libc = ctypes.CDLL(None, use_errno=True)
_libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
_libc.ptrace.restype = ctypes.c_long


def run_traced(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    output: Path,
    at: Callable[[Operation, Tracees], bool],
    leave: float,
) -> Ending:
    """Runs a command in `folder`, with what it prints in the file `output`.

    `at` is asked before each operation on a file below the folder, but for those whose path begins with a dot, and each
    begin and end of a process, until it says that it has done what it wanted to; it may kill any of the processes. When
    the command has ended, its other processes have `leave` seconds. Raises `UserError` where no process can be traced.
    """
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        raise UserError("kills: processes can be traced on Linux on x86-64 only")
    root = os.fork()
    if not root:
        _become(command, folder, environment, output)
    tracees = Tracees(root, folder, at)
    before = signal.signal(signal.SIGALRM, tracees.alarm)
    orphans: list[str] = []
    try:
        tracees.follow(leave)
    except _Leaving:
        orphans = tracees.end()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return Ending(tracees.status, tracees.operations, orphans, time.monotonic() - tracees.ended)


def _become(command: Sequence[str], folder: Path, environment: Mapping[str, str], output: Path) -> NoReturn:
    """The child's side: it is traced, and becomes the command."""
    try:
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(
                number, signal.SIG_DFL
            )  # Python ignores some, and so does a shell for what it does not wait for
        handle = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        null = os.open(os.devnull, os.O_RDONLY)
        for stream, target in enumerate((null, handle, handle)):
            os.dup2(target, stream)
        os.closerange(3, 256)
        os.chdir(folder)
        if _libc.ptrace(TRACEME, 0, None, None):
            raise OSError(ctypes.get_errno(), "ptrace")
        os.kill(os.getpid(), signal.SIGSTOP)
        _stop_at_calls()
        os.execvpe(command[0], list(command), dict(environment))
    except BaseException as error:
        print(f"kills: cannot be traced: {error}", file=sys.stderr, flush=True)
    finally:
        os._exit(127)


def _stop_at_calls() -> None:
    """Installs the filter: a program for the kernel, of instructions (code, jump if, jump if not, value)."""
    numbers = list(_CALLS)
    instructions = [(0x20, 0, 0, 0)]  # load the number of the call
    instructions += [(0x15, len(numbers) - at, 0, number) for at, number in enumerate(numbers)]  # is it this one?
    instructions += [(0x06, 0, 0, RETURN_ALLOW), (0x06, 0, 0, RETURN_TRACE)]
    code = b"".join(struct.pack("HBBI", *each) for each in instructions)
    program = _Program(len(instructions), code)
    if _libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) or _libc.prctl(SECCOMP, FILTER, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


class Tracees:
    """All processes of a command."""

    def __init__(self, root: int, folder: Path, at: Callable[[Operation, Tracees], bool]) -> None:
        self.root = root
        """The command's own process."""
        self.operations: list[Operation] = []
        self.status = 0
        self.ended = 0.0
        self._folder = f"{os.path.realpath(folder)}/"
        self._at = at
        self._is_done = False
        self._later: Callable[[], object] | None = None
        self._stopped_at: tuple[int, list[int]] = (0, [])
        """The thread that stands before a system call, and its arguments."""
        self._threads: set[int] = set()
        """Processes and threads that were seen and have not ended."""

    @property
    def processes(self) -> list[int]:
        """Those that are left, the command's own one first where it is left."""
        found = {group for thread in self._threads if (group := _group_of(thread))}
        return sorted(found, key=lambda each: (each != self.root, each))

    def follow(self, leave: float) -> None:
        """Lets all of them run to their ends. `_Leaving` comes some seconds after the end of the first one."""
        os.waitpid(self.root, ALL_KINDS)
        self._threads.add(self.root)
        _libc.ptrace(KILL_OPTIONS, self.root, None, OPTIONS)
        _libc.ptrace(CONT, self.root, None, None)
        while True:
            try:
                thread, status = os.waitpid(-1, ALL_KINDS)
            except ChildProcessError:
                return
            if os.WIFSTOPPED(status):
                self._stopped(thread, status)
                continue
            self._threads.discard(thread)
            if thread == self.root:
                self.status, self.ended, self._later = status, time.monotonic(), None
                signal.setitimer(signal.ITIMER_REAL, leave)

    def later(self, seconds: float, what: Callable[[], object]) -> None:
        """Lets them run on, and does something then, unless the command has ended."""
        self._later = what
        signal.setitimer(signal.ITIMER_REAL, seconds)

    def alarm(self, number: int, frame: FrameType | None) -> None:
        """The time is over: to run on, or to leave."""
        what, self._later = self._later, None
        if what is None:
            raise _Leaving
        what()

    def end(self) -> list[str]:
        """Kills those that are left; their command lines."""
        told = [_command_line(each) for each in self.processes]
        for each in self._threads:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, ALL_KINDS)
        return told

    def kill(self, process: int, number: int = signal.SIGKILL) -> None:
        """Sends a signal to one of them; one that stands before a system call does not make it if that kills it."""
        with suppress(ProcessLookupError):
            os.kill(process, number)

    def write_half(self) -> None:
        """Does the first half of the `write` before which a process stands, as a kill in the middle of it does."""
        thread, (handle, address, size, *_) = self._stopped_at
        half = _memory(thread, address, max(1, size // 2))
        described = dict(
            line.split(":\t") for line in Path(f"/proc/{thread}/fdinfo/{handle}").read_text().splitlines()[:2]
        )
        appends = int(described["flags"], 8) & os.O_APPEND
        file = os.open(f"/proc/{thread}/fd/{handle}", os.O_WRONLY | appends)
        try:
            os.lseek(file, int(described["pos"]), os.SEEK_SET)
            os.write(file, half)
        finally:
            os.close(file)

    def _stopped(self, thread: int, status: int) -> None:
        event, number = status >> 16, os.WSTOPSIG(status)
        passed = 0
        if event == EVENT_SECCOMP:
            self._meets_call(thread)
        elif not event and thread in self._threads:
            passed = number
        elif not event and number != signal.SIGSTOP:
            passed = number  # a new process begins with a SIGSTOP, which is not for it
        self._threads.add(thread)
        _libc.ptrace(CONT, thread, None, passed)

    def _meets_call(self, thread: int) -> None:
        if self._is_done:
            return
        info = _SyscallInfo()
        if _libc.ptrace(SYSCALL_INFO, thread, ctypes.sizeof(info), ctypes.addressof(info)) <= 0:
            return
        name = _CALLS.get(info.number, "")
        self._stopped_at = thread, list(info.arguments)
        path = self._subject(thread, name, list(info.arguments))
        if path is None:
            return
        operation = Operation(len(self.operations) + 1, name, path, _group_of(thread) or thread)
        self.operations.append(operation)
        self._is_done = self._at(operation, self)

    def _subject(self, thread: int, name: str, arguments: list[int]) -> str | None:
        """The file below the folder that a call is about, relative to it; empty for a call about processes, None for
        any other call."""
        if name in _OF_PROCESSES:
            return ""
        if name in ("clone", "clone3"):
            flags = arguments[0] if name == "clone" else int.from_bytes(_memory(thread, arguments[0], 8), "little")
            return None if flags & CLONE_THREAD else ""
        if name == "openat" and not arguments[2] & WRITING:
            return None
        try:
            if name in _OF_HANDLES or name == "copy_file_range":
                found = os.readlink(f"/proc/{thread}/fd/{arguments[2 if name == 'copy_file_range' else 0]}")
            else:
                found = _path_of(thread, arguments, name in _OF_FOLDERS)
        except (OSError, ValueError):
            return None
        name = found.removeprefix(self._folder)
        return None if name == found or name.startswith(".") else name


def _path_of(thread: int, arguments: list[int], relative: bool) -> str:
    address, folder = (
        (arguments[1], ctypes.c_int(arguments[0] & 0xFFFFFFFF).value) if relative else (arguments[0], -100)
    )
    text = os.fsdecode(_memory(thread, address, 4096).split(b"\0")[0])
    base = os.readlink(f"/proc/{thread}/cwd" if folder == -100 else f"/proc/{thread}/fd/{folder}")
    return os.path.normpath(os.path.join(base, text))


def _memory(thread: int, address: int, size: int) -> bytes:
    """Bytes of a process; fewer where the rest of them is not mapped."""
    with open(f"/proc/{thread}/mem", "rb", buffering=0) as file:
        file.seek(address)
        try:
            return file.read(size)
        except OSError:
            file.seek(address)
            return file.read(min(size, 4096 - address % 4096))


def _group_of(thread: int) -> int | None:
    """The process of a thread; None where it has ended."""
    try:
        text = Path(f"/proc/{thread}/status").read_text()
    except OSError:
        return None
    if "\nState:\tZ" in text or "\nState:\tX" in text:
        return None
    return int(text.partition("\nTgid:\t")[2].split()[0])


def _command_line(process: int) -> str:
    try:
        return " ".join(Path(f"/proc/{process}/cmdline").read_text().split("\0"))[:200].strip()
    except OSError:
        return ""
