"""The verdict table on the terminal: a line a row, devices that agree joined, then the sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from harness.scenario.row import Row

COLOURS = {"passed": "green", "failed": "red", "died": "bold red", "unavailable": "yellow"}


def print_table(rows: Sequence[Row], console: Console, artifacts: str) -> None:
    """Prints the table, the summary line and where the artifacts are."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("scenario", "device", "expected", "syncval", "layer", "witness"):
        table.add_column(heading, overflow="fold")
    native = any(row.native != "-" for row in rows)
    if native:
        table.add_column("native")
    table.add_column("")
    for devices, row in _joined(rows):
        colour = COLOURS[row.status]
        cells = [
            f"{row.scenario.replace('scenario_', '')}\n  [dim]{row.variant.replace('_', ' ')}[/]",
            devices,
            _hazards(row.expected),
            _hazards(row.syncval) if not row.problem else "-",
            row.layer,
            row.witness.split(" (")[0],
        ]
        if native:
            cells.append(row.native)
        table.add_row(*cells, f"[{colour}]{row.status}[/]")
    console.print(table)
    counts = Counter(row.status for row in rows)
    shown = sum(row.witness.startswith("shown") for row in rows)
    summary = ", ".join(f"[{COLOURS[status]}]{count} {status}[/]" for status, count in counts.items())
    console.print(f"{len(rows)} rows: {summary}; hazards shown in {shown} rows")
    console.print(f"artifacts: {artifacts}")


def _hazards(several: Sequence[str]) -> str:
    """Short: the kinds of hazards."""
    kinds = Counter(each.split(" ")[0] for each in several)
    return ", ".join(kind if count == 1 else f"{kind} x{count}" for kind, count in kinds.items()) or "clean"


def _joined(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Rows that differ in nothing but the device become one."""
    joined: dict[tuple[object, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda r: (r.scenario, r.variant != "whole", r.variant)):
        witness = row.witness.split(" (")[0]
        key = (row.scenario, row.variant, tuple(row.syncval), row.layer, witness, row.native, row.status)
        joined.setdefault(key, []).append(row)
    return [("\n".join(row.device for row in same), same[0]) for same in joined.values()]
