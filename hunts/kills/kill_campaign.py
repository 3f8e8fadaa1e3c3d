"""Random points at which commands are killed, one after the other, and the file from which a campaign goes on."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from hunts.kills.killed_commands import COMMANDS, TEMPORARY, KilledCommand, KillPlace, make_given
from hunts.kills.left import Left, faults_of_kill, faults_of_next, left_in
from hunts.kills.tracing import Ending, Operation, Tracees, run_traced
from vkharness.findings import UserError
from vkharness.planned_file import Known, PlannedFile, PlannedWork
from vkharness.temporary import temporary_folder

KILLS = PlannedWork("vkharness kills", 1, "campaign of kills")
LEAVE = 25.0
"""Seconds that other processes of a command have after its end. A worker may take 10 for its job."""
BLOWS = {"command": 6, "all": 2, "helper": 1, "SIGTERM": 1, "SIGINT": 1}
"""Whom a blow strikes, by weight: the command's own process, all its processes, one of the others; or a signal for the
command that it may handle."""
MOST_SECONDS = 1e6
"""That processes took to leave, in a file that is read."""
HALF = 0.4
"""Of the writes before which a command is killed, those that are half done."""
STAYING = 0.8
"""Of the points, those that are chosen among operations on files that are not temporary, and on processes."""
DELAYED, DELAY = 0.3, 0.2
"""Of the points, those that are some time behind an operation, and seconds of that on average."""
CODES = {
    "command": {-signal.SIGKILL},
    "all": {-signal.SIGKILL},
    "helper": {-signal.SIGKILL, 128 + signal.SIGKILL, 1, 2},
    "SIGTERM": {-signal.SIGTERM, 128 + signal.SIGTERM},
    "SIGINT": {-signal.SIGINT, 128 + signal.SIGINT, 2},
}
"""Exit codes with which a command may end that was struck, beside that of an undisturbed run."""


class Point(NamedTuple):
    """Where a command is killed."""

    command: str
    number: int
    """Of the operation before which it is."""
    blow: str
    half: bool
    """Whether the first half of it is done, if it is a write."""
    delay: float
    """Seconds that it runs on; 0 to be struck exactly there."""
    earlier: bool
    """Whether the files of an earlier run are there."""

    def before(self, met: Operation | None) -> str:
        """Where it is, in words; `met` is the operation that was met."""
        if met is None:
            return "the end"
        half = "half a " if self.half and met.name == "write" else ""
        return f"some time after {met.name}" if self.delay else f"{half}{met.name}"

    @classmethod
    def random(cls, rng: random.Random, name: str, operations: Sequence[Operation]) -> Point:
        """A point among the operations of an undisturbed run: more often one on a file that stays."""
        staying = [each for each in operations if not each.path.startswith(f"{TEMPORARY}/")]
        operation = rng.choice(staying if rng.random() < STAYING else operations)
        (blow,) = rng.choices(list(BLOWS), list(BLOWS.values()))
        delay = rng.expovariate(1 / DELAY) if rng.random() < DELAYED else 0.0
        half = not delay and rng.random() < HALF
        return cls(name, operation.number, blow, half, delay, not COMMANDS[name].grows and rng.random() < 0.5)


class KillPlan(NamedTuple):
    """The plan of a campaign. The same plan goes on with the contents of a file."""

    seed: int
    commands: tuple[str, ...]
    program: str
    driver: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {**self._asdict(), "commands": [*self.commands]}


@dataclass
class KillTally:
    """Sums over points."""

    points: Counter[str] = field(default_factory=Counter)
    """By command."""
    met: Counter[str] = field(default_factory=Counter)
    """By what was about to happen."""
    blows: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0
    """Seconds that other processes took to leave."""

    def add(self, line: dict[str, Any]) -> None:
        """Adds what came of a point. Raises `ValueError`, `KeyError` or `TypeError` where it is none."""
        if not 0 <= line["left_after"] < MOST_SECONDS:
            raise ValueError("left_after is no number of seconds")
        self.points[line["command"]] += 1
        self.met[line["met"]] += 1
        self.blows[line["blow"]] += 1
        self.faults.update(f"{line['command']}: {fault}" for fault in line["faults"])
        self.longest = max(self.longest, line["left_after"])

    def __str__(self) -> str:
        """The figures, then a line for each fault, the most frequent one first."""
        of, met, blows = (
            ", ".join(f"{count} {what}" for what, count in each.most_common())
            for each in (self.points, self.met, self.blows)
        )
        lines = [
            f"{self.points.total()} kills ({of})",
            f"before: {met}",
            f"struck: {blows}; other processes left within {self.longest:.1f} s",
            f"{self.faults.total()} faults, {len(self.faults)} kinds",
        ]
        return "\n".join([*lines, *(f"  {count:6} {fault}" for fault, count in self.faults.most_common())])


class KillFile(PlannedFile):
    """The file of a campaign: its plan, then a line for each point."""

    def __init__(self, path: Path, plan: KillPlan) -> None:
        """Opens the file of a campaign, or makes it. Raises `UserError` where it is another one's."""
        self.tally = KillTally()

        def check(known: Known) -> None:
            if known.plan != plan.to_dict():
                raise UserError(f"{path}: holds another plan ({json.dumps(known.plan)}); name another file")
            KILLS.take(path, known.lines, self.tally.add)

        super().__init__(path, KILLS, plan.to_dict(), check)


class Kills:
    """Kills one command at one point after the other."""

    def __init__(self, plan: KillPlan, place: KillPlace) -> None:
        self._plan, self._place = plan, place
        self._undisturbed: dict[str, tuple[Left, list[Operation]]] = {}
        make_given(place, [COMMANDS[name] for name in plan.commands])

    def strike(self, name: str, number: int) -> dict[str, Any]:
        """Kills a command for the so-manieth time; what came of it, JSON-able."""
        command, place = COMMANDS[name], self._place
        undisturbed, operations = self._leaves_undisturbed(name)
        point = Point.random(random.Random(f"{self._plan.seed}:{name}:{number}"), name, operations)
        self._begin(name, earlier=point.earlier)
        before = left_in(place.folder, 0, command).files
        met, ending = self._run(command, point)
        faults = [*(f"a process is left: {each}" for each in ending.orphans)]
        faults += self._faults_of_words(ending, point, undisturbed, command)
        if not (point.blow == "helper" and command.has_rows):
            killed = left_in(place.folder, ending.code, command)
            if not (point.blow == "SIGINT" and command.has_rows):  # such a run tells of what it has done
                faults += faults_of_kill(killed, undisturbed, before, command)
            words = place.words(command, again=True)
            code = place.run(words, place.folder, place.variables(command))
            faults += faults_of_next(left_in(place.folder, code, command), undisturbed, killed, command)
        line = {**point._asdict(), "met": point.before(met), "path": met.path if met else "", "code": ending.code}
        return {**line, "left_after": round(ending.seconds, 3), "faults": sorted(set(faults))}

    def _run(self, command: KilledCommand, point: Point) -> tuple[Operation | None, Ending]:
        met: list[Operation] = []

        def at(operation: Operation, tracees: Tracees) -> bool:
            if operation.number < point.number:
                return False
            met.append(operation)
            if point.half and operation.name == "write":
                tracees.write_half()
            if point.delay:
                tracees.later(point.delay, lambda: strike(tracees, point.blow))
            else:
                strike(tracees, point.blow)
            return True

        place = self._place
        words = place.words(command, again=False)
        ending = run_traced(words, place.folder, place.variables(command), place.output, at, LEAVE)
        return (met[0] if met else None), ending

    def _faults_of_words(self, ending: Ending, point: Point, undisturbed: Left, command: KilledCommand) -> list[str]:
        """Lists the faults in the exit code and the output of a command that was not killed itself.

        A program that is interrupted prints its own traceback, as it would without the mirror.
        """
        said = self._place.output.read_text(errors="replace")
        # Python itself says where a signal met it, and workers of Dask and of pytest-xdist whom they have lost.
        its_own = command.tells and point.blow == "SIGINT" and said.count("\nKeyboardInterrupt") == 1
        told = ending.code >= 0 and "Traceback (most recent call last)" in said
        faults = ["a traceback"] if told and not its_own else []
        if ending.code not in CODES[point.blow] | {undisturbed.code}:
            faults.append(f"it ended with {ending.code}")
        return faults

    def _leaves_undisturbed(self, name: str) -> tuple[Left, list[Operation]]:
        """Returns the state that a command leaves when nothing happens to it, and the operations that this takes."""
        if name not in self._undisturbed:
            command, place = COMMANDS[name], self._place
            self._begin(name, earlier=False)
            words = place.words(command, again=False)
            ending = run_traced(words, place.folder, place.variables(command), place.output, lambda *_: False, LEAVE)
            left = left_in(place.folder, ending.code, command)
            _copy(place.folder, self._kept(name))
            self._undisturbed[name] = left, ending.operations
        return self._undisturbed[name]

    def _begin(self, name: str, *, earlier: bool) -> None:
        """Makes the folder of a command anew, with what it is given, or as a run has left it."""
        place = self._place
        shutil.rmtree(place.folder, ignore_errors=True)
        if earlier:
            _copy(self._kept(name), place.folder)
            return
        (place.folder / TEMPORARY).mkdir(parents=True)
        for each in COMMANDS[name].given:
            source = place.given / each
            if source.is_dir():
                _copy(source, place.folder / each)
            elif source.exists():
                shutil.copy(source, place.folder / each)

    def _kept(self, name: str) -> Path:
        return self._place.folder.with_name(f"left by {name}")


def _copy(source: Path, target: Path) -> None:
    """Copies a folder, without the pipes by which processes that have ended were called."""
    shutil.copytree(
        source, target, ignore=lambda folder, names: {each for each in names if Path(folder, each).is_fifo()}
    )


def strike(tracees: Tracees, blow: str) -> None:
    """Kills whom a blow strikes. A helper that is not there leaves the command."""
    processes = tracees.processes
    helpers = [each for each in processes if each != tracees.root]
    if blow == "all":
        for each in processes:
            tracees.kill(each)
    elif blow == "helper" and helpers:
        tracees.kill(helpers[-1])
    else:
        tracees.kill(tracees.root, {"SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}.get(blow, signal.SIGKILL))


def conduct(plan: KillPlan, count: int, output: Path | None, told: Callable[[KillTally], object]) -> KillTally:
    """Goes on from what a file has, if one is given, until each command was killed `count` times.

    `told` is called after each kill. Returns the sums. This process must have no children.
    """
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder()).resolve()
        file = None if output is None else stack.enter_context(KillFile(output, plan))
        tally = KillTally() if file is None else file.tally
        program = Path(plan.program).resolve()
        kills = Kills(plan, KillPlace(folder / "work", folder / "given", folder / "said.txt", program, plan.driver))
        for number in range(count):
            for name in plan.commands:
                if tally.points[name] <= number:
                    line = kills.strike(name, number)
                    if file is not None:
                        file.append(line)
                    tally.add(line)
                    told(tally)
    return tally
