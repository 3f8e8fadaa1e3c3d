"""`vkharness run PROGRAM.py [ARGS]`: runs an unmodified program under the mirror."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from harness.cli.verdict import BOUNDS_OPTION, IGNORE, IGNORE_OPTION, MODEL_OPTION

OWN_OPTIONS = ("--json", "--trace")
"""Options with a value that are ours also behind the program's name, unless `--` stands before them."""
FRAMES = "--frames"
MODEL = "--model"
"""These options with a value are ours only before the program's name: programs may have some of their own."""


class RunCommand(click.Command):
    """Leaves everything behind the program's name to the program, but for our own options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Moves our options before the program and a `--` between."""
        own, rest = split_arguments(args)
        return super().parse_args(ctx, [*own, *(["--", *rest] if rest else [])])


def split_arguments(args: list[str]) -> tuple[list[str], list[str]]:
    """(our options, the program and its arguments). The first `--` is dropped; what follows is the program's.

    Raises click.BadOptionUsage for an option of ours that lacks its value.
    """
    own: list[str] = []
    rest: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            rest.extend(words)
        elif word in OWN_OPTIONS or (word in (FRAMES, MODEL, IGNORE) and not rest):
            value = next(words, None)
            if value is None:
                raise click.BadOptionUsage(word, f"Option '{word}' requires an argument.")
            own += [word, value]
        elif word.startswith(tuple(f"{option}=" for option in OWN_OPTIONS)) or (not rest and word.startswith("-")):
            own.append(word)
        else:
            rest.append(word)
    return own, rest


@click.command(
    cls=RunCommand,
    options_metavar="[--json FILE] [--trace FILE] [--headless [--frames N]] [--ignore FILE] [--model WHEN] [--bounds]",
)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the findings to this file.")
@click.option("--trace", "trace_path", type=click.Path(path_type=Path), help="Write the recorded trace to this file.")
@click.option("--headless", is_flag=True, help="Let the program's windows (glfw) be of no display, on SwiftShader.")
@click.option(
    FRAMES,
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    help="With --headless: frames until the windows ask to be closed.",
)
@IGNORE_OPTION
@MODEL_OPTION
@BOUNDS_OPTION
@click.argument("program", type=click.Path(path_type=Path))
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.pass_context
def run(
    ctx: click.Context,
    program: Path,
    arguments: tuple[str, ...],
    json_path: Path | None,
    trace_path: Path | None,
    headless: bool,
    frames: int,
    ignore_path: Path | None,
    model: str,
    bounds: bool,
) -> None:
    """Run an unmodified Python program under the mirror.

    The verdict goes to stderr, beside what the program itself prints. --json and --trace may stand before PROGRAM or
    among its arguments; behind a -- everything is the program's. When the program fails, its exit code is passed on.
    """
    import harness
    from harness.cli.verdict import ask_model, ignore_file, make_analysis, show
    from harness.record.program_runner import exit_status, run_program

    ignored = ignore_file(ignore_path)

    if headless:
        from harness.device.windowless import make_windowless

        make_windowless(frames)
    # The program may change its folder before these are written.
    json_path, trace_path = json_path and json_path.absolute(), trace_path and trace_path.absolute()
    with ExitStack() as stack:
        sink = None
        if trace_path is not None:
            from harness.trace.codec import TraceWriter

            sink = stack.enter_context(TraceWriter(trace_path)).write
        analysis = make_analysis(model, bounds)
        session = stack.enter_context(harness.attach(mirror=analysis, sink=sink))
        status = run_program(str(program), arguments, session)
    for error in session.internal_errors:
        click.echo(f"vkharness: inside the mirror: {error}", err=True)
    answer = ask_model(analysis, model)
    ignored.mark(session.findings)
    show(session.verdict, session.findings, session.unmodelled, answer, session.unjudged, json_path, stderr=True)
    ignored.require_use()
    ctx.exit(exit_status(session, status))
