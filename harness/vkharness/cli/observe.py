"""`vkharness observe TRACE`: what each command of a trace really reads and writes on a driver."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vkharness.cli import CLEAN, HAZARDS, UNMODELLED
from vkharness.cli.last_resort import echo
from vkharness.cli.trace_argument import TracePath
from vkharness.findings import UserError

if TYPE_CHECKING:
    from vkharness.trace.observations import Observation

Named = Iterable[tuple[str, list["Observation"], str]]
"""Streams: a name, what their commands did, and why one could not be observed."""


@click.command()
@click.argument("trace", type=TracePath(), required=False)
@click.option("--device", default="lavapipe", show_default=True, help="Driver: a name, or a manifest's path.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write what was observed to this file.")
@click.option("--budget", type=click.IntRange(1), default=4096, show_default=True, help="MiB of contents read back.")
@click.option("--runs", type=click.IntRange(0), default=24, show_default=True, help="Runs of a command for its reads.")
@click.option("--timeout", type=click.FloatRange(1), default=300.0, show_default=True, help="Seconds for 8 commands.")
@click.option(
    "--scenarios", multiple=True, type=click.Path(path_type=Path), help="Observe these files or folders instead."
)
@click.option("--random", "count", type=click.IntRange(1), help="Observe that many random streams instead.")
@click.option("--sample", type=click.IntRange(1), help="Only that many of the scenarios, chosen by --seed.")
@click.option(
    "--seed", type=click.IntRange(0), default=1, show_default=True, help="Of the sample, or the first stream's."
)
@click.option("--jobs", type=click.IntRange(1, 64), default=os.cpu_count() or 1, help="Processes for scenarios.")
@click.pass_context
def observe(
    ctx: click.Context,
    /,
    trace: Path | None,
    device: str,
    output: Path | None,
    scenarios: tuple[Path, ...],
    count: int | None,
    sample: int | None,
    seed: int,
    jobs: int,
    **cost: Any,
) -> None:
    """Find out what each command of TRACE really reads and writes.

    Commands run one by one, in submission order, each several times with other contents around it. What is observed
    must lie within what vkharness declares for the command. `vkharness check --observed FILE` judges with the file.

    Exit codes: 0 all observed accesses are declared, 1 some are not, 2 usage or bad input, 3 a command could not be
    observed.
    """
    if sum((trace is not None, bool(scenarios), count is not None)) != 1:
        raise UserError("observe takes a TRACE, --scenarios or --random COUNT: one of them")
    if trace is not None:
        found = _observe_trace(trace, device, output, cost)
    elif output is not None:
        raise UserError("-o goes with a TRACE")
    elif count is not None:
        from vkharness.fuzz.observe_fuzz import observe_streams

        echo(f"seeds {seed} to {seed + count - 1}")
        found = _several(observe_streams(range(seed, seed + count), device, cost["runs"]), count)
    else:
        found = _observe_scenarios(scenarios, device, (sample, seed), cost["runs"], jobs)
    ctx.exit(_code(found))


def _observe_trace(trace: Path, device: str, output: Path | None, cost: dict[str, Any]) -> list[Observation]:
    from vkharness.replay.observation.experiments import Budget
    from vkharness.replay.observation.in_worker import observe_in_worker
    from vkharness.report.console import progress_bars
    from vkharness.report.observed_text import violation_lines
    from vkharness.trace.codec import read_trace
    from vkharness.trace.observations import Observations, TraceDigest

    digest = TraceDigest()
    for _ in digest.follow(read_trace(trace)):
        pass
    spent = Budget(cost["budget"] << 20, cost["runs"])
    with progress_bars() as progress:
        bar = progress.add_task("commands", total=None)
        found = list(
            observe_in_worker(
                trace,
                device,
                spent,
                cost["timeout"],
                lambda done, total: progress.update(bar, completed=done, total=total),
            )
        )
    if output is not None:
        from vkharness.whole_file import write_whole

        lines = Observations(digest.text, device, found).lines()
        write_whole(output, "".join(json.dumps(line) + "\n" for line in lines))
    _print_table(found)
    for piece in found:
        for line in (*violation_lines(piece), *([f"{piece.name}: {piece.problem}"] if piece.problem else [])):
            echo(line)
    unseen = sum(1 for piece in found if piece.problem)
    echo(
        f"{len(found) - unseen} of {len(found)} commands observed on {device}, "
        f"{spent.spent >> 20} of {cost['budget']} MiB read back"
    )
    return found


def _observe_scenarios(
    paths: Sequence[Path], device: str, chosen: tuple[int | None, int], runs: int, jobs: int
) -> list[Observation]:
    from vkharness.device.pool import sample
    from vkharness.suite.observe_scenarios import observe_scenarios, scenarios

    several, (count, seed) = scenarios(paths), chosen
    if count is not None:
        several = [several[at] for at in sample(len(several), count, seed)]
        echo(f"{len(several)} scenarios, seed {seed}")
    return _several(observe_scenarios(several, device, runs, jobs), len(several))


def _several(streams: Named, total: int) -> list[Observation]:
    """Prints what several streams did beyond what is declared, and the table over all of them."""
    from vkharness.report.console import progress_bars
    from vkharness.report.observed_text import violation_lines

    found: list[Observation] = []
    unseen = undeclared = 0
    with progress_bars() as progress:
        for name, pieces, problem in progress.track(streams, total, description="streams"):
            if problem:
                unseen += 1
                echo(f"not observed: {name}: {problem.splitlines()[0]}")
            for line in (line for piece in pieces for line in violation_lines(piece)):
                undeclared += 1
                echo(f"{name}: {line}")
            found += pieces
    _print_table(found)
    echo(f"{total - unseen} of {total} streams observed, {len(found)} commands, {undeclared} undeclared accesses")
    return found


def _print_table(found: Sequence[Observation]) -> None:
    from vkharness.report.console import terminal
    from vkharness.report.observed_text import figures, figures_table

    terminal().print(figures_table(figures(found)))


def _code(found: Sequence[Observation]) -> int:
    if any(piece.undeclared_writes or piece.undeclared_reads for piece in found):
        return HAZARDS
    return UNMODELLED if any(piece.problem for piece in found) else CLEAN
