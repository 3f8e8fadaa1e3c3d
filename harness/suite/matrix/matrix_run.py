"""Cells of the matrix in worker processes side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from harness.device.drivers import find_driver
from harness.device.pool import run_jobs, why
from harness.device.process import Died
from harness.suite.claims import WHOLE
from harness.suite.matrix.cells import cells
from harness.suite.row import DIED, UNAVAILABLE, Row

JOB = "harness.suite.matrix.matrix_job:run"
BATCH = 20
"""Cells in one job: enough that asking costs little, few enough that a dead driver loses little."""


def run(
    numbers: Sequence[int],
    device: str,
    layer: str,
    execute: bool,
    processes: int,
    advance: Callable[[int], object] = lambda count: None,
) -> Iterator[tuple[int, Row]]:
    """(number, row) of each cell, as `matrix_job.run` makes them; `advance` is called with how many are done.

    When a driver dies the cells of its job are judged again one by one, so that one cell is to blame.
    """
    batches = [list(numbers[at : at + BATCH]) for at in range(0, len(numbers), BATCH)]
    alone: list[list[int]] = []
    for several, once_more in ((batches, alone), (alone, None)):
        jobs = [{"numbers": batch, "device": device, "layer": layer, "execute": execute} for batch in several]
        for position, answer in run_jobs(find_driver(device), JOB, jobs, processes) if jobs else ():
            batch = several[position]
            if isinstance(answer, dict):
                advance(len(batch))
                yield from zip(batch, map(Row.from_dict, answer["rows"]), strict=True)
            elif once_more is not None and isinstance(answer, Died):
                once_more += [[number] for number in batch]
            else:
                advance(len(batch))
                status = DIED if isinstance(answer, Died) else UNAVAILABLE
                yield from ((number, _lost(number, device, why(answer), status)) for number in batch)


def _lost(number: int, device: str, problem: str, status: str) -> Row:
    return Row(cells()[number].name, WHOLE, device, [], problem=problem, status=status)
