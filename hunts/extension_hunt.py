"""Hunts for hostile calls that the native core does not survive (`extension_calls`), in processes of their own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from vkharness import native
from vkharness.device.process import Died, Worker
from vkharness.findings import UserError
from vkharness.fuzz.hostile.tally import machine
from vkharness.planned_file import Known, PlannedFile, PlannedWork

JOB = "hunts.extension_calls:run_programs"
SUMS = PlannedWork("vkharness extension sums", 1, "file of sums over hunts")
TOGETHER = 2_000
"""Programs of which a process is asked at once."""
MOST_FAULTS = 10
"""Faults after which a hunt ends."""
SECONDS = 300.0
"""For as many programs, sanitizers and a loaded machine included."""


@dataclass
class ExtensionTally:
    """Figures of a hunt."""

    programs: int = 0
    calls: int = 0
    faults: list[tuple[int, str]] = field(default_factory=list)
    """Seeds, each with what is wrong."""

    def __str__(self) -> str:
        """The figures, and a line for each fault."""
        told = [f"{self.programs:,} programs, {self.calls:,} calls, {len(self.faults)} faults"]
        return "\n".join([*told, *(f"  seed {seed}: {fault}" for seed, fault in self.faults)])


class ExtensionHunt(NamedTuple):
    """A hunt as a file of sums keeps it."""

    seed: int
    """The first program's."""
    programs: int
    calls: int
    faults: tuple[tuple[int, str], ...]
    sanitizers: bool
    machine: str

    @classmethod
    def from_dict(cls, line: dict[str, Any]) -> ExtensionHunt:
        """Raises KeyError, TypeError or ValueError for what is no such line."""
        seed, programs, calls = (_count(line[key]) for key in ("seed", "programs", "calls"))
        faults = tuple((_count(seed), str(fault)) for seed, fault in line["faults"])
        return cls(seed, programs, calls, faults, bool(line["sanitizers"]), str(line["machine"]))


class ExtensionSums(PlannedFile):
    """A line for each hunt, with its seed and machine."""

    def __init__(self, path: Path) -> None:
        """Opens the file, or makes it. Raises `UserError` where it is another file."""
        self._hunts: list[ExtensionHunt] = []

        def check(known: Known) -> None:
            SUMS.take(path, known.lines, lambda line: self._hunts.append(ExtensionHunt.from_dict(line)))

        super().__init__(path, SUMS, {}, check)

    @property
    def next_seed(self) -> int:
        """The first seed behind those of all hunts."""
        return max((each.seed + each.programs for each in self._hunts), default=1)

    def add(self, seed: int, tally: ExtensionTally) -> None:
        """Adds a hunt."""
        hunt = ExtensionHunt(seed, tally.programs, tally.calls, tuple(tally.faults), is_sanitized(), machine())
        self.append(hunt._asdict())
        self._hunts.append(hunt)

    def __str__(self) -> str:
        """The sums with and without sanitizers, and a line for each hunt."""
        told = []
        for sanitized, how in ((True, "with sanitizers"), (False, "without")):
            several = [each for each in self._hunts if each.sanitizers is sanitized]
            programs, calls = sum(each.programs for each in several), sum(each.calls for each in several)
            told.append(
                f"{how}: {programs:,} programs, {calls:,} calls, {sum(len(each.faults) for each in several)} faults"
            )
        about = [f"seeds from {each.seed} on: {each.programs:,} programs, {each.machine}" for each in self._hunts]
        return "\n".join([f"{len(self._hunts)} hunts together", *told, *about])


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 60:
        raise ValueError(f"{value!r:.40} is no such number")
    return value


def is_sanitized() -> bool:
    """Whether processes run under the address sanitizer (`ci/sanitize`)."""
    return "libasan" in os.environ.get("LD_PRELOAD", "")


def hunt(first: int, count: int, judged: Callable[[int], object] = lambda programs: None) -> ExtensionTally:
    """Runs the programs of so many seeds. `judged` is called with how many ran since it was called last.

    Raises `UserError` without a native core.
    """
    if native.core is None:
        raise UserError(f"there is no native core to call: {native.in_use}")
    tally = ExtensionTally()
    with Worker(packages=("hunts",), timeout=SECONDS) as worker:
        for begin in range(first, first + count, TOGETHER):
            several = min(TOGETHER, first + count - begin)
            _run(worker, begin, several, tally)
            judged(several)
            if len(tally.faults) >= MOST_FAULTS:
                break
    return tally


def _run(worker: Worker, first: int, count: int, tally: ExtensionTally) -> None:
    """Runs programs. Where the process dies it finds out of which."""
    answer = worker.call(JOB, {"first": first, "count": count})
    if not isinstance(answer, Died):
        tally.programs += count
        tally.calls += answer["calls"]
        tally.faults += [(seed, fault) for seed, fault in answer["faults"]]
    elif count == 1:
        tally.programs += 1
        tally.faults.append((first, f"the process {answer.reason}"))
    else:
        found = len(tally.faults)
        for begin in (first, first + count // 2):
            _run(worker, begin, count // 2 if begin == first else count - count // 2, tally)
        if len(tally.faults) == found:
            tally.faults.append((first, f"the process {answer.reason}, of {count} programs together"))
