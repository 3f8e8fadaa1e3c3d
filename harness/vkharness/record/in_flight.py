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
from dataclasses import dataclass

DRIVER_LIMIT = 1.0
"""Seconds that are waited for a call that is still in the driver."""
RECORDING_LIMIT = 60.0
"""Seconds that are waited for a call that has come back, until its thread has recorded it. Only a thread that was
interrupted between the two takes that long."""


@dataclass(slots=True, eq=False)
class _InFlight:
    """One call. Compared by identity."""

    has_returned: bool = False


class CallsInFlight:
    """The calls in flight of one session, at most one a thread. `threads` are the threads that make them."""

    def __init__(self) -> None:
        self.threads: dict[int, _InFlight] = {}
        """By the thread's identifier. Another thread may look whether its own is in it, and nothing else."""
        self._changed = threading.Condition(threading.Lock())

    def enter(self) -> None:
        """A call of this thread is about to be forwarded."""
        with self._changed:
            self.threads[threading.get_ident()] = _InFlight()

    def returned(self) -> None:
        """The call has come back from the driver."""
        with self._changed:
            mine = self.threads.get(threading.get_ident())
            if mine is not None:
                mine.has_returned = True
                self._changed.notify_all()

    def leave(self) -> None:
        """The call is recorded, or will never be."""
        with self._changed:
            self.threads.pop(threading.get_ident(), None)
            self._changed.notify_all()

    def of_others(self) -> bool:
        """Whether a call of another thread is in flight."""
        with self._changed:
            return any(ident != threading.get_ident() for ident in self.threads)

    def let_others_finish(self) -> None:
        """Returns when the calls of other threads that are in flight now are recorded, or a limit is over."""
        with self._changed:
            others = [(ident, call) for ident, call in self.threads.items() if ident != threading.get_ident()]
            if not others:
                return
            self._changed.wait_for(
                lambda: all(call.has_returned or self.threads.get(ident) is not call for ident, call in others),
                DRIVER_LIMIT,
            )
            back = [(ident, call) for ident, call in others if call.has_returned]
            self._changed.wait_for(
                lambda: all(self.threads.get(ident) is not call for ident, call in back), RECORDING_LIMIT
            )
