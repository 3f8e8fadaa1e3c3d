"""`vkharness shown RUN`: which rows of a run of the suite runs as recorded showed, by strategy."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli.last_resort import echo


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
def shown(run: Path) -> None:
    """Count the rows of RUN, a folder of --vk-artifacts or its results.jsonl, that runs as recorded showed.

    A line for each family says in how many rows with a hazard the bytes were corrupt under each strategy of
    --vk-native, and under any of them. A second table has the same rows by how the two executions of a hazard lie to
    each other on the device. Below stand what each word means, and why a strategy was not tried on how many rows.
    """
    from vkharness.replay.native_strategies.execution_relation import Relation
    from vkharness.replay.native_strategies.table import STRATEGIES
    from vkharness.report.console import terminal
    from vkharness.report.native_table import print_native
    from vkharness.results.native_counts import count_native
    from vkharness.results.read_results import read_results

    counts = count_native(read_results(run).rows.values())
    print_native(counts, terminal(), whole=True)
    for relation in Relation:
        if relation in counts.relations:
            echo(f"{relation}: {relation.says}")
    for name, strategy in STRATEGIES.items():
        if name in counts.shown:
            echo(f"{name}: {strategy.says}")
        for reason, rows in counts.unchanged.get(name, {}).items():
            echo(f"{name}: not tried on {rows} row{'s' * (rows != 1)}: {reason}")
