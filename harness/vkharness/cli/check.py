"""`vkharness check TRACE`: judges a trace with no driver or loader installed."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli import exit_code
from vkharness.cli.last_resort import echo
from vkharness.cli.verdict import BOUNDS_OPTION, IGNORE_OPTION, MODEL_OPTION, SARIF_OPTION, WORK_OPTION


@click.command()
@click.argument("trace", type=click.Path(path_type=Path))
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the findings to this file.")
@SARIF_OPTION
@click.option(
    "--observed", type=click.Path(path_type=Path), help="Judge with what `vkharness observe -o` saw of this trace."
)
@IGNORE_OPTION
@MODEL_OPTION
@BOUNDS_OPTION
@WORK_OPTION
@click.pass_context
def check(
    ctx: click.Context,
    trace: Path,
    json_path: Path | None,
    sarif_path: Path | None,
    observed: Path | None,
    ignore_path: Path | None,
    model: str,
    bounds: bool,
) -> None:
    """Judge a trace of ours, a capture of GFXReconstruct, converted or not, or of RenderDoc, a dump, or a folder that a
    program under the mirror layer wrote.

    No Vulkan loader or driver is needed. With --observed, findings of which the two accesses never met are marked as
    refuted on this run. They are listed, but count neither for the verdict nor for the exit code.
    Findings that --ignore names count no more than those.
    """
    from vkharness.check import advise_where_in_doubt
    from vkharness.cli.verdict import ask_model, ignore_file, make_analysis, refutation_of, show

    if trace.is_dir():
        from vkharness.cli.live import check_streams
        from vkharness.cli.processes import Options

        known = ignore_file(ignore_path)
        ctx.exit(check_streams(trace, Options(json_path, sarif_path, None, model, bounds, "", "none", known)))
    from vkharness.rare_collections import rare_collections
    from vkharness.trace.codec import read_trace

    notes: list[str] = []
    refutation, ignored = refutation_of(observed), ignore_file(ignore_path)
    blocks = read_trace(trace, notes)
    with rare_collections():
        analysis = make_analysis(model, bounds).follow(blocks if refutation is None else refutation.follow(blocks))
        for note in notes:
            echo(f"vkharness: note: {note}", err=True)
        answer = ask_model(analysis, model)
    if refutation is not None:
        refutation.mark(analysis.findings)
    if analysis.in_doubt and not analysis.stopped:
        advise_where_in_doubt(analysis, read_trace(trace, []))
    ignored.mark(analysis.findings)
    sarif = None if sarif_path is None else (sarif_path, str(trace))
    show(analysis.verdict, analysis.findings, analysis.unmodelled, answer, analysis.unjudged, json_path, sarif)
    ignored.require_use()
    ctx.exit(exit_code(analysis.verdict))
