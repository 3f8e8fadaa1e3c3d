"""What each judge of a scenario said, as data. `vkharness.report.rows` makes the words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class ModelAnswer(StrEnum):
    """What the model says about a stream that syncval has judged."""

    AGREES = "agrees"
    DIFFERS = "differs"
    NOT_ASKED = "not asked"
    LEFT_OUT = "left out"
    """It was to be asked, and would take more work than it may."""


@dataclass(frozen=True, slots=True)
class ModelVerdict:
    """What the model makes of our findings."""

    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LayerVerdict:
    """What one version of the Khronos layer makes of our findings."""

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
    """What the driver left, held against bytes that were computed on the host, and against itself."""

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
    """What a row comes to."""

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
