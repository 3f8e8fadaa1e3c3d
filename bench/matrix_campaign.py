"""The table of a campaign over the operation matrix, from its file of results.

    python -m bench.matrix_campaign FILE

Counts cells by resource, primitive and defect, and those of them that are discoveries: a cell on which the expectation,
syncval and the model do not agree, or, where it was executed, the bytes.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from vkharness.campaign.record import plan_text, read_campaign, totals
from vkharness.suite.matrix.cells import cells


@click.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True))
def main(file: Path) -> None:
    """Prints the table."""
    known = read_campaign(file)
    chunks = {chunk.number: chunk for chunk in known.plan.chunks()}
    done = [chunks[number] for number in known.results]
    judged = [cells()[number] for chunk in done for number in range(chunk.first, chunk.first + chunk.count)]
    wrong = [cells()[each.seed] for result in known.results.values() for each in result.discoveries]
    seconds = sum(result.seconds for result in known.results.values())
    click.echo(f"{plan_text(known.plan)}: {len(judged)} of {known.plan.count} cells, {seconds:.0f} s of one worker")
    for what, count in sorted(totals(known.results.values()).items()):
        click.echo(f"{count:>6} {what}")
    for by in ("resource", "primitive", "defect"):
        counted = Counter(getattr(each, by).name for each in judged)
        differ = Counter(getattr(each, by).name for each in wrong)
        click.echo(f"{by:<30}  cells  do not agree")
        for name, count in counted.items():
            click.echo(f"{name:<30} {count:>6} {differ[name]:>13}")


if __name__ == "__main__":
    main()
