"""Does a round of work cost the same late as early, in one process whose resources are never destroyed?

    .venv/bin/python bench/growth.py [--rounds 2000] [--seed 1]

A round makes buffers, an image, a render pass, a framebuffer and descriptor sets, records 40 commands over them with
barriers between, submits them to one of two queues and now and then waits: for its fence, for a value of a timeline, or
for the queue. In the second row the host waits for nothing, ever. "growth" is the median CPU time of the last 20 rounds
divided by that of rounds 20 to 40. "steps" are states met by changes over everything, in a round of either part.
"awake" and "asleep" are the states that a change maps at once, and later if ever (`harness/syncval/context.py`). The
memory is what the process has more at the end than after round 40: nothing that was made is destroyed.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import click
from rich.table import Table

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from harness.check import Analysis
from harness.report.console import terminal
from tests.support.rounds import WAITS, Rounds

EARLY = 40
"""The round at which memory is first measured."""


def follow(rounds: int, seed: int, waits: tuple[str, ...], tell: Callable[[str], None]) -> tuple[str, ...]:
    """Judges all rounds; the cells of its row."""
    stream, mirror = Rounds(seed, waits), Analysis()
    context = mirror._validator._context
    costs, steps, memory = list[float](), list[int](), list[float]()
    for number in range(1, rounds + 1):
        blocks, before = stream.round(), context.steps
        start = time.thread_time()
        for block in blocks:
            mirror.step(block)
        costs.append(time.thread_time() - start)
        steps.append(context.steps - before)
        if number in (EARLY, rounds):
            gc.collect()
            memory.append(_resident())
        if number % 20 == 0:
            tell(
                f"{number}: {1e3 * median(costs[-20:]):.1f} ms, {median(steps[-20:]):.0f} steps, {_resident():.0f} MiB"
            )
    first, last = slice(EARLY - 20, EARLY), slice(-20, None)
    return (
        f"{median(costs[last]) / median(costs[first]):.2f}",
        f"{1e3 * median(costs[first]):.0f}",
        f"{median(steps[first]):.0f}, {median(steps[last]):.0f}",
        f"{context.ranges:,}",
        f"{context.slots}",
        f"{context.sleeping:,}",
        f"{memory[1] - memory[0]:.0f}",
    )


def _resident() -> float:
    """MiB of this process."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / (1 << 20)


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--rounds", default=2_000, show_default=True, type=click.IntRange(60))
@click.option("--seed", default=1, show_default=True)
@click.option("--verbose", is_flag=True, help="Say on the way what rounds cost.")
def main(rounds: int, seed: int, verbose: bool) -> None:
    """Both rows."""
    table = Table("the host waits", "growth", "ms a round", "steps", "ranges", "awake", "asleep", "MiB more", box=None)
    tell: Callable[[str], None] = partial(click.echo, err=True) if verbose else lambda text: None
    for name, waits in {"now and then": WAITS, "never": ("none",)}.items():
        table.add_row(name, *follow(rounds, seed, waits, tell))
    terminal().print(table)


if __name__ == "__main__":
    main()
