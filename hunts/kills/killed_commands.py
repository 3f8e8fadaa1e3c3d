"""The commands that are killed: how each is started, what it is given, and how it is started again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from vkharness.capture.layer import mirror_environment, mirror_layer
from vkharness.device.drivers import environment, find_driver
from vkharness.device.manifests import Layer
from vkharness.findings import UserError

OURS = ("-c", "from vkharness.cli import main; main()")
"""Arguments of Python that make it `vkharness`."""
TRACE, PROJECT, RESULTS, STREAMS = "given.jsonl", "project", "results", "streams"
"""Files that commands are given, in their folder: a trace, a project with scenarios, the output of its suite, and what
the mirror layer wrote of a process."""
PROCESSES = ("server-files.jsonl", "client-files.jsonl")
"""The traces of two processes that share an image."""
_PROCESSES = Path(__file__).parents[2] / "tests/data/joining"
TEMPORARY = "tmp"
"""The folder of temporary files."""
SCENARIO = "scenarios/scenario_doubled_words.py"
DRIVER = "DRIVER"
"""Stands for the name of the driver that runs what commands run."""
_DRIVER = ("--device", DRIVER)
_PLUGINS = ("-p", "vkharness.pytest_plugin", "-p", "xdist") if os.environ.get("PYTEST_DISABLE_PLUGIN_AUTOLOAD") else ()
"""Plugins that pytest is told to load where it loads none by itself."""
_SUITE = (
    "-m", "pytest", PROJECT, *_PLUGINS, "-p", "no:cacheprovider", "--vk-device", DRIVER, "--vk-layer", "off",
)  # fmt: skip
_KEPT = ("--vk-artifacts", RESULTS)


class KilledCommand(NamedTuple):
    """A command that is killed."""

    given: tuple[str, ...]
    """Contents of its folder."""
    arguments: tuple[str, ...]
    """Of Python. `PROGRAM` stands for the path of the program that is recorded."""
    again: tuple[str, ...] = ()
    """Further arguments with which it goes on after a kill."""
    grows: bool = False
    """Whether it goes on with what a run that was killed has done."""
    repeats: bool = True
    """Whether what it leaves then is what a run leaves that nobody disturbed."""
    has_rows: bool = False
    """Whether the death of a worker is a row of what it leaves."""
    tells: bool = False
    """Whether it tells the verdict of a program that dies or is interrupted, and writes its files, which say so."""
    writes_stream: bool = False
    """Whether it is a program below the mirror layer, without a `vkharness` beside it, and leaves its stream."""
    done: int | None = None
    """The exit code of a run that finds everything done, where that is another one."""


PROGRAM = "PROGRAM"
_OF_TRACE = (TRACE, "given.bin")

COMMANDS: dict[str, KilledCommand] = {
    "run": KilledCommand(
        (), (*OURS, "run", "--trace", "out.jsonl", "--json", "out.json", "--sarif", "out.sarif", PROGRAM), tells=True
    ),
    "capture": KilledCommand(
        (), (*OURS, "run", "--capture", "--trace", "out.jsonl", "--json", "out.json", PROGRAM), tells=True
    ),
    "run --live": KilledCommand(
        (), (*OURS, "run", "--capture", "--live", "--trace", "out.jsonl", "--json", "out.json", PROGRAM), tells=True
    ),
    "program": KilledCommand((), (PROGRAM,), grows=True, tells=True, writes_stream=True),
    "fmt": KilledCommand(_OF_TRACE, (*OURS, "fmt", TRACE, "-o", "formatted.txt")),
    "convert": KilledCommand(_OF_TRACE, (*OURS, "convert", TRACE, "out.vkt")),
    "check": KilledCommand(_OF_TRACE, (*OURS, "check", TRACE, "--json", "out.json", "--sarif", "out.sarif")),
    "check of streams": KilledCommand((STREAMS,), (*OURS, "check", STREAMS, "--json", "out.json")),
    "join": KilledCommand(PROCESSES, (*OURS, "join", *PROCESSES, "-o", "joined.jsonl")),
    "advise": KilledCommand(_OF_TRACE, (*OURS, "advise", TRACE, "--json", "advice.json")),
    "races": KilledCommand(_OF_TRACE, (*OURS, "races", TRACE, "--json", "races.json")),
    "observe": KilledCommand(
        _OF_TRACE, (*OURS, "observe", TRACE, *_DRIVER, "--runs", "2", "-o", "observed.jsonl"), has_rows=True
    ),
    "graph": KilledCommand(_OF_TRACE, (*OURS, "graph", TRACE, "-o", "order.svg")),
    "reduce": KilledCommand(
        _OF_TRACE, (*OURS, "reduce", TRACE, "-o", "small.jsonl", "--scenario", "scenario_small.py")
    ),
    "mend": KilledCommand(_OF_TRACE, (*OURS, "mend", TRACE, "--apply", "mended.jsonl", "--json", "mends.json")),
    "reproduce": KilledCommand(
        _OF_TRACE, (*OURS, "reproduce", TRACE, *_DRIVER, "--first", "1", "-o", "case"), grows=True, done=2
    ),
    "replay": KilledCommand(
        _OF_TRACE,
        (*OURS, "replay", TRACE, *_DRIVER, "--mode", "witness", "--artifacts", "pictures", "--json", "shown.json"),
        has_rows=True,
    ),
    "init": KilledCommand((), (*OURS, "init", "new"), grows=True, done=2),
    "suite": KilledCommand((PROJECT,), (*_SUITE, *_KEPT, "--vk-report", "page"), ("--vk-resume",), True, has_rows=True),
    "suite -n 2": KilledCommand((PROJECT,), (*_SUITE, *_KEPT, "-n", "2"), ("--vk-resume",), True, has_rows=True),
    "report": KilledCommand((PROJECT, RESULTS), (*OURS, "report", RESULTS, "-o", "page", "--sources", PROJECT)),
    "compare": KilledCommand((RESULTS,), (*OURS, "compare", RESULTS, RESULTS, "--json", "changes.json")),
    "computed": KilledCommand((RESULTS,), (*OURS, "computed", RESULTS, "--json", "computed.json")),
    "drivers": KilledCommand((), (*OURS, "drivers", "--json", "drivers.json"), has_rows=True),
    "mutate": KilledCommand(
        (PROJECT,),
        (
            *OURS,
            "mutate",
            f"{PROJECT}/{SCENARIO}",
            *_DRIVER,
            "--layer",
            "off",
            "--jobs",
            "1",
            "--out",
            "out.jsonl",
            "--json",
            "mutants.json",
        ),
        ("--resume",),
        grows=True,
        has_rows=True,
    ),
    "campaign": KilledCommand(
        (), (*OURS, "campaign", "fuzz", "--count", "8", "--chunk", "2", "--jobs", "2", "-o", "out.jsonl"), grows=True
    ),
    "matrix": KilledCommand(
        (),
        (
            *OURS,
            "matrix",
            "--sample",
            "6",
            "--layer",
            "off",
            *_DRIVER,
            "--out",
            "out.jsonl",
            "--json",
            "out.json",
            "--page",
            "page",
        ),
        ("--resume",),
        grows=True,
        has_rows=True,
    ),
    "hostile": KilledCommand(
        _OF_TRACE,
        (*OURS, "fuzz", "hostile", "--count", "400", "--jobs", "2", "--keep", "keep", "-o", "out.jsonl", TRACE),
        grows=True,
        repeats=False,
    ),
}
"""By the names under which they are counted."""


class KillPlace(NamedTuple):
    """Where commands run, one after the other."""

    folder: Path
    """Of the command."""
    given: Path
    """A folder with all that any of them is given."""
    output: Path
    """The file with what the last one printed."""
    program: Path
    """A Python program with hazards."""
    driver: str
    """Its name, such as `lavapipe`."""

    def words(self, command: KilledCommand, *, again: bool) -> list[str]:
        """The command line, of the first run or of one that goes on."""
        return self.python(*command.arguments, *(command.again if again else ()))

    def python(self, *arguments: str) -> list[str]:
        """The command line of Python with these arguments."""
        named = {PROGRAM: str(self.program), DRIVER: self.driver}
        return [sys.executable, *(named.get(word, word) for word in arguments)]

    def variables(self, command: KilledCommand) -> dict[str, str]:
        """The variables of a command. Raises `UserError` where it needs the mirror layer and there is none."""
        own = self.environment()
        return mirror_environment(_built_layer(), self.folder / STREAMS, own) if command.writes_stream else own

    def environment(self) -> dict[str, str]:
        """The variables of all. Nothing is kept outside the folder, and no terminal's width is in what is printed."""
        own = {"TMPDIR": str(self.folder / TEMPORARY), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "120"}
        return {**os.environ, **environment(find_driver(self.driver)), **own}

    def run(self, words: Sequence[str], folder: Path, variables: Mapping[str, str] | None = None) -> int:
        """Runs a command line that nobody disturbs in a folder; its exit code. `variables`: all of them, if others."""
        with self.output.open("wb") as output:
            ran = subprocess.run(
                words,
                cwd=folder,
                env=variables or self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        return ran.returncode


def make_given(place: KillPlace, commands: Iterable[KilledCommand]) -> None:
    """Makes what these commands are given. Raises `UserError` where one of the commands that make it fails."""
    (place.folder / TEMPORARY).mkdir(parents=True, exist_ok=True)
    place.given.mkdir(parents=True)
    wanted = {name for command in commands for name in command.given}
    for name in wanted.intersection(PROCESSES):
        shutil.copy(_PROCESSES / name, place.given)
    if STREAMS in wanted:
        under = mirror_environment(_built_layer(), place.given / STREAMS, place.environment())
        _require(place, place.python(PROGRAM), (0,), under)
    if TRACE in wanted:
        _require(place, place.python(*OURS, "run", "--trace", TRACE, PROGRAM), (1,))
    if not wanted.intersection((PROJECT, RESULTS)):
        return
    _require(place, place.python(*OURS, "init", PROJECT), (0,))
    scenario = place.given / PROJECT / SCENARIO
    text = scenario.read_text(encoding="utf-8")
    scenario.with_name("scenario_more.py").write_text(text.replace("def scenario_", "def scenario_more_"))
    _require(place, place.python(*_SUITE, *_KEPT), (0,))


def _built_layer() -> Layer:
    layer = mirror_layer()
    if layer is None:
        raise UserError("kills: the mirror layer is not built; ci/setup builds it")
    return layer


def _require(
    place: KillPlace, words: list[str], codes: tuple[int, ...], variables: Mapping[str, str] | None = None
) -> None:
    code = place.run(words, place.given, variables)
    if code not in codes:
        said = place.output.read_text(errors="replace").strip().splitlines() or [""]
        raise UserError(f"{' '.join(words[3:])} ended with exit code {code}: {said[-1]}")
