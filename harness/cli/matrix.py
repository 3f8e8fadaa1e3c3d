"""`vkharness matrix`: pairs of operations, by resource, primitive and defect; every judge is asked about each."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import click

from harness.cli import CLEAN, HAZARDS


@click.command()
@click.option("--sample", "count", type=click.IntRange(1), default=400, show_default=True, help="How many cells.")
@click.option("--seed", type=int, default=1, show_default=True, help="Chooses the sample.")
@click.option("--all", "everything", is_flag=True, help="Every cell.")
@click.option("--device", "devices", multiple=True, help="Drivers, again for each (default: lavapipe, swiftshader).")
@click.option("--layer", default="auto", show_default=True, help="Khronos layers to ask: auto, off or one version.")
@click.option("--execute/--judge-only", default=True, help="Show hazards in bytes, or only ask the judges.")
@click.option("--jobs", type=click.IntRange(1, 64), default=os.cpu_count() or 1, help="Processes side by side.")
@click.option("--page", type=click.Path(path_type=Path), help="Write the tables to this HTML file.")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write every row to this file.")
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
    page: Path | None,
    json_path: Path | None,
) -> None:
    """Order pairs of operations by each primitive, right and with each thing wrong.

    What the rules call for is written once (harness/suite/matrix/defects.py); syncval, the model, the Khronos layers
    and the bytes on each device must agree. Exit code 1 when a cell does not.
    """
    from harness.device.drivers import SOFTWARE_DEVICES
    from harness.device.pool import sample
    from harness.report.console import progress_bars, terminal
    from harness.report.findings_json import write_json
    from harness.suite.matrix import totals as table
    from harness.suite.matrix.cells import cells
    from harness.suite.matrix.judge_cells import judge_cells
    from harness.verdicts import Status

    numbers = list(range(len(cells()))) if everything else sample(len(cells()), count, seed)
    chosen = devices or SOFTWARE_DEVICES
    how = "" if everything else f", seed {seed}"
    click.echo(f"{len(numbers)} of {len(cells())} cells on {', '.join(chosen)}{how}")
    judged: list[table.Judged] = []
    with progress_bars() as progress:
        for device in chosen:
            bar = progress.add_task(device, total=len(numbers))
            found = judge_cells(numbers, device, layer, execute, jobs, partial(progress.advance, bar))
            judged += [(cells()[number], row) for number, row in sorted(found, key=lambda each: each[0])]
    if json_path is not None:
        write_json(json_path, {"version": 1, "rows": [row.to_dict() for _, row in judged]})
    if page is not None:
        from harness.suite.matrix.page import write_page

        write_page(page, judged)
    console = terminal()
    for each in table.tables(judged):
        console.print(each)
        console.print()
    failed = [row for _, row in judged if row.status is not Status.PASSED]
    for row in failed:
        click.echo(f"{row.status}: {row.scenario} on {row.device}: {'; '.join(row.reasons) or row.problem}")
    ctx.exit(HAZARDS if failed else CLEAN)
