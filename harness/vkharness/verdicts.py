"""Verdicts of the judges of a scenario, as data. `vkharness.report.rows` makes the words."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class ModelAnswer(StrEnum):
    """Whether the model agrees on a stream that syncval has judged."""

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_ASKED = "not asked"
    LEFT_OUT = "left out"
    """It was to be asked, and would take more work than it may."""


class JudgedShare(StrEnum):
    """How much of what a program recorded was judged."""

    WHOLE = "whole"
    PART = "part"
    """The judging was interrupted, or the process of the program ended before the last of its calls was kept."""
    NOTHING = "nothing"
    """The process of the program ended with its calls."""


INCOMPLETE = {
    JudgedShare.PART: "incomplete: a part of what was recorded is not judged",
    JudgedShare.NOTHING: "incomplete: what was recorded is gone with the program; --trace FILE keeps most of it",
}
"""Texts of verdicts for which not all was judged."""


@dataclass(frozen=True, slots=True)
class ProgramEnd:
    """How a program ended that was judged, and how much of it was."""

    exit_code: int
    """As a shell gives it: 128 and the number of the signal that ended the program."""
    signal: str = ""
    """The name of that signal; empty where the program left by itself."""
    judged: JudgedShare = JudgedShare.WHOLE

    @classmethod
    def of_process(cls, code: int, judged: JudgedShare = JudgedShare.WHOLE) -> ProgramEnd:
        """Of the exit code of a process as `subprocess` and `os.waitstatus_to_exitcode` give it."""
        return cls(code, judged=judged) if code >= 0 else cls(128 - code, _signal_name(-code), judged)

    @property
    def failed(self) -> bool:
        """Whether it did not end as programs do that have done their work."""
        return self.exit_code != 0

    @property
    def is_whole(self) -> bool:
        """Whether the verdict is about all that the program would have done."""
        return not self.failed and self.judged is JudgedShare.WHOLE

    def __str__(self) -> str:
        ended = f"was ended by {self.signal}" if self.signal else f"failed with exit code {self.exit_code}"
        return f"the program {ended}" if self.failed else "the program ended"

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"exit_code": self.exit_code, "signal": self.signal, "judged": str(self.judged)}


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """Disagreements of the model with our findings, in words."""

    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerVerdict:
    """Disagreements of one version of the Khronos layer with our findings, in words."""

    asked: bool = True
    """False where queues are emulated: the layer sees the one queue of the device, and would judge another stream."""
    disagreements: tuple[str, ...] = ()
    by_version: int = 0
    """Differences that are known of this version."""


class Unshown(NamedTuple):
    """A hazard that no execution showed, and why."""

    hazard: str
    reason: str


@dataclass(frozen=True, slots=True)
class WitnessVerdict:
    """Whether executions showed the hazards of a stream in bytes."""

    shown: int
    total: int
    unshown: tuple[Unshown, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every hazard was shown."""
        return self.shown == self.total


class BrokenOrder(NamedTuple):
    """A legal order that left other bytes than the serial run: the string that reproduces it, the first difference."""

    outcome: str
    difference: str


@dataclass(frozen=True, slots=True)
class OrdersVerdict:
    """Whether a clean stream left the same bytes in other legal orders."""

    executed: int = 0
    broken: tuple[BrokenOrder, ...] = ()
    problem: str = ""
    """Why no order was executed, where the stream could not run."""

    @property
    def held(self) -> bool:
        """Whether another order was executed, and none left other bytes."""
        return bool(self.executed) and not self.broken


@dataclass(frozen=True, slots=True)
class StrategyRuns:
    """The runs as recorded under one strategy (`vkharness.replay.native_strategies`)."""

    strategy: str
    corrupt: int
    times: int
    reason: str = ""
    """Why there is no run, for a stream that does not allow the strategy."""


@dataclass(frozen=True, slots=True)
class NativeVerdict:
    """Whether runs as recorded left the bytes of the serial run."""

    corrupt: int
    times: int
    strategies: tuple[StrategyRuns, ...] = ()
    """The same by strategy; empty in results from before there were any."""
    relation: str = ""
    """How the executions of the hazards lie to each other on the device
    (`vkharness.replay.native_strategies.execution_relation`); empty without a hazard between two accesses."""


class BrokenPromise(StrEnum):
    """Which promise of the specification a driver broke, found by running one stream in ways that need less and less
    of it."""

    NONE = ""
    COMPUTATION = "computation"
    """Wrong when each command has a submit of its own, and the host waits between."""
    BARRIER = "barrier"
    """Right so, and wrong in one command buffer with a full barrier between the commands."""
    DEPENDENCY = "dependency"
    """Right so, too, and wrong as recorded, though the stream is synchronized."""


@dataclass(frozen=True, slots=True)
class BytesVerdict:
    """Comparison of the bytes that a driver left with bytes that were computed on the host, and with its other runs."""

    known: int
    """Bytes of the outputs that were computed."""
    total: int
    """All bytes of the outputs but those that the specification leaves undefined."""
    broken: BrokenPromise = BrokenPromise.NONE
    difference: str = ""
    """The first byte that is wrong; empty where nothing is."""
    commands: tuple[str, ...] = ()
    """Where a promise is broken, which commands the stream has that do work, by name."""
    unknown: tuple[str, ...] = ()
    """Why bytes were not computed: a command, and what is not followed of it. Empty where all were."""


class Status(StrEnum):
    """Outcomes of a row."""

    PASSED = "passed"
    FAILED = "failed"
    DIED = "died"
    """The driver's process ended."""
    TIMED_OUT = "timed out"
    """The driver's process gave no answer in time, and was ended."""
    DEVICE_LOST = "device lost"
    """The driver answered VK_ERROR_DEVICE_LOST."""
    UNAVAILABLE = "unavailable"
    """The device or the scenario lacks what the row needs."""
