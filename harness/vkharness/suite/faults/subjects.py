"""Subjects of a fault hunt, which run on a driver with faults: rows of the suite, cells of the matrix, replays.

Each run gives the states of its rows."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from vkharness.device.drivers import Driver
from vkharness.suite.claims import Variant
from vkharness.suite.expectations import beside
from vkharness.suite.matrix.judge_cells import judge_cells
from vkharness.suite.mutation.judge_mutants import Named
from vkharness.suite.row import Row, settle
from vkharness.suite.runner import ROW, NoAnswer, Runner, row_of
from vkharness.verdicts import Status

Command = Callable[[list[str]], object]
"""The command line of vkharness: it ends with SystemExit."""


class RowEnd(NamedTuple):
    """The end of a row: its state, and the reasons."""

    status: Status
    said: str
    """The reason why it does not pass."""
    judged: str
    """The verdicts of the judges and on the bytes, as text; empty where the row came to no verdict."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run: its rows by name, and its exit code."""

    rows: dict[str, RowEnd] = field(default_factory=dict)
    code: int = 0


class FaultSubject(Protocol):
    """Something that is run on a driver, again and again."""

    name: str

    def run(self, timeout: float) -> Ended:
        """Runs it, each row within `timeout` seconds."""


def row_task(file: Path, scenario: str, variant: Variant, driver: Driver, native: int = 1) -> dict[str, Any]:
    """The arguments of `ROW` for one variant of a scenario, with no layer, and run natively so often."""
    task = {"module": str(file), "scenario": scenario, "variant": variant.name, "device": driver.name}
    return {**task, "artifacts": None, "layers": [], "native": native}


def settled(answer: dict[str, Any] | NoAnswer, file: Path, task: dict[str, Any], *, needless: bool = True) -> Row:
    """The row of an answer to a task of `row_task`, as the suite settles it with the expectations beside the file.
    Unless `needless`, it does not fail where a judge agrees although an expectation says otherwise."""
    row = row_of(answer, f"{file.parent.name}/{task['scenario']}", task["variant"], task["device"])
    if isinstance(answer, NoAnswer):
        return row
    entries = beside(file)
    settle(row, entries if needless else [replace(each, may=True) for each in entries])
    return row


class SuiteRows:
    """Variants of scenarios one after the other in one process of the driver, as the suite runs them."""

    def __init__(self, driver: Driver, rows: Sequence[tuple[Named, Variant]], runner: Runner) -> None:
        """Several subjects may share a runner, which is not theirs to close."""
        self.name = "suite"
        self._driver, self._rows, self._runner = driver, rows, runner

    def run(self, timeout: float) -> Ended:
        """Each row, settled as the suite does."""
        found = {}
        for (file, scenario), variant in self._rows:
            task = row_task(file, scenario, variant, self._driver)
            answer = self._runner.run(ROW, task, self._driver, timeout)
            found[f"{scenario}[{variant.name}]"] = _row_end(settled(answer, file, task))
        bad = any(each.status not in (Status.PASSED, Status.UNAVAILABLE) for each in found.values())
        return Ended(found, int(bad))


def _row_end(row: Row) -> RowEnd:
    return RowEnd(row.status, "; ".join(row.reasons) or row.problem, "" if row.problem else _judged(row))


def _judged(row: Row) -> str:
    """The part of a row's verdicts that is the same in each run, as text. The native verdict of a hazard is left out:
    a native run of it may leave other bytes each time."""
    native = None if row.syncval else row.native
    return str([row.syncval, row.unmodelled, row.model, row.witness, row.orders, native])


class MatrixCells:
    """Cells of the matrix in two processes side by side."""

    PROCESSES = 2

    def __init__(self, device: str, numbers: Sequence[int]) -> None:
        self.name = "matrix"
        self._device, self._numbers = device, numbers

    def run(self, timeout: float) -> Ended:
        """Each cell."""
        rows = dict(judge_cells(self._numbers, self._device, "off", True, self.PROCESSES, timeout=timeout))
        found = {
            str(number): RowEnd(row.status, "; ".join(row.reasons) or row.problem, "" if row.problem else _judged(row))
            for number, row in sorted(rows.items())
        }
        bad = any(each.status not in (Status.PASSED, Status.UNAVAILABLE) for each in found.values())
        return Ended(found, int(bad))


class Replay:
    """`vkharness replay` of a trace in one mode. In witness mode each group of findings is a row."""

    def __init__(self, command: Command, device: str, trace: Path, mode: str, folder: Path) -> None:
        self.name = f"replay --mode {mode}"
        self._command, self._device, self._trace, self._mode, self._folder = command, device, trace, mode, folder

    def run(self, timeout: float) -> Ended:
        """One call of the command line."""
        found = self._folder / "results.json"
        words = ["replay", str(self._trace), "--mode", self._mode, "--device", self._device, "--json", str(found)]
        words += ["--timeout", str(timeout)] + (["--iterations", "2"] if self._mode in ("native", "reorder") else [])
        code, said = called(self._command, words)
        results = json.loads(found.read_text())["results"] if found.exists() else []
        found.unlink(missing_ok=True)
        if self._mode != "witness":
            judged = "" if self._mode == "native" else json.dumps(results)  # races differ from run to run
            return Ended({"run": RowEnd(status_of(said), said, judged)}, code)
        rows = {str(each["number"]): _group_end(each) for each in results}
        return Ended(rows or {"run": RowEnd(status_of(said), said, "")}, code)


def _group_end(result: dict[str, Any]) -> RowEnd:
    reasons = result.get("failed", []) if result["shown"] else [result["reason"], result.get("stderr", "")]
    lost = "\n".join(reasons)
    status = status_of(lost)
    judged = json.dumps([result["shown"], result["differences"], result["outcome"]])
    return RowEnd(status, lost, judged if status is Status.PASSED else "")


def called(command: Command, words: list[str]) -> tuple[int, str]:
    """The exit code of a command line, and what it printed on stderr."""
    said, code = io.StringIO(), 0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            command(words)
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else 1
    return code, said.getvalue()


STATES = (
    ("gave no answer in time", Status.TIMED_OUT),
    ("killed by", Status.DIED),
    ("exited with", Status.DIED),
    ("VK_ERROR_DEVICE_LOST", Status.DEVICE_LOST),
    ("VK_ERROR_", Status.FAILED),
    ("vkharness: ", Status.FAILED),
)


def status_of(said: str) -> Status:
    """The state that a line of `replay` tells of; what no line tells of passed."""
    return next((status for words, status in STATES if words in said), Status.PASSED)
