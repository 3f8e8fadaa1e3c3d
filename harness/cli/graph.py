"""`vkharness graph TRACE`: draws the partial order of a trace, or of what surrounds one conflict."""

from __future__ import annotations

from pathlib import Path

import click

from harness.findings import UserError


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="FILE.svg or FILE.dot (default: beside the trace)."
)
@click.option("--conflict", "number", type=click.IntRange(1), help="Which conflict of the model (default: the first).")
@click.option("--commands", type=click.IntRange(2, 1000), default=24, show_default=True, help="How many are drawn.")
def graph(trace: Path, output: Path | None, number: int | None, commands: int) -> None:
    """Draw what must be complete before what: queues, commands with their stages, barriers.

    The ends of a conflict are red, the chain that there is between them is blue, the missing edge is dashed. Of a long
    trace the neighbourhood of the conflict is drawn. No Vulkan loader or driver is needed.
    """
    from harness.model import judge
    from harness.report.graph import draw, summary, write_graph
    from harness.report.order_svg import draw_svg, standalone
    from harness.trace.codec import read_trace

    notes: list[str] = []
    opinion = judge(read_trace(trace, notes))
    for note in notes:
        click.echo(f"vkharness: note: {note}", err=True)
    conflicts = opinion.conflicts
    if number is not None and number > len(conflicts):
        raise UserError(f"--conflict {number}: the model finds {len(conflicts)} conflicts in {trace}")
    chosen = conflicts[(number or 1) - 1] if conflicts else None
    target = output or trace.with_suffix(".svg")
    write_graph(target, draw(opinion, chosen, commands), lambda: standalone(draw_svg(opinion, chosen, commands)))
    for line in summary(opinion, conflicts):
        click.echo(line)
    click.echo(f"drawn: {target}")
