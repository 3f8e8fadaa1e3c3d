"""`vkharness check TRACE`: judges a trace with no driver or loader installed."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli import exit_code
from harness.cli.verdict import MODEL_OPTION


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the findings to this file.")
@MODEL_OPTION
@click.pass_context
def check(ctx: click.Context, trace: Path, json_path: Path | None, model: str) -> None:
    """Judge a trace, ours or a converted GFXReconstruct capture.

    No Vulkan loader or driver is needed.
    """
    from harness.cli.verdict import ask_model, make_analysis, show
    from harness.trace.codec import read_trace

    notes: list[str] = []
    analysis = make_analysis(model).follow(read_trace(trace, notes))
    for note in notes:
        click.echo(f"vkharness: note: {note}", err=True)
    answer = ask_model(analysis, model)
    show(analysis.verdict, analysis.findings, analysis.unmodelled, answer, json_path)
    ctx.exit(exit_code(analysis.verdict))
