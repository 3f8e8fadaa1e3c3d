"""What it costs to keep the begins of a `SpanMap` in a list, as a multiple of the cost in a `SortedList`.

    .venv/bin/python bench/spans.py [--rounds 5]

A map of n spans with gaps between them is made in both ways. Then spans far apart are put into gaps ("insert"), pieces
of ten spans are read ("look up"), and one value is set over ten spans ("set"). A figure is the CPU time of the list
divided by that of the `SortedList`, the least of all rounds each: below 1 the list is faster. `SpanMap` should change
from one to the other about where the ratio of "insert" passes 1.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import click
from rich.console import Console
from rich.table import Table

from harness.spans import SpanMap

SIZES = (1_000, 10_000, 100_000, 1_000_000)
STRIDE = 16
"""Addresses from one span to the next; a span takes the first four of them."""
CALLS = 200
"""Calls that are timed together."""


class InList(SpanMap[int]):
    """Keeps a list, whatever its size."""

    __slots__ = ()
    LARGE = 1 << 60


class InSortedList(SpanMap[int]):
    """Keeps a `SortedList` from its first span on."""

    __slots__ = ()
    LARGE = 0


def insert(held: SpanMap[int], at: int) -> None:
    """A span in a gap, which it leaves open on both sides."""
    held.assign(at + 8, at + 12, -1)


def look_up(held: SpanMap[int], at: int) -> None:
    """Ten spans."""
    held.pieces(at, at + 10 * STRIDE)


def assign(held: SpanMap[int], at: int) -> None:
    """One value over ten spans and their gaps."""
    held.assign(at, at + 10 * STRIDE, -1)


OPERATIONS = {"insert": insert, "look up": look_up, "set": assign}


def seconds(made: type[SpanMap[int]], size: int, operation: Callable[[SpanMap[int], int], None], rounds: int) -> float:
    """CPU time of one call, the least of all rounds; every round works on other spans."""
    held = made()
    for at in range(size):
        held.assign(at * STRIDE, at * STRIDE + 4, at)
    best = float("inf")
    places = random.Random(1)
    for _ in range(rounds):
        chosen = [places.randrange(size) * STRIDE for _ in range(CALLS)]
        start = time.thread_time()
        for at in chosen:
            operation(held, at)
        best = min(best, (time.thread_time() - start) / CALLS)
    return best


@click.command(help=__doc__.splitlines()[0])
@click.option("--rounds", default=5, type=click.IntRange(1), show_default=True)
def main(rounds: int) -> None:
    """The ratios of all sizes."""
    table = Table("spans", *OPERATIONS)
    for size in SIZES:
        ratios = (
            seconds(InList, size, each, rounds) / seconds(InSortedList, size, each, rounds)
            for each in OPERATIONS.values()
        )
        table.add_row(f"{size:,}", *(f"{ratio:.2f}" for ratio in ratios))
    Console().print(table)


if __name__ == "__main__":
    main()
