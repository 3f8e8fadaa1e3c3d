"""The verdict table on the terminal: a line a row, devices that agree joined, then what its words mean.

The status comes first, so that it can be seen however narrow the terminal is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from vkharness.report.rows import layers_in_short, model_text, native_text, witness_in_short
from vkharness.suite.row import Row
from vkharness.verdicts import Status

COLOURS = {Status.PASSED: "green", Status.FAILED: "red", Status.UNAVAILABLE: "yellow"}
COLOURS |= dict.fromkeys((Status.DIED, Status.TIMED_OUT, Status.DEVICE_LOST), "bold red")


LEGEND = (
    "agrees*: apart from differences that the layer's version explains; shown 1/2: of two hazards one was seen in "
    "bytes; held 2/2: two other legal orders left the same bytes; benign: no allowed outcome changes a byte"
)


def print_table(rows: Sequence[Row], console: Console) -> None:
    """Prints the table and its legend."""
    native = any(row.native is not None for row in rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("status", no_wrap=True, min_width=max([6, *(len(row.status) for row in rows)]))
    table.add_column("scenario", overflow="fold", min_width=24)
    for heading in ("device", "expected", "syncval", "model", "layer", "witness", *(["native"] if native else [])):
        table.add_column(heading, overflow="fold")
    scenario = ""
    for devices, row in _joined(rows):
        if row.scenario != scenario:
            scenario = row.scenario
            table.add_row("", f"[bold]{scenario.replace('scenario_', '')}[/]")
        table.add_row(*_cells(devices, row, native))
    console.print(table)
    console.print(f"[dim]{LEGEND}[/]")


def _cells(devices: str, row: Row, native: bool) -> list[str]:
    judged = "-" if row.problem else "as expected" if set(row.syncval) == set(row.expected) else _hazards(row.syncval)
    status = f"[{COLOURS[row.status]}]{row.status}[/]"
    cells = [status, f"  {row.variant.replace('_', ' ')}", devices, _hazards(row.expected), judged]
    cells += [model_text(row.model), layers_in_short(row.layers), witness_in_short(row.witness, row.orders)]
    if native:
        cells.append(native_text(row.native))
    return cells


def _hazards(several: Sequence[str]) -> str:
    """Short: the kinds of hazards."""
    kinds = Counter(each.split(" ")[0] for each in several)
    return ", ".join(kind if count == 1 else f"{kind} x{count}" for kind, count in kinds.items()) or "clean"


def _joined(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Rows that differ in nothing but the device become one."""
    joined: dict[tuple[object, ...], list[Row]] = {}
    for row in sorted(rows, key=lambda r: (r.scenario, r.variant != "whole", r.variant)):
        witness = witness_in_short(row.witness, row.orders)
        said = (row.model, layers_in_short(row.layers), witness, row.native, row.status)
        key = (row.scenario, row.variant, tuple(row.syncval), *said)
        joined.setdefault(key, []).append(row)
    return [(" ".join(sorted(row.device for row in same)), same[0]) for same in joined.values()]
