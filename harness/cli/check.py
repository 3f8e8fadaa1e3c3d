"""`vkharness check TRACE`: judges a trace with no driver or loader installed."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli import exit_code


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the findings to this file.")
@click.pass_context
def check(ctx: click.Context, trace: Path, json_path: Path | None) -> None:
    """Judge a trace, ours or a converted GFXReconstruct capture.

    No Vulkan loader or driver is needed.
    """
    from harness.check import Analysis
    from harness.trace.codec import read_trace

    notes: list[str] = []
    mirror = Analysis().follow(read_trace(trace, notes))
    for note in notes:
        click.echo(f"vkharness: note: {note}", err=True)
    from harness.cli.verdict import show

    show(mirror.verdict, mirror.findings, mirror.unmodelled, json_path)
    ctx.exit(exit_code(mirror.verdict))
