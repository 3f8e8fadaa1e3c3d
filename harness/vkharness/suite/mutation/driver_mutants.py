"""Which rows of the suite notice a driver that breaks a promise.

The fault driver stands before a real one, and breaks the promises of `device/faults/broken_promises.py` one at a time.
A row notices where it does not pass on that driver, and passes on the same one while it breaks nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from vkharness.device.drivers import Driver, find_driver
from vkharness.device.faults.broken_promises import BREAKS, BrokenDriver
from vkharness.device.faults.fault_driver import build_fault_driver
from vkharness.suite.claims import WHOLE, Claim, Variant
from vkharness.suite.faults.subjects import row_task, settled
from vkharness.suite.judge_scenario import load_module
from vkharness.suite.mutation.judge_mutants import claims
from vkharness.suite.mutation.observed_fills import OBSERVED, OBSERVED_FILLS
from vkharness.suite.row import Row
from vkharness.suite.runner import ROW, NoAnswer, Runner
from vkharness.verdicts import Status

ENOUGH = 5
"""Rows that claim a promise and notice that it is broken, after which no other is asked, unless every row is."""
FINE = (Status.PASSED, Status.UNAVAILABLE)


class SuiteRow(NamedTuple):
    """One variant of a scenario in a file."""

    file: Path
    scenario: str
    variant: Variant

    @property
    def name(self) -> str:
        """'barrier/scenario_two_fills[whole]'."""
        return f"{self.file.parent.name}/{self.scenario}[{self.variant.name}]"

    @property
    def family(self) -> str:
        """The folder and the file, without what all files begin with: 'barrier/accesses'."""
        return f"{self.file.parent.name}/{self.file.stem.removeprefix('scenario_')}"

    def claims(self, broken: BrokenDriver) -> bool:
        """Whether the row is of a family that claims the promise."""
        return self.family in broken.claimed_by or self.file.parent.name in broken.claimed_by


@dataclass(frozen=True, slots=True)
class NoticingRow:
    """A row that notices."""

    row: str
    family: str
    claims: bool
    state: str
    """The promise that the driver broke as the bytes show it (`vkharness.verdicts.BrokenPromise`), else who noticed: a
    judge, or the status of a row that came to no verdict."""
    said: str


@dataclass(slots=True)
class DriverMutant:
    """The suite's result on a driver that breaks one promise: the rows that ran, and those that notice."""

    name: str
    promise: str
    rows: int = 0
    """Rows that ran and came to a verdict, or died on it."""
    noticed: list[NoticingRow] = field(default_factory=list)
    observing: int = 0
    """Rows whose bytes must show it by their traces (`observed_fills`), where every row was asked."""
    missed: list[str] = field(default_factory=list)
    """Those of them that do not say what they must, each with what it said."""

    @property
    def claiming(self) -> list[NoticingRow]:
        """Those that notice and claim the promise."""
        return [each for each in self.noticed if each.claims]

    def __str__(self) -> str:
        """One line: the promise, how many rows notice, in which states and families, and the first of them."""
        told = f"{self.name}: {self.promise}: noticed by {len(self.noticed)} of {self.rows} rows"
        if not self.noticed:
            return told
        first = (self.claiming or self.noticed)[0]
        count = len(self.claiming)
        claimed = f"{count or 'none'} of them {'claim' if count > 1 else 'claims'} it"
        states = _counted(each.state for each in self.noticed)
        families = _counted(each.family.partition("/")[0] for each in self.noticed)
        return f"{told}, first {first.row}; {claimed}; {states}; in {families}{self._observed()}"

    def _observed(self) -> str:
        if not self.observing:
            return ""
        says = OBSERVED_FILLS[self.name].says
        told = f"; {self.observing - len(self.missed)} of {self.observing} rows that observe it say {says}"
        return told + (f", not {', '.join(self.missed)}" if self.missed else "")

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {**asdict(self), "noticed": [asdict(each) for each in self.noticed]}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> DriverMutant:
        """Inverse of `to_dict`."""
        return cls(**{**value, "noticed": [NoticingRow(**each) for each in value["noticed"]]})


def _counted(words: Iterator[str] | Sequence[str]) -> str:
    return ", ".join(f"{word} {count}" for word, count in Counter(words).most_common())


def suite_rows(paths: Sequence[Path], *, every: bool = False) -> list[SuiteRow]:
    """The whole scenarios in these files and folders, and with `every` their twins; from each file in turn, so that
    the first ones are of many kinds."""
    files: dict[Path, list[SuiteRow]] = {}
    for file, name in claims(paths, every=True):
        claim = getattr(load_module(file), name)
        assert isinstance(claim, Claim)
        several = [each for each in claim.variants if every or each.kind == WHOLE]
        files.setdefault(file, []).extend(SuiteRow(file, name, each) for each in several)
    return [row for turn in zip_longest(*files.values()) for row in turn if row is not None]


def break_drivers(
    several: Sequence[BrokenDriver],
    rows: Sequence[SuiteRow],
    device: str,
    folder: Path,
    processes: int,
    *,
    every: bool = False,
    advance: Callable[[], object] = lambda: None,
    timeout: float,
) -> Iterator[DriverMutant]:
    """Runs rows on each of these broken drivers, which stand before `device`; yields each as it is done.

    `processes` of them run side by side.

    Rows that claim the promise are asked until `ENOUGH` notice it; with `every`, all rows are. The fault driver is
    built into `folder`. `timeout` is in seconds for a row. Raises `UserError` where there is no such device, or where
    the fault driver cannot be built.
    """
    driver = build_fault_driver(find_driver(device), folder)
    with ThreadPoolExecutor(max(1, min(processes, len(several)))) as pool:
        jobs = [pool.submit(_Trial(driver, each, rows, every, advance, timeout).run) for each in several]
        try:
            for done in as_completed(jobs):
                yield done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


@dataclass(slots=True)
class _Trial:
    """One broken driver, and the same while it breaks nothing."""

    driver: Driver
    broken: BrokenDriver
    rows: Sequence[SuiteRow]
    every: bool
    advance: Callable[[], object]
    timeout: float

    def run(self) -> DriverMutant:
        """Asks rows one after the other."""
        found = DriverMutant(self.broken.name, self.broken.promise)
        offers = ((self.broken.needs, "1"),) if self.broken.needs else ()
        control = replace(self.driver, variables=(*self.driver.variables, *offers))
        breaking = replace(control, variables=(*control.variables, (BREAKS, self.broken.name)))
        broken, whole = Runner(), Runner()
        try:
            for row in self.rows:
                is_asked = row.claims(self.broken) and len(found.claiming) < ENOUGH
                if self.every or is_asked:
                    said = self._ask(row, broken, breaking)
                    found.rows += said.status is not Status.UNAVAILABLE
                    if said.status not in FINE and self._ask(row, whole, control).status in FINE:
                        found.noticed.append(self._noticing(row, said))
                if self.every and self.broken.name in OBSERVED_FILLS:
                    self._hold(found, row, said, self._observes(row, whole, control))
                self.advance()
        finally:
            broken.close()
            whole.close()
        return found

    def _observes(self, row: SuiteRow, runner: Runner, driver: Driver) -> bool:
        task = {"module": str(row.file), "scenario": row.scenario, "variant": row.variant.name, "device": driver.name}
        answer = runner.run(OBSERVED, {**task, "promise": self.broken.name}, driver, self.timeout)
        return not isinstance(answer, NoAnswer) and bool(answer["observes"])

    def _hold(self, found: DriverMutant, row: SuiteRow, said: Row, observes: bool) -> None:
        """Holds what a row said against what it must say where it observes the promise."""
        if not observes:
            return
        found.observing += 1
        broken = said.bytes.broken if said.bytes is not None else ""
        if broken != OBSERVED_FILLS[self.broken.name].says:
            found.missed.append(f"{row.name} ({broken or said.status})")

    def _ask(self, row: SuiteRow, runner: Runner, driver: Driver) -> Row:
        task = row_task(row.file, row.scenario, row.variant, driver, native=0)
        return settled(runner.run(ROW, task, driver, self.timeout), row.file, task, needless=False)

    def _noticing(self, row: SuiteRow, said: Row) -> NoticingRow:
        broken = said.bytes.broken if said.bytes is not None else ""
        judge = said.reasons[0].partition(":")[0] if said.reasons else said.status
        told = "; ".join(said.reasons) or said.problem.strip().splitlines()[0]
        return NoticingRow(row.name, row.family, row.claims(self.broken), broken or judge, told)
