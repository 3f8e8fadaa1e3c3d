"""Plays the steps of random streams that the host makes: accesses, waits, signals, and sets of events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vkharness.rig.core import RigEvent
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rig import Rig

WORD = bytes(range(1, 5))


class HostPlayer:
    """The part of `StepPlayer` that the host plays."""

    rig: Rig
    buffers: list[Any]
    counts: Any
    events: dict[int, RigEvent]
    fences: list[Any]
    pending: set[int]
    values: list[int]

    def _end(self) -> None:
        raise NotImplementedError

    def _settle(self, images: Iterable[Any] = ()) -> Iterator[None]:
        """Brings images into their layouts, and lets the parameters of indirect commands be known."""
        with self.rig.commands() as commands:
            for image in images:
                commands.transition(image)
            commands.fill(self.counts, 0)  # no groups: memory as it comes could hold any number
        self.rig.submit(commands)
        yield
        self.rig.wait()
        yield

    def _operation(self, at: int, stages: str, value: int) -> SemaphoreUse:
        raise NotImplementedError

    def _host_access(self, buffer: int, begin: int, words: int, writes: bool) -> None:
        if writes:
            self.rig.host_write(self.buffers[buffer], WORD * words, begin)
        else:
            self.rig.host_read(self.buffers[buffer], begin, 4 * words)

    def _host_sets(self, at: int, signaled: bool) -> Iterator[None]:
        """vkSetEvent or vkResetEvent. Nothing that was submitted may use the event then."""
        if at in self.events:
            self.rig.wait()
            yield
            (self.rig.host_set_event if signaled else self.rig.host_reset_event)(self.events[at])

    def _late_host(self, buffer: int, other: int, src: str, dst: str, writes: bool) -> Iterator[bool | None]:
        """A submit with a copy behind a wait for an event, which the host sets after an access of its own."""
        self._end()
        event = self.rig.event("", src, dst, sync2=False)
        with self.rig.commands() as commands:
            commands.wait_events(event)
            commands.copy(self.buffers[buffer], self.buffers[other], (0, 0, 64))
        self.rig.submit_before(event, commands)
        yield None
        self._host_access(buffer, 0, 16, writes)
        yield None
        self.rig.host_set_event(event)
        # What the host may have written before that is unknown, and so what draws and indirect commands would read.
        yield None
        self.rig.wait()
        yield None
        yield from self._settle()

    def _wait(self, fence: int) -> None:
        if fence in self.pending:
            self.rig.wait(self.fences[fence])
            self.rig.reset_fence(self.fences[fence])
            self.pending.discard(fence)

    def _host_wait(self, timeline: int, value: int) -> None:
        if value <= self.values[timeline]:
            operation = self._operation(timeline, "NONE", value)
            self.rig.host_wait_timeline("", (operation.semaphore, value))

    def _host_signal(self, timeline: int) -> Iterator[None]:
        if self.values[timeline]:
            self._host_wait(timeline, self.values[timeline])  # no signal may be pending below the host's
            yield
        self.values[timeline] += 1
        value = self.values[timeline]
        self.rig.host_signal(self._operation(timeline, "NONE", value).semaphore, value)
