"""How much work a stream of calls may ask for: in proportion to its calls, so that a small trace takes little time.

A count in a call costs nothing to write and much to follow: the rows of a tall image, the layers of another, secondary
command buffers that execute each other. Who is about to follow such a count spends a unit for each step first. Every
call of the stream adds units, many more than real programs need. One unit stands for one or two microseconds, and for
at most some hundred bytes. The units are those of the stream that was begun last.
"""

from __future__ import annotations

from vkharness.findings import UserError

AT_FIRST = 2_000_000
"""Units before any call. A copy of a part of a 3D image of 512 texels takes 262,144."""
A_CALL = 80_000
"""Units that a call adds."""
A_COMMAND = 20
"""Units that the execution of a command takes."""
UNCOUNTED = 64
"""Steps that are not worth counting."""


class OverBudget(UserError):
    """A call asks for more than its stream may."""


class _Units:
    """The units that are left, and the file that the stream comes from."""

    __slots__ = ("left", "source")

    def __init__(self) -> None:
        self.left = AT_FIRST
        self.source = ""


UNITS = _Units()


def begin_stream() -> None:
    """A new stream is followed from here on."""
    UNITS.left = AT_FIRST


def spend(units: int, what: str) -> None:
    """Takes units; `what` says for what, in the plural. Raises OverBudget when there are not as many."""
    if units > UNCOUNTED:
        UNITS.left -= units
        if UNITS.left < 0:
            raise OverBudget(f"out of proportion to the size of its stream: {units:,} {what}")


def spare() -> int:
    """Units that one step may take for what can be left undone."""
    return max(0, UNITS.left // 4)
