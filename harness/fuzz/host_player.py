"""Plays the steps of random streams that the host makes: its accesses, and its sets and resets of events."""

from __future__ import annotations

from typing import Any

from harness.rig.core import RigEvent
from harness.rig.rig import Rig

WORD = bytes(range(1, 5))


class HostPlayer:
    """The part of `StepPlayer` that the host plays."""

    rig: Rig
    buffers: list[Any]
    events: dict[int, RigEvent]

    def _end(self) -> None:
        raise NotImplementedError

    def _host_access(self, buffer: int, begin: int, words: int, writes: bool) -> None:
        if writes:
            self.rig.host_write(self.buffers[buffer], WORD * words, begin)
        else:
            self.rig.host_read(self.buffers[buffer], begin, 4 * words)

    def _host_sets(self, at: int, signaled: bool) -> None:
        """vkSetEvent or vkResetEvent. Nothing that was submitted may use the event then."""
        if at in self.events:
            self.rig.wait()
            (self.rig.host_set_event if signaled else self.rig.host_reset_event)(self.events[at])

    def _late_host(self, buffer: int, other: int, src: str, dst: str, writes: bool) -> None:
        """A submit with a copy behind a wait for an event, which the host sets after an access of its own."""
        self._end()
        event = self.rig.event("", src, dst, sync2=False)
        with self.rig.commands() as commands:
            commands.wait_events(event)
            commands.copy(self.buffers[buffer], self.buffers[other], (0, 0, 64))
        self.rig.submit_before(event, commands)
        self._host_access(buffer, 0, 16, writes)
        self.rig.host_set_event(event)
