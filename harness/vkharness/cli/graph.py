"""`vkharness graph TRACE`: draws the partial order of a trace, or of what surrounds one conflict."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli.last_resort import echo
from vkharness.cli.trace_argument import TracePath, given_as
from vkharness.cli.verdict import WORK_OPTION
from vkharness.findings import UserError


@click.command()
@WORK_OPTION
@click.argument("trace", type=TracePath())
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="FILE.svg or FILE.dot (default: beside the trace)."
)
@click.option("--finding", type=click.IntRange(1), help="Number of the finding, as `check` numbers them.")
@click.option("--conflict", "number", type=click.IntRange(1), help="Which conflict of the model (default: the first).")
@click.option("--commands", type=click.IntRange(2, 1000), default=24, show_default=True, help="How many are drawn.")
@click.pass_context
def graph(
    ctx: click.Context, trace: Path, output: Path | None, finding: int | None, number: int | None, commands: int
) -> None:
    """Draw what must be complete before what: queues, commands with their stages, barriers.

    The ends of a conflict are red, the chain that there is between them is blue, the missing edge is dashed. The
    barrier that comes nearest says what it lacks. Of a long trace the neighbourhood of the conflict is drawn. A finding
    may have several conflicts; the first one is drawn. No Vulkan loader or driver is needed.
    """
    from vkharness.agreement import conflicts_of, finding_of, note_opinion, numbers_by_conflict
    from vkharness.check import Analysis
    from vkharness.groups import chosen, groups_of
    from vkharness.model import judge
    from vkharness.report.graph import draw, summary, write_graph
    from vkharness.report.order_svg import draw_svg, standalone
    from vkharness.text_form.text_file import read_stream

    if finding is not None and number is not None:
        raise UserError("--finding and --conflict both say what is drawn: choose one")
    notes: list[str] = []
    blocks = list(read_stream(trace, notes))
    opinion, analysis = judge(blocks), Analysis().follow(blocks)
    note_opinion(analysis, opinion)
    for note in notes:
        echo(f"vkharness: note: {note}", err=True)
    conflicts, groups = opinion.everything, groups_of(analysis.findings)
    if number is not None and number > len(conflicts):
        raise UserError(f"--conflict {number}: the model finds {len(conflicts)} conflicts in {trace}")
    if finding is not None:
        number = next(iter(conflicts_of(chosen(groups, finding, trace).findings, opinion)), None)
        if number is None:
            raise UserError(f"--finding {finding}: the model finds no conflict there")
    target = output or given_as(ctx, trace).with_suffix(".svg")
    at = number or 1
    shown = conflicts[at - 1] if conflicts else None
    numbers = numbers_by_conflict(((group.number, group.findings) for group in groups), opinion)
    told = finding_of(shown, groups[numbers[at] - 1].findings) if shown is not None and at in numbers else None
    drawing = draw(opinion, shown, commands, told)
    write_graph(target, drawing, lambda: standalone(draw_svg(opinion, shown, commands, told)))
    for line in summary(opinion, conflicts, numbers):
        echo(line)
    echo(f"drawn: {target}")
