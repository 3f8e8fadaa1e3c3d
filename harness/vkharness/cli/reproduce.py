"""`vkharness reproduce FILE_OR_PROGRAM -o DIR`: from a hazard to a folder that a maintainer can be sent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vkharness.cli import CLEAN, HAZARDS, UNMODELLED
from vkharness.cli.last_resort import echo
from vkharness.cli.progress import progress
from vkharness.cli.trace_argument import TracePath
from vkharness.cli.verdict import IGNORE_OPTION, STRICT_OPTION, WORK_OPTION, ignore_file
from vkharness.findings import UserError

if TYPE_CHECKING:
    from vkharness.case.case_steps import Case, CaseSource
    from vkharness.device.drivers import Driver
    from vkharness.groups import Group
    from vkharness.ignore_file import IgnoreFile
    from vkharness.trace.calls import Block

FIRST = 3
"""Groups of findings that become cases where nobody says how many."""
TRACE_SUFFIXES = (".vkt", ".jsonl", ".json", ".gfxr", ".txt", ".log", ".html", ".rdc", ".xml")
"""A file with one of these is a trace, a capture or a dump: it is never run, unless arguments are given for it."""


@click.command()
@WORK_OPTION
@click.argument("subject", type=TracePath(), metavar="FILE_OR_PROGRAM")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS]...")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The new folder [NAME-case].")
@click.option("--finding", type=click.IntRange(1), help="This group of findings only, as `check` numbers them.")
@click.option("--first", type=click.IntRange(1), help=f"So many groups of findings, from the first on [{FIRST}].")
@IGNORE_OPTION
@STRICT_OPTION
@click.option("--device", help="Show, prove and test on this driver [each software driver that is here].")
@click.option(
    "--seconds", type=click.FloatRange(0), default=600.0, show_default=True, help="Limit for each smaller trace."
)
@click.pass_context
def reproduce(
    ctx: click.Context,
    subject: Path,
    arguments: tuple[str, ...],
    output: Path | None,
    finding: int | None,
    first: int | None,
    ignore_path: Path | None,
    strict: bool,
    device: str | None,
    seconds: float,
) -> None:
    """Make a folder about each hazard that a maintainer can be sent.

    FILE_OR_PROGRAM is a trace, a capture, a dump of api_dump, or a program, whose arguments stand behind a --. The
    folder has a page, pictures of what goes wrong, the smallest trace that still does it, the change that mends it
    with its proof, a scenario where one passes, and a README.txt that says how to run each. DIR.tar.gz has the same.

    A step that cannot be done leaves one line that says why, and the others go on. With several groups of findings,
    each has a folder in DIR.

    Exit codes: 0 clean, and nothing is written; 1 hazards; 2 bad input; 3 nothing found, and something is not modelled.
    Where a program fails, its own.
    """
    from vkharness.case.case_folder import archive_of, new_folder, require_free
    from vkharness.case.case_steps import CaseSource
    from vkharness.temporary import temporary_folder

    if finding is not None and first is not None:
        raise UserError("--finding and --first both say which findings: choose one")
    target = output or Path(f"{subject.stem}-case")
    require_free(target)
    (drivers, no_driver), ignored = _drivers(device), ignore_file(ignore_path)
    with ExitStack() as stack:
        traces, ended, roots = [subject], CLEAN, [Path.cwd()]
        if arguments or _is_program(subject):
            folder = stack.enter_context(temporary_folder())
            traces, ended = _recorded(ctx, subject, arguments, folder, ignored, strict)
            roots.append(subject.absolute().parent)
        tell = stack.enter_context(progress("judging"))
        blocks, groups, verdict = _judged(traces, finding, ignored, strict)
        if not groups:
            echo("nothing to reproduce: no hazard was found")
            ctx.exit(ended or verdict)
        source = CaseSource(blocks, subject.name, drivers, no_driver, seconds, strict)
        made = stack.enter_context(new_folder(target))
        cases = _make(source, groups[: first or FIRST] if finding is None else groups, made, len(groups), roots, tell)
    _tell(cases)
    echo(f"{target / 'index.html'}\n{archive_of(target)}")
    ctx.exit(ended or HAZARDS)


def _is_program(file: Path) -> bool:
    """Whether a file, or a name on the path, is a program and no trace. Text is no program for being text."""
    from vkharness.cli.captured import PYTHON_SUFFIXES
    from vkharness.trace.file_kinds import FileKind, file_kind

    if file.suffix.lower() in TRACE_SUFFIXES:
        return False
    if not file.is_file():
        return os.sep not in str(file) and shutil.which(str(file)) is not None
    if file_kind(file) in (FileKind.PACKED, FileKind.CAPTURE, FileKind.RENDERDOC):
        return False
    try:
        with file.open("rb") as opened:
            begin = opened.read(1)
    except OSError:
        return False  # who reads it as a trace says why
    return begin != b"{" and (file.suffix in PYTHON_SUFFIXES or os.access(file, os.X_OK))


def _recorded(
    ctx: click.Context, subject: Path, arguments: tuple[str, ...], folder: Path, ignored: IgnoreFile, strict: bool
) -> tuple[list[Path], int]:
    """The traces of a program that runs as under `vkharness run`, one for each of its processes and instances, and its
    exit code. Of a process that died, what it had written. Ends the command where there is none."""
    from vkharness.cli.processes import Options
    from vkharness.cli.run import run_judged
    from vkharness.cli.verdict import AUTO

    program = os.path.join(os.curdir, subject) if subject.is_file() else str(subject)
    process, trace = os.getpid(), folder / "trace.vkt"
    options = Options(None, None, trace, AUTO, False, "", "auto", ignored, program, goes_on=True, strict=strict)
    code = run_judged(program, arguments, options)
    if os.getpid() != process:
        ctx.exit(code)  # the process of the program, which has told its verdict
    traces = [*folder.glob(f"{trace.stem}*{trace.suffix}")] or [*folder.glob(f"{trace.name}.partial-*")]
    if not traces:
        echo("nothing to reproduce: the program left no trace", err=True)
        ctx.exit(code or UNMODELLED)
    return sorted(traces, key=lambda each: (len(each.name), each.name)), code


def _drivers(device: str | None) -> tuple[Sequence[Driver], str]:
    """The drivers to try things on; why there is none where nobody named one."""
    from vkharness.device.drivers import chosen_drivers

    try:
        return chosen_drivers([device] if device else []), ""
    except UserError as error:
        if device:
            raise
        return [], str(error)


def _judged(
    traces: Sequence[Path], finding: int | None, ignored: IgnoreFile, strict: bool
) -> tuple[list[Block], list[Group], int]:
    """The blocks of the first trace with groups of findings that count; these groups, or the one that is asked for; the
    exit code where there is none. Says which traces have more."""
    from vkharness.cli.numbered import judged_by_both
    from vkharness.cli.readable import load_readable
    from vkharness.groups import chosen, groups_of

    found: tuple[list[Block], list[Group]] | None = None
    code, more = CLEAN, []
    for trace in traces:
        try:
            blocks, left_out = load_readable(trace)
        except UserError as error:
            raise UserError(f"{error}{_no_program(trace)}") from None
        analysis = judged_by_both(blocks, strict)
        ignored.mark(analysis.findings)
        groups = groups_of(analysis.findings)
        wanted = [each for each in groups if each.counts]
        code = UNMODELLED if left_out or analysis.unmodelled else code
        if found is not None:
            more += [f"{len(wanted)} in {trace.name}"] * bool(wanted)
        elif finding is not None and (wanted or trace is traces[-1]):
            found = blocks, [chosen(groups, finding, trace)]
        elif wanted:
            found = blocks, wanted
    ignored.require_use()
    if more:
        where = f"of `vkharness run --trace {traces[0].name}`"
        echo(f"vkharness: note: more groups of findings are left out: {', '.join(more)} {where}", err=True)
    return (*(found or ([], [])), code)


def _no_program(trace: Path) -> str:
    """Why a broken trace was not run, where its mode says that it can be; empty for others."""
    suffix = trace.suffix.lower()
    if suffix not in TRACE_SUFFIXES or not os.access(trace, os.X_OK):
        return ""
    return f"; *{suffix} is never run as a program, unless arguments stand behind it"


def _make(
    source: CaseSource,
    groups: Sequence[Group],
    folder: Path,
    count: int,
    roots: Sequence[Path],
    tell: Callable[[str], object],
) -> list[Case]:
    """The cases of some groups, of `count` there are: one of them alone fills the folder."""
    from vkharness.case.case_folder import writing
    from vkharness.case.case_page import write_contents, write_page, write_readme
    from vkharness.case.case_steps import Case, make_case
    from vkharness.case.shown_reduction import shown_reduction

    cases = []
    with ExitStack() as stack:
        driver = stack.enter_context(shown_reduction(next(iter(source.drivers), None)))
        for group in groups:
            own = folder if len(groups) == 1 else folder / f"finding-{group.number}"
            with writing(own):
                own.mkdir(exist_ok=True)
            case = Case(source, group, own)
            make_case(case, driver, tell)
            write_page(case, roots)
            write_readme(case)
            cases.append(case)
    if len(groups) > 1:
        write_contents(folder, source.name, cases, count - len(groups))
    return cases


def _tell(cases: Sequence[Case]) -> None:
    """Tells of cases: finished steps on stdout, failed ones on stderr."""
    from vkharness.report.mends import finding_line

    for case in cases:
        echo(f"{case.group.number}. {finding_line(case.group.first)}")
        for each in case.steps:
            for line in each.lines:
                echo(f"    {each.title}: {line}")
            if each.trouble:
                trouble = f"{each.title}: could not be done: {each.trouble}"
                echo(f"vkharness: finding {case.group.number}: {trouble}", err=True)
