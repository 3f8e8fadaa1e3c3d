"""`vkharness reduce TRACE --finding N -o OUT`: the smallest trace that still shows a finding."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vkharness.cli import CLEAN, HAZARDS
from vkharness.cli.last_resort import echo
from vkharness.cli.verdict import WORK_OPTION
from vkharness.findings import UserError
from vkharness.whole_file import replacing, write_whole

if TYPE_CHECKING:
    from vkharness.device.drivers import Driver
    from vkharness.device.process import Worker
    from vkharness.findings import Finding
    from vkharness.groups import Group
    from vkharness.reduction.reduce import Reduction
    from vkharness.trace.calls import Block

NOT_ALL = HAZARDS
"""Exit code when the limit of time came before everything was tried, or no scenario can be written."""

MOST_ASKED, MOST_TRIED = 64, 3
"""Findings of a group that may be reduced, and how many of them are tried on a driver until one is shown."""

KEEP_EVERY = 5.0
"""Seconds between two writes of the best trace so far."""


@click.command()
@WORK_OPTION
@click.argument("trace", type=click.Path(path_type=Path))
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
    from vkharness.cli.numbered import group_of
    from vkharness.cli.readable import load_readable
    from vkharness.reduction.reduce import count_commands
    from vkharness.reduction.reduce import reduce as make_smaller

    blocks, _ = load_readable(trace)
    group = group_of(blocks, finding, trace)
    drivers = _drivers(device) if device or scenario else []
    with _status() as progress, _pixels(next(iter(drivers), None)) as pixels:
        wanted = pixels.choose(blocks, group)
        keep = _keeper(output, trace, finding)
        small = make_smaller(blocks, wanted, seconds=seconds, progress=progress, keep=keep, shows=pixels.shows)
    _write(output, small.blocks, trace, finding)
    echo(f"{trace}: {len(blocks)} calls, {count_commands(blocks)} commands")
    echo(f"{output}: {len(small.blocks)} calls, {small.commands} commands ({small.asked} streams judged)")
    _tell(small, pixels.said)
    if scenario is not None:
        try:
            _write_scenario(scenario, small, trace, drivers)
        except UserError as error:
            echo(str(error))
            small.complete = False
    ctx.exit(CLEAN if small.complete else NOT_ALL)


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


@contextmanager
def _waiting(what: str) -> Iterator[None]:
    """Says on a terminal what takes a while."""
    from vkharness.report.console import terminal

    console = terminal(stderr=True)
    with console.status(what) if console.is_terminal else nullcontext():
        yield


@contextmanager
def _status() -> Iterator[Callable[[str, int, int], object]]:
    """Says on a terminal what is tried and what is left; says nothing in a pipe."""
    from vkharness.report.console import terminal

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
    from vkharness.trace.codec import save

    if output.resolve() == trace.resolve():
        raise UserError(f"{output} is the trace itself: choose another file for the small one")
    save(output, blocks, {"reduced": {"from": trace.name, "finding": finding}})


def _write_scenario(path: Path, small: Reduction, trace: Path, drivers: Sequence[Driver]) -> None:
    """Writes the scenario, and beside it the shaders that the project does not have. Raises `UserError`, and writes
    nothing, where it does not pass."""
    from vkharness.layer.manifest import AUTO, chosen_layers
    from vkharness.suite.passing_scenario import passing_scenario

    with _waiting("trying the scenario"):
        made, devices, known = passing_scenario(
            small.blocks, small.finding, path, trace.name, drivers, chosen_layers(AUTO)
        )
    try:
        for name, code in made.shaders.items():
            with replacing(path.with_name(name)) as part:
                part.write_bytes(code)
    except OSError as error:
        raise UserError(f"{path.with_name(name)}: cannot be written: {error.strerror or error}") from None
    write_whole(path, made.text)
    for judge, why in known.items():
        echo(f"{judge} disagrees, as the scenario says: {why}")
    echo(f"{path}: passes on {' and '.join(devices)} (pytest {path})")


class _Pixels:
    """What a driver shows of the hazard; without a worker nothing is asked of it."""

    def __init__(self, worker: Worker | None, device: str) -> None:
        self.worker, self.device = worker, device
        self.shown = False
        """Whether it shows the hazard in the whole trace, and so in each smaller one."""
        self.said = ""

    def choose(self, blocks: list[Block], group: Group) -> Finding:
        """The finding of a group to reduce: the first that the driver shows, or else the one that stands for all."""
        left = group.findings[:MOST_ASKED] if self.worker is not None else []
        reason = ""
        for _ in range(MOST_TRIED):
            if not left:
                break
            answer = self._replay(blocks, left)
            at = int(answer.get("at", 0))
            if answer["shown"]:
                self.shown, self.said = True, f"shown on {self.device}"
                return left[at]
            reason = reason or str(answer["reason"])
            del left[: at + 1]
        self.said = f"not shown on {self.device} in the whole trace: {reason}" if self.worker is not None else ""
        return group.first

    def shows(self, blocks: list[Block], finding: Finding) -> bool:
        """Whether a smaller trace is good enough."""
        return not self.shown or bool(self._replay(blocks, [finding])["shown"])

    def _replay(self, blocks: list[Block], findings: list[Finding]) -> dict[str, Any]:
        from vkharness.device.process import Died
        from vkharness.temporary import temporary_folder
        from vkharness.trace.codec import save

        assert self.worker is not None
        with temporary_folder() as folder:
            path = folder / "candidate.jsonl"
            save(path, blocks)
            arguments: dict[str, Any] = {"trace": str(path), "mode": "witness", "device": self.device}
            arguments["finding"] = [each.to_dict() for each in findings]
            try:
                answer = self.worker.call("vkharness.judged_replay:replay_job", arguments)
            except UserError as error:
                return {"shown": False, "reason": str(error)}
        return {"shown": False, "reason": f"{self.device} {answer.reason}"} if isinstance(answer, Died) else answer


def _drivers(device: str | None) -> Sequence[Driver]:
    """The driver of that name, or those that scenarios run on where nobody names one. Raises `UserError`."""
    from vkharness.device.drivers import chosen_drivers

    return chosen_drivers([device] if device else [])


@contextmanager
def _pixels(driver: Driver | None) -> Iterator[_Pixels]:
    """Replays on a driver, in a process of its own."""
    if driver is None:
        yield _Pixels(None, "")
        return
    from vkharness.device.process import Worker

    with Worker(driver) as worker:
        yield _Pixels(worker, driver.name)
