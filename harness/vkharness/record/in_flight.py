"""Calls after which the device may go on with its work, from before they are forwarded until they are recorded.

A wait of the host in one thread may return because of a submit in another thread, before that thread has come to record
its submit. The stream must have them in the order in which they happened, so a wait that returned lets those calls be
recorded first.

Only the calls count that were in flight when the wait returned: those that begin later let nobody wait. A driver may
block in a call until other threads do something, so the wait for a call that has not come back from the driver is
short. What has come back is recorded as soon as the judge has time for it.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Literal

DRIVER_LIMIT = 1.0
"""Seconds that are waited for a call that is still in the driver."""
RECORDING_LIMIT = 60.0
"""Seconds that are waited for a call that has come back, until its thread has recorded it. Only a thread that was
interrupted between the two takes that long."""


@dataclass(slots=True, eq=False)
class _InFlight:
    """One call. Compared by identity."""

    has_returned: bool = False
    is_recorded: bool = False
    waiting: list[threading.Lock] = field(default_factory=list)
    """A lock of each thread that waits for a change, which it holds until there is one. No two threads take one lock,
    so that an exception in either leaves none taken that another one needs."""

    def changed(self) -> None:
        """Lets those go on that wait."""
        while self.waiting:
            self.waiting.pop().release()

    def wait(self, until: Literal["has_returned", "is_recorded"], limit: float) -> None:
        """Returns when that is so, or this many seconds are over. What is recorded has returned."""
        end = time.monotonic() + limit
        while not (self.is_recorded or getattr(self, until)):
            lock = threading.Lock()
            lock.acquire()
            self.waiting.append(lock)
            if self.is_recorded or getattr(self, until) or not lock.acquire(timeout=max(end - time.monotonic(), 0.0)):
                return


class CallsInFlight:
    """The calls in flight of one session, at most one a thread. `threads` are the threads that make them."""

    def __init__(self) -> None:
        self.threads: dict[int, _InFlight] = {}
        """By the thread's identifier. Only the thread itself changes its own."""

    def enter(self) -> None:
        """A call of this thread is about to be forwarded."""
        self.leave()  # of an earlier one that was interrupted
        self.threads[threading.get_ident()] = _InFlight()

    def returned(self) -> None:
        """The call has come back from the driver."""
        mine = self.threads.get(threading.get_ident())
        if mine is not None:
            mine.has_returned = True
            mine.changed()

    def leave(self) -> None:
        """The call is recorded, or will never be."""
        mine = self.threads.pop(threading.get_ident(), None)
        if mine is not None:
            mine.is_recorded = True
            mine.changed()

    def of_others(self) -> bool:
        """Whether a call of another thread is in flight."""
        return bool(self._others())

    def let_others_finish(self) -> None:
        """Returns when the calls of other threads that are in flight now are recorded, or a limit is over."""
        others, end = self._others(), time.monotonic() + DRIVER_LIMIT
        for each in others:
            each.wait("has_returned", end - time.monotonic())
        end = time.monotonic() + RECORDING_LIMIT
        for each in others:
            if each.has_returned:
                each.wait("is_recorded", end - time.monotonic())

    def _others(self) -> list[_InFlight]:
        return [call for ident, call in list(self.threads.items()) if ident != threading.get_ident()]
