"""Cost of the map over spans in a list, in a `SortedList` and in the native B-tree, as ratios.

    .venv/bin/python bench/spans.py [--rounds 5]

A map of n spans with gaps between them is made in each way. Then, in places far apart, ten spans are read ("look up"),
one span is put into a gap ("insert"), and one value is set over ten spans ("set"). Times are CPU time, the least of all
rounds. The first table is the time of the list divided by that of the `SortedList`: below 1 the list is faster, and
`PythonSpanMap` should change from one to the other about where the ratio of "insert" passes 1. The second is the time
of `PythonSpanMap` divided by that of the native map, and behind it the native map's growth since the row above.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from itertools import cycle, islice

import click
from rich.table import Table

from vkharness import native
from vkharness.report.console import terminal
from vkharness.spans import PythonSpanMap, SpanMap

SIZES = (1_000, 10_000, 100_000, 1_000_000)
STRIDE = 16
"""Addresses from one span to the next; a span takes the first four of them."""
CALLS = 200
"""Calls that are timed together."""


class InList(PythonSpanMap[int]):
    """Keeps a list, whatever its size."""

    __slots__ = ()
    LARGE = 1 << 60


class InSortedList(PythonSpanMap[int]):
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


OPERATIONS = {"look up": look_up, "insert": insert, "set": assign}


def seconds(made: type[SpanMap[int]], size: int, rounds: int) -> list[float]:
    """CPU time of one call of each operation, the least of all rounds; every call is at another place."""
    held = made()
    for at in range(size):
        held.assign(at * STRIDE, at * STRIDE + 4, at)
    return [_least(held, size, operation, rounds) for operation in OPERATIONS.values()]


def _least(held: SpanMap[int], size: int, operation: Callable[[SpanMap[int], int], None], rounds: int) -> float:
    times = []
    places = cycle(random.Random(1).sample(range(size), min(size, rounds * CALLS)))
    for _ in range(rounds):
        chosen = [at * STRIDE for at in islice(places, CALLS)]
        start = time.thread_time()
        for at in chosen:
            operation(held, at)
        times.append(time.thread_time() - start)
    return min(times) / CALLS


@click.command(help=(__doc__ or "").splitlines()[0])
@click.option("--rounds", default=5, type=click.IntRange(1), show_default=True)
def main(rounds: int) -> None:
    """The ratios of all sizes."""
    table = Table("spans", *OPERATIONS, title="list / sorted list", box=None)
    against = Table("spans", *OPERATIONS, title="Python / native (growth)", box=None)
    above: list[float] = []
    for size in SIZES:
        in_list, in_sorted = seconds(InList, size, rounds), seconds(InSortedList, size, rounds)
        table.add_row(f"{size:,}", *(f"{one / other:.2f}" for one, other in zip(in_list, in_sorted, strict=True)))
        if native.core is not None:
            times = seconds(native.core.SpanMap, size, rounds)
            ratios = [min(both) / time for *both, time in zip(in_list, in_sorted, times, strict=True)]
            growth = (
                [f" ({time / before:.1f})" for time, before in zip(times, above, strict=True)] if above else [""] * 3
            )
            against.add_row(f"{size:,}", *(f"{one:.1f}{more}" for one, more in zip(ratios, growth, strict=True)))
            above = times
    terminal().print(table)
    terminal().print(against if native.core is not None else native.in_use)


if __name__ == "__main__":
    main()
