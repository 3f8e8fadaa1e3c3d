"""Asks all judges about programs that were rebuilt from public reports, each as it was reported and as it was mended.

    python -m bench.reports [--reproduce] [--jobs N] [NAME]...

Each file beside this one that is no part of the engine is such a program: its first line says what it rebuilds. It runs
mirrored on a software driver, with several queue families where it asks for some. A line has the verdict on both forms
and what today's Khronos layer says of the reported one. With `--reproduce` it has what `vkharness reproduce` does with
the hazards: how many are shown, mended, and written as a scenario that passes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import click

from vkharness.agreement import MOST_EVENTS, ask_model
from vkharness.check import Analysis
from vkharness.device.drivers import environment, find_driver
from vkharness.device.process import Died, JobError, Worker
from vkharness.findings import UserError
from vkharness.layer.manifest import find_layer
from vkharness.trace.codec import load

HERE = Path(__file__).resolve().parent
ENGINE = re.compile(r"small_\w+|short_names|__\w+__")
RECORD = """
import runpy, sys
from pathlib import Path
import vkharness
from vkharness.device.queue_emulation import logical_queues
from vkharness.trace.codec import save
program, trace, families, *sys.argv[1:] = sys.argv[1:]
sys.path.insert(0, str(Path(program).parent))
with logical_queues((7, 6, 4)[: int(families)]):
    with vkharness.attach(keep_trace=True) as session:
        runpy.run_path(program, run_name="__main__")
    save(Path(trace), session.blocks or [])
"""
MENDED = "mended"
STEPS = {
    "shown": r"^ +pictures: shown",
    "mended": r"^ +mend: (?!could)",
    "proved": r"^ +mended trace: (?!.*not proved)",
}


class Rebuilt(NamedTuple):
    """One program, and what came of its two forms."""

    name: str
    reported: str
    mended: str
    layer: str
    case: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the reported form has a hazard, and the mended one has none."""
        return self.mended == "clean" and self.reported not in ("clean", "unknown")


def programs() -> list[Path]:
    """The files of the programs, in order of name."""
    return sorted(each for each in HERE.glob("*.py") if not ENGINE.fullmatch(each.stem))


def record(program: Path, trace: Path, form: str = "") -> None:
    """Runs a program mirrored in a process of its own. Raises `UserError` where it fails."""
    text = program.read_text(encoding="utf-8")
    driver = find_driver("swiftshader" if "surface=True" in text else "lavapipe")
    families = re.search(r"families=(\d)", text)
    command = [sys.executable, "-c", RECORD, str(program), str(trace), families[1] if families else "1"]
    command += [f"--{form}"] if form else []
    ran = subprocess.run(command, env=environment(driver), capture_output=True, text=True, check=False)
    if ran.returncode:
        raise UserError(f"{program.stem} fails: {''.join(ran.stderr.strip().splitlines()[-1:])}")


def verdict(trace: Path) -> str:
    """`clean`, `unknown`, or the kinds of the hazards that both judges find."""
    analysis = Analysis(keep_events=True, keep_at_most=MOST_EVENTS).follow(load(trace))
    if (said := ask_model(analysis)).startswith("disagree"):
        return said
    kinds = Counter(str(each.hazard.value) for each in analysis.findings if each.counts)
    return ", ".join(f"{number} {kind}" for kind, number in sorted(kinds.items())) or str(analysis.verdict)


def layer_word(trace: Path) -> str:
    """How many messages today's Khronos layer has about a trace as recorded."""
    layer = find_layer("today")
    if layer is None:
        return "no layer"
    arguments = {"trace": str(trace), "device": "lavapipe", "layer": str(layer.manifest)}
    with Worker(find_driver("lavapipe")) as worker:
        try:
            said = worker.call("vkharness.layered_replay:layer_job", arguments)
        except (JobError, UserError) as error:
            return f"not asked: {str(error).split(':')[0]}"
    if isinstance(said, Died):
        return "not asked: the driver died"
    number = len(said["messages"])
    return f"{number} message{'s' * (number != 1)}" + (", disagrees" if said["disagreements"] else "")


def reproduced(trace: Path, folder: Path) -> str:
    """What `vkharness reproduce` did with each group of findings."""
    command = [sys.executable, "-m", "vkharness", "reproduce", str(trace), "-o", str(folder), "--seconds", "60"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    groups = len(re.findall(r"^\d+\. (?!advice)", ran.stdout, re.M))
    done = {what: len(re.findall(line, ran.stdout, re.M)) for what, line in STEPS.items()}
    done["scenarios"] = ran.stdout.count(": passes on ")
    failed = [line for line in ran.stderr.splitlines() if "could not be done" in line]
    told = ", ".join(f"{done[each]} {each}" for each in ("shown", "mended", "scenarios"))
    return "; ".join([f"{groups} groups: {told}", *(each[:160] for each in failed)])


def rebuilt(program: Path, folder: Path, reproduce: bool) -> Rebuilt:
    """Runs and judges both forms of a program."""
    traces = {form: folder / f"{program.stem}{form}.jsonl" for form in ("", MENDED)}
    try:
        for form, trace in traces.items():
            record(program, trace, form)
        one = Rebuilt(program.stem, verdict(traces[""]), verdict(traces[MENDED]), layer_word(traces[""]))
    except UserError as error:
        return Rebuilt(program.stem, "unknown", str(error), "not asked")
    return one._replace(case=reproduced(traces[""], folder / program.stem)) if reproduce else one


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--reproduce", is_flag=True, help="Do all that `vkharness reproduce` does with each reported form, too.")
@click.option("--jobs", default=1, show_default=True, help="So many programs at once.")
@click.argument("names", nargs=-1)
def main(reproduce: bool, jobs: int, names: tuple[str, ...]) -> None:
    """Prints a line for each program, then how many are right."""
    chosen = [each for each in programs() if not names or each.stem in names]
    right = silent = 0
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(jobs) as pool:
        for one in pool.map(lambda program: rebuilt(program, Path(folder), reproduce), chosen):
            right += one.is_right
            silent += one.layer.startswith("0 ")
            click.echo(f"{one.name}: {one.reported}; mended: {one.mended}; layer: {one.layer}")
            if one.case:
                click.echo(f"    {one.case}")
    click.echo(f"{len(chosen)} programs, {right} right in both forms; the layer says nothing of {silent}")


if __name__ == "__main__":
    main()
