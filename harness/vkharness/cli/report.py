"""`vkharness report RESULTS...`: the page of a run of the suite, or of several."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli.last_resort import echo


@click.command()
@click.argument("results", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the page (default: beside the results, of several beside the first).",
)
@click.option(
    "--sources",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="The folder from which the suite ran, for the code of its scenarios [the current one].",
)
@click.option("--since", type=click.Path(path_type=Path), help="The results of an earlier run: say what changed.")
def report(results: tuple[Path, ...], output: Path | None, sources: Path, since: Path | None) -> None:
    """Make a page of a run: a folder that a browser opens from the disk.

    RESULTS is a results.jsonl, or the folder in which one is: what --vk-artifacts named. Of the records and traces
    beside it, the page has the pictures, the order with what is missing, and the dependency that mends it. Several
    RESULTS are joined: the parts of a run (--vk-shard), or runs on other drivers, builds of a driver or layers.
    """
    from vkharness.results.join_runs import join_runs
    from vkharness.results.read_results import read_results
    from vkharness.suite.result_page import page_of_results

    found = join_runs([read_results(each) for each in results])
    for note in found.notes:
        echo(f"vkharness: note: {note}", err=True)
    earlier = None if since is None else read_results(since)
    echo(str(page_of_results(found, output or found.path.parent / "report", sources, earlier)))
