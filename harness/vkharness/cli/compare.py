"""`vkharness compare RUN_A RUN_B`: what changed from one run of the suite to another."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli import CLEAN, HAZARDS
from vkharness.cli.last_resort import echo


@click.command()
@click.argument("earlier", type=click.Path(path_type=Path))
@click.argument("later", type=click.Path(path_type=Path))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write all changes to this file.")
@click.pass_context
def compare(ctx: click.Context, earlier: Path, later: Path, json_path: Path | None) -> None:
    """Say what changed from the run EARLIER to the run LATER: folders of --vk-artifacts, or their results.jsonl.

    Exit code 1 when something is worse: a new failure or another one, a new flake, a new skip, a row that went, or a
    later run that was ended before its end. Else 0: rows that are fixed or came, other verdicts, other rates of native
    corruption and slower rows are told, and are not worse.
    """
    from vkharness.report.findings_json import write_json
    from vkharness.report.run_changes import comparison_lines
    from vkharness.results.compare_runs import compare_runs
    from vkharness.results.read_results import read_results

    told = compare_runs(read_results(earlier), read_results(later))
    if json_path is not None:
        write_json(json_path, told.to_dict())
    for line in comparison_lines(told):
        echo(line)
    ctx.exit(HAZARDS if told.is_worse else CLEAN)
