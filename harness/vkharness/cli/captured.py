"""What `vkharness run` does with a program that is no Python source: it runs under the capture layer, and each of its
processes is judged by what it left."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vkharness.cli import BAD_INPUT, CLEAN, HAZARDS, UNMODELLED, exit_code
from vkharness.cli.last_resort import echo
from vkharness.findings import UserError

if TYPE_CHECKING:
    from vkharness.capture.launch import CapturedProcess
    from vkharness.check import Analysis
    from vkharness.ignore_file import IgnoreFile

PYTHON_SUFFIXES = (".py", ".pyw")


@dataclass(frozen=True, slots=True)
class Options:
    """What was asked for beside the program. `frames` is a range such as `2-5`, or empty."""

    json_path: Path | None
    sarif_path: Path | None
    trace_path: Path | None
    model: str
    bounds: bool
    frames: str
    display: str
    ignored: IgnoreFile


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

    layer = capture_layer()
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder())
        shown = stack.enter_context(display(options.display, os.environ))
        file = folder / f"{STEM}.gfxr"
        interpreted = Path(command[0]).name.startswith("python")
        environment = capture_environment(layer, file, shown, options.frames, page_faults=not interpreted)
        ended = run_captured(command, folder, environment, stop_after_capture=bool(options.frames))
        if ended.signal_name:
            echo(f"vkharness: the program was ended by {ended.signal_name}; judged up to there", err=True)
        for each in ended.captures:
            each.executable = each.executable or str(Path(command[0]).absolute())
        code = _judge(ended.captures, options)
    return ended.status or code


def _judge(captures: Sequence[CapturedProcess], options: Options) -> int:
    """Judges each capture, prints the verdicts, writes the files that were asked for; the exit code they call for."""
    for capture in captures:
        if capture.shared:
            echo("vkharness: several processes began at once and wrote one capture; run them one by one", err=True)
    whole = [capture for capture in captures if not capture.shared]
    untaken = Untaken()
    judged = [(capture, each) for at, capture in enumerate(whole) if (each := _follow(capture, at, options, untaken))]
    if not judged and whole != captures:
        return UNMODELLED
    if not judged:
        tell_of_no_call(options)
        return UNMODELLED
    documents, codes = [], []
    idle = [capture for capture, analysis in judged if _did_nothing(analysis)]
    idle = idle[1:] if len(idle) == len(judged) else idle
    for capture, analysis in judged:
        told = capture not in idle
        if told and len(judged) > len(idle) + 1:
            echo(f"{capture}:", err=True)
        documents.append(_document(capture, analysis, options, tell=told))
        codes.append(exit_code(analysis.verdict))
    if idle:
        echo(f"{len(idle)} more {'instance' if len(idle) == 1 else 'instances'} submitted nothing", err=True)
    options.ignored.require_use()
    codes += [UNMODELLED] * (len(captures) - len(whole))
    untaken.take(lambda: _write(documents, options))
    return next(code for code in (HAZARDS, UNMODELLED, CLEAN) if code in codes) or untaken.code


def tell_of_no_call(options: Options) -> None:
    """A program without a Vulkan call is not clean: there is nothing that a verdict could be about."""
    when = f" in frames {options.frames}; a program that presents nothing has only frame 1" if options.frames else ""
    echo(f"unknown - no Vulkan call was seen{when}", err=True)
    _write([], options)


def _follow(capture: CapturedProcess, at: int, options: Options, untaken: Untaken) -> Analysis | None:
    """The analysis of a capture, whose calls become a trace of ours if one was asked for. None for one without calls.

    The first process's trace has the name that was asked for, those of others a number behind its stem.
    """
    from vkharness.cli.verdict import make_analysis
    from vkharness.trace.codec import TraceWriter, read_trace

    notes: list[str] = []
    analysis, seen = make_analysis(options.model, options.bounds), 0
    with ExitStack() as stack:
        writer = None
        for block in read_trace(capture.path, notes):
            if writer is None and options.trace_path is not None:
                path = options.trace_path
                writer = stack.enter_context(TraceWriter(path.with_stem(f"{path.stem}-{at + 1}") if at else path))
            if writer is not None:
                writer.keep(block)
            analysis.step(block)
            seen += 1
        analysis.finish()
        if writer is not None:
            untaken.take(writer.close)
    for note in notes:
        echo(f"vkharness: note: {note.replace(str(capture.path), str(capture))}", err=True)
    return analysis if seen else None


def _did_nothing(analysis: Analysis) -> bool:
    """Whether an instance gave no work to a queue, and nothing is to be said of it."""
    return analysis.unjudged.nothing_submitted and not analysis.findings and not analysis.unmodelled


def _document(capture: CapturedProcess, analysis: Analysis, options: Options, *, tell: bool) -> dict[str, Any]:
    """The document of one process; prints its verdict if it is to `tell` it."""
    from vkharness.cli.verdict import ask_model, show
    from vkharness.groups import groups_of
    from vkharness.report.findings_json import verdict_document

    answer = ask_model(analysis, options.model)
    options.ignored.mark(analysis.findings)
    verdict, unmodelled, unjudged = analysis.verdict, analysis.unmodelled, analysis.unjudged
    if tell:
        groups = show(verdict, analysis.findings, unmodelled, answer, unjudged, None, stderr=True)
    else:
        groups = groups_of(analysis.findings)
    document = verdict_document(verdict, groups, unmodelled, answer, unjudged)
    return {"process": capture.process, "program": capture.name, "executable": capture.executable, **document}


def _write(documents: list[dict[str, Any]], options: Options) -> None:
    """Writes the files that were asked for; `documents` are those of the processes."""
    if options.json_path is not None:
        _write_json(options.json_path, documents)
    if options.sarif_path is not None:
        from vkharness.report.sarif import write_sarif

        write_sarif(options.sarif_path, [(each["executable"], each) for each in documents])


def _write_json(path: Path, documents: list[dict[str, Any]]) -> None:
    """One process's document as `check` writes it; of several the worst one's, with all of them in `processes`."""
    from vkharness.report.findings_json import VERSION, write_json

    order = ("hazards", "unknown", "clean")
    empty = {"version": VERSION, "verdict": "unknown", "findings": [], "groups": [], "unmodelled": {}}
    worst = min(documents, key=lambda each: order.index(each["verdict"]), default=empty)
    write_json(path, {**worst, "processes": documents})


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
