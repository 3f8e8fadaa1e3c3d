"""How many Python handlers run for frames of calls that are alike but for one parameter?

    .venv/bin/python -m bench.gate_counts [--write FILE]

The frames are those of `bench/gate.py`, with 8 calls of the command in each, and handlers of these and of what goes
with each of them count: in the third frame, where nothing is fresh (an empty name), and in the second one in which the
parameter is. A handler that runs costs some ten microseconds, one that does not costs nothing that is written in
Python. The numbers are the same on every machine: `tests/record/test_fresh_commands.py` holds them against a table,
which may only fall.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

import vkharness
from bench.frame import recorded_frame
from bench.gate_frames import RING, GateFrames, GateObjects, Subject, subjects
from vkharness.commands.handlers import COMMANDS
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.rig.rig import Rig

Counts = dict[str, dict[str, int]]
"""Handlers by command and parameter."""


def counts() -> Counts:
    """A job: all common commands, on one device."""
    with vkharness.attach() as session, Rig() as rig, counted() as ran:
        objects = {which: GateObjects(rig, which, pool=RING) for which in (False, True)}
        found = {str(each): dict(_of(rig, objects[each.with_count], each, ran)) for each in subjects()}
        assert session.verdict == "clean", session.findings[:1]
    return found


def _of(rig: Rig, objects: GateObjects, subject: Subject, ran: list[str]) -> Iterator[tuple[str, int]]:
    made = GateFrames(objects, subject, RING)
    with rig.commands() as commands:
        pass
    for fresh in (None, *subject.parameters):
        for frame in made.frames(fresh, 2 if fresh else 3):
            ran.clear()
            recorded_frame(rig, commands, frame[0])
        yield fresh or "", sum(each in made.names for each in ran)


@contextmanager
def counted() -> Iterator[list[str]]:
    """The names of the commands of which handlers have run, while it is open."""
    ran: list[str] = []

    def counting(name: str, handler: Callable[..., Any]) -> Callable[..., Any]:
        def counts_itself(*arguments: Any) -> Any:
            ran.append(name)
            return handler(*arguments)

        return counts_itself

    before = dict(COMMANDS)
    COMMANDS.update({name: counting(name, handler) for name, handler in before.items()})
    try:
        yield ran
    finally:
        COMMANDS.update(before)


def text(found: Counts) -> str:
    """A line for each command, in JSON."""
    return "{\n" + ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in found.items()) + "\n}\n"


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--device", default="lavapipe", show_default=True, help="driver to record on")
@click.option("--write", type=click.Path(path_type=Path), help="write the counts here")
def main(device: str, write: Path | None) -> None:
    """Prints or writes the counts."""
    with Worker(find_driver(device), packages=("bench",)) as worker:
        answer = worker.call("bench.gate_counts:counts")
    if isinstance(answer, Died):
        raise click.ClickException(f"the process {answer.reason}")
    found = text(answer)
    if write is not None:
        write.write_text(found, encoding="utf-8")
        return
    click.echo(found, nl=False)


if __name__ == "__main__":
    main()
