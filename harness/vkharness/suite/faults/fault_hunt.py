"""Random faults of a driver, one after the other: each costs one row, which says why, and leaves nothing behind."""

from __future__ import annotations

import gc
import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from vkharness.device.drivers import Driver, find_driver
from vkharness.device.faults.fault_driver import build_fault_driver
from vkharness.device.faults.fault_plan import FAULT_FILE, KINDS, Fault, FaultPlan
from vkharness.fuzz.process_memory import resident_bytes
from vkharness.replay import MODES
from vkharness.suite.claims import Claim, Variant
from vkharness.suite.faults.leaks import Held, processes_with
from vkharness.suite.faults.subjects import (
    Command,
    Ended,
    FaultSubject,
    MatrixCells,
    Replay,
    RowEnd,
    SuiteRows,
    row_task,
)
from vkharness.suite.judge_scenario import load_module
from vkharness.suite.matrix.cells import cells
from vkharness.suite.mutation.judge_mutants import Named, claims
from vkharness.suite.runner import ROW, NoAnswer, Runner
from vkharness.verdicts import Status

STATUS = {"FAIL": Status.FAILED, "HANG": Status.TIMED_OUT}
"""The expected status of a row, by the action of a fault's kind. Faults of other actions kill the process."""
WEIGHTS = {"hang": 1, "abort": 6, "crash": 6, "leave": 6}
"""How often kinds are chosen; others 25. A hang takes its time limit, and a death a new process."""
GROUPS, ROWS, CELLS = 16, 3, 6
"""Groups of rows of the suite, rows in each; cells of the matrix."""
SHARES = {"suite": 4}
"""How often a group of rows is chosen; others 1, since each begins a process."""
BEYOND = 1 << 40
"""The number of a call that is never made: a fault there only counts."""
PIPES = 3
"""Descriptors that a process of a driver takes here."""
GROWTH = 48 << 20
"""Bytes by which this process may grow from a tenth of the hunt to its end."""


@dataclass(slots=True)
class HuntResult:
    """Sums over faults."""

    struck: Counter[str] = field(default_factory=Counter)
    """By kind."""
    subjects: Counter[str] = field(default_factory=Counter)
    commands: set[str] = field(default_factory=set)
    missed: int = 0
    """Faults whose call was not made: then every row is as usual."""
    wrong: list[str] = field(default_factory=list)
    """A line for each thing that should not be, with the fault that shows it."""
    grown: int = 0
    """Bytes, from a tenth of the hunt on."""

    def __str__(self) -> str:
        """The figures, then what should not be."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in self.struck.most_common())
        places = ", ".join(f"{count} {name}" for name, count in self.subjects.most_common())
        lines = [
            f"{self.struck.total()} faults struck ({kinds})",
            f"in {places}; in {len(self.commands)} commands; {self.missed} more came after the last call",
            f"{len(self.wrong)} wrong states or things left; this process grew by {self.grown / (1 << 20):.1f} MiB",
        ]
        return "\n".join([*lines, *(f"  {line}" for line in self.wrong)])


class FaultHunt:
    """Runs subjects with random faults. The same seed gives the same faults."""

    def __init__(
        self, subjects: Sequence[FaultSubject], runner: Runner, plan: FaultPlan, folder: Path, timeout: float
    ) -> None:
        """`runner` has the only process that is kept from one subject to the next; `folder` is that for temporary
        files."""
        self._subjects, self._runner, self._plan, self._folder = subjects, runner, plan, folder
        self._timeout = timeout
        self._usual: dict[int, Ended] = {}
        self._calls: dict[tuple[int, str], int] = {}
        self.result = HuntResult()

    def try_one(self, rng: random.Random) -> bool:
        """One random fault in one random subject; whether it struck."""
        weights = [SHARES.get(each.name, 1) for each in self._subjects]
        (at,) = rng.choices(range(len(self._subjects)), weights)
        subject = self._subjects[at]
        untried = [each for each in KINDS if not self.result.struck[each]]
        kind = untried[0] if untried else rng.choices(list(KINDS), [WEIGHTS.get(each, 25) for each in KINDS])[0]
        calls = self._counted(at, kind)
        if not calls:
            return False
        fault = Fault(kind, rng.randint(1, calls))
        before = Held.now(self._folder)
        self._plan.plan(fault)
        ended = subject.run(self._timeout)
        struck, told = self._plan.struck, f"{subject.name} {at}, {fault}"
        self._plan.plan(None)
        wrong = list(faults_of(fault, struck, ended, self._usual[at]))
        gc.collect()
        wrong += self._left(before)
        self.result.wrong += [f"{told} in {struck or 'no call'}: {each}" for each in wrong]
        if struck:
            self.result.struck[kind] += 1
            self.result.subjects[subject.name] += 1
            self.result.commands.add(struck)
        else:
            self.result.missed += 1
        return bool(struck)

    def _counted(self, at: int, kind: str) -> int:
        """The calls of a subject that can have a fault of a kind.

        They are counted in a run that nothing disturbs, after another one: the first run in a process makes more calls.
        """
        subject = self._subjects[at]
        if at not in self._usual:
            self._plan.plan(None)
            self._usual[at] = subject.run(self._timeout)
        key = at, str(KINDS[kind]) if KINDS[kind].action == "FAIL" else ""
        if key not in self._calls:
            self._plan.plan(Fault(kind, BEYOND))
            subject.run(self._timeout)
            self._calls[key] = self._plan.calls
        return self._calls[key]

    def _left(self, before: Held) -> list[str]:
        """Lists the processes, files, descriptors and threads that a run has left. Pipes count only where they are more
        than those of the runner's processes: a new process in place of a dead one has new pipes."""
        left = processes_with(FAULT_FILE, str(self._plan.path), self._runner.pids)
        found = [f"process {pid} is left" for pid in left]
        beyond = Held.now(self._folder).beyond(before)
        pipes = [each for each in beyond if each.startswith("descriptor") and "pipe:" in each]
        return found + [each for each in beyond if each not in pipes or len(pipes) > PIPES * len(self._runner.pids)]


def faults_of(fault: Fault, struck: str, ended: Ended, usual: Ended) -> Iterator[str]:
    """Yields a line for each way in which a run with a fault ended wrongly. `struck` is the command in which the fault
    struck, empty for none; `usual` is the end of a run without a fault."""
    if ended.code in (0, 70) and struck:
        yield f"exit code {ended.code}"
    if ended.rows.keys() != usual.rows.keys() and ended.rows.keys() != {"run"}:
        yield f"rows {sorted(ended.rows)} for {sorted(usual.rows)}"
        return
    changed = {name: each for name, each in ended.rows.items() if each != usual.rows.get(name)}
    if not struck:
        yield from (f"row {name} changed without a fault: {_short(each)}" for name, each in changed.items())
        return
    if len(changed) != 1:
        yield f"{len(changed)} rows changed: " + " | ".join(map(_short, changed.values()))
    for each in changed.values():
        yield from _wrong_state(fault, struck, each)


def _wrong_state(fault: Fault, struck: str, row: RowEnd) -> Iterator[str]:
    kind = KINDS[fault.kind]
    wanted = Status.DEVICE_LOST if fault.kind == "device-lost" else STATUS.get(kind.action, Status.DIED)
    if row.status is not wanted:
        yield f"a row is {_short(row)}, and not {wanted}"
        return
    # The loader makes another result of an instance that no driver makes.
    result = "VK_ERROR_" if struck == "vkCreateInstance" else f"VK_ERROR_{fault.kind.replace('-', '_').upper()}"
    # Emulated queues call the second form for the first one, and an alias stands for what the specification has now.
    words = [kind.told] if kind.told else [struck.removesuffix("KHR").removesuffix("2"), result]
    for word in words:
        if word not in row.said:
            yield f"a row does not name {word}: {_short(row)}"


def _short(row: RowEnd) -> str:
    lines = row.said.strip().splitlines() or [""]
    return f"{row.status} ({lines[0][:160]})"


def hunt(
    command: Command,
    device: str,
    count: int,
    seed: int,
    timeout: float,
    paths: Sequence[Path],
    folder: Path,
    done: Callable[[int], object] = lambda struck: None,
) -> HuntResult:
    """Lets `count` faults strike on a driver, in rows of the scenarios in `paths`, in cells and in replays.

    `command` is the command line of vkharness, `timeout` the seconds for a row. The hunt puts its files into an empty
    `folder`. `done` gets the number of faults.
    """
    with ExitStack() as stack:
        temporary = folder / "temporary"
        temporary.mkdir()
        plan = stack.enter_context(FaultPlan(folder / "plan"))
        driver = replace(build_fault_driver(find_driver(device), folder / "driver"), name=device)
        stack.enter_context(_variables({FAULT_FILE: str(folder / "plan"), "TMPDIR": str(temporary)}))
        rng = random.Random(seed)
        runner = Runner()
        stack.callback(runner.close)
        subjects = _subjects(command, driver, rng, paths, folder, runner)
        faults = FaultHunt(subjects, runner, plan, temporary, timeout)
        begun, tries = 0, 0
        while (struck := faults.result.struck.total()) < count and tries < 20 * count:
            if not begun and struck >= count // 10:
                begun = resident_bytes()
            faults.try_one(rng)
            tries += 1
            done(struck)
        gc.collect()
        faults.result.grown = max(0, resident_bytes() - begun)
        if faults.result.grown > GROWTH:
            faults.result.wrong.append("this process grew too much")
        runner.close()
        left = processes_with(FAULT_FILE, str(folder / "plan"), ())
        faults.result.wrong += [f"process {pid} is left at the end" for pid in left]
    return faults.result


@contextmanager
def _variables(values: dict[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    tempfile.tempdir = None
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        tempfile.tempdir = None


def _subjects(
    command: Command, driver: Driver, rng: random.Random, paths: Sequence[Path], folder: Path, runner: Runner
) -> list[FaultSubject]:
    """Groups of rows, cells, and replays of the traces of two rows."""
    named = f"{driver.name}={driver.manifest}"
    rows = [(each, variant) for each in claims(paths, every=True) for variant in _variants(*each)]
    groups = [rng.sample(rows, min(ROWS, len(rows))) for _ in range(GROUPS)]
    found: list[FaultSubject] = [SuiteRows(driver, group, runner) for group in groups]
    found.append(MatrixCells(named, rng.sample(range(len(cells())), CELLS)))
    for trace in _traces(driver, rng.sample(rows, len(rows)), folder, runner):
        found += [Replay(command, named, trace, mode, trace.parent) for mode in MODES]
    return found


def _variants(file: Path, scenario: str) -> Iterator[Variant]:
    claim = getattr(load_module(file), scenario)
    assert isinstance(claim, Claim)
    yield from claim.variants


def _traces(driver: Driver, rows: Sequence[tuple[Named, Variant]], folder: Path, runner: Runner) -> Iterator[Path]:
    """The traces of the first row with a hazard and of the first without one, recorded on the driver."""
    wanted = [True, False]
    for number, ((file, scenario), variant) in enumerate(rows):
        place = folder / f"recorded-{number}"
        task = row_task(file, scenario, variant, driver) | {"artifacts": str(place), "keep": True}
        answer = runner.run(ROW, task, driver)
        if isinstance(answer, NoAnswer) or (hazard := bool(answer["syncval"])) not in wanted:
            continue
        for trace in place.rglob("trace.jsonl"):
            wanted.remove(hazard)
            yield trace
            break
        if not wanted:
            return
