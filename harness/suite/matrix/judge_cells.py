"""Cells of the matrix, judged in worker processes side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness.suite.claims import WHOLE
from harness.suite.judge_scenario import ask
from harness.suite.matrix.cells import cells
from harness.suite.row import Row, settle
from harness.suite.runner import NoAnswer, run_tasks

BATCH = 20
"""The number of cells in one job: few enough that a driver that dies loses little."""


def run(number: int, device: str, layer: str, execute: bool) -> dict[str, Any]:
    """The row of one cell, in the worker. `layer` is which Khronos layers to ask, as for a scenario; `execute`: hazards
    are shown in bytes."""
    cell = cells()[number]
    claim = cell.claim()
    row = Row(cell.name, WHOLE, device, [str(each) for each in claim.expected(claim.variant(WHOLE))])
    ask(row, claim, layer, execute=execute and cell.shows)
    settle(row, [])
    return row.to_dict()


def judge_cells(
    numbers: Sequence[int],
    device: str,
    layer: str,
    execute: bool,
    processes: int,
    advance: Callable[[int], object] = lambda count: None,
) -> Iterator[tuple[int, Row]]:
    """(number, row) of each cell, as `run` makes them; `advance` is called with how many are done."""
    tasks = [{"number": number, "device": device, "layer": layer, "execute": execute} for number in numbers]
    for at, answer in run_tasks(f"{__name__}:run", tasks, device, processes, BATCH, advance):
        if isinstance(answer, NoAnswer):
            name = cells()[numbers[at]].name
            yield numbers[at], Row(name, WHOLE, device, [], problem=answer.problem, status=answer.status)
        else:
            yield numbers[at], Row.from_dict(answer)
