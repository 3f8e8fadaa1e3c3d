"""`vkharness matrix`: pairs of operations, by resource, primitive and defect; every judge is asked about each."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vkharness.cli import CLEAN, HAZARDS
from vkharness.cli.last_resort import echo

if TYPE_CHECKING:
    from vkharness.suite.kept_answers import KeptAnswers
    from vkharness.suite.matrix.cells import Cell
    from vkharness.suite.row import Row


@click.command()
@click.option("--sample", "count", type=click.IntRange(1), default=400, show_default=True, help="How many cells.")
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses the sample.")
@click.option("--all", "everything", is_flag=True, help="Every cell.")
@click.option("--device", "devices", multiple=True, help="Drivers, again for each (default: the software drivers).")
@click.option("--layer", default="auto", show_default=True, help="Khronos layers to ask: auto, off or one version.")
@click.option("--execute/--judge-only", default=True, help="Show hazards in bytes, or only ask the judges.")
@click.option("--jobs", type=click.IntRange(1, 64), default=os.cpu_count() or 1, help="Processes side by side.")
@click.option("--timeout", type=click.FloatRange(1), default=300.0, show_default=True, help="Seconds for a cell.")
@click.option("--page", type=click.Path(path_type=Path), help="Write the tables to this HTML file.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write every row to this file.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Keep each row here once it is done.")
@click.option("--resume", is_flag=True, help="Go on with the file of --out.")
@click.pass_context
def matrix(
    ctx: click.Context,
    count: int,
    seed: int,
    everything: bool,
    devices: tuple[str, ...],
    layer: str,
    execute: bool,
    jobs: int,
    timeout: float,
    page: Path | None,
    json_path: Path | None,
    out: Path | None,
    resume: bool,
) -> None:
    """Order pairs of operations by each primitive, right and with each thing wrong.

    What the rules call for is written once (harness/vkharness/suite/matrix/defects.py); syncval, the model, the Khronos
    layers and the bytes on each device must agree. Cells that need what a device lacks are skipped. Exit code 1 when a
    cell does not agree.
    """
    from vkharness.device.drivers import SOFTWARE_DEVICES, software_devices
    from vkharness.device.pool import sample
    from vkharness.report.console import terminal
    from vkharness.report.findings_json import write_json
    from vkharness.suite.kept_answers import MATRIX, KeptAnswers
    from vkharness.suite.matrix import totals as table
    from vkharness.suite.matrix.cells import cells

    numbers = list(range(len(cells()))) if everything else sample(len(cells()), count, seed)
    chosen = devices or software_devices() or SOFTWARE_DEVICES[:1]
    how = "" if everything else f", seed {seed}"
    echo(f"{len(numbers)} of {len(cells())} cells on {', '.join(chosen)}{how}")
    plan = {"sample": None if everything else [count, seed], "devices": [*chosen], "layer": layer, "execute": execute}
    with KeptAnswers(out, MATRIX, plan, resume=resume) as kept:
        judged = [each for device in chosen for each in _judged(kept, numbers, device, layer, execute, jobs, timeout)]
    if json_path is not None:
        write_json(json_path, {"version": 1, "rows": [row.to_dict() for _, row in judged]})
    if page is not None:
        from vkharness.suite.matrix.page import write_page

        write_page(page, judged)
    console = terminal()
    for each in table.tables(judged):
        console.print(each)
        console.print()
    ctx.exit(HAZARDS if _tell_of_others(judged) else CLEAN)


def _tell_of_others(judged: Sequence[tuple[Cell, Row]]) -> bool:
    """Prints why cells were skipped, and those that do not agree; returns whether there are any of these."""
    from vkharness.results.result_lines import reason_of
    from vkharness.verdicts import Status

    for reason, times in Counter(row.problem for _, row in judged if row.status is Status.UNAVAILABLE).items():
        echo(f"{times} skipped: {reason}")
    failed = [row for _, row in judged if row.status not in (Status.PASSED, Status.UNAVAILABLE)]
    for row in failed:
        echo(f"{row.status}: {row.scenario} on {row.device}: {reason_of(row.to_dict())}")
    return bool(failed)


def _judged(
    kept: KeptAnswers, numbers: Sequence[int], device: str, layer: str, execute: bool, jobs: int, timeout: float
) -> list[tuple[Cell, Row]]:
    """Each cell with its row on a device. What is kept is not asked again."""
    from vkharness.report.console import progress_bars
    from vkharness.suite.matrix.cells import cells
    from vkharness.suite.matrix.judge_cells import judge_cells
    from vkharness.suite.row import Row

    keys = {number: f"{device}: {cells()[number].name}" for number in numbers}
    left = [number for number, key in keys.items() if key not in kept.answers]
    with progress_bars() as progress:
        advance = partial(progress.advance, progress.add_task(device, total=len(left)))
        for number, row in judge_cells(left, device, layer, execute, jobs, advance, timeout):
            kept.keep(keys[number], row.to_dict())
    return [(cells()[number], kept.read(key, Row.from_dict)) for number, key in keys.items()]
