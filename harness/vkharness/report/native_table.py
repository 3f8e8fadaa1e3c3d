"""The table of rows that runs as recorded showed, by family and strategy."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vkharness.results.native_counts import NativeCounts

TITLE = "rows with a hazard that runs as recorded showed, by strategy"


def print_native(counts: NativeCounts, console: Console, whole: bool = False) -> None:
    """Prints a table with a line for each family with a row that was shown, or with `whole` for all, and the sums; and
    how many rows without a hazard were corrupt, with the first of them."""
    console.print(TITLE, soft_wrap=True)
    console.print(_table(counts, whole))
    first = f", first {counts.corrupt[0]}" if counts.corrupt else ""
    told = f"rows without a hazard that were corrupt as recorded: {len(counts.corrupt)} of {counts.clean}{first}"
    console.print(told, soft_wrap=True, markup=False, highlight=False)


def _table(counts: NativeCounts, whole: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("family", *counts.shown, "of"):
        table.add_column(heading, no_wrap=True, justify="left" if heading == "family" else "right")
    for family, rows in sorted(counts.hazards.items()):
        cells = [each[family] for each in counts.shown.values()]
        if whole or any(cells):
            _add(table, family, [*cells, rows])
    _add(table, "all", [*(each.total() for each in counts.shown.values()), counts.hazards.total()])
    return table


def _add(table: Table, name: str, cells: Sequence[int]) -> None:
    table.add_row(Text(name), *(str(each) if each else "-" for each in cells))
