"""The verdict table on the terminal: a line a row, devices that agree joined, then the sums.

A star behind a verdict: it agrees apart from named differences (model) or those that its version explains (layer).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from harness.suite.row import Row

COLOURS = {"passed": "green", "failed": "red", "died": "bold red", "unavailable": "yellow"}


def print_table(rows: Sequence[Row], console: Console, artifacts: str) -> None:
    """Prints the table, the summary line and where the artifacts are."""
    native = any(row.native != "-" for row in rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("scenario", overflow="fold", min_width=36)
    for heading in ("device", "expected", "syncval", "model", "layer", "witness", *(["native"] if native else []), ""):
        table.add_column(heading)
    scenario = ""
    for devices, row in _joined(rows):
        if row.scenario != scenario:
            scenario = row.scenario
            table.add_row(f"[bold]{scenario.replace('scenario_', '')}[/]")
        table.add_row(*_cells(devices, row, native))
    console.print(table)
    counts = Counter(row.status for row in rows)
    shown = sum(row.witness.startswith("shown") for row in rows)
    held = sum(row.witness.startswith("held") for row in rows)
    summary = ", ".join(f"[{COLOURS[status]}]{count} {status}[/]" for status, count in counts.items())
    console.print(f"{len(rows)} rows: {summary}; hazards shown in {shown} rows, other orders held in {held}")
    console.print(f"artifacts: {artifacts}")


def _cells(devices: str, row: Row, native: bool) -> list[str]:
    judged = "-" if row.problem else "as expected" if set(row.syncval) == set(row.expected) else _hazards(row.syncval)
    cells = [f"  {row.variant.replace('_', ' ')}", devices, _hazards(row.expected), judged]
    cells += [_short(row.model), row.layer, row.witness.split(" (")[0]]
    if native:
        cells.append(row.native)
    return [*cells, f"[{COLOURS[row.status]}]{row.status}[/]"]


def _short(verdict: str) -> str:
    word, names, _ = verdict.partition(" (")
    return word + ("*" if names else "")


def _hazards(several: Sequence[str]) -> str:
    """Short: the kinds of hazards."""
    kinds = Counter(each.split(" ")[0] for each in several)
    return ", ".join(kind if count == 1 else f"{kind} x{count}" for kind, count in kinds.items()) or "clean"


def _joined(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Rows that differ in nothing but the device become one."""
    joined: dict[tuple[object, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda r: (r.scenario, r.variant != "whole", r.variant)):
        witness = row.witness.split(" (")[0]
        key = (row.scenario, row.variant, tuple(row.syncval), row.model, row.layer, witness, row.native, row.status)
        joined.setdefault(key, []).append(row)
    return [(" ".join(sorted(row.device for row in same)), same[0]) for same in joined.values()]
