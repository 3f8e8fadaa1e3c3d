"""The log of the native front end: calls of native commands that wait until somebody needs to know of them.

A judge that takes recorded commands alone (`session_stream.CommandJudge`) judges them when their command buffer is
ended: nobody but the program's next look at the session can tell when it heard of them. So native commands only leave
what they say in a `CallLog`, in order, and Python takes all of it with the next call that is recorded the Python way
(vkEndCommandBuffer at the latest), or when somebody asks the session anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, Protocol

from vkharness.native import core
from vkharness.trace.recorded_commands import Line

MOST_CALLS = 1 << 12
"""Calls that wait at most."""
MOST_SAYINGS = 1 << 14
"""Different things said by calls that are remembered at most: names with arguments."""
MOST_BYTES = 1 << 22
"""Bytes at most of what waiting calls say, and of what is remembered. Objects of Python take ten times as much."""


Entry = tuple[int, Any, str | None, int]
"""A call that waited: number, what is said (`name` and `args`), call site, identifier of the thread."""


class WaitingCalls(Iterator[Entry], Protocol):
    """Calls that waited, in order, as the native core gives them. Who takes one, or some, takes the next ones."""

    @property
    def said(self) -> Any:
        """The next call: `name`, `args`, and what the judge keeps of it (`kept`). None where no call waits."""

    def __len__(self) -> int:
        """How many still wait."""

    def repeated(
        self, buffer: object, changes: int, state: Any, line_of: Callable[[str, str | None], Line], flat: Any, sets: Any
    ) -> tuple[bytes, list[Line], list[Any], Any, list[tuple[int, Any, bytes]]]:
        """Takes the calls from the next one on of which the judge keeps (`changes`, `buffer`, a plan), or of which
        `state`, a dictionary, has (plan or None, the next state) under what the judge keeps, or of which `flat`
        (`FlatPlans` of the native core, or None) finds what they do, or that only bind descriptor sets (`BoundSets`,
        or None). The number of each that has a plan, 8 bytes a call; the line of its name and site, for which `line_of`
        is asked once; its plan; the state after them; and what contents decide of the plans at some places, with the
        numbers of plans that follow one another where that is the same for all of these."""


class CallOrder:
    """Numbers the blocks of a session, and the threads that make calls, in the order of their calls.

    `log` is where native commands leave their calls; None where they do not.
    """

    def __init__(self) -> None:
        self._numbers = count(1)
        self._threads: dict[int, int] = {}
        self._began = False
        self.log: Any = None

    def __bool__(self) -> bool:
        """Whether there was any call."""
        return self._began or bool(self.log)

    def let_wait(self, full: Callable[[], object]) -> None:
        """From now on calls may wait, and the log numbers blocks; `full` is called when `MOST_CALLS` do. They do not
        without the native core."""
        if core is not None:
            self.log = core.CallLog(next(self._numbers), full, MOST_CALLS, MOST_SAYINGS, MOST_BYTES)

    def thread(self, ident: int) -> int:
        """The number of a thread. Calls for which nobody asks this give their thread none."""
        return self._threads.setdefault(ident, len(self._threads))

    def waiting(self) -> WaitingCalls | None:
        """The calls that wait, which do so no more."""
        self._began = True
        return self.log.take() if self.log else None

    def forget(self) -> None:
        """Command buffers are gone: what was said of them is not said again."""
        if self.log is not None:
            self.log.forget()

    def number(self) -> tuple[WaitingCalls | None, int]:
        """The next number, and the calls that come before it, which wait no more."""
        self._began = True
        return (None, next(self._numbers)) if self.log is None else self.log.take_and_number()
