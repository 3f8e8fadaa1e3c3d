"""`vkharness run` for a program that is no Python source: it runs under the capture layer, and each of its processes is
judged by the capture that it left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vkharness.cli import INTERRUPTED, UNMODELLED, exit_code
from vkharness.cli.last_resort import echo
from vkharness.cli.patience import Patience
from vkharness.cli.processes import (
    JudgedProcess,
    Options,
    Untaken,
    tell,
    tell_processes,
    trace_path_of,
    write_documents,
)
from vkharness.findings import UserError
from vkharness.verdicts import INCOMPLETE, JudgedShare, ProgramEnd

if TYPE_CHECKING:
    from vkharness.capture.launch import ProgramRun
    from vkharness.check import Analysis
    from vkharness.cli.watched import Progress
    from vkharness.trace.calls import Block

RECORDED_SUFFIXES = (".jsonl", ".gfxr", ".rdc")
PYTHON_SUFFIXES = (".py", ".pyw")


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


def refuse_recorded(program: Path) -> None:
    """Raises `UserError` for a file that is a recorded stream: other commands read those, and nothing runs them."""
    with suppress(OSError), program.open("rb") as file:
        is_lines = program.suffix not in PYTHON_SUFFIXES and file.read(256).lstrip().startswith(b"{")
        if is_lines or program.suffix in RECORDED_SUFFIXES:
            raise UserError(f"{program} is no program but a recorded stream: vkharness check {program}")


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
    judged: list[JudgedProcess] = []
    for at, capture in enumerate(whole):
        its = end if capture.process == ended.process else None
        analysis = _follow(capture.path, str(capture), trace_path_of(options, at), its, options, untaken, patience)
        if analysis is not None:
            judged.append(JudgedProcess(capture, analysis, analysis, its))
    missing = len(captures) - len(whole)
    return tell_processes(judged, end, options, patience, untaken, missing)


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
        untaken.take(lambda: write_documents([], options, end))
        return end.exit_code or UNMODELLED
    end = replace(end, judged=JudgedShare.PART)
    answer = ask_model(analysis, options.model, patience)
    tell(analysis, answer, options.program, options, end, untaken)
    if not options.goes_on:
        echo(f"vkharness: the trace up to there is {part}", err=True)
    return end.exit_code or exit_code(analysis.verdict)


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
    analysis, last, why = make_analysis(options.model, options.bounds, options.strict), -1, ""
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


def has_driver() -> bool:
    """Whether a Vulkan driver is loaded into this process. (The loader itself is, since the mirror needs it.)"""
    from vkharness.device.drivers import find_drivers

    names = {Path(driver.library).name for driver in find_drivers() if driver.library}
    try:
        mapped = Path("/proc/self/maps").read_text(errors="replace")
    except OSError:
        return False
    return any(line.rpartition("/")[2] in names for line in mapped.splitlines())
