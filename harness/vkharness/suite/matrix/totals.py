"""The matrix as a table: first operation by second, how many cells agree, and how many hazards were shown in bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table

from vkharness.suite.matrix.cells import Cell
from vkharness.suite.matrix.operations import OPERATIONS
from vkharness.suite.row import Row
from vkharness.verdicts import Status

Judged = tuple[Cell, Row]


@dataclass(slots=True)
class Totals:
    """Counts over some cells."""

    cells: int = 0
    agreed: int = 0
    """Every judge said what the rules call for, or what its version is known to say."""
    skipped: int = 0
    """The device lacks what these need."""
    hazards: int = 0
    """Hazards that were to be shown in bytes."""
    shown: int = 0

    def add(self, row: Row) -> None:
        """Counts one row."""
        self.cells += 1
        self.agreed += row.status is Status.PASSED
        self.skipped += row.status is Status.UNAVAILABLE
        if row.syncval and row.witness is not None:
            self.hazards += 1
            self.shown += row.witness.is_complete

    @property
    def is_right(self) -> bool:
        """Whether all that ran agreed."""
        return self.agreed + self.skipped == self.cells

    def __str__(self) -> str:
        if not self.cells:
            return ""
        return str(self.agreed) if self.is_right else f"{self.agreed}/{self.cells - self.skipped}"


def sums(judged: Iterable[Judged], by: str) -> dict[str, Totals]:
    """Counts by an attribute of the cells that has a name: `primitive`, `defect`, `resource`, `first`, `second`."""
    found: dict[str, Totals] = {}
    for cell, row in judged:
        found.setdefault(getattr(cell, by).name, Totals()).add(row)
    return found


def grid(judged: Sequence[Judged]) -> tuple[list[str], list[list[Totals]]]:
    """Names of operations in the order in which they are defined, and the sums by first (down) and second operation."""
    met = {each.name for cell, _ in judged for each in (cell.first, cell.second)}
    names = [name for name in OPERATIONS if name in met]
    places = {name: at for at, name in enumerate(names)}
    found = [[Totals() for _ in names] for _ in names]
    for cell, row in judged:
        found[places[cell.first.name]][places[cell.second.name]].add(row)
    return names, found


def tables(judged: Sequence[Judged]) -> list[Table]:
    """One table for each kind of resource, since operations on different ones do not meet; then sums by primitive and
    by defect."""
    kinds = dict.fromkeys(cell.resource.kind for cell, _ in judged)
    made = [_grid_table(kind, [each for each in judged if each[0].resource.kind == kind]) for kind in kinds]
    return [*made, *(_sum_table(by, sums(judged, by)) for by in ("primitive", "defect", "resource"))]


def _grid_table(kind: str, judged: Sequence[Judged]) -> Table:
    names, found = grid(judged)
    title = f"{kind}: first operation down, second across: cells that agree"
    made = Table(box=None, pad_edge=False, header_style="bold", title=title, title_justify="left")
    made.add_column("")
    for number in range(1, len(names) + 1):
        made.add_column(str(number), justify="right")
    for number, (name, several) in enumerate(zip(names, found, strict=True), 1):
        made.add_row(f"{number:>2} {name}", *(_cell(each) for each in several))
    return made


def _sum_table(by: str, counted: dict[str, Totals]) -> Table:
    made = Table(box=None, pad_edge=False, header_style="bold", title=f"by {by}", title_justify="left")
    for heading in (by, "cells", "agree", "skipped", "hazards run", "shown"):
        made.add_column(heading, justify="left" if heading == by else "right")
    for name, each in counted.items():
        counts = (each.cells, each.agreed, each.skipped, each.hazards, each.shown)
        made.add_row(name, *map(str, counts))
    return made


def _cell(each: Totals) -> str:
    colour = "green" if each.is_right else "red"
    return f"[{colour}]{each}[/]" if each.cells else ""
