"""`vkharness races TRACE`: races between the invocations of one dispatch."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli.last_resort import echo
from vkharness.cli.trace_argument import TracePath
from vkharness.findings import UserError


@click.command()
@click.argument("trace", type=TracePath())
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the races to this file.")
@click.pass_context
def races(ctx: click.Context, trace: Path, json_path: Path | None) -> None:
    """Find the races between the invocations of each dispatch of a trace.

    The shaders are executed on the host, with the bytes that the trace leaves them; no driver is needed. Two accesses
    of one place by different invocations race where neither a barrier nor atomics order them and one of them writes.

    Exit codes: 0 no race, 1 races, 2 usage, 3 no race, and some dispatches were not judged.
    """
    from vkharness.cli.readable import load_readable
    from vkharness.races.dispatch_races import find_races
    from vkharness.report.console import terminal
    from vkharness.report.races_text import races_document, races_text

    blocks, _ = load_readable(trace)
    try:
        with terminal(stderr=True).status("executing"):
            found = find_races(blocks)
    except UserError as error:
        raise UserError(f"{trace}: {error}") from None
    for line in races_text(found):
        echo(line)
    count, unjudged = len(found.races), sum(found.unjudged.values())
    several, total = "" if count == 1 else "s", found.judged + unjudged
    left = f", {unjudged} of them not judged to the end" if unjudged else ""
    echo(f"{count} race{several} in {total} dispatch{'' if total == 1 else 'es'}{left}")
    if json_path is not None:
        from vkharness.report.findings_json import write_json

        write_json(json_path, races_document(found))
    ctx.exit(1 if count else 3 if unjudged else 0)
