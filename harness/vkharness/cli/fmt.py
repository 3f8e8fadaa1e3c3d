"""`vkharness fmt FILE`: the canonical form of a stream text, or the text of a trace."""

from __future__ import annotations

from pathlib import Path

import click

from vkharness.cli import CLEAN, HAZARDS
from vkharness.cli.last_resort import echo
from vkharness.cli.verdict import WORK_OPTION
from vkharness.findings import UserError


@click.command()
@WORK_OPTION
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write to this file, which may be FILE.")
@click.option("--check", "only_check", is_flag=True, help="Write nothing: exit with 1 where FILE has another form.")
@click.pass_context
def fmt(ctx: click.Context, file: Path, output: Path | None, only_check: bool) -> None:
    """Print a stream text in its canonical form, or a trace as stream text.

    A trace that says more than stream text can is refused in one line. docs/text_form.md has the grammar.
    """
    from vkharness.text_form.format import canonical
    from vkharness.text_form.text_file import read_text, telling_where
    from vkharness.text_form.trace_text import text_of
    from vkharness.trace.codec import read_trace
    from vkharness.trace.file_kinds import FileKind, file_kind
    from vkharness.whole_file import write_whole

    if file_kind(file) is FileKind.TEXT:
        given = read_text(file)
        with telling_where(str(file)):
            text = canonical(given)
        if only_check:
            if text != given:
                echo(f"{file}: not in its canonical form (vkharness fmt {file} -o {file})")
            ctx.exit(CLEAN if text == given else HAZARDS)
    elif only_check:
        raise UserError(f"{file}: --check is for stream text")
    else:
        try:
            text = text_of(read_trace(file, []))
        except UserError as error:
            raise UserError(str(error) if str(error).startswith(str(file)) else f"{file}: {error}") from None
    if output is None:
        echo(text.rstrip("\n"))
    else:
        write_whole(output, text)
