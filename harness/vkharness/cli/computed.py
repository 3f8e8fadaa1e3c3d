"""`vkharness computed RUN`: of which rows of a run not all bytes were computed without the driver, and why."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli.last_resort import echo


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the counts and rows to this file.")
def computed(run: Path, json_path: Path | None) -> None:
    """List the rows of RUN, a folder of --vk-artifacts or its results.jsonl, by why their bytes were not computed.

    What a driver leaves is held against bytes that are computed on the host from the trace. The first line says in
    how many rows all bytes were computed, a part, or none. Then come the other rows by their first reason: a command,
    and what is not followed of it. --json has all reasons of a row.
    """
    from vkharness.report.computed_text import computed_lines
    from vkharness.report.findings_json import write_json
    from vkharness.results.computed_counts import count_computed
    from vkharness.results.read_results import read_results

    counts = count_computed(read_results(run).rows.values())
    if json_path is not None:
        write_json(json_path, counts.to_dict())
    for line in computed_lines(counts):
        echo(line)
