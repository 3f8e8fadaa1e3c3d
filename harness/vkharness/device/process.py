"""Jobs in a child process bound to one driver, because drivers crash and a process can use only one.

A `Worker` keeps one child. Requests and replies are JSON, a line each, over two pipes of their own, so that whatever
a driver prints on stdout or stderr disturbs nothing; both are kept as a bounded tail. A child that dies, or does
not answer in time, becomes a `Died` result; the next call starts a fresh child. So it does after a lost device.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vkharness.device.drivers import Driver, environment
from vkharness.device.layer_settings import without_layer_settings
from vkharness.findings import USER_ERRORS, DeviceLostError, UserError

TAIL_BYTES = 16 << 10
"""The number of last bytes that are kept of what the child printed."""

REPLY_LIMIT = 256 << 20
"""The most bytes of a reply. A longer reply ends the child."""

DEFAULT_TIMEOUT = 300.0
"""Seconds for one job. Only a driver that hangs takes that long."""

CLOSE_TIMEOUT = 5.0
"""Seconds that an idle child gets to destroy its devices and leave."""

CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Died:
    """The child ended without an answer."""

    signal: int | None
    """The signal that ended it; None when it exited."""
    exit_code: int | None
    stderr_tail: str
    timed_out: bool = False
    """Whether the child was ended because it did not answer in time."""

    @property
    def told(self) -> str:
        """Words for the end of the process: 'was killed by SIGSEGV', 'exited with 3', 'gave no answer in time'."""
        return f"was {self.reason}" if self.signal is not None and not self.timed_out else self.reason

    @property
    def reason(self) -> str:
        """One phrase: 'killed by SIGSEGV', 'exited with 3', 'gave no answer in time'."""
        if self.timed_out:
            return "gave no answer in time"
        if self.signal is not None:
            names = {number.value: number.name for number in signal.Signals}
            return f"killed by {names.get(self.signal, f'signal {self.signal}')}"
        return f"exited with {self.exit_code}"


class JobError(Exception):
    """A job raised something other than `UserError`; the message is the child's traceback."""


class Worker:
    """Runs functions of importable modules in a child process; see the module's docstring.

    `driver` binds the child to one ICD; None leaves the loader's choice. `packages` are further packages beside
    `vkharness` whose functions may be called. `timeout` is in seconds for each job. The user's settings of layers do
    not reach the child, those in `variables` do. Not thread-safe: one job at a time.
    """

    def __init__(
        self,
        driver: Driver | None = None,
        *,
        packages: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> None:
        self.driver = driver
        self.packages = ("vkharness", *packages)
        self.timeout = timeout
        self._variables = dict(environment(driver) if driver else {}) | dict(variables or {})
        self._child: _Child | None = None

    def call(self, target: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any] | Died:
        """Calls `'package.module:function'` with the JSON-able keyword `arguments` in the child; returns its dict.

        Returns `Died` when the child crashed, exited or hung. Raises `UserError` for a target that may not be called
        and whenever the job raises it; `JobError` with the child's traceback for any other exception.
        """
        check_target(target, self.packages)
        request = json.dumps({"target": target, "arguments": dict(arguments or {})}).encode() + b"\n"
        child = self._live_child()
        try:
            reply = child.exchange(request, self.timeout)
        except BaseException:
            self._child = None
            child.end()
            raise
        if isinstance(reply, Died):
            self._child = None
            return reply
        if "user_error" in reply:
            kind = USER_ERRORS.get(reply["kind"], UserError)
            if kind is DeviceLostError:
                self.close()
            raise kind(str(reply["user_error"]))
        if "error" in reply:
            raise JobError(str(reply["error"]))
        value = reply["value"]
        assert isinstance(value, dict)
        return value

    @property
    def printed(self) -> str:
        """The last lines that the child printed on stdout and stderr; empty while there is no child."""
        return self._child.printed() if self._child else ""

    @property
    def pid(self) -> int | None:
        """The child's process id; None while there is none."""
        return self._child.process.pid if self._child else None

    def close(self) -> None:
        """Lets the child leave by itself, ends it when it does not. A later call starts a fresh one."""
        child, self._child = self._child, None
        if child:
            child.leave()

    def _live_child(self) -> _Child:
        if self._child and self._child.process.poll() is not None:  # it died between two jobs
            self._child.end()
            self._child = None
        if self._child is None:
            self._child = _Child(self.packages, self._variables)
        return self._child

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def check_target(target: str, packages: Sequence[str]) -> None:
    """Raises `UserError` unless `target` is 'package.module:function' in one of `packages`."""
    module, _, function = target.partition(":")
    parts = module.split(".")
    if not (function.isidentifier() and all(part.isidentifier() for part in parts)):
        raise UserError(f"job '{target}' is not of the form package.module:function")
    if parts[0] not in packages or function.startswith("_"):
        raise UserError(f"job '{target}' is not a public function of {' or '.join(packages)}")


class _Child:
    """One child process with its pipes."""

    def __init__(self, packages: Sequence[str], variables: Mapping[str, str]) -> None:
        request_read, self._requests = os.pipe()
        self._replies, reply_write = os.pipe()
        root = str(Path(__file__).resolve().parents[2])
        path = [root, *(entry for entry in sys.path if entry)]
        # The system ends it with the thread that begins it, and another thread may end long before the process.
        parent = os.getpid() if threading.current_thread() is threading.main_thread() else 0
        numbers = map(str, (parent, request_read, reply_write))
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "vkharness.device.worker", *numbers, *packages],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(request_read, reply_write),
                env={
                    **without_layer_settings(os.environ),
                    **variables,
                    "PYTHONPATH": os.pathsep.join(dict.fromkeys(path)),
                },
            )
        except BaseException:
            os.close(self._requests)
            os.close(self._replies)
            raise
        finally:
            os.close(request_read)
            os.close(reply_write)
        assert self.process.stdout is not None
        self._output = self.process.stdout.fileno()
        self._tail = b""
        for pipe in (self._requests, self._replies, self._output):
            os.set_blocking(pipe, False)

    def exchange(self, request: bytes, timeout: float) -> dict[str, Any] | Died:
        """Sends `request`, a line, and waits for the reply, a line, while draining what the child prints."""
        deadline = time.monotonic() + timeout
        unsent = memoryview(request)
        reply = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(self._requests, selectors.EVENT_WRITE)
            selector.register(self._replies, selectors.EVENT_READ)
            selector.register(self._output, selectors.EVENT_READ)
            while not reply.endswith(b"\n"):
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready and time.monotonic() >= deadline:
                    return self._died(timed_out=True)
                for key, _ in ready:
                    if key.fd == self._requests:
                        unsent = self._send(unsent)
                        if not unsent:
                            selector.unregister(self._requests)
                    elif key.fd == self._output:
                        if not self._drain():
                            selector.unregister(self._output)
                    else:
                        chunk = os.read(self._replies, CHUNK)
                        reply += chunk
                        if not chunk or len(reply) > REPLY_LIMIT:
                            return self._died()
        value = json.loads(reply)
        assert isinstance(value, dict)
        return value

    def printed(self) -> str:
        """The tail of what the process has printed so far."""
        before = None
        while before != self._tail:  # a grandchild may hold the pipe open: stop when nothing more comes
            before = self._tail
            self._drain()
        return self._tail.decode(errors="replace").strip()

    def leave(self) -> None:
        """Closes the request pipe, upon which the child leaves; ends it when it does not."""
        os.close(self._requests)
        self._requests = -1
        try:
            # Output on leaving must not fill the pipe and hold the process up.
            self.process.communicate(timeout=CLOSE_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.end()

    def end(self) -> None:
        """Ends the process if it still runs and closes the pipes. May be called again."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self._requests, self._replies):
            if pipe >= 0:
                os.close(pipe)
        self._requests = self._replies = -1
        if self.process.stdout:
            self.process.stdout.close()

    def _send(self, unsent: memoryview) -> memoryview:
        try:
            return unsent[os.write(self._requests, unsent[:CHUNK]) :]
        except BrokenPipeError:
            return unsent[:0]  # it died; the reply pipe says so next

    def _drain(self) -> bool:
        """Reads what the child has printed; False at the end of it."""
        try:
            chunk = os.read(self._output, CHUNK)
        except BlockingIOError:
            return True
        self._tail = (self._tail + chunk)[-TAIL_BYTES:]
        return bool(chunk)

    def _died(self, timed_out: bool = False) -> Died:
        """Describes the end of a child that will not answer; it is ended first if it still runs."""
        if timed_out:
            self.process.kill()
        try:
            code = self.process.wait(CLOSE_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        printed = self.printed()
        self.end()
        return Died(
            signal=-code if code < 0 else None,
            exit_code=code if code >= 0 else None,
            stderr_tail=printed,
            timed_out=timed_out,
        )
