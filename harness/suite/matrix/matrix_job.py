"""Judges cells of the matrix on the driver of this process (`harness.device.process` runs it)."""

from __future__ import annotations

from typing import Any

from harness.suite.claims import WHOLE
from harness.suite.matrix.cells import cells
from harness.suite.row import Row, settle
from harness.suite.row_job import ask


def run(numbers: list[int], device: str, layer: str, execute: bool) -> dict[str, Any]:
    """The rows of the cells at these numbers, as `{"rows": [...]}`. `layer` is which Khronos layers to ask, as for a
    scenario; `execute`: hazards are shown in bytes."""
    rows = []
    for number in numbers:
        cell = cells()[number]
        claim = cell.claim()
        row = Row(cell.name, WHOLE, device, [str(each) for each in claim.expected(claim.variant(WHOLE))])
        ask(row, claim, layer, execute=execute and cell.shows)
        settle(row, [])
        rows.append(row.to_dict())
    return {"rows": rows}
