"""Cost of a run of the suite: `python bench/suite.py [--whole]`, in CPU seconds of all its processes.

The cost of the start, of 100 rows and of their page; then the phases of a row, in a process of one driver. Two quiet
cores give about two CPU seconds in a second. `--whole` runs all rows instead of a part of them, which takes minutes.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.layer.manifest import chosen_layers
from vkharness.results.read_results import read_results
from vkharness.results.result_lines import FILE_NAME, RowResult

ROOT = Path(__file__).resolve().parents[1]
PART = "1/12"
"""The part of the suite that is run."""
CORES = 2
PR_SET_CHILD_SUBREAPER = 36
"""From <sys/prctl.h>."""
DRIVER = "lavapipe"
SAMPLE = 150
"""Rows whose phases are measured, about."""
PHASES = {
    "vkharness.suite.judge_scenario:record": "recording the calls",
    "vkharness.device.headless:Headless.__init__": "instance and device",
    "vkharness.device.headless:Headless.close": "instance and device",
    "vkharness.check:Analysis.step": "syncval",
    "vkharness.suite.judge_scenario:_ask_layer": "comparing with the layer",
    "vkharness.suite.judge_scenario:judge_stream_events": "the model",
    "vkharness.suite.judge_scenario:_ask_model": "the model",
    "vkharness.suite.judge_scenario:run_witness": "showing the hazards",
    "vkharness.suite.judge_scenario:attack": "other legal orders",
    "vkharness.suite.judge_scenario:write_pictures": "pictures and values",
    "vkharness.suite.judge_scenario:save": "the trace",
}
"""Functions of a row by the phase that they are, each without the phases inside it."""


class Cost(NamedTuple):
    """Cost of a command with all of its processes, and its output."""

    cpu: float
    seconds: float
    printed: str


def cost(*command: str) -> Cost:
    """Runs Python with these arguments. Ends this process where it fails."""
    # Where a process ends before its own children do, they become ours: else nobody would count their time.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    before, begun = _used(), time.monotonic()
    ran = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - begun
    if ran.returncode:
        sys.exit(ran.stdout[-8000:] + ran.stderr)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    return Cost(_used() - before, seconds, ran.stdout)


def _used() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def suite(folder: Path, part: str) -> Cost:
    """Runs a part of the suite on all drivers."""
    options = ["-o", "testpaths=scenarios", "-p", "no:cacheprovider", f"--vk-artifacts={folder}"]
    return cost("-m", "pytest", "-q", "-k", "scenario", "-n", str(CORES), *options, f"--vk-shard={part}")


def main() -> None:
    """Prints the costs."""
    part = "1/1" if "--whole" in sys.argv else PART
    with tempfile.TemporaryDirectory() as name:
        results, page = Path(name) / "rows", Path(name) / "page"
        start = suite(Path(name) / "start", "1/1000")
        rows = suite(results, part)
        made = cost("-c", "from vkharness.cli import main; main()", "report", str(results), "-o", str(page))
        ran = list(read_results(results / FILE_NAME).rows.values())
        size = sum(each.stat().st_size for each in page.rglob("*") if each.is_file()) >> 20
    print(*re.findall(r"^(?:\d+ rows: .*|\d+ passed.*)$", rows.printed, re.MULTILINE), sep="\n")
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(f"the page has {size} MiB; the largest process had {largest} MiB")
    print("CPU seconds          in all  for 100 rows")
    print(f"  start              {start.cpu:6.0f}")
    for what, each in (("rows", rows), ("page", made)):
        of_rows = each.cpu - (start.cpu if each is rows else 0)
        print(f"  {what}               {each.cpu:6.0f}  {100 * of_rows / len(ran):12.1f}")
    print(f"on {CORES} quiet cores: {(rows.cpu + made.cpu) / CORES:.0f} s; here {rows.seconds + made.seconds:.0f} s")
    print_phases(ran)


def print_phases(rows: Sequence[RowResult]) -> None:
    """A line for each phase of the rows of one driver."""
    mine = [
        {"module": str(ROOT / each.claim.file), "scenario": each.row["scenario"].split("/")[1]}
        | {"variant": each.row["variant"], "device": DRIVER, "native": 0}
        for each in rows
        if each.row["device"] == DRIVER
    ]
    layers = [str(each.manifest) for each in chosen_layers("auto")]
    with tempfile.TemporaryDirectory() as folder, Worker(find_driver(DRIVER), packages=("bench",)) as worker:
        tasks = [each | {"layers": layers, "artifacts": folder} for each in mine[:: max(1, len(mine) // SAMPLE)]]
        answer = worker.call("bench.suite:phases_of", {"tasks": tasks})
    if isinstance(answer, Died):
        sys.exit(f"the driver process {answer.told}")
    print(f"milliseconds of a row, {len(tasks)} rows on {DRIVER}")
    for phase, seconds in sorted(answer.items(), key=lambda each: -each[1]):
        print(f"  {phase:26} {1000 * seconds / len(tasks):6.1f}")


def phases_of(tasks: list[dict[str, Any]]) -> dict[str, float]:
    """CPU seconds of each phase of these rows, in the process of their driver."""
    from vkharness.findings import UserError
    from vkharness.suite.judge_scenario import run

    clock = PhaseClock()
    for place, phase in PHASES.items():
        module, _, path = place.partition(":")
        owner, name = import_module(module), path
        if "." in path:
            kind, name = path.split(".")
            owner = getattr(owner, kind)
        setattr(owner, name, clock.counted(getattr(owner, name), phase))
    for task in tasks:
        try:
            clock.counted(run, "everything else")(**task)
        except UserError:
            continue
    return clock.seconds


class PhaseClock:
    """CPU time by the innermost phase."""

    def __init__(self) -> None:
        self.seconds = dict[str, float]()
        self._phases: list[str] = []
        self._since = time.process_time()

    def counted(self, function: Callable[..., Any], phase: str) -> Callable[..., Any]:
        """A function that does the same, and whose time is that of the phase."""

        def run(*args: Any, **named: Any) -> Any:
            self._turn()
            self._phases.append(phase)
            try:
                return function(*args, **named)
            finally:
                self._turn()
                self._phases.pop()

        return run

    def _turn(self) -> None:
        now = time.process_time()
        if self._phases:
            phase = self._phases[-1]
            self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._since
        self._since = now


if __name__ == "__main__":
    main()
