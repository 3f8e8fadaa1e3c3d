"""Random streams of transfer commands, dispatches, barriers and submits, judged by syncval and the Khronos layer.

    .venv/bin/python -m tests.fuzz.random_streams --first 0 --count 2000 [--device lavapipe] [--layer today]
    .venv/bin/python -m tests.fuzz.random_streams --shrink 4711

`random_steps` says what a seed means. `Player` records it on a device, `judge` does so under the mirror and the layer
in one process and compares them call by call: a difference must be one of `known_differences.toml`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import click
from rich.console import Console
from rich.progress import track

import harness
from harness.check import Analysis
from harness.device.drivers import find_driver
from harness.device.process import Died, Worker
from harness.layer.compare import compare
from harness.layer.known_differences import known_differences
from harness.layer.listen import LayerWitness
from harness.layer.manifest import Version, find_layer
from harness.trace.calls import Block
from tests.fuzz.random_player import Player, open_rig
from tests.fuzz.random_steps import FAMILIES, Step, make, shrink

KNOWN: dict[str, Version] = {
    "semaphores": (1, 3, 239),
    "queries": (1, 3, 239),
    "rendering": (1, 3, 239),
    "timelines": (1, 3, 296),
    "events": (1, 4, 364),
    "secondaries": (1, 4, 364),
}
"""Families of steps, with the first version of the layer about which every difference is known; the others are for
`--family`."""


@dataclass
class Tally:
    """Sums over streams."""

    streams: int = 0
    calls: int = 0
    agreed: int = 0
    expected: Counter[str] = field(default_factory=Counter)
    disagreements: dict[int, list[str]] = field(default_factory=dict)

    def add(self, seed: int, answer: dict[str, Any]) -> None:
        """Adds one stream's answer."""
        self.streams += 1
        self.calls += answer["calls"]
        self.agreed += answer["agreed"]
        self.expected.update(answer["expected"])
        if answer["disagreements"]:
            self.disagreements[seed] = answer["disagreements"]

    def __str__(self) -> str:
        lines = [
            f"{self.streams} streams, {self.calls} commands: {self.agreed} hazards agreed, "
            f"{sum(self.expected.values())} differ as cited, {len(self.disagreements)} streams disagree"
        ]
        lines += [f"  {count:6} {name}" for name, count in self.expected.most_common()]
        lines += [f"  seed {seed}: {text}" for seed, several in self.disagreements.items() for text in several]
        return "\n".join(lines)


def judge(
    seed: int, layer: str = "today", families: Sequence[str] = (), steps: Sequence[Step] | None = None
) -> dict[str, Any]:
    """Plays one seed (or the steps given) on this process' driver under both judges; JSON-able sums.

    `layer` as in `find_layer`.
    """
    steps = make(seed, families) if steps is None else steps
    with LayerWitness.open(find_layer(layer)) as witness:

        def attribute(block: Block) -> None:
            witness.take(block.index)

        with harness.attach(keep_trace=True, sink=attribute) as session, open_rig(witness) as rig:
            Player(rig).play(steps)
    blocks = session.blocks or []
    said = compare(session.findings, witness.messages, known_differences(witness.layer.version), blocks)
    problems = said.lines() + session.internal_errors + [text for _, text in witness.other_messages]
    problems += [f"unmodelled: {name}" for name in session.unmodelled]
    if [each.key for each in Analysis().follow(blocks).findings] != [each.key for each in session.findings]:
        problems.append("the recorded stream is judged otherwise than the program")
    commands = sum(getattr(block, "name", "").startswith("vkCmd") for block in blocks)
    return {"calls": commands, "agreed": said.agreed, "expected": said.used, "disagreements": problems}


def ask(
    worker: Worker, seed: int, layer: str, families: Sequence[str], steps: Sequence[Step] | None = None
) -> dict[str, Any]:
    """`judge` in the worker; a driver that died is a disagreement."""
    job = {"seed": seed, "layer": layer, "families": families, "steps": steps}
    answer = worker.call("tests.fuzz.random_streams:judge", job)
    if isinstance(answer, Died):
        return {"calls": 0, "agreed": 0, "expected": {}, "disagreements": [f"driver {answer.reason}"]}
    return answer


def run(
    first: int,
    count: int,
    device: str,
    layer: str = "today",
    families: Sequence[str] | None = None,
    progress: bool = False,
) -> Tally:
    """Judges `count` seeds in a worker process, with steps of these families (None: all that the layer knows)."""
    tally = Tally()
    seeds = range(first, first + count)
    chosen = known_families(layer) if families is None else families
    with Worker(find_driver(device), packages=("tests",)) as worker:
        for seed in track(seeds, "streams") if progress else seeds:
            tally.add(seed, ask(worker, seed, layer, chosen))
    return tally


def known_families(layer: str) -> list[str]:
    """The families of steps in which every difference from a layer is known."""
    found = find_layer(layer)
    return [name for name in FAMILIES if found is not None and name in KNOWN and found.version >= KNOWN[name]]


def smallest(seed: int, device: str, layer: str, families: Sequence[str]) -> tuple[list[Step], list[str]]:
    """The smallest stream left of a seed's that still disagrees as it first did, and how; empty when it agrees."""
    with Worker(find_driver(device), packages=("tests",)) as worker:

        def disagreements(steps: Sequence[Step]) -> list[str]:
            found: list[str] = ask(worker, 0, layer, families, steps)["disagreements"]
            return found

        steps = make(seed, families)
        first = disagreements(steps)[:1]
        if not first:
            return [], []
        wanted = without_numbers(first[0])
        left = shrink(steps, lambda rest: wanted in map(without_numbers, disagreements(rest)))
        return left, disagreements(left)


def without_numbers(line: str) -> str:
    """A disagreement without the numbers that leaving something else out of the stream changes."""
    return re.sub(r"\bblock \d+", "block", line)


@click.command()
@click.option("--first", default=0, help="first seed")
@click.option("--count", default=200, help="how many seeds")
@click.option("--device", default="lavapipe")
@click.option("--layer", default="today", help="version of the Khronos layer, `old` or `today`")
@click.option(
    "--family", "families", multiple=True, type=click.Choice(list(FAMILIES)), help="only these kinds of steps"
)
@click.option("--plain", is_flag=True, help="only what every stream has: transfers, dispatches, barriers, submits")
@click.option("--shrink", "seed", type=int, help="print the smallest stream left of this seed that disagrees")
def main(
    first: int, count: int, device: str, layer: str, families: tuple[str, ...], plain: bool, seed: int | None
) -> None:
    """Prints how far syncval and the layer agree."""
    console = Console(soft_wrap=True)
    chosen = [] if plain else list(families) or known_families(layer)
    if seed is None:
        tally = run(first, count, device, layer, chosen, console.is_terminal)
        console.print(str(tally), markup=False, highlight=False)
        return
    steps, lines = smallest(seed, device, layer, chosen)
    for each in [*map(str, steps), *lines]:
        console.print(each, markup=False, highlight=False)


if __name__ == "__main__":
    main()
