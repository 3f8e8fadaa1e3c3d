"""Cost that the mirror adds to a command of a frame, by part: microseconds a command, in one run.

    .venv/bin/python bench/frame_parts.py [--device lavapipe] [--rounds 9] [--only STREAM]...

The frames are those of `bench/frame.py`, through the package. Each column is a process of its own, in which the mirror
goes one step further than in the column before, and shows what that step adds: "decode" reads the arguments, "call"
finds the call site and makes the `Call`, "effects" interprets it, "judge" follows the effects while the frame is
recorded. "submit" is what a submit costs in the end. Times are CPU time of the calling thread, the least of all rounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import click
from rich.table import Table

import vkharness
from bench.frame import Figures, measured, recorded_and_submitted
from bench.frame_streams import MAIN, STREAMS, FrameStream
from vkharness.commands.handlers import COMMANDS
from vkharness.commands.interpret import Interpreter
from vkharness.device.queue_emulation import logical_queues
from vkharness.findings import Finding, Unjudged
from vkharness.record.session import Session
from vkharness.report.console import terminal
from vkharness.rig.requirements import queue_masks
from vkharness.rig.rig import Rig
from vkharness.trace.calls import Block
from vkharness.trace.effects import StreamEvent

PARTS = ("bare", "decode", "call", "effects", "judge")


class DecodesOnly(Session):
    """Reads the arguments of calls, and drops them."""

    def record(self, name: str, args: dict[str, Any], result: int | None) -> None:
        """Nothing."""

    def record_at(self, name: str, args: dict[str, Any], result: int | None, site: str | None) -> None:
        """Nothing."""


class InterpretsOnly:
    """A judge that finds out what calls do, and judges nothing."""

    findings: tuple[Finding, ...] = ()
    events: tuple[StreamEvent, ...] = ()
    verdict = "clean"

    def __init__(self) -> None:
        self.unmodelled: dict[str, int] = {}
        self._interpreter = Interpreter()

    def step(self, block: Block) -> list[Finding]:
        """Interprets the block."""
        for _ in self._interpreter.step(block):
            pass
        return []

    unjudged = Unjudged()
    recorded_alone = COMMANDS.keys()

    def record(self, index: int, name: str, args: dict[str, Any], site: str | None) -> None:
        """Interprets a command."""
        self._interpreter.record(index, name, args, site)

    def record_new(self, index: int, said: Any, site: str | None) -> None:
        """Interprets a command that others may repeat."""
        self._interpreter.record(index, said.name, said.args, site, said)

    def record_repeated(self, calls: Any) -> None:
        """Interprets the next commands that only repeat what is known."""
        for _ in self._interpreter.repeat_next(calls):
            pass

    def judge_recordings(self) -> list[Finding]:
        """Judges nothing."""
        return []

    def written(self, memory: int, begin: int, end: int) -> list[tuple[int, int]]:
        """Nobody knows."""
        return []

    def may_write(self, command_buffers: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """Nobody knows."""
        return {}


def measure(configuration: str, rounds: int, streams: Sequence[str]) -> Figures:
    """Streams in this process, with the mirror up to one part."""
    return {name: _measure(configuration, rounds, STREAMS[name]) for name in streams}


def _measure(configuration: str, rounds: int, stream: FrameStream) -> dict[str, float]:
    with ExitStack() as stack:
        stack.enter_context(logical_queues(queue_masks(stream.queues)))
        if configuration == "judge":
            stack.enter_context(vkharness.attach())
        elif configuration == "decode":
            stack.enter_context(DecodesOnly().start())
        elif configuration != "bare":
            mirror: Any = InterpretsOnly() if configuration == "effects" else None
            stack.enter_context(Session(mirror).start())
        rig = stack.enter_context(Rig((), queues=stream.queues))
        return recorded_and_submitted(rig, rig.vk, stream, rounds)


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--device", default="lavapipe", help="driver to record on")
@click.option("--rounds", default=9, help="frames that are measured")
@click.option("--only", "streams", multiple=True, type=click.Choice(list(STREAMS)), help="this stream only")
def main(device: str, rounds: int, streams: tuple[str, ...]) -> None:
    """Runs every part and prints the table."""
    chosen = streams or MAIN
    job = "bench.frame_parts:measure"
    figures = {part: measured(job, device, part, rounds=rounds, streams=chosen) for part in PARTS}
    table = Table("frame", *PARTS, "submit", title="microseconds a command: bare, then added by each part", box=None)
    for stream in chosen:
        record = [figures[part][stream]["record"] for part in PARTS]
        steps = [after - before for before, after in pairwise(record)]
        submit = figures["judge"][stream]["submit"] - figures["bare"][stream]["submit"]
        table.add_row(stream, *(f"{each:.1f}" for each in (record[0], *steps, submit)))
    terminal().print(table)


if __name__ == "__main__":
    main()
