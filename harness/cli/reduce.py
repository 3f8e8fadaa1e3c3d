"""`vkharness reduce TRACE --finding N -o OUT`: the smallest trace that still shows a finding."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harness.cli import CLEAN, HAZARDS
from harness.findings import UserError

if TYPE_CHECKING:
    from harness.findings import Finding
    from harness.reduction.reduce import Reduction
    from harness.trace.calls import Block

NOT_ALL = HAZARDS
"""Exit code when the limit of time came before everything was tried, or the bytes are not those of the whole trace."""

KEEP_EVERY = 5.0
"""Seconds between two writes of the best trace so far."""


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--finding", type=click.IntRange(1), default=1, show_default=True, help="Number of the finding.")
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="Write the small trace here.")
@click.option(
    "--scenario",
    type=click.Path(path_type=Path),
    help="Write it as a scenario, too: Python for `pytest`, with the missing dependency named.",
)
@click.option("--device", help="Show the hazard on this driver, before and after; go back where it is lost.")
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

    Frames, submits, command buffers, commands, regions, barriers, objects and sizes go as long as the judge still finds
    the hazard between the same two calls, and nothing else that counts. What is left can be replayed. Calls and objects
    keep their numbers. No Vulkan loader or driver is needed without --device.

    Exit codes: 0 done, 1 not all of it: the limit of time came first, or no scenario can be written; 2 bad input.
    """
    from harness.cli.numbered import finding_of
    from harness.reduction.reduce import count_commands
    from harness.reduction.reduce import reduce as make_smaller
    from harness.trace.codec import load

    notes: list[str] = []
    blocks = load(trace, notes)
    for note in notes:
        click.echo(f"vkharness: note: {note}", err=True)
    wanted = finding_of(blocks, finding, trace)
    with _status() as progress:
        small = make_smaller(blocks, wanted, seconds=seconds, progress=progress, keep=_keeper(output, trace, finding))
    pixels = "" if device is None else _go_back_until_shown(small, device)
    _write(output, small.blocks, trace, finding)
    click.echo(f"{trace}: {len(blocks)} calls, {count_commands(blocks)} commands")
    click.echo(f"{output}: {len(small.blocks)} calls, {small.commands} commands ({small.asked} streams judged)")
    _tell(small, pixels)
    if scenario is not None:
        try:
            _write_scenario(scenario, small, trace)
        except UserError as error:
            click.echo(error)
            small.complete = False
        if pixels and not pixels.startswith("shown"):
            click.echo("its row is benign, which pytest counts as a failure without an entry in expectations.toml")
    ctx.exit(CLEAN if small.complete else NOT_ALL)


def _tell(small: Reduction, pixels: str) -> None:
    from harness.report.console import terminal
    from harness.report.text import finding_text

    terminal().print(finding_text(small.finding), end="", soft_wrap=True)
    for each in sorted(small.others):
        hazard, _, _, call, prior, _ = each
        why = "the same dependency mends" if each in small.alike else "not parted from it:"
        click.echo(f"{why} {hazard} of call {call} after call {prior}")
    if pixels:
        click.echo(pixels)
    if not small.complete:
        click.echo("the limit of time came first: a longer --seconds may leave less")


@contextmanager
def _status() -> Iterator[Callable[[str, int, int], object]]:
    """Says on a terminal what is tried and what is left; says nothing in a pipe."""
    from harness.report.console import terminal

    console = terminal(stderr=True)
    if not (console.is_terminal and terminal().is_terminal):
        yield lambda what, calls, commands: None
        return
    with console.status("judging the whole trace") as status:
        yield lambda what, calls, commands: status.update(f"{calls} calls, {commands} commands left; trying {what}")


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
    from harness.trace.codec import save

    if output.resolve() == trace.resolve():
        raise UserError(f"{output} is the trace itself: choose another file for the small one")
    save(output, blocks, {"reduced": {"from": trace.name, "finding": finding}})


def _write_scenario(path: Path, small: Reduction, trace: Path) -> None:
    """Writes the scenario, and beside it the shaders that the project does not have."""
    from harness.reproduction.scenario_file import write_claim

    made = write_claim(small.blocks, small.finding, path, trace.name)
    try:
        for name, code in made.shaders.items():
            path.with_name(name).write_bytes(code)
        path.write_text(made.text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}") from None
    click.echo(f"{path}: try it with pytest {path}")


def _go_back_until_shown(small: Reduction, device: str) -> str:
    """Takes the smallest stream on the way in which a driver shows the hazard, if it shows it in the whole trace."""
    from harness.device.drivers import find_driver
    from harness.device.process import Died, Worker
    from harness.trace.codec import save

    def shows(blocks: list[Block], finding: Finding) -> tuple[bool, str]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "candidate.jsonl"
            save(path, blocks)
            arguments: dict[str, Any] = {"trace": str(path), "mode": "witness", "device": device}
            answer = worker.call("harness.report.replays:replay_job", {**arguments, "finding": finding.to_dict()})
        if isinstance(answer, Died):
            return False, f"{device} {answer.reason}"
        return bool(answer["shown"]), str(answer["reason"])

    with Worker(find_driver(device)) as worker:
        tried: list[str] = []
        for blocks, finding in reversed(small.trail):
            try:
                shown, reason = shows(blocks, finding)
            except UserError as error:
                shown, reason = False, str(error)
            if shown:
                went_back = f", {len(tried)} rounds back" if tried else ""
                small.blocks, small.finding = blocks, finding
                return f"shown on {device}{went_back}"
            tried.append(reason)
    return f"not shown on {device}, nor in the whole trace: {tried[-1]}"
