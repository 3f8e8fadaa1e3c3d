"""The tables of rows that runs as recorded showed: by family and strategy, and by what a device may put in order."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vkharness.results.native_counts import NativeCounts

RELATIONS = "the same rows by how the two executions lie to each other on the device"
TITLE = "rows with a hazard that runs as recorded showed, by strategy"


def print_native(counts: NativeCounts, console: Console, whole: bool = False) -> None:
    """Prints a table with a line for each family with a row that was shown, or with `whole` for all, and the sums; and
    how many rows without a hazard were corrupt, with the first of them. `whole`: the relations of the hazards, too."""
    console.print(TITLE, soft_wrap=True)
    console.print(_table(counts, whole))
    first = f", first {counts.corrupt[0]}" if counts.corrupt else ""
    told = f"rows without a hazard that were corrupt as recorded: {len(counts.corrupt)} of {counts.clean}{first}"
    console.print(told, soft_wrap=True, markup=False, highlight=False)
    if whole and counts.relations:
        console.print(RELATIONS, soft_wrap=True)
        console.print(_relations(counts))


def _table(counts: NativeCounts, whole: bool) -> Table:
    table = _empty("family", *counts.shown, "of")
    for family, rows in sorted(counts.hazards.items()):
        cells = [each[family] for each in counts.shown.values()]
        if whole or any(cells):
            _add(table, family, [*cells, rows])
    _add(table, "all", [*(each.total() for each in counts.shown.values()), counts.hazards.total()])
    return table


def _relations(counts: NativeCounts) -> Table:
    table = _empty("executions", "shown", "a witness shows", "of")
    for relation, rows in sorted(counts.relations.items()):
        _add(table, relation, [counts.seen[relation], counts.witnessed[relation], rows])
    return table


def _empty(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for at, heading in enumerate(headings):
        table.add_column(heading, no_wrap=True, justify="right" if at else "left")
    return table


def _add(table: Table, name: str, cells: Sequence[int]) -> None:
    table.add_row(Text(name), *(str(each) if each else "-" for each in cells))
