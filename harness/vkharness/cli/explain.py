"""`vkharness explain TRACE`: why the pairs of accesses of a trace are in order, or not."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli.last_resort import echo
from vkharness.cli.trace_argument import TracePath
from vkharness.cli.verdict import WORK_OPTION


@click.command()
@WORK_OPTION
@click.argument("trace", type=TracePath())
@click.option("--between", type=int, nargs=2, metavar="CALL CALL", help="Only pairs of these two commands.")
@click.option("--pairs", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many, the last ones.")
def explain(trace: Path, between: tuple[int, int] | None, pairs: int) -> None:
    """Say why two accesses of the same memory are in order: the model's argument, pair by pair.

    Each access is held against the earlier ones that share addresses with it, where one of the two writes. No Vulkan
    loader or driver is needed.
    """
    from vkharness.model.explanation import explain_pairs
    from vkharness.report.explanations import explanation_text
    from vkharness.text_form.text_file import read_stream

    notes: list[str] = []
    explanations, left_out, unmodelled = explain_pairs(read_stream(trace, notes), pairs, between)
    for note in notes:
        echo(f"vkharness: note: {note}", err=True)
    for each in explanations:
        echo(explanation_text(each))
    if unmodelled:
        echo(f"not modelled, so pairs may be missing: {', '.join(sorted(unmodelled))}")
    if left_out:
        echo(f"{left_out} earlier pairs are left out (--pairs, --between)")
    if not explanations:
        echo("no pair of accesses shares addresses, one of them a write")
