"""`vkharness reduce TRACE --finding N -o OUT`: the smallest trace that still shows a finding."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vkharness.cli import CLEAN, HAZARDS
from vkharness.cli.last_resort import echo
from vkharness.cli.progress import progress
from vkharness.cli.trace_argument import TracePath
from vkharness.cli.verdict import WORK_OPTION
from vkharness.findings import UserError

if TYPE_CHECKING:
    from vkharness.device.drivers import Driver
    from vkharness.reduction.reduce import Reduction
    from vkharness.trace.calls import Block

NOT_ALL = HAZARDS
"""Exit code when the limit of time came before everything was tried, or no scenario can be written."""

KEEP_EVERY = 5.0
"""Seconds between two writes of the best trace so far."""


@click.command()
@WORK_OPTION
@click.argument("trace", type=TracePath())
@click.option("--finding", type=click.IntRange(1), default=1, show_default=True, help="Number of the finding.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Write the small trace here.")
@click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    help="Write it as a scenario, too: Python for `pytest`, with the missing dependency named.",
)
@click.option("--device", help="Keep the hazard shown on this driver: each smaller trace is replayed there, too.")
@click.option("--seconds", type=click.FloatRange(0), default=600.0, show_default=True, help="Limit of time.")
@click.pass_context
def reduce(
    ctx: click.Context,
    trace: Path,
    finding: int,
    output: Path,
    scenario: Path | None,
    device: str | None,
    seconds: float,
) -> None:
    """Make a trace as small as it can be with one finding in it.

    Frames, submits, command buffers, commands, regions, barriers, descriptors, objects and sizes go as long as the
    judge still finds the hazard between the same two calls, and nothing else that counts. What is left can be replayed.
    Calls and objects keep their numbers.

    With --device a driver must show the hazard in each smaller trace, too, if it does so in the whole one. Without it
    only the judge is asked, and no Vulkan loader or driver is needed.

    A scenario is run before it is written, whole and without the dependency: on --device, or else on each software
    driver of this machine, of which the first must show the hazard in each smaller trace. One that does not pass is
    not written.

    Exit codes: 0 done, 1 not all of it: the limit of time or work came first, or no scenario passes; 2 bad input.
    """
    from vkharness.case.shown_reduction import shown_reduction
    from vkharness.cli.numbered import group_of
    from vkharness.cli.readable import load_readable
    from vkharness.reduction.reduce import count_commands, left_text
    from vkharness.reduction.reduce import reduce as make_smaller

    blocks, _ = load_readable(trace)
    group = group_of(blocks, finding, trace)
    drivers = _drivers(device) if device or scenario else []
    with progress("judging the whole trace") as tell, shown_reduction(next(iter(drivers), None)) as pixels:
        wanted = pixels.choose(blocks, group)
        keep = _keeper(output, trace, finding)
        say = lambda *left: tell(left_text(*left))  # noqa: E731
        small = make_smaller(blocks, wanted, seconds=seconds, progress=say, keep=keep, shows=pixels.shows)
    _write(output, small.blocks, trace, finding)
    echo(f"{trace}: {len(blocks)} calls, {count_commands(blocks)} commands")
    echo(f"{output}: {len(small.blocks)} calls, {small.commands} commands ({small.asked} streams judged)")
    _tell(small, pixels.said)
    written = scenario is None or _write_scenario(scenario, small, trace, drivers)
    ctx.exit(CLEAN if small.complete and written else NOT_ALL)


def _write_scenario(path: Path, small: Reduction, trace: Path, drivers: Sequence[Driver]) -> bool:
    """Whether a scenario was written; a line says why not."""
    from vkharness.case.scenarios import write_scenario

    try:
        with progress("trying the scenario"):
            lines = write_scenario(path, small, trace.name, drivers)
    except UserError as error:
        echo(str(error))
        return False
    echo("\n".join(lines))
    return True


def _tell(small: Reduction, pixels: str) -> None:
    from vkharness.report.console import terminal
    from vkharness.report.text import finding_text

    terminal().print(finding_text(small.finding), end="", soft_wrap=True)
    for each in sorted(small.others):
        hazard, _, _, call, prior, _ = each
        why = "the same dependency mends" if each in small.alike else "not parted from it:"
        echo(f"{why} {hazard} of call {call} after call {prior}")
    if pixels:
        echo(pixels)
    if not small.complete:
        echo("the limit of time or work came first: a longer --seconds or a greater --work may leave less")


def _keeper(output: Path, trace: Path, finding: int) -> Callable[[list[Block]], object]:
    """Writes the best stream so far now and then, so that an interrupted run leaves something."""
    last = time.monotonic()

    def keep(blocks: list[Block]) -> None:
        nonlocal last
        if time.monotonic() - last > KEEP_EVERY:
            _write(output, blocks, trace, finding)
            last = time.monotonic()

    return keep


def _write(output: Path, blocks: list[Block], trace: Path, finding: int) -> None:
    from vkharness.trace.codec import save

    if output.resolve() == trace.resolve():
        raise UserError(f"{output} is the trace itself: choose another file for the small one")
    save(output, blocks, {"reduced": {"from": trace.name, "finding": finding}})


def _drivers(device: str | None) -> Sequence[Driver]:
    """The driver of that name, or those that scenarios run on where nobody names one. Raises `UserError`."""
    from vkharness.device.drivers import chosen_drivers

    return chosen_drivers([device] if device else [])
