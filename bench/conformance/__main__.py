"""The conformance suite of Vulkan as an opponent: its cases are expected to be clean."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock

import click

from vkharness.device.drivers import environment, find_driver
from vkharness.findings import UserError

from .build import PACKAGES, build
from .known import Bug, known_bugs, suspects, unexplained
from .run import UNJUDGED, Judged, Runner, done_before
from .sample import batches, sample


class Tally:
    """Writes each case to the file of results, tells those that nothing known explains, and counts."""

    def __init__(self, results: Path, bugs: Sequence[Bug]) -> None:
        self.bugs = bugs
        self.done = done_before(results)
        self._file = results.open("a", encoding="utf-8")
        self._file.write("\n" if results.stat().st_size and not results.read_text().endswith("\n") else "")
        for judged in self.done:
            self._tell(judged)

    def __enter__(self) -> Tally:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def take(self, judged: Judged) -> None:
        """A case that was just judged."""
        self.done.append(judged)
        self._file.write(judged.line() + "\n")
        self._file.flush()
        self._tell(judged)

    def kind(self, judged: Judged) -> str:
        """What counts: how a case came out."""
        if judged.verdict == UNJUDGED:
            return f"not judged: {judged.status}"
        if unexplained(judged.case, judged.findings, self.bugs):
            return "unexplained"
        if judged.problem:
            return "no verdict"
        return "bug of the suite" if judged.findings else judged.verdict

    def _tell(self, judged: Judged) -> None:
        kind = self.kind(judged)
        if kind in ("unexplained", "no verdict"):
            said = next(iter(unexplained(judged.case, judged.findings, self.bugs)), None)
            what = f"{said.hazard}: {said.message}" if said else judged.problem or judged.verdict
            click.echo(f"{judged.case}: {what}")

    def summary(self) -> dict[str, object]:
        """Counts of the cases and, by name, of the bugs that they showed."""
        shown = Counter(
            bug.name
            for judged in self.done
            for bug in self.bugs
            if any(bug.explains(judged.case, said) for said in judged.findings)
        )
        disagreeing = [each.case for each in self.done if each.model == "differs"]
        kinds = Counter(self.kind(each) for each in self.done)
        return {"cases": len(self.done), "kinds": dict(kinds), "bugs": dict(shown), "judges_differ": disagreeing}


@click.group(help=__doc__)
def main() -> None:
    """Two commands."""


@main.command("build", help=f"Build the suite's synchronization part. It needs Debian's {PACKAGES}.")
@click.argument("checkout", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("-j", "--jobs", default=1, show_default=True, help="So many compilers at once.")
def build_command(checkout: Path, folder: Path, jobs: int) -> None:
    """Builds FOLDER/deqp-sync from a checkout of KhronosGroup/VK-GL-CTS."""
    try:
        click.echo(build(checkout, folder, jobs))
    except (UserError, OSError) as error:
        raise click.ClickException(str(error)) from None


@main.command("run")
@click.argument("program", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--device", default="lavapipe", show_default=True, help="The driver.")
@click.option("--cases", "number", default=200, show_default=True, help="How many cases.")
@click.option("--seed", default=1, show_default=True, help="Which of them.")
@click.option("--only", multiple=True, help="Only cases that fit this pattern, as a shell's.")
@click.option("--batch", "size", default=100, show_default=True, help="How many cases share a process.")
@click.option("--jobs", default=1, show_default=True, help="So many processes at once.")
@click.option("--results", default="conformance.jsonl", show_default=True, type=click.Path(path_type=Path))
@click.option("--json", "summary", type=click.Path(path_type=Path), help="Write the counts to this file.")
@click.option("--keep", type=click.Path(path_type=Path), help="Write the traces of cases with findings here.")
@click.option(
    "--recorder",
    type=click.Choice(("mirror", "gfxreconstruct")),
    default="mirror",
    show_default=True,
    help="The layer.",
)
def run_command(
    program: Path,
    device: str,
    number: int,
    seed: int,
    only: tuple[str, ...],
    size: int,
    jobs: int,
    results: Path,
    summary: Path | None,
    keep: Path | None,
    recorder: str,
) -> None:
    """Run a seeded sample of the cases of PROGRAM and judge those that pass.

    Each case is a line of the file of results. Cases that stand there are not run again, so that a run that was
    interrupted goes on with the same command. A line is printed for each case that has a finding which no known bug of
    the suite explains, or no whole verdict of both judges, and the exit code is 1 if there is one.
    """
    try:
        here = environment(find_driver(device))
        runner = Runner(program.resolve(), here, recorder=recorder, keep=keep and keep.resolve())
        cases = runner.cases()
        tally = Tally(results, known_bugs())
    except (UserError, OSError) as error:
        raise click.ClickException(str(error)) from None
    wanted = [case for case in cases if not only or any(fnmatchcase(case, each) for each in only)]
    finished = {each.case for each in tally.done}
    left = [case for case in sample(wanted, number, seed) if case not in finished]
    told = f"{len(cases)} cases, {len(wanted)} wanted, seed {seed}, {len(finished)} done, {len(left)} to run"
    click.echo(told, err=True)
    alone = [case for case in left if suspects(case, tally.bugs)]
    together = batches([case for case in left if not suspects(case, tally.bugs)], size) + batches(alone, 1)
    with tally:
        _judge_all(runner, together, jobs, tally)
    text = json.dumps(tally.summary(), indent=1)
    click.echo(text)
    if summary:
        summary.write_text(text + "\n")
    raise SystemExit(any(tally.kind(each) in ("unexplained", "no verdict") for each in tally.done))


def _judge_all(runner: Runner, together: Sequence[Sequence[str]], jobs: int, tally: Tally) -> None:
    """Judges the batches, several at once."""
    bar = click.progressbar(length=sum(map(len, together)), label="cases", file=sys.stderr)
    lock = Lock()

    def judge(batch: Sequence[str]) -> None:
        for judged in runner.judge(batch):
            with lock:
                tally.take(judged)
                bar.update(1)

    with bar, ThreadPoolExecutor(jobs) as pool:
        for _ in pool.map(judge, together):
            pass


if __name__ == "__main__":
    main()
