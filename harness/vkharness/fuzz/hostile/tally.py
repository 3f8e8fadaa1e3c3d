"""Results of hunts: sums over batches, the file from which a hunt goes on, and sums over several hunts."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from vkharness.findings import UserError
from vkharness.fuzz.hostile.trial import Trial, TrialEnd
from vkharness.planned_file import Known, PlannedFile, PlannedWork

HUNT = PlannedWork("vkharness hostile hunt", 1, "hunt")
SUMS = PlannedWork("vkharness hostile sums", 1, "file of sums over hunts")


class HuntPlan(NamedTuple):
    """The parameters of a hunt. A hunt with the same plan goes on from its file."""

    seed: int
    device: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return self._asdict()


@dataclass
class Tally:
    """Sums over batches, or over hunts."""

    inputs: int = 0
    batches: int = 0
    seconds: float = 0.0
    """Of the processor, in commands."""
    slowest: float = 0.0
    slowest_a_kilobyte: float = 0.0
    """Seconds of the processor for each 1,000 bytes, of inputs of 10,000 bytes or more."""
    largest: int = 0
    """Bytes of memory."""
    kinds: Counter[str] = field(default_factory=Counter)
    commands: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    """New lines of this package that an input reached."""
    lost: int = 0
    """Batches of which the process died: nobody knows what they came to."""

    def add(self, line: dict[str, Any]) -> None:
        """Adds what a batch or a hunt came to. Raises KeyError, TypeError or ValueError for what is neither."""
        numbers = {
            key: _number(line.get(key, 0))
            for key in ("inputs", "seconds", "lines", "slowest", "slowest_a_kilobyte", "largest", "lost")
        }
        counts = {key: _counts(line.get(key, {})) for key in ("kinds", "commands", "codes", "faults")}
        self.batches += int(_number(line.get("batches", 1)))
        self.inputs += int(numbers["inputs"])
        self.lines += int(numbers["lines"])
        self.lost += int(numbers["lost"])
        self.seconds += numbers["seconds"]
        self.slowest = max(self.slowest, numbers["slowest"])
        self.slowest_a_kilobyte = max(self.slowest_a_kilobyte, numbers["slowest_a_kilobyte"])
        self.largest = max(self.largest, int(numbers["largest"]))
        for key, several in counts.items():
            getattr(self, key).update(several)

    def to_dict(self) -> dict[str, Any]:
        """As `add` takes it."""
        return {
            "batches": self.batches,
            "inputs": self.inputs,
            "seconds": round(self.seconds, 3),
            "slowest": self.slowest,
            "slowest_a_kilobyte": self.slowest_a_kilobyte,
            "largest": self.largest,
            "lines": self.lines,
            "lost": self.lost,
            "kinds": dict(self.kinds),
            "commands": dict(self.commands),
            "codes": dict(self.codes),
            "faults": dict(self.faults),
        }

    def __str__(self) -> str:
        """The figures, then a line for each fault, the most frequent one first."""
        codes = ", ".join(f"{count} exit {code}" for code, count in sorted(self.codes.items()))
        lines = [
            f"{self.inputs} inputs ({_listed(self.kinds)}): {codes}; {sum(self.faults.values())} with a fault, "
            f"{len(self.faults)} kinds",
            f"asked: {_listed(self.commands)}",
            f"at most {self.slowest:.1f} s, {self.slowest_a_kilobyte:.2f} s a kilobyte from 10 kB on, and "
            f"{self.largest >> 20} MiB for one; {self.seconds:.0f} s in all",
            *([f"{self.lost} batches lost: their process died"] if self.lost else []),
        ]
        return "\n".join([*lines, *(f"  {count:6} {fault}" for fault, count in self.faults.most_common())])


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.most_common())


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1 << 60:
        raise ValueError(f"{value!r:.40} is no such number")
    return value


def _counts(value: Any) -> dict[str, int]:
    if not isinstance(value, dict):
        raise TypeError("counts are no object")
    return {key: int(_number(count)) for key, count in value.items()}


FROM_KILOBYTES = 10_000
"""Bytes of an input from which on its time is told a kilobyte: that of a smaller one is mostly the command's start."""


def line_of(trials: Sequence[Trial], outcomes: Sequence[TrialEnd]) -> dict[str, Any]:
    """Gives the result of a batch, a `Tally` as JSON."""
    tally = Tally(batches=1, inputs=len(outcomes))
    for trial, each in zip(trials, outcomes, strict=True):
        tally.seconds += each.seconds
        tally.slowest = max(tally.slowest, round(each.seconds, 3))
        if trial.sample.size >= FROM_KILOBYTES:
            rate = round(1000 * each.seconds / trial.sample.size, 4)
            tally.slowest_a_kilobyte = max(tally.slowest_a_kilobyte, rate)
        tally.largest = max(tally.largest, each.memory)
        tally.lines += len(each.lines)
        tally.kinds[trial.sample.kind] += 1
        tally.commands[trial.arguments[0]] += 1
        tally.codes.update([] if each.fault else [str(each.code)])
        tally.faults.update([each.fault] if each.fault else [])
    return tally.to_dict()


class HuntFile(PlannedFile):
    """The file of a hunt: its plan, then a line for each batch."""

    def __init__(self, path: Path, plan: HuntPlan) -> None:
        """Opens the file of a hunt, or makes it. Raises `UserError` where it is another hunt's."""
        self.tally = Tally()
        self.done: set[int] = set()
        """Numbers of the batches that it has."""

        def check(known: Known) -> None:
            if known.plan != plan.to_dict():
                raise UserError(f"{path}: holds a hunt with another plan ({json.dumps(known.plan)}); name another file")
            HUNT.take(path, known.lines, self.tally.add)
            self.done = {
                number if type(number := line.get("number")) is int else at for at, line in enumerate(known.lines)
            }

        super().__init__(path, HUNT, plan.to_dict(), check)


class SumsFile(PlannedFile):
    """The sums of several hunts: a line for each, with its seed and machine."""

    def __init__(self, path: Path) -> None:
        """Opens the file, or makes it. Raises `UserError` where it is another file."""
        self.tally = Tally()
        self.runs: list[dict[str, Any]] = []

        def check(known: Known) -> None:
            SUMS.take(path, known.lines, self.tally.add)
            self.runs = known.lines

        super().__init__(path, SUMS, {}, check)

    @property
    def seeds(self) -> list[int]:
        """Seeds of the hunts that it has."""
        return [seed for each in self.runs if type(seed := each.get("seed")) is int]

    def add(self, seed: int, minutes: float, jobs: int, tally: Tally) -> None:
        """Adds a hunt."""
        line = {"seed": seed, "minutes": round(minutes, 1), "jobs": jobs, "machine": machine(), **tally.to_dict()}
        self.append(line)
        self.runs.append(line)
        self.tally.add(line)

    def __str__(self) -> str:
        """The sums, and a line for each hunt."""
        about = [
            f"seed {each.get('seed')}: {each.get('inputs')} inputs, {sum(each.get('faults', {}).values())} with a "
            f"fault, in {each.get('minutes')} min, {each.get('jobs')} jobs, {each.get('machine')}"
            for each in self.runs
        ]
        return "\n".join([f"{len(self.runs)} hunts together:", str(self.tally), *about])


def machine() -> str:
    """The processor and the interpreter, in words."""
    model = platform.processor() or platform.machine()
    with suppress(OSError):
        names = [each for each in Path("/proc/cpuinfo").read_text().splitlines() if each.startswith("model name")]
        model = names[0].partition(":")[2].strip() if names else model
    return f"{model}, Python {platform.python_version()}"
