"""A session: the stream of blocks of this process from attach to detach, and what the mirror found in it.

Threads
=======

Threads of the program record at once. Each decodes and forwards its own calls with no lock held. What is locked:

* `SessionStream.lock`: the stream and its judge. One block after the other is numbered, kept and judged, and whoever
  looks at the verdict looks between two blocks. A call that is made in the middle of a block, on the same thread (by a
  finalizer or a signal handler of the program), is the next block.
* `HostMemory._lock`: mapped memory, its shadows and the submissions not known to be done. It is taken before
  `SessionStream.lock`, never after it.
* `HandleRegistry.lock`: what a handle stands for. To look a known handle up takes none.
* `Proxy._lock`: the functions that stand in for C's, while they are made.
* `CallsInFlight`: the order between a wait and what it waited for (`in_flight`).

No lock is held while a call is forwarded or a listener is told.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType
from typing import Any

from vkharness.findings import Finding, Unjudged, UserError
from vkharness.record.critical import completed, critical, is_the_mirrors, put_off_signals, uncritical
from vkharness.record.host import HostMemory
from vkharness.record.in_flight import CallsInFlight
from vkharness.record.session_stream import SessionStream, StreamJudge
from vkharness.spec.command_classes import HOST_POLLS, HOST_PUBLISHES, HOST_WAITS, QUEUE_WORK
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, HostRead, HostWrite
from vkharness.trace.effects import StreamEvent

MAX_ERRORS = 100
"""Internal errors kept; more are only counted."""
INNER_FRAMES = 4
"""Frames of ours between the program and the look for its line: that look, `record`, the generated function, and what
calls that one."""
SETS_GOING = QUEUE_WORK | HOST_PUBLISHES
"""After these the device may complete what another thread waits for."""


class Session:
    """Mirrors the Vulkan calls of this process. Made by `vkharness.attach`; one at a time.

    `blocks` is the stream so far (None unless `keep_trace`), `internal_errors` what went wrong inside the mirror: the
    program's calls went through all the same, but then the verdict is 'unknown' at best.
    """

    def __init__(
        self,
        mirror: StreamJudge | None = None,
        *,
        keep_trace: bool = False,
        sink: Callable[[Block], None] | None = None,
        on_finding: Callable[[Finding], None] | None = None,
        keep_alive: bool = True,
    ) -> None:
        """`sink` gets each block, `on_finding` each finding, on the thread that made the call.

        `keep_alive` mends the package's lifetime bug (`vkharness.record.lifetime`) while the session lasts.
        """
        self.mirror = mirror
        self._stream = SessionStream(mirror, keep_trace, sink, self._error, self.unseen)
        self._lock = self._stream.lock
        self.blocks = self._stream.blocks
        self.internal_errors: list[str] = []
        self.cut_chains: set[str] = set()
        """Chains that led to no memory or in a circle, and members that led to none: what is behind was not seen."""
        self.keep_alive = keep_alive
        self._on_finding = on_finding
        self._unseen: dict[str, int] = {}
        self._errors = 0
        self._in_flight = CallsInFlight()
        self._caller: Callable[[int], str | None] = lambda ours: None
        self.attached = False
        """True from `start` to `detach`."""
        self.host = HostMemory(self._host_write, self.unseen, self._written, self._may_write)

    # The interface for users.

    @property
    @critical
    def findings(self) -> list[Finding]:
        """Findings so far, those of calls that still wait to be judged included. The list grows as calls are made."""
        with self._lock:
            self._stream.catch_up()
            return [] if self.mirror is None else self.mirror.findings

    @property
    def events(self) -> Sequence[StreamEvent]:
        """The events of the calls, in order (with `keep_trace`): other judges need not interpret the calls again."""
        return () if self.mirror is None else self.mirror.events

    @property
    @critical
    def unmodelled(self) -> dict[str, int]:
        """Commands that the mirror does not model, with how often they were called."""
        with self._lock:
            self._stream.catch_up()
            found = dict(self._unseen)
            for name, times in () if self.mirror is None else self.mirror.unmodelled.items():
                found[name] = found.get(name, 0) + times
            return found

    @property
    @critical
    def unjudged(self) -> Unjudged:
        """Parts of the stream that are not judged. They change neither the verdict nor an exit code."""
        with self._lock:
            self._stream.catch_up()
            return Unjudged() if self.mirror is None else self.mirror.unjudged

    @property
    @critical
    def verdict(self) -> str:
        """'hazards' when there are any, else 'unknown' when anything was not judged, else 'clean'. Advice and what is
        ignored do not count."""
        with self._lock:
            if any(each.counts for each in self.findings):
                return "hazards"
            if self.mirror is None or self.internal_errors or self.unmodelled:
                return "unknown"
            return self.mirror.verdict

    @property
    def saw_calls(self) -> bool:
        """Whether any Vulkan call went through the package while the session was attached."""
        return bool(self._stream)

    @property
    def log(self) -> Any:
        """Where native commands leave calls that nobody needs to hear of at once; None where somebody does."""
        return self._stream.log

    def id_of(self, type_name: str, handle: int) -> int | None:
        """The id that blocks have for a live handle, while the session is attached; None for an unknown handle."""
        from vkharness.record.proxy import id_of

        return id_of(type_name, handle)

    @critical
    def start(self) -> Session:
        """Puts the session between the `vulkan` package and C. `UserError` when another session is there already."""
        from vkharness.record.proxy import install

        self.attached = True
        try:
            put_off_signals(True)
            self._caller = install(self, self.keep_alive, self.cut_chains)
        except BaseException:
            self.detach()
            raise
        return self

    @critical
    def host_read(self, target: Any, offset: int = 0, size: int | None = None) -> None:
        """Declares that the program reads mapped memory here, which no comparison can see.

        `target` is what vkMapMemory returned, or a VkDeviceMemory; `offset` and `size` are bytes in it (by default all
        of it). `UserError` when it is neither, or outside of what is mapped.
        """
        memory, start, end = _place_of(target, self.host)
        stop = end if size is None else start + offset + size
        if not start <= start + offset <= stop <= end:
            raise UserError(f"host_read of [{offset}, {stop - start}): the target has {end - start} bytes")
        self.host.look(memory)
        read = HostRead(0, memory, start + offset, stop - start - offset, self._caller(1))
        self._tell(self._stream.take(read))

    @completed
    def detach(self) -> None:
        """Gives the package back exactly as it was. What was found stays. Harmless when already detached."""
        from vkharness.record.proxy import remove

        if self.attached:
            remove(self)
            self._tell(self._stream.end())
            self.host.end()
            put_off_signals(False)
            self.attached = False

    def __enter__(self) -> Session:
        return self

    @completed
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.detach()

    # The functions that generated code calls (`vkharness.record.forward.CallSink`).

    def record(self, name: str, args: dict[str, Any], result: int | None) -> None:
        """Takes one finished call."""
        self.record_at(name, args, result, self._caller(INNER_FRAMES))

    def record_at(self, name: str, args: dict[str, Any], result: int | None, site: str | None) -> None:
        """Takes one finished call that the line `site` of the program made."""
        if result is None and self._stream.take_alone(name, args, site):
            return
        found = self._stream.take(Call(0, name, args, result, site))
        if threading.get_ident() in self._in_flight.threads:
            self._in_flight.leave()
        self._tell(found)

    def lost(self, name: str, error: BaseException) -> None:
        """Notes an error: something about this call was not recorded or judged. What the program raised cuts the stream
        off, and is raised again. A call with an argument that leads to no memory (`BufferError`) is kept as one that
        cannot be read."""
        self._in_flight.leave()
        if not is_the_mirrors(error):
            self._stream.cut_off(f"{name}, interrupted ({type(error).__name__}),")
            raise error
        if isinstance(error, BufferError):
            self._tell(self._stream.take(Call(0, name, {}, None, self._caller(1), unread=str(error))))
            return
        self._error(f"{name}: {''.join(traceback.format_exception(error)).strip()}")

    def refused(self, name: str, error: BaseException) -> None:
        """Notes an error of a call that was not made, as far as is known. C's own says that it was not."""
        self._in_flight.leave()
        if not is_the_mirrors(error):
            self._stream.cut_off(f"{name}, interrupted ({type(error).__name__}),")

    def cut_off(self, why: str) -> None:
        """Ends the stream: what follows is neither kept nor judged, and no verdict is clean. `why` names who did it."""
        self._stream.cut_off(why)

    def unseen(self, name: str) -> None:
        """Counts a command that the mirror cannot see."""
        with self._lock:
            self._unseen[name] = self._unseen.get(name, 0) + 1

    def before(self, name: str) -> Callable[[dict[str, Any]], None] | None:
        """Gives the function to call before `name` is forwarded; None for most commands."""
        compare = self.host.before(name)
        if main_name(name) not in SETS_GOING or compare is None:
            return compare

        def enter(args: dict[str, Any]) -> None:
            compare(args)
            self._in_flight.enter()

        return enter

    def after(self, name: str) -> Callable[[dict[str, Any], int | None], None] | None:
        """Gives the function to call when `name` has returned, before it is recorded; None for most commands."""
        host, command = self.host.after(name), main_name(name)
        if command in SETS_GOING:

            def returned(args: dict[str, Any], result: int | None) -> None:
                self._in_flight.returned()
                if host is not None:
                    host(args, result)

            return returned
        if command not in HOST_WAITS | HOST_POLLS or host is None:
            return host

        def leave(args: dict[str, Any], result: int | None) -> None:
            host(args, result)
            if not result:
                self._in_flight.let_others_finish()

        return leave

    def cancelled(self, name: str) -> Callable[[], None] | None:
        """Gives the function to call when `name` raised and never happened; None for most commands."""
        undo = self.host.cancelled(name)
        if main_name(name) not in SETS_GOING:
            return undo

        def cancel() -> None:
            if undo is not None:
                undo()
            self._in_flight.leave()

        return cancel

    def _written(self, memory: int, end: int) -> Sequence[tuple[int, int]] | None:
        """Exactly what pending work writes in a memory object, when the mirror has seen and understood all of it."""
        if self.mirror is None or self.internal_errors or self._in_flight.of_others():
            return None
        with self._lock:
            self._stream.catch_up()
            return None if self.mirror.unmodelled else self.mirror.written(memory, 0, end)

    def _may_write(self, command_buffers: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        with self._lock:
            self._stream.catch_up()
            return {} if self.mirror is None else self.mirror.may_write(command_buffers)

    def _host_write(self, memory: int, offset: int, data: bytes, initial: bool = False) -> None:
        write = HostWrite(0, memory, offset, data, self._caller(1), initial)
        self._stream.take_untold(write)

    def _tell(self, found: list[Finding]) -> None:
        """Called with no lock held, so that the listener may do what it likes."""
        if (listener := self._on_finding) is None:
            return
        for finding in found:
            try:
                uncritical(listener)(finding)
            except Exception:
                self._error(f"on_finding: {traceback.format_exc().strip()}")

    def _error(self, text: str) -> None:
        with self._lock:
            self._errors += 1
            if self._errors <= MAX_ERRORS:
                self.internal_errors.append(text)
            elif self._errors == MAX_ERRORS + 1:
                self.internal_errors.append("more errors of this kind are not listed")


def _place_of(target: Any, host: HostMemory) -> tuple[int, int, int]:
    """(memory object, begin, end) of a mapped buffer or a VkDeviceMemory."""
    from vkharness.record.proxy import address_of, id_of

    memory = id_of("VkDeviceMemory", target)
    if memory is not None:
        size = host.size_of(memory)
        if size is None:
            raise UserError("host_read of a VkDeviceMemory that was allocated before the session: give its mapping")
        return memory, 0, size
    place = address_of(target)
    found = None if place is None else host.find(place[0])
    if place is None or found is None:
        raise UserError("host_read takes what vkMapMemory returned, or a VkDeviceMemory")
    return found[0], found[1], found[1] + place[1]
