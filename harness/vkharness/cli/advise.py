"""`vkharness advise TRACE`: dependencies that order nothing, are wider than needed, or could be one."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli.last_resort import echo
from vkharness.cli.trace_argument import TracePath
from vkharness.cli.verdict import WORK_OPTION

LANGUAGES = ("C", "Python")


@click.command()
@WORK_OPTION
@click.argument("trace", type=TracePath())
@click.option(
    "--seconds", type=click.FloatRange(0.1), default=60, show_default=True, help="Stop asking after this time."
)
@click.option(
    "--code", type=click.Choice((*LANGUAGES, "none"), case_sensitive=False), help="Print one language [both]."
)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the advice to this file.")
def advise(trace: Path, seconds: float, code: str | None, json_path: Path | None) -> None:
    """Say which dependencies of a trace are more than any access needs, and what they serialize.

    Each dependency is left out, else narrowed: structs, bits of masks, ranges. A change is advised when neither judge
    finds anything that it did not find before. Layout transitions and transfers of ownership stay. Advice is about this
    trace only.

    Exit codes: 0 whatever is advised.
    """
    from vkharness.advising.advise import advise as advised
    from vkharness.cli.readable import load_readable
    from vkharness.report.advice import advice_document, advice_text
    from vkharness.report.console import terminal

    blocks, _ = load_readable(trace)
    with terminal(stderr=True).status("judging") as status:
        found = advised(blocks, seconds, status.update)
    languages = LANGUAGES if code is None else () if code == "none" else (code,)
    for number, each in enumerate(found.advice, 1):
        for line in advice_text(number, each, languages):
            echo(line)
    notes = found.notes
    for line in notes:
        echo(line)
    if json_path is not None:
        from vkharness.report.findings_json import write_json

        write_json(json_path, advice_document(found.advice, notes))
