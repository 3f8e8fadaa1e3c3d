"""`vkharness check TRACE`: judges a trace with no driver or loader installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vkharness.cli import exit_code
from vkharness.cli.last_resort import echo
from vkharness.cli.progress import progress
from vkharness.cli.verdict import BOUNDS_OPTION, IGNORE_OPTION, MODEL_OPTION, SARIF_OPTION, STRICT_OPTION, WORK_OPTION
from vkharness.findings import UserError

if TYPE_CHECKING:
    from vkharness.check import Analysis
    from vkharness.trace.calls import Block

EACH = 1 << 14
"""Calls between two lines of progress."""
MOST_TEXTS = 20
"""Groups of findings of which the text is made."""


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
@STRICT_OPTION
@WORK_OPTION
@click.option("--as-text", is_flag=True, help="Print the smallest stream text that has each group's finding, too.")
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
    strict: bool,
    as_text: bool,
) -> None:
    """Judge a trace of ours, a capture of GFXReconstruct, converted or not, or of RenderDoc, a dump, a stream
    text, or a folder that a program under the mirror layer wrote.

    No Vulkan loader or driver is needed. With --observed, findings of which the two accesses never met are marked as
    refuted on this run. They are listed, but count neither for verdict nor exit code, nor do those of --ignore and,
    without --strict, those that are hazards by the letter alone.
    """
    from vkharness.check import advise_where_in_doubt
    from vkharness.cli.verdict import ask_model, ignore_file, make_analysis, refutation_of, show

    refutation, ignored = refutation_of(observed), ignore_file(ignore_path)
    if trace.is_dir():
        how: dict[str, Any] = {"model": model, "bounds": bounds, "ignored": ignored, "strict": strict}
        ctx.exit(_check_folder(trace, json_path, sarif_path, how))
    from vkharness.rare_collections import rare_collections
    from vkharness.text_form.text_file import read_stream

    notes: list[str] = []
    with rare_collections():
        blocks = read_stream(trace, notes)
        followed = blocks if refutation is None else refutation.follow(blocks)
        with progress("judging") as tell:
            analysis = make_analysis(model, bounds, strict).follow(_told(followed, tell))
        for note in notes:
            echo(f"vkharness: note: {note}", err=True)
        answer = ask_model(analysis, model)
    if refutation is not None:
        refutation.mark(analysis.findings)
    if analysis.in_doubt and not analysis.stopped:
        advise_where_in_doubt(analysis, read_stream(trace, []))
    ignored.mark(analysis.findings)
    sarif = None if sarif_path is None else (sarif_path, str(trace))
    show(analysis.verdict, analysis.findings, analysis.unmodelled, answer, analysis.unjudged, json_path, sarif)
    for line in _texts(trace, analysis) if as_text else ():
        echo(line)
    ignored.require_use()
    ctx.exit(exit_code(analysis.verdict))


def _check_folder(folder: Path, json_path: Path | None, sarif_path: Path | None, how: dict[str, Any]) -> int:
    """Judges what a program under the mirror layer wrote; the exit code."""
    from vkharness.cli.live import check_streams
    from vkharness.cli.processes import Options

    return check_streams(folder, Options(json_path, sarif_path, None, frames="", display="none", **how))


def _told(blocks: Iterable[Block], tell: Callable[[str], object]) -> Iterator[Block]:
    """The blocks; tells how many were judged."""
    for count, block in enumerate(blocks):
        if not count % EACH and count:
            tell(f"judging: {count:,} calls")
        yield block


def _texts(trace: Path, analysis: Analysis) -> Iterator[str]:
    """The smallest text with each group's finding, or the line that says why there is none."""
    from vkharness.groups import groups_of
    from vkharness.text_form.text_file import read_text
    from vkharness.text_form.trace_text import smallest, text_of
    from vkharness.trace.codec import read_trace
    from vkharness.trace.file_kinds import FileKind, file_kind
    from vkharness.trace.work_budget import OverBudget

    try:
        text = read_text(trace) if file_kind(trace) is FileKind.TEXT else text_of(read_trace(trace, []))
    except UserError as error:
        yield f"no text: {error}"
        return
    for group in groups_of(analysis.findings)[:MOST_TEXTS]:
        try:
            yield f"\n# {group.number}. {group.first.hazard}\n{smallest(text, group.first).rstrip()}"
        except OverBudget as error:
            yield f"no text of finding {group.number} and those behind it: {error}"
            return
