"""Cells of the matrix, judged in worker processes side by side: one by one by every judge, or many in one recording."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import vkharness
from vkharness.agreement import compare, keys_of_conflict
from vkharness.device.process import DEFAULT_TIMEOUT
from vkharness.findings import LacksError
from vkharness.layer.manifest import OFF
from vkharness.model import Opinion, judge_stream_events
from vkharness.rig.rig import Rig
from vkharness.suite.claims import WHOLE
from vkharness.suite.judge_scenario import ask, expected_of
from vkharness.suite.matrix.cells import Cell, cells
from vkharness.suite.row import Row, settle
from vkharness.suite.runner import NoAnswer, row_of, run_tasks
from vkharness.verdicts import ModelVerdict, Status

TOGETHER = 50
"""The number of cells in one recording. The model's work grows with its square."""


def run(number: int, device: str, layer: str, execute: bool) -> dict[str, Any]:
    """The row of one cell, in the worker. `layer` is which Khronos layers to ask, as for a scenario; `execute`: hazards
    are shown in bytes."""
    cell = cells()[number]
    row = _row(cell, device)
    ask(row, cell.claim(), layer, execute=execute and cell.shows and not _is_spoiled(cell, device))
    settle(row, [])
    return row.to_dict()


def _is_spoiled(cell: Cell, device: str) -> bool:
    """Mesa 22.3.6's lavapipe resolves into the first layer of an image, whatever the view's."""
    resolves = "resolve color attachment" in (cell.first.name, cell.second.name)
    return device == "lavapipe" and resolves and cell.resource.name in ("array layer", "face of a cube")


def run_together(numbers: list[int], device: str) -> dict[str, Any]:
    """Rows of several cells, in the worker: recorded one after the other on one device, which is idle between them, and
    judged by syncval and the model. Resources are each cell's own. A cell that fails is recorded again alone."""
    rows = []
    for needs, several in groupby(numbers, key=lambda number: cells()[number].claim().needs):
        chosen = [cells()[number] for number in several]
        try:
            rows += _judged_together(chosen, needs, device)
        except LacksError as lacking:
            rows += [_lacking(cell, device, lacking) for cell in chosen]
    for at, row in enumerate(rows):
        if row.status is Status.FAILED:
            rows[at] = Row.from_dict(run(numbers[at], device, OFF, False))
    return {"rows": [row.to_dict() for row in rows]}


def _judged_together(several: Sequence[Cell], needs: Sequence[str], device: str) -> list[Row]:
    """Raises `LacksError` where the device has not what all of these need."""
    rows, ends = [_row(cell, device) for cell in several], []
    with vkharness.attach(keep_trace=True, strict=True) as session, Rig(needs) as rig:
        begin = len(session.blocks or [])
        for at, cell in enumerate(several):
            try:
                cell.record(rig)
            except LacksError as lacking:
                rows[at] = _lacking(cell, device, lacking)
            rig.wait()
            ends.append(len(session.blocks or []))
    opinion = judge_stream_events(session.events)
    for row, end in zip(rows, ends, strict=True):
        findings = [each for each in session.findings if begin <= each.place.call < end]
        conflicts = [each for each in opinion.conflicts if any(begin <= key[1] < end for key in keys_of_conflict(each))]
        begin = end
        row.syncval = sorted({str(expected_of(each)) for each in findings})
        row.unmodelled = sorted(session.unmodelled) + session.internal_errors
        row.messages = [each.message for each in findings]
        row.model = ModelVerdict(compare(findings, Opinion(conflicts)).disagreements)
        settle(row, [])
    return rows


def _row(cell: Cell, device: str) -> Row:
    claim = cell.claim()
    return Row(cell.name, WHOLE, device, [str(each) for each in claim.expected(claim.variant(WHOLE))])


def _lacking(cell: Cell, device: str, lacking: LacksError) -> Row:
    return replace(_row(cell, device), problem=str(lacking), status=Status.UNAVAILABLE)


def judge_cells(
    numbers: Sequence[int],
    device: str,
    layer: str,
    execute: bool,
    processes: int,
    advance: Callable[[int], object] = lambda count: None,
    timeout: float = DEFAULT_TIMEOUT,
) -> Iterator[tuple[int, Row]]:
    """(number, row) of each cell, as `run` makes them; `advance` is called with how many are done, and `timeout` is in
    seconds for a cell. A cell that fails, or of which a driver dies, costs its own row."""
    tasks = [{"number": number, "device": device, "layer": layer, "execute": execute} for number in numbers]
    for at, answer in run_tasks(f"{__name__}:run", tasks, device, processes, advance, timeout):
        if isinstance(answer, NoAnswer):
            yield numbers[at], _unanswered(numbers[at], device, answer)
        else:
            yield numbers[at], Row.from_dict(answer)


def judge_together(numbers: Sequence[int], device: str) -> Iterator[tuple[int, Row]]:
    """(number, row) of each cell, as `run_together` makes them.

    Where a batch has no answer, since a cell of it failed or ended the driver, each of its cells is judged alone; where
    none fails then, the first one stands for the batch.
    """
    # Cells that need the same of a device share a recording.
    alike = sorted(numbers, key=lambda number: cells()[number].claim().needs)
    batches = [alike[at : at + TOGETHER] for at in range(0, len(alike), TOGETHER)]
    tasks = [{"numbers": each, "device": device} for each in batches]
    for at, answer in run_tasks(f"{__name__}:run_together", tasks, device, 1):
        if isinstance(answer, NoAnswer):
            yield from _alone(batches[at], device, answer)
        else:
            yield from zip(batches[at], map(Row.from_dict, answer["rows"]), strict=True)


def _alone(numbers: Sequence[int], device: str, answer: NoAnswer) -> Iterator[tuple[int, Row]]:
    """The rows of a batch that has no answer."""
    rows = dict(judge_cells(numbers, device, OFF, False, 1))
    if all(row.status in (Status.PASSED, Status.UNAVAILABLE) for row in rows.values()):
        first = numbers[0]
        problem = f"{answer.problem}\nin a recording of {len(numbers)} cells, of which each passes alone"
        rows[first] = _unanswered(first, device, answer._replace(problem=problem))
    yield from rows.items()


def _unanswered(number: int, device: str, answer: NoAnswer) -> Row:
    return row_of(answer, cells()[number].name, WHOLE, device)
