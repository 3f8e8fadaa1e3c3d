"""Does a command that comes with other numbers each time cost about as much as one that comes again?

    .venv/bin/python bench/gate.py [--command NAME]... [--state FILE] [--json FILE] [--page]

For each common command of the registry that has a handler (`bench/gate_frames.py`) a frame of 256 calls that are alike,
and frames in which one parameter is another one in each call: each offset, count, extent, mask, handle, push word and
nested member in turn, found by walking the registry's structs (`bench/gate_values.py`). A pair is a command and a
parameter. Numbers are microseconds that a call adds behind `lib`, while it is recorded and at the submit, with what
goes with it (a draw after state, for instance): CPU time of the calling thread, the least of all rounds, less the same
without mirror and layer. Today's Khronos layer runs the same calls in the same run, in a process of its own.

The goal: fresh costs at most the larger of 3 times alike and half of what the layer adds, and never more than the
layer. Times that differ by no more than repeats of the alike frame do are equal. `--state` keeps what was measured, and
a run that was ended goes on from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
from rich.progress import Progress

import vkharness
from bench.frame import recorded_and_submitted
from bench.frame_streams import Frame, FrameStream
from bench.gate_frames import TURNS, GateFrames, GateObjects, Subject, subjects
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.findings import UserError
from vkharness.layer.listen import LayerListener
from vkharness.layer.manifest import find_layers
from vkharness.report.console import terminal
from vkharness.rig.rig import Rig

ALIKE, AGAIN = "", "again"
"""The frame in which nothing is fresh, and the same once more, which says how far repeats lie apart."""
CONFIGURATIONS = ("bare", "mirror", "layer")
WORST = 10

Times = dict[str, float | str]
"""Microseconds a call by parameter, or why there is none."""
Figures = dict[str, Times]
"""The times of each configuration."""


def measure(command: str, scene: str, configuration: str, rounds: int) -> Times:
    """One command in this process: the whole time of a call by parameter. A text says why there is none."""
    subject = Subject(command, scene)
    with ExitStack() as stack:
        witness = session = None
        if configuration == "mirror":
            session = stack.enter_context(vkharness.attach())
        elif configuration != "bare":
            witness = stack.enter_context(LayerListener.open(configuration))
        rig = stack.enter_context(Rig((), witness))
        made, found = GateFrames(GateObjects(rig, subject.with_count), subject), Times()
        for name in (ALIKE, *subject.parameters, AGAIN):
            fresh = None if name in (ALIKE, AGAIN) else name
            stream = FrameStream(partial(_frames, made, fresh), fresh=fresh is not None)
            before = len(session.findings) if session is not None else 0
            parts = recorded_and_submitted(rig, rig.vk.lib, stream, rounds)
            found[name] = _said(session, witness, before) or sum(parts.values()) * made.calls / TURNS
            made.forget()
    return found


def _frames(made: GateFrames, fresh: str | None, _: Rig, number: int) -> list[Frame]:
    return made.frames(fresh, number)


def _said(session: Any, witness: LayerListener | None, before: int) -> str:
    """Returns an objection of the mirror or the layer to the frames, beside `before` findings; empty without one."""
    if witness is not None and witness.take(0):
        return f"the layer says: {witness.messages[-1].text[:200]}"
    if session is not None and (session.verdict == "unknown" or len(session.findings) > before):
        return f"the mirror says {session.verdict}: {[each.message for each in session.findings[before:][:1]]}"
    return ""


# -- what the figures say ----------------------------------------------------------------------------------------------


class Pair(NamedTuple):
    """Cost that a command adds with one parameter alike and fresh, in microseconds; `spread` is that of repeats."""

    subject: str
    parameter: str
    alike: float
    fresh: float
    layer: float
    spread: float

    @property
    def excess(self) -> float:
        """How many times as much as the goal allows fresh costs; at most 1 where it meets the goal."""
        allowed = min(max(3 * self.alike, self.layer / 2), self.layer) + self.spread
        return self.fresh / max(allowed, 0.1) if self.fresh > allowed else 1.0

    @property
    def is_met(self) -> bool:
        """Whether it meets the goal."""
        return self.excess <= 1


def pairs(subject: str, figures: Figures) -> Iterator[Pair]:
    """The pairs of a command."""
    bare, mirror, layer = (figures[each] for each in CONFIGURATIONS)
    spread = max(abs(float(of[ALIKE]) - float(of[AGAIN])) for of in (bare, mirror, layer))
    alike = _least(mirror) - _least(bare)
    for name in mirror:
        if name in (ALIKE, AGAIN) or any(isinstance(of[name], str) for of in (bare, mirror, layer)):
            continue
        plain = float(bare[name])
        yield Pair(subject, name, alike, float(mirror[name]) - plain, float(layer[name]) - plain, spread)


def _least(times: Times) -> float:
    return min(float(times[ALIKE]), float(times[AGAIN]))


def left_out(subject: str, figures: Figures) -> Iterator[str]:
    """Yields the parameters that could not be measured, with the reasons."""
    for configuration, times in figures.items():
        for name, time in times.items():
            if isinstance(time, str):
                yield f"{subject}: {name or 'alike'} ({configuration}): {time}"


def lines(measured: dict[str, Figures], details: bool) -> Iterator[str]:
    """The table: a line for each command or for each pair, a summary, the worst in words, what is left out."""
    whole = {subject: list(pairs(subject, figures)) for subject, figures in measured.items() if _is_whole(figures)}
    yield f"{'microseconds that a call adds':58} alike  fresh  layer  ratio  met"
    for subject, found in whole.items():
        if not found:
            continue
        for pair in found if details else ():
            yield f"  {pair.parameter:56.56} {_numbers(pair)}  {'yes' if pair.is_met else 'no'}"
        worst = max(found, key=lambda pair: (pair.excess, pair.fresh - pair.layer))
        yield f"{subject:58} {_numbers(worst)}  {sum(pair.is_met for pair in found)} of {len(found)}"
    every = [pair for found in whole.values() for pair in found]
    if every:
        met = sum(pair.is_met for pair in every)
        yield f"{met} of {len(every)} pairs of {len(whole)} commands meet the goal ({100 * met / len(every):.0f} %)"
        for pair in sorted(every, key=lambda pair: -pair.excess)[:WORST]:
            if not pair.is_met:
                yield (
                    f"{pair.subject} with fresh {pair.parameter}: {pair.fresh:.1f} us, where alike calls add "
                    f"{pair.alike:.1f} and the layer {pair.layer:.1f}"
                )
    for subject, figures in measured.items():
        yield from (f"not measured: {each}" for each in left_out(subject, figures))


def _is_whole(figures: Figures) -> bool:
    return len(figures) == len(CONFIGURATIONS) and not any(isinstance(of[ALIKE], str) for of in figures.values())


def _numbers(pair: Pair) -> str:
    ratio = pair.fresh / max(pair.alike, 0.1)
    return f"{pair.alike:5.1f}  {pair.fresh:5.1f}  {pair.layer:5.1f}  {ratio:5.1f}"


# -- the command -------------------------------------------------------------------------------------------------------


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--device", default="lavapipe", show_default=True, help="driver to record on")
@click.option("--rounds", default=5, show_default=True, help="frames that are measured")
@click.option("--command", "commands", multiple=True, help="this command only")
@click.option("--state", type=click.Path(path_type=Path), help="keep what was measured here, and go on from there")
@click.option("--details/--summary", default=None, help="a line for each pair; so with --command")
def main(device: str, rounds: int, commands: tuple[str, ...], state: Path | None, details: bool | None) -> None:
    """Measures what is not measured yet and prints the table."""
    chosen = [each for each in subjects() if not commands or each.command in commands]
    if unknown := set(commands) - {each.command for each in chosen}:
        raise click.ClickException(f"no common command {', '.join(sorted(unknown))}")
    known = _read(state)
    todo = [each for each in chosen if len(known.get(str(each), {})) < len(CONFIGURATIONS)]
    console = terminal(stderr=True)
    with ExitStack() as stack:
        made = [stack.enter_context(Worker(find_driver(device), packages=("bench",))) for _ in CONFIGURATIONS]
        workers = dict(zip(CONFIGURATIONS, made, strict=True))
        progress = stack.enter_context(Progress(console=console, transient=True, disable=not console.is_terminal))
        task = progress.add_task("measuring", total=len(todo))
        for subject in todo:
            progress.update(task, description=str(subject))
            known[str(subject)] = {each: _asked(workers[each], subject, each, rounds) for each in CONFIGURATIONS}
            if state is not None:
                with state.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([str(subject), known[str(subject)]]) + "\n")
            progress.advance(task)
    names = [str(each) for each in chosen]
    for line in lines({name: known[name] for name in names}, bool(commands) if details is None else details):
        click.echo(line)


def _read(state: Path | None) -> dict[str, Figures]:
    """Reads the figures of an earlier run. Its last line may be cut off."""
    found: dict[str, Figures] = {}
    if state is not None and state.exists():
        for line in state.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.endswith("\n"):
                name, figures = json.loads(line)
                found[name] = figures
    return found


def _asked(worker: Worker, subject: Subject, configuration: str, rounds: int) -> Times:
    """Returns the figures of a process; a process that dies is told in place of all times."""
    version = max(((layer.version, layer.version_text) for layer in find_layers()), default=((), ""))[1]
    name = version if configuration == "layer" else configuration
    asked: dict[str, Any] = {"command": subject.command, "scene": subject.scene, "rounds": rounds}
    try:
        answer = worker.call("bench.gate:measure", {**asked, "configuration": name})
    except UserError as error:
        return {ALIKE: str(error)}
    return {ALIKE: f"the process {answer.reason}"} if isinstance(answer, Died) else answer


if __name__ == "__main__":
    main()
