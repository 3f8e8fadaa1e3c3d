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
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from vkharness.findings import Finding, UserError
from vkharness.record.call_recorder import Recorder
from vkharness.record.critical import completed, critical, is_the_mirrors, put_off_signals
from vkharness.record.host import HostMemory
from vkharness.record.in_flight import CallsInFlight
from vkharness.record.session_stream import StreamJudge
from vkharness.spec.command_classes import HOST_POLLS, HOST_PUBLISHES, HOST_WAITS, QUEUE_WORK
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Block, Call, HostRead

INNER_FRAMES = 4
"""Frames of ours between the program and the look for its line: that look, `record`, the generated function, and what
calls that one."""
MOST_SHOWN = 20
"""Findings that a notebook shows of a session."""
SETS_GOING = QUEUE_WORK | HOST_PUBLISHES
"""After these the device may complete what another thread waits for."""


class Session(Recorder):
    """Mirrors the Vulkan calls of this process. Made by `vkharness.attach`; one at a time. Where something goes wrong
    inside the mirror, the program's calls go through all the same.
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
        super().__init__(mirror, threading.get_ident, keep_trace=keep_trace, sink=sink, on_finding=on_finding)
        self.keep_alive = keep_alive
        self._in_flight = CallsInFlight()
        self.attached = False
        """True from `start` to `detach`."""

    # The interface for users.

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
            self.end()
            put_off_signals(False)
            self.attached = False

    def __enter__(self) -> Session:
        return self

    def _repr_html_(self) -> str:
        found = self.findings
        more = f"<p>{len(found) - MOST_SHOWN} more findings</p>" if len(found) > MOST_SHOWN else ""
        shown = "".join(each._repr_html_() or "" for each in found[:MOST_SHOWN])
        return f"<p>vkharness: <strong>{self.verdict}</strong></p>{shown}{more}"

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
            self.unread(name, str(error), self._caller(1))
            return
        self._error(f"{name}: {''.join(traceback.format_exception(error)).strip()}")

    def refused(self, name: str, error: BaseException) -> None:
        """Notes an error of a call that was not made, as far as is known. C's own says that it was not."""
        self._in_flight.leave()
        if not is_the_mirrors(error):
            self._stream.cut_off(f"{name}, interrupted ({type(error).__name__}),")

    def before(self, name: str) -> Callable[[dict[str, Any]], None] | None:
        """See `Recorder.before`."""
        compare = super().before(name)
        if main_name(name) not in SETS_GOING or compare is None:
            return compare

        def enter(args: dict[str, Any]) -> None:
            compare(args)
            self._in_flight.enter()

        return enter

    def after(self, name: str) -> Callable[[dict[str, Any], int | None], None] | None:
        """See `Recorder.after`."""
        host, command = super().after(name), main_name(name)
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
        """See `Recorder.cancelled`."""
        undo = super().cancelled(name)
        if main_name(name) not in SETS_GOING:
            return undo

        def cancel() -> None:
            if undo is not None:
                undo()
            self._in_flight.leave()

        return cancel

    def _written(self, memory: int, end: int) -> Sequence[tuple[int, int]] | None:
        return None if self._in_flight.of_others() else super()._written(memory, end)


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
