"""How much work a stream of calls may ask for: in proportion to its calls, so that a small trace takes little time.

A count in a call costs nothing to write and much to follow: the rows of a tall image, the layers of another, secondary
command buffers that execute each other, submits of one command buffer. Whoever is about to follow such a count spends a
unit for each step first: the interpreter, both judges, and so each command that judges. One unit stands for about one
microsecond, and for at most some hundred bytes. Nothing is timed.

There are two ways to get units. Each stream by itself gets some at first and more with every call, many more than real
programs need. A command that reads files gets a whole number of them for all streams that it judges (`share`): as many
as a file of one megabyte needs, more with each byte behind that, and `--work N` times as many.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from vkharness.findings import UserError

AT_FIRST = 2_000_000
"""Units of a stream before any call. A copy of a part of a 3D image of 512 texels takes 262,144."""
A_CALL = 80_000
"""Units that a call adds."""
SHARED = 5_000_000
"""Units of a command for all streams that it judges."""
A_BYTE = 5
"""Units for each byte of a file behind the first megabyte."""
MEGABYTE = 1_000_000
A_BLOCK = 30
"""Units that a block takes of those of a command."""
A_COMMAND = 8
"""Units that the execution of a command takes."""
A_BUFFER = 40
"""Units that the execution of a command buffer takes beside that."""
A_KNOWN_QUEUE = 4
"""Units that a queue takes in what another one knows of it, each time that this is kept anew."""
A_HAZARD = 30
"""Units that a hazard takes each time that its command is executed, also where it was reported before."""
A_FINDING = 50
RESERVE = 500_000
"""Units for the end of what was stopped: what was begun is judged, and told."""


class OverBudget(UserError):
    """A call asks for more than its stream may, or a command for more than it has."""

    def __init__(self, text: str, located: bool = False) -> None:
        """`located`: the text says at which block, and of which file."""
        super().__init__(text)
        self.located = located
        self._file = UNITS.source if UNITS.shared else ""

    def __str__(self) -> str:
        """With the file that a command reads, also where no block asked for the work."""
        text = super().__str__()
        return text if self.located or not self._file else f"{self._file}: {text}"

    def at(self, index: int, name: str) -> OverBudget:
        """The same, with the file and the block."""
        if self.located:
            return self
        where = f"{UNITS.source}: block" if UNITS.source else "block"
        return OverBudget(f"{where} {index}: {name}: {super().__str__()}", located=True)


class _Units:
    """The units that are left, and the file that the stream comes from."""

    __slots__ = ("a_call", "factor", "left", "shared", "source")

    def __init__(self) -> None:
        self.left = AT_FIRST
        self.a_call = A_CALL
        """Units that each block adds."""
        self.shared = False
        """Whether all streams take from the same units."""
        self.factor = 1.0
        self.source = ""


UNITS = _Units()


def begin_stream(calls: int = 0) -> None:
    """A new stream is followed from here on, of which so many calls are known."""
    if not UNITS.shared:
        UNITS.left = AT_FIRST + calls * A_CALL


def share(factor: float) -> None:
    """All streams from here on take from the same units: those of a command, times a factor."""
    UNITS.left, UNITS.a_call, UNITS.shared, UNITS.factor = int(SHARED * factor), -A_BLOCK, True, factor


def end_sharing() -> None:
    """Each stream has units of its own again."""
    UNITS.left, UNITS.a_call, UNITS.shared, UNITS.factor = AT_FIRST, A_CALL, False, 1.0


def begin_file(size: int) -> None:
    """A file of so many bytes is read."""
    grow_file(0, size)


def grow_file(before: int, size: int) -> None:
    """The file that is read has so many bytes, of which some were known before."""
    if UNITS.shared and size > MEGABYTE:
        UNITS.left += int((size - max(before, MEGABYTE)) * A_BYTE * UNITS.factor)


def spend(units: int, what: str) -> None:
    """Takes units; `what` says for what, in the plural. Raises OverBudget when there are not as many."""
    UNITS.left -= units
    if UNITS.left < 0:
        raise OverBudget(_told(units, what))


def spend_reading(units: int, what: str) -> None:
    """Takes units of a command for what a file asks for while it is read. A stream by itself has none for that."""
    if UNITS.shared:
        spend(units, what)


def require_rest() -> None:
    """Raises OverBudget when no units are left."""
    if UNITS.left < 0:
        raise OverBudget(_told(0, "blocks"))


def _told(units: int, what: str) -> str:
    if units > SHARED or not UNITS.shared:
        return f"out of proportion to the size of its stream: {units:,} {what}"
    more = f"--work {10 * UNITS.factor:g} allows ten times as much"
    return f"more work than a command does for a file of this size, at {what}; {more}"


@contextmanager
def at_most(units: int) -> Iterator[None]:
    """Limits the work inside to so many units, and to no more than are left."""
    aside = max(0, UNITS.left - units)
    UNITS.left -= aside
    try:
        yield
    finally:
        UNITS.left += aside


@contextmanager
def at_least(units: int) -> Iterator[None]:
    """Allows the work inside so many units, whatever was spent before."""
    before = UNITS.left
    UNITS.left = max(before, units)
    try:
        yield
    finally:
        UNITS.left = min(before, UNITS.left)


def spare() -> int:
    """Units that one step may take for what can be left undone."""
    return max(0, UNITS.left // 4)
