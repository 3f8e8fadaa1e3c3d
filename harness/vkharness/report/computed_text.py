"""How many bytes of a run were computed without the driver, in words."""

from __future__ import annotations

from collections.abc import Iterator

from vkharness.report.printable import printable
from vkharness.results.computed_counts import ComputedCounts, ComputedRow, Share


def computed_line(counts: ComputedCounts) -> str:
    """`bytes computed without the driver: all in 40 rows, a part in 3, none in 1`."""
    whole, part, none = (counts.of(each) for each in (Share.ALL, Share.PART, Share.NONE))
    return f"bytes computed without the driver: all in {whole} rows, a part in {part}, none in {none}"


def computed_lines(counts: ComputedCounts) -> Iterator[str]:
    """The line of the counts, then each reason with its rows, those of which nothing was computed first."""
    yield computed_line(counts)
    for reason, rows in counts.by_reason().items():
        yield printable(f"{len(rows)} row{'s' * (len(rows) != 1)}: {reason}")
        for row in sorted(rows, key=lambda each: (each.share is not Share.NONE, each.nodeid)):
            yield printable(f"  {_how_much(row)}  {row.nodeid}")


def _how_much(row: ComputedRow) -> str:
    return "none" if row.share is Share.NONE else f"{row.known} of {row.total} bytes"
