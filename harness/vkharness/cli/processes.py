"""What `vkharness run` says of the processes of a program, however they were followed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from vkharness.cli import BAD_INPUT, CLEAN, HAZARDS, UNMODELLED, exit_code
from vkharness.cli.last_resort import echo
from vkharness.cli.patience import Patience
from vkharness.findings import UserError
from vkharness.verdicts import JudgedShare, ProgramEnd

if TYPE_CHECKING:
    from vkharness.capture.launch import CapturedProcess
    from vkharness.check import Analysis
    from vkharness.ignore_file import IgnoreFile
    from vkharness.record.call_recorder import Recorder


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
    recorder: str = "auto"
    """Which layer records a program that is no Python source: `auto`, `mirror` or `gfxreconstruct`."""
    tells_at_once: bool = False
    """Whether findings are printed as they come, where that is known."""
    skipped: tuple[re.Pattern[str], ...] = ()
    """Frames of native code that are no call sites."""
    breaks: bool = False
    """Whether the program gets SIGTRAP in the call of a finding."""
    break_at: int | None = None
    """The call in which it gets SIGTRAP."""
    strict: bool = False
    """Whether hazards by the letter of the specification alone count."""

    @property
    def waits(self) -> bool:
        """Whether each call of the program waits for its verdict."""
        return self.breaks or self.break_at is not None


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


def tell_of_no_call(options: Options, end: ProgramEnd | None = None) -> None:
    """A program without a Vulkan call is not clean: there is nothing that a verdict could be about."""
    when = f" in frames {options.frames}; a program that presents nothing has only frame 1" if options.frames else ""
    failed = f"; {end}" if end is not None and end.failed else ""
    echo(f"unknown - no Vulkan call was seen{when}{failed}", err=True)
    write_documents([], options, end)


def tell(
    judged: Analysis | Recorder, answer: str, program: str, options: Options, end: ProgramEnd, untaken: Untaken
) -> None:
    """Prints the verdict about a program, and writes the files that were asked for; `answer` is the second judge's."""
    from vkharness.cli.verdict import show

    options.ignored.mark(judged.findings)
    sarif = None if options.sarif_path is None else (options.sarif_path, program)
    said = judged.verdict, judged.findings, judged.unmodelled, answer, judged.unjudged, options.json_path, sarif
    untaken.take(lambda: show(*said, stderr=True, end=end))


def trace_path_of(options: Options, at: int) -> Path | None:
    """The trace of a process: the first one's has the name that was asked for, those of others a number behind its
    stem."""
    path = options.trace_path
    return path if path is None or not at else path.with_stem(f"{path.stem}-{at + 1}")


class JudgedProcess(NamedTuple):
    """A process that was judged, and how it ended where that is known."""

    process: CapturedProcess
    analysis: Analysis
    judged: Analysis | Recorder
    """What says what was found: the analysis, or the session whose judge it is."""
    end: ProgramEnd | None


def tell_processes(
    judged: Sequence[JudgedProcess],
    end: ProgramEnd,
    options: Options,
    patience: Patience,
    untaken: Untaken,
    missing: int = 0,
    *,
    stderr: bool = True,
) -> int:
    """Prints the verdicts, and writes the files that were asked for; the exit code that they call for. `missing` are
    processes of which there is nothing to judge. Beside a program that prints, they go to `stderr`."""
    if not judged and missing:
        return UNMODELLED
    if not judged:
        tell_of_no_call(options, end)
        return UNMODELLED
    if patience.pressed:
        end = replace(end, judged=JudgedShare.PART)
    documents, codes = [], []
    idle = [each for each in judged if _did_nothing(each.judged) and not (each.end and each.end.failed)]
    idle = idle[1:] if len(idle) == len(judged) else idle
    if end.failed and not any(each.end for each in judged):
        echo(f"vkharness: {end}; judged up to there", err=True)
    for each in judged:
        told = each not in idle
        if told and len(judged) > len(idle) + 1:
            echo(f"{each.process}:", err=stderr)
        documents.append(_document(each, options, patience, tell=told, stderr=stderr))
        codes.append(exit_code(each.judged.verdict))
    if idle:
        echo(f"{len(idle)} more {'instance' if len(idle) == 1 else 'instances'} submitted nothing", err=stderr)
    options.ignored.require_use()
    codes += [UNMODELLED] * missing
    untaken.take(lambda: write_documents(documents, options, end))
    return next(code for code in (HAZARDS, UNMODELLED, CLEAN) if code in codes) or untaken.code


def _did_nothing(judged: Analysis | Recorder) -> bool:
    """Whether an instance gave no work to a queue, and nothing is to be said of it."""
    return judged.unjudged.nothing_submitted and not judged.findings and not judged.unmodelled


def _document(of: JudgedProcess, options: Options, patience: Patience, *, tell: bool, stderr: bool) -> dict[str, Any]:
    """The document of one process; prints its verdict if it is to `tell` it."""
    from vkharness.cli.verdict import ask_model, show
    from vkharness.groups import groups_of
    from vkharness.report.findings_json import verdict_document

    process, analysis, judged, end = of
    answer = ask_model(analysis, options.model, patience)
    options.ignored.mark(judged.findings)
    if end is not None and patience.pressed:
        end = replace(end, judged=JudgedShare.PART)
    verdict, unmodelled, unjudged = judged.verdict, judged.unmodelled, judged.unjudged
    if tell:
        groups = show(verdict, judged.findings, unmodelled, answer, unjudged, None, stderr=stderr, end=end)
    else:
        groups = groups_of(judged.findings)
    document = verdict_document(verdict, groups, unmodelled, answer, unjudged, end)
    return {"process": process.process, "program": process.name, "executable": process.executable, **document}


def write_documents(documents: list[dict[str, Any]], options: Options, end: ProgramEnd | None) -> None:
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
