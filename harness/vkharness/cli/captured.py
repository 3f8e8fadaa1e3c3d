"""`vkharness run` for a program that is no Python source: it runs under the capture layer, and each of its processes is
judged by the capture that it left."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vkharness.cli import BAD_INPUT, CLEAN, HAZARDS, INTERRUPTED, UNMODELLED, exit_code
from vkharness.cli.last_resort import echo
from vkharness.cli.patience import Patience
from vkharness.findings import UserError
from vkharness.verdicts import INCOMPLETE, JudgedShare, ProgramEnd

if TYPE_CHECKING:
    from vkharness.capture.launch import CapturedProcess, ProgramRun
    from vkharness.check import Analysis
    from vkharness.cli.watched import Progress
    from vkharness.ignore_file import IgnoreFile
    from vkharness.record.session import Session
    from vkharness.trace.calls import Block

PYTHON_SUFFIXES = (".py", ".pyw")


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command, beside the program. `frames` is a range such as `2-5`, or empty. With `goes_on` this
    process has more to do when the program has ended: it does not die as the program did, and reads the trace itself.
    """

    json_path: Path | None
    sarif_path: Path | None
    trace_path: Path | None
    model: str
    bounds: bool
    frames: str
    display: str
    ignored: IgnoreFile
    program: str = ""
    goes_on: bool = False


class Untaken:
    """Files that were asked for and that the disk did not take: each is one line, and costs neither the verdict nor the
    program's own exit code."""

    def __init__(self) -> None:
        self.code = CLEAN
        """The exit code where nothing else calls for one."""

    def take(self, write: Callable[[], object]) -> None:
        """Lets a file be written."""
        try:
            write()
        except UserError as error:
            echo(f"vkharness: {error}", err=True)
            self.code = BAD_INPUT


def is_python_source(program: Path) -> bool:
    """Whether a file is Python source that this interpreter can run: by its suffix, or by its first line."""
    if program.suffix in PYTHON_SUFFIXES:
        return True
    try:
        with program.open("rb") as file:
            first = file.readline(256)
    except OSError:
        return False
    return not os.access(program, os.X_OK) if b"\0" not in first and not first.startswith(b"#!") else b"python" in first


def command_of(program: str, arguments: Sequence[str]) -> list[str]:
    """The command line of a program: a file, or a name to be found on the path. `UserError` when there is none."""
    found = shutil.which(program)
    if found is None:
        here = shutil.which(f"./{program}") and "not on the path; write ./ before it for the one in this folder"
        why = here or ("is not executable" if Path(program).is_file() else "no such program")
        raise UserError(f"{program}: {why}")
    return [found, *arguments]


def run_under_capture(command: Sequence[str], options: Options) -> int:
    """Runs a program under the capture layer, prints a verdict for each process, and returns the exit code.

    That is the program's own when it failed; else 1 when any process has a hazard, 3 when no call was seen or something
    is not modelled, 0 when all are clean.
    """
    from vkharness.capture.display import display
    from vkharness.capture.launch import STEM, run_captured
    from vkharness.capture.layer import capture_environment, capture_layer
    from vkharness.temporary import temporary_folder

    layer, patience = capture_layer(), Patience()
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        shown = stack.enter_context(display(options.display, os.environ))
        file = folder / f"{STEM}.gfxr"
        interpreted = Path(command[0]).name.startswith("python")
        environment = capture_environment(layer, file, shown, options.frames, page_faults=not interpreted)
        ended = run_captured(command, folder, environment, patience.begin, stop_after_capture=bool(options.frames))
        for each in ended.captures:
            each.executable = each.executable or str(Path(command[0]).absolute())
        code = _judge(ended, options, patience)
    return ended.end.exit_code or (INTERRUPTED if patience.pressed else code)


def _judge(ended: ProgramRun, options: Options, patience: Patience) -> int:
    """Judges each capture, prints the verdicts, writes the files that were asked for; the exit code they call for."""
    captures, end = ended.captures, ended.end
    for capture in captures:
        if capture.shared:
            echo("vkharness: several processes began at once and wrote one capture; run them one by one", err=True)
    whole = [capture for capture in captures if not capture.shared]
    untaken = Untaken()
    judged: list[_Judged] = []
    for at, capture in enumerate(whole):
        its = end if capture.process == ended.process else None
        analysis = _follow(capture.path, str(capture), _trace_path(options, at), its, options, untaken, patience)
        if analysis is not None:
            judged.append(_Judged(capture, analysis, its))
    if not judged and whole != captures:
        return UNMODELLED
    if not judged:
        tell_of_no_call(options, end)
        return UNMODELLED
    if patience.pressed:
        end = replace(end, judged=JudgedShare.PART)
    documents, codes = [], []
    idle = [each for each in judged if _did_nothing(each.analysis) and not (each.end and each.end.failed)]
    idle = idle[1:] if len(idle) == len(judged) else idle
    if end.failed and not any(each.end for each in judged):
        echo(f"vkharness: {end}; judged up to there", err=True)
    for each in judged:
        told = each not in idle
        if told and len(judged) > len(idle) + 1:
            echo(f"{each.capture}:", err=True)
        documents.append(_document(each, options, patience, tell=told))
        codes.append(exit_code(each.analysis.verdict))
    if idle:
        echo(f"{len(idle)} more {'instance' if len(idle) == 1 else 'instances'} submitted nothing", err=True)
    options.ignored.require_use()
    codes += [UNMODELLED] * (len(captures) - len(whole))
    untaken.take(lambda: _write(documents, options, end))
    return next(code for code in (HAZARDS, UNMODELLED, CLEAN) if code in codes) or untaken.code


def tell_of_no_call(options: Options, end: ProgramEnd | None = None) -> None:
    """A program without a Vulkan call is not clean: there is nothing that a verdict could be about."""
    when = f" in frames {options.frames}; a program that presents nothing has only frame 1" if options.frames else ""
    failed = f"; {end}" if end is not None and end.failed else ""
    echo(f"unknown - no Vulkan call was seen{when}{failed}", err=True)
    _write([], options, end)


def tell(
    judged: Analysis | Session, answer: str, program: str, options: Options, end: ProgramEnd, untaken: Untaken
) -> None:
    """Prints the verdict about a program, and writes the files that were asked for; `answer` is the second judge's."""
    from vkharness.cli.verdict import show

    options.ignored.mark(judged.findings)
    sarif = None if options.sarif_path is None else (options.sarif_path, program)
    said = judged.verdict, judged.findings, judged.unmodelled, answer, judged.unjudged, options.json_path, sarif
    untaken.take(lambda: show(*said, stderr=True, end=end))


def judge_dead(options: Options, progress: Progress, code: int) -> int:
    """Tells a verdict for a process that ended before it told its own, by the trace that it left; the exit code."""
    from vkharness.cli.verdict import ask_model
    from vkharness.whole_file import part_of

    end, untaken, patience = progress.end(code), Untaken(), Patience()
    part = None if options.trace_path is None else part_of(options.trace_path, progress.process)
    analysis = None
    with suppress(UserError):  # it ended before a whole block was written
        analysis = None if part is None else _follow(part, str(part), None, end, options, untaken, patience)
    if analysis is None:
        why = str(end) if end.failed else "the program's process ended without its exit handlers"
        echo(f"unknown - no verdict; {why}\n{INCOMPLETE[end.judged]}", err=True)
        untaken.take(lambda: _write([], options, end))
        return end.exit_code or UNMODELLED
    end = replace(end, judged=JudgedShare.PART)
    answer = ask_model(analysis, options.model, patience)
    tell(analysis, answer, options.program, options, end, untaken)
    if not options.goes_on:
        echo(f"vkharness: the trace up to there is {part}", err=True)
    return end.exit_code or exit_code(analysis.verdict)


def _trace_path(options: Options, at: int) -> Path | None:
    """The trace of a process: the first one's has the name that was asked for, those of others a number behind its
    stem."""
    path = options.trace_path
    return path if path is None or not at else path.with_stem(f"{path.stem}-{at + 1}")


def _follow(
    path: Path,
    name: str,
    trace_path: Path | None,
    end: ProgramEnd | None,
    options: Options,
    untaken: Untaken,
    patience: Patience,
) -> Analysis | None:
    """The analysis of a capture, whose calls become a trace of ours if one was asked for. None for one without calls.

    It is cut off where the program failed that made it, and where the user does not wait for its end.
    """
    from vkharness.cli.verdict import make_analysis
    from vkharness.trace.calls import cut_off
    from vkharness.trace.codec import TraceWriter, read_trace

    notes: list[str] = []
    analysis, last, why = make_analysis(options.model, options.bounds), -1, ""
    with ExitStack() as stack:
        writer = None

        def take(block: Block) -> None:
            if writer is not None:
                writer.keep(block)
            analysis.step(block)

        for block in read_trace(path, notes):
            if writer is None and trace_path is not None:
                writer = stack.enter_context(TraceWriter(trace_path))
            if patience.pressed:
                why = "the judging was interrupted"
                break
            take(block)
            last = block.index
        if end is not None and end.failed:
            why = str(end)
        if why and last >= 0:
            take(cut_off(last, why))
        analysis.finish()
        if writer is not None:
            untaken.take(writer.close)
    for note in notes:
        echo(f"vkharness: note: {note.replace(str(path), name)}", err=True)
    return analysis if last >= 0 else None


class _Judged(NamedTuple):
    """A process that was judged, and how it ended where that is known."""

    capture: CapturedProcess
    analysis: Analysis
    end: ProgramEnd | None


def _did_nothing(analysis: Analysis) -> bool:
    """Whether an instance gave no work to a queue, and nothing is to be said of it."""
    return analysis.unjudged.nothing_submitted and not analysis.findings and not analysis.unmodelled


def _document(judged: _Judged, options: Options, patience: Patience, *, tell: bool) -> dict[str, Any]:
    """The document of one process; prints its verdict if it is to `tell` it."""
    from vkharness.cli.verdict import ask_model, show
    from vkharness.groups import groups_of
    from vkharness.report.findings_json import verdict_document

    capture, analysis, end = judged
    answer = ask_model(analysis, options.model, patience)
    options.ignored.mark(analysis.findings)
    if end is not None and patience.pressed:
        end = replace(end, judged=JudgedShare.PART)
    verdict, unmodelled, unjudged = analysis.verdict, analysis.unmodelled, analysis.unjudged
    if tell:
        groups = show(verdict, analysis.findings, unmodelled, answer, unjudged, None, stderr=True, end=end)
    else:
        groups = groups_of(analysis.findings)
    document = verdict_document(verdict, groups, unmodelled, answer, unjudged, end)
    return {"process": capture.process, "program": capture.name, "executable": capture.executable, **document}


def _write(documents: list[dict[str, Any]], options: Options, end: ProgramEnd | None) -> None:
    """Writes the files that were asked for; `documents` are those of the processes."""
    if options.json_path is not None:
        _write_json(options.json_path, documents, end)
    if options.sarif_path is not None:
        from vkharness.report.sarif import write_sarif

        write_sarif(options.sarif_path, [(each["executable"], each) for each in documents])


def _write_json(path: Path, documents: list[dict[str, Any]], end: ProgramEnd | None) -> None:
    """One process's document as `check` writes it; of several the worst one's, with all of them in `processes`. A
    program that failed is not clean, whatever its processes are."""
    from vkharness.report.findings_json import VERSION, ended, write_json

    order = ("hazards", "unknown", "clean")
    empty = {"version": VERSION, "verdict": "unknown", "findings": [], "groups": [], "unmodelled": {}}
    worst = min(documents, key=lambda each: order.index(each["verdict"]), default=empty)
    if end is not None and end.failed and worst["verdict"] == "clean":
        worst = {**worst, "verdict": "unknown"}
    write_json(path, {**worst, **ended(end), "processes": documents})


def has_driver() -> bool:
    """Whether a Vulkan driver is loaded into this process. (The loader itself is, since the mirror needs it.)"""
    from vkharness.device.drivers import find_drivers

    names = {Path(driver.library).name for driver in find_drivers() if driver.library}
    try:
        mapped = Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return False
    return any(line.rpartition("/")[2] in names for line in mapped.splitlines())


def run_again_captured(program: Path, arguments: Sequence[str], options: Options) -> int:
    """Runs a Python program in a process of its own under the capture layer."""
    return run_under_capture([sys.executable, str(program), *arguments], options)
