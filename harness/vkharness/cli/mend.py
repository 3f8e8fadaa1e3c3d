"""`vkharness mend TRACE`: for each group of findings the smallest dependency that orders it, proved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vkharness.cli import CLEAN, HAZARDS, UNMODELLED
from vkharness.cli.last_resort import echo
from vkharness.cli.trace_argument import TracePath
from vkharness.cli.verdict import STRICT_OPTION, WORK_OPTION
from vkharness.findings import Finding, UserError

if TYPE_CHECKING:
    from vkharness.mending.mend import Mending
    from vkharness.trace.calls import Block

LANGUAGES = ("C", "Python")


@click.command()
@WORK_OPTION
@STRICT_OPTION
@click.argument("trace", type=TracePath())
@click.option("--finding", type=click.IntRange(1), help="Mend this group of findings only, as `check` numbers them.")
@click.option("--apply", "out", type=click.Path(path_type=Path), help="Write the mended trace to this file.")
@click.option("--device", help="Run the mended trace on this driver, in other orders and under the Khronos layer.")
@click.option("--code", type=click.Choice(LANGUAGES, case_sensitive=False), help="Print one language [both].")
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the changes to this file.")
@click.pass_context
def mend(
    ctx: click.Context,
    trace: Path,
    strict: bool,
    finding: int | None,
    out: Path | None,
    device: str | None,
    code: str | None,
    json_path: Path | None,
) -> None:
    """Find the smallest change of a trace that orders what a finding is about.

    An edit of a dependency that is nearly right comes first, else a barrier, a dependency of a render pass, a semaphore
    or a wait of the host is inserted where it is legal. Both judges have to accept the mended trace, and each bit of a
    change is needed: without it a hazard is back.

    Exit codes: 0 when all findings are mended, 1 when not, 3 when something is not modelled and there is no finding.
    """
    from vkharness.cli.readable import load_readable
    from vkharness.mending.mend import mend as mended
    from vkharness.report.console import terminal
    from vkharness.report.mends import document, summary
    from vkharness.trace.codec import save

    blocks, left_out = load_readable(trace)
    wanted = None if finding is None else _numbered(blocks, finding, trace, strict)
    with terminal(stderr=True).status("judging") as status:
        mending = mended(blocks, wanted, status.update, strict)
    for line in summary(mending.trace, mending.applied, mending.outcomes, LANGUAGES if code is None else (code,)):
        echo(line)
    for line in _notes(mending):
        echo(line)
    if out is not None:
        save(out, mending.applied.blocks)
    proved = True
    if device is not None and mending.groups:
        from vkharness.mending.device_runs import run_on

        findings = [finding for group in mending.groups for finding in group.findings]
        for holds, line in run_on(device, blocks, list(mending.applied.blocks), findings):
            proved = proved and holds
            echo(line if holds else f"not proved: {line}")
    if json_path is not None:
        from vkharness.report.findings_json import write_json

        write_json(json_path, document(mending.trace, mending.applied, mending.outcomes))
    if not (mending.complete and proved):
        ctx.exit(HAZARDS)
    ctx.exit(UNMODELLED if (mending.unmodelled or left_out) and not mending.groups else CLEAN)


def _notes(mending: Mending) -> Iterator[str]:
    """How far it got."""
    if not mending.groups and not mending.stopped:
        several = "1 finding counts" if mending.uncounted == 1 else f"{mending.uncounted} findings count"
        found = f"{several} with --strict alone" if mending.uncounted else "no hazard was found"
        yield f"nothing to mend: {found}"
    if not mending.by_model:
        yield "the trace is too long for the model: syncval alone judged the changes"
    if mending.stopped:
        yield "the work was over before everything was tried: findings may be left that can be mended (--work 10)"


def _numbered(blocks: list[Block], number: int, trace: Path, strict: bool) -> list[Finding]:
    """The findings of the group with a number that count."""
    from vkharness.cli.numbered import group_of

    group = group_of(blocks, number, trace, strict)
    if not group.counts:
        missing = group.first.missing
        how = " without --strict" if group.first.uncounted else ""
        raise UserError(f"--finding {number} counts for no verdict{how}, so that there is nothing to mend: {missing}")
    return group.findings
