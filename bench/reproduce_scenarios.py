"""Writes the hazard of every twin of the scenarios as a scenario of its own: does what is written pass?

    python -m bench.reproduce_scenarios [--every N] [--first N] [--device NAME]... [--keep FOLDER] [PATH]...

A twin without a dependency is what a user reports: a program with a race. It is recorded on the first device, and then
`vkharness reduce --scenario` does the rest with its trace and its first finding. One line says why a twin gives no
scenario.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, JobError, Worker
from vkharness.findings import UserError
from vkharness.suite.claims import Claim
from vkharness.suite.judge_scenario import load_module, record
from vkharness.suite.observe_scenarios import scenarios
from vkharness.suite.twins import Twin
from vkharness.trace.codec import save

ROOT = Path(__file__).resolve().parents[1]
PASSES = re.compile(r"passes on .* \(pytest ")


def twins(module: str, scenario: str) -> dict[str, Any]:
    """A job: the names of the variants of a scenario that have hazards."""
    claim = getattr(load_module(Path(module)), scenario)
    assert isinstance(claim, Claim)
    return {"variants": [each.name for each in claim.variants if claim.expected(each)]}


def keep_trace(module: str, scenario: str, variant: str, trace: str) -> dict[str, Any]:
    """A job: records a variant."""
    claim = getattr(load_module(Path(module)), scenario)
    save(Path(trace), record(claim, Twin(claim.variant(variant)).amend, None)[0].blocks or [])
    return {}


def attempt(worker: Worker, task: dict[str, str], folder: Path, name: str, devices: tuple[str, ...]) -> tuple[str, str]:
    """Reduces a twin to a scenario. Returns the result, and the reason for it."""
    trace = folder / f"{name}.jsonl"
    made = _asked(worker, "keep_trace", {**task, "trace": str(trace)})
    if made.get("problem"):
        return "cannot be recorded here", made["problem"]
    arguments = ["reduce", str(trace), "-o", str(folder / f"{name}.small.jsonl"), "--seconds", "60"]
    arguments += ["--scenario", str(folder / f"scenario_{name}.py")]
    arguments += ["--device", devices[0]] if len(devices) == 1 else []
    ran = subprocess.run([sys.executable, "-m", "vkharness", *arguments], capture_output=True, text=True, check=False)
    last = (ran.stderr.strip() or ran.stdout.strip()).splitlines()[-1:]
    if ran.returncode == 0 and PASSES.search(ran.stdout):
        return "passes", ""
    return "no scenario", f"exit code {ran.returncode}: {''.join(last)}"


def _asked(worker: Worker, job: str, arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        answer = worker.call(f"bench.reproduce_scenarios:{job}", arguments)
    except (JobError, UserError) as error:
        return {"problem": str(error).strip().splitlines()[-1]}
    return {"problem": answer.told} if isinstance(answer, Died) else answer


def tasks(worker: Worker, paths: list[Path]) -> Iterator[tuple[str, dict[str, str]]]:
    """The name and the arguments of each twin."""
    for file, name in scenarios(paths):
        for variant in _asked(worker, "twins", {"module": str(file), "scenario": name}).get("variants", ()):
            title = re.sub(r"\W", "_", f"{file.parent.name}_{name.removeprefix('scenario_')}_{variant}")
            yield title, {"module": str(file), "scenario": name, "variant": variant}


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--every", default=1, show_default=True, help="Only each so manieth twin.")
@click.option("--first", default=0, show_default=True, help="The first of them.")
@click.option("--device", "devices", multiple=True, default=("lavapipe",), show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Write the traces and the scenarios here.")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
def main(every: int, first: int, devices: tuple[str, ...], keep: Path | None, paths: tuple[Path, ...]) -> None:
    """Prints what gives no scenario, then the counts."""
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        worker = stack.enter_context(Worker(find_driver(devices[0]), packages=("bench",)))
        for name, task in list(tasks(worker, list(paths) or [ROOT / "scenarios"]))[first::every]:
            came, why = attempt(worker, task, folder, name, devices)
            counts[came] += 1
            if why:
                click.echo(f"{name}: {came}: {why[:400]}")
    click.echo(", ".join(f"{number} {what}" for what, number in counts.most_common()))


if __name__ == "__main__":
    main()
