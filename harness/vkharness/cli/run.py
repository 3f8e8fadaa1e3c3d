"""`vkharness run PROGRAM [ARGS]`: runs an unmodified program and judges its Vulkan calls.

Python source runs in this process, under the mirror in front of the `vulkan` package. Any other program runs under the
mirror layer (`vkharness.cli.live`), or under the capture layer (`vkharness.cli.captured`).
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vkharness.cli import INTERRUPTED
from vkharness.cli.frame_range import FrameRange
from vkharness.cli.last_resort import echo
from vkharness.cli.processes import Options, Untaken
from vkharness.cli.verdict import (
    BOUNDS_OPTION,
    IGNORE,
    IGNORE_OPTION,
    LIVE_WORK_OPTION,
    MODEL_OPTION,
    SARIF_OPTION,
    STRICT_OPTION,
)
from vkharness.cli.watched import Progress, watched
from vkharness.findings import UserError
from vkharness.verdicts import JudgedShare, ProgramEnd

if TYPE_CHECKING:
    from vkharness.check import Analysis
    from vkharness.cli.patience import Patience
    from vkharness.record.session import Session

OWN_OPTIONS = ("--json", "--sarif", "--trace")
"""Options with a value that are ours also behind the program's name, unless `--` stands before them."""
BEFORE_PROGRAM = ("--frames", "--model", "--display", "--recorder", "--skip", "--break-at", IGNORE)
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
        elif word in OWN_OPTIONS or (word in BEFORE_PROGRAM and not rest):
            value = next(words, None)
            if value is None:
                raise click.BadOptionUsage(word, f"Option '{word}' requires an argument.")
            own += [word, value]
        elif word.startswith(tuple(f"{option}=" for option in OWN_OPTIONS)) or (not rest and word.startswith("-")):
            own.append(word)
        else:
            rest.append(word)
    return own, rest


class Pattern(click.ParamType):  # type: ignore[type-arg]
    """A regular expression."""

    name = "PATTERN"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> re.Pattern[str]:
        """The pattern; refused when it is none."""
        try:
            return re.compile(value)
        except re.error as error:
            self.fail(f"{value!r} is no regular expression: {error}", param, ctx)


@click.command(
    cls=RunCommand,
    options_metavar="[--json FILE] [--sarif FILE] [--trace FILE] [--frames N|A-B] [--headless | --capture]"
    " [--recorder WHICH] [--live] [--break] [--break-at CALL] [--skip PATTERN]... [--display WHICH] [--ignore FILE]"
    " [--model WHEN] [--bounds] [--strict]",
)
@click.option("--json", "json_path", type=click.Path(path_type=Path), help="Write the findings to this file.")
@SARIF_OPTION
@click.option("--trace", "trace_path", type=click.Path(path_type=Path), help="Write the recorded trace to this file.")
@click.option("--headless", is_flag=True, help="Python programs: windows (glfw) are of no display, on SwiftShader.")
@click.option(
    "--frames",
    type=FrameRange(),
    help="Captured programs: judge these frames and end the program after them [all]. "
    "With --headless: how many until the windows ask to be closed [30].",
)
@click.option("--capture", is_flag=True, help="Run a Python program under a layer, like any other program.")
@click.option(
    "--recorder",
    type=click.Choice(["auto", "mirror", "gfxreconstruct"]),
    default="auto",
    show_default=True,
    help="The layer under which other programs run; auto: the mirror layer where it is built.",
)
@click.option("--live", "tells_at_once", is_flag=True, help="Under the mirror layer: print each finding as it comes.")
@click.option(
    "--break", "breaks", is_flag=True, help="Under the mirror layer: the program gets SIGTRAP in the call of a finding."
)
@click.option("--break-at", type=click.IntRange(min=0), metavar="CALL", help="The same, in the call with this number.")
@click.option(
    "--skip",
    "skipped",
    type=Pattern(),
    multiple=True,
    help="Frames of native code that are no call site: a regular expression of `function at file:line in module`.",
)
@click.option(
    "--display",
    type=click.Choice(["auto", "xvfb", "none"]),
    default="auto",
    show_default=True,
    help="Where a captured program's windows are; auto: on the display there is, else on Xvfb.",
)
@IGNORE_OPTION
@MODEL_OPTION
@LIVE_WORK_OPTION
@BOUNDS_OPTION
@STRICT_OPTION
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[ARGS]...")
@click.pass_context
def run(
    ctx: click.Context,
    /,
    program: str,
    arguments: tuple[str, ...],
    headless: bool,
    frames: tuple[int, int] | None,
    capture: bool,
    **given: Any,
) -> None:
    """Run an unmodified program and judge its Vulkan calls.

    Python source runs under the mirror. Any other program, a file or a name on the path, runs under the mirror layer,
    or GFXReconstruct's capture layer where that is not built, and each of its processes gets a verdict. A Python
    program whose Vulkan calls do not come from the vulkan package runs a second time, under a layer.

    The verdict goes to stderr, beside what the program itself prints. --json, --sarif and --trace may stand before
    PROGRAM or among its arguments; behind a -- everything is the program's. When the program fails, its exit code is
    passed on, and the verdict says so. Ctrl-C after its end asks for the verdict at once.
    """
    from vkharness.cli import captured

    options = _options(program, frames, given)
    source = Path(program)
    captured.refuse_recorded(source)
    is_source = captured.is_python_source(source)
    if headless and not is_source:
        raise UserError(f"--headless is for Python programs; {program} runs with --display xvfb")
    if options.waits and is_source and not capture:
        raise UserError("--break and --break-at of a Python program go with --capture")
    if capture and is_source:
        ctx.exit(_run_again(source, arguments, options))
    if is_source and frames is not None and not headless:
        raise UserError("--frames of a Python program goes with --headless or --capture")
    if headless:
        from vkharness.device.windowless import make_windowless

        make_windowless(30 if frames is None else frames[1])
    ctx.exit(run_judged(program, arguments, options))


def _options(program: str, frames: tuple[int, int] | None, given: Mapping[str, Any]) -> Options:
    from vkharness.cli.verdict import ignore_file

    # The program may change its folder before these are written.
    json, sarif, trace = (
        each and each.absolute() for each in map(given.get, ("json_path", "sarif_path", "trace_path"))
    )
    asked = "" if frames is None else f"{frames[0]}-{frames[1]}"
    how = {each: given[each] for each in ("recorder", "tells_at_once", "skipped", "breaks", "break_at", "strict")}
    ignored = ignore_file(given["ignore_path"])
    bounds, display = given["bounds"], given["display"]
    return Options(json, sarif, trace, given["model"], bounds, asked, display, ignored, program, **how)


def run_judged(program: str, arguments: tuple[str, ...], options: Options) -> int:
    """Runs a program and prints its verdict; the exit code. Returns in the process of a Python program, too."""
    from vkharness.cli import captured
    from vkharness.cli.live import run_native

    source = Path(program)
    if not captured.is_python_source(source):
        return run_native(captured.command_of(program, arguments), options)
    dies = partial(captured.judge_dead, options)
    return watched(partial(_run_python, source, arguments, options), dies, alike=not options.goes_on)


def _run_python(program: Path, arguments: tuple[str, ...], options: Options, progress: Progress) -> int:
    """Runs Python source under the mirror, and again under the capture layer if its calls came from elsewhere; the exit
    code."""
    import vkharness
    from vkharness.cli import captured, processes
    from vkharness.cli.patience import Patience
    from vkharness.cli.verdict import make_analysis
    from vkharness.record.program_runner import exit_status

    process, patience, untaken = os.getpid(), Patience(), Untaken()
    with ExitStack() as stack:
        writer = None
        if options.trace_path is not None:
            from vkharness.trace.codec import TraceWriter

            writer = stack.enter_context(TraceWriter(options.trace_path))
        counts = not options.ignored.entries
        analysis = make_analysis(options.model, options.bounds, options.strict, counts)
        session = stack.enter_context(vkharness.attach(mirror=analysis, sink=None if writer is None else writer.keep))
        end = _to_its_end(program, arguments, session, patience)
        if os.getpid() != process:
            # A child that the program forked, and that came to its end: the verdict is its parent's.
            os._exit(end.exit_code)
        progress.ended(end.exit_code)
        if end.failed and session.saw_calls:
            session.cut_off(str(end))
        if writer is not None and not session.saw_calls and writer.path.exists():
            writer.abort()  # the trace that is there is better than one without a call
        elif writer is not None:
            untaken.take(writer.close)
    if session.saw_calls:
        _judge(session, analysis, program, options, end, patience, untaken)
    elif not end.failed and captured.has_driver():
        echo("vkharness: no call came through the vulkan package: once more, under a layer", err=True)
        return _run_again(program, arguments, options)
    else:
        processes.tell_of_no_call(options, end)
    return exit_status(session, end.exit_code) or (INTERRUPTED if patience.pressed else untaken.code)


def _run_again(program: Path, arguments: Sequence[str], options: Options) -> int:
    """Runs a Python program in a process of its own under a layer; the exit code."""
    from vkharness.cli.live import run_native

    return run_native([sys.executable, str(program), *arguments], options)


def _to_its_end(program: Path, arguments: tuple[str, ...], session: Session, patience: Patience) -> ProgramEnd:
    """Runs the program; how it ended. From then on Ctrl-C interrupts nothing that cannot be left out."""
    from vkharness.record.program_runner import run_program

    status = INTERRUPTED
    with suppress(KeyboardInterrupt):
        status = run_program(str(program), arguments, session)
    patience.begin()
    return ProgramEnd(status, "SIGINT" if status == INTERRUPTED else "")


def _judge(
    session: Session,
    analysis: Analysis,
    program: Path,
    options: Options,
    end: ProgramEnd,
    patience: Patience,
    untaken: Untaken,
) -> None:
    """Prints the verdict, and writes the files that were asked for."""
    from vkharness.cli import processes
    from vkharness.cli.verdict import ask_model

    for name in sorted(session.cut_chains):
        echo(f"vkharness: note: {name} leads to no memory or in a circle; what is behind was not seen", err=True)
    for error in session.internal_errors:
        echo(f"vkharness: inside the mirror: {error}", err=True)
    answer = ask_model(analysis, options.model, patience)
    if patience.pressed:
        end = replace(end, judged=JudgedShare.PART)
    processes.tell(session, answer, str(program), options, end, untaken)
    options.ignored.require_use()
