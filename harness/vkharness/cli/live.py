"""`vkharness run` for a program under the mirror layer: each of its processes is judged while it runs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vkharness.cli import INTERRUPTED
from vkharness.cli.last_resort import echo
from vkharness.cli.patience import Patience
from vkharness.cli.processes import JudgedProcess, Options, Untaken, tell_processes, trace_path_of
from vkharness.findings import UserError
from vkharness.verdicts import ProgramEnd

if TYPE_CHECKING:
    from vkharness.capture.launch import CapturedProcess
    from vkharness.check import Analysis
    from vkharness.device.manifests import Layer
    from vkharness.findings import Finding
    from vkharness.live.process_judge import ProcessJudge
    from vkharness.live.program_folder import ProgramFolder
    from vkharness.live.record_session import RecordSession
    from vkharness.live.stops import Stops
    from vkharness.trace.calls import Block

LIMIT = "VKHARNESS_LIMIT", "32"
"""The layer's setting of how many segments of 16 MiB may wait for the judge before the program does."""
BREAK = "VKHARNESS_BREAK"
"""The layer's setting of whether each call waits for its verdict."""
JUDGED = "VKHARNESS_RUN", "1"
"""Says to the layer that the folder is of one run: who comes after it, or has lost its judge, records nothing."""
NEEDED = 1 << 30
"""Bytes that are free in the folder in memory, or the stream is on the disk."""
GRACE = 5
"""Seconds in which a program ends that was asked to."""
LONGER = 1
"""Seconds in which processes end that the program began and did not wait for."""
INTERRUPTED_WHY = "the judging was interrupted"


def run_native(command: Sequence[str], options: Options) -> int:
    """Runs a program that is no Python source, or whose calls do not come through the `vulkan` package; the exit code.
    The mirror layer records it, or the capture layer where the other one is not built or cannot do what is asked."""
    from vkharness.capture.layer import mirror_layer
    from vkharness.cli.captured import run_under_capture

    layer = None if options.recorder == "gfxreconstruct" else mirror_layer()
    begins_later = options.frames and not options.frames.startswith("1-")
    if options.waits and (layer is None or begins_later):
        raise UserError("--break and --break-at need the mirror layer: built, and from the first frame on")
    if layer is None and options.recorder == "mirror":
        raise UserError("the mirror layer is not built here: run harness/vkharness/native/build.py, or install a wheel")
    if layer is None or begins_later:
        return run_under_capture(command, options)
    return run_live(layer, command, options)


def run_live(layer: Layer, command: Sequence[str], options: Options) -> int:
    """Runs a program under the mirror layer, prints a verdict for each process, and returns the exit code: as
    `captured.run_under_capture` does."""
    from vkharness.capture.display import display
    from vkharness.capture.layer import mirror_environment
    from vkharness.live.program_folder import ProgramFolder
    from vkharness.temporary import temporary_folder

    run = LiveRun(options, command)
    with ExitStack() as stack:
        folder = stack.enter_context(temporary_folder(_memory_folder()))
        shown = stack.enter_context(display(options.display, os.environ))
        program = ProgramFolder(folder, run.begin)
        shown.setdefault(*LIMIT)
        shown[BREAK] = str(int(options.waits))
        shown.update([JUDGED])
        end, process = run.follow(mirror_environment(layer, folder, shown), program)
        code = run.tell(end, process)
    return end.exit_code or (INTERRUPTED if run.patience.pressed else code)


def _memory_folder() -> Path | None:
    """A folder in memory, where there is one with room for what may wait: what is judged at once needs no disk."""
    place = Path("/dev/shm")
    with suppress(OSError):
        room = os.statvfs(place)
        if os.access(place, os.W_OK) and room.f_bavail * room.f_frsize >= NEEDED:
            return place
    return None


def check_streams(folder: Path, options: Options) -> int:
    """Judges the streams that programs under the mirror layer left in a folder, each with a verdict; the exit code."""
    from vkharness.capture.launch import CapturedProcess
    from vkharness.cli.verdict import make_analysis
    from vkharness.live.line_tables import LineTables
    from vkharness.live.native_sites import NativeSites
    from vkharness.live.process_judge import judge_folder, process_of
    from vkharness.live.records import streams_in
    from vkharness.live.stream_blocks import stream_size
    from vkharness.rare_collections import rare_collections
    from vkharness.trace.work_budget import UNITS, begin_file

    judged, tables = [], LineTables()
    for path in streams_in(folder):
        UNITS.source = str(path)
        begin_file(stream_size(path))
        analysis = make_analysis(options.model, options.bounds, options.strict)
        sites = NativeSites(tables, options.skipped)
        with rare_collections():
            session = judge_folder(path, analysis, sites)
        _tell_of_errors(session)
        executable = sites.executable or str(path)
        process = CapturedProcess(path, process_of(path), Path(executable).name, executable=executable)
        judged.append(JudgedProcess(process, analysis, session, None))
    return tell_processes(judged, ProgramEnd(0), options, Patience(), Untaken(), stderr=False)


def _tell_of_errors(session: RecordSession) -> None:
    for name in sorted(session.cut_chains):
        echo(f"vkharness: note: {name} leads to no memory or in a circle; what is behind was not seen", err=True)
    for error in session.internal_errors:
        echo(f"vkharness: inside the mirror: {error.splitlines()[0]} {error.splitlines()[-1]}", err=True)


class LiveRun:
    """One run: its processes, what is pressed meanwhile, and what is told."""

    def __init__(self, options: Options, command: Sequence[str]) -> None:
        from vkharness.live.line_tables import LineTables

        self._options, self._command = options, command
        self._tables, self._untaken = LineTables(), Untaken()
        self.patience = Patience()
        self._interrupts, self._is_over = 0, False
        self._judges: list[tuple[ProcessJudge, Analysis, CapturedProcess, Any]] = []
        self._last_frame = int(options.frames.rpartition("-")[2] or 0)
        self.is_enough = False
        """Whether the last frame that was asked for is judged."""

    def begin(self, folder: Path) -> ProcessJudge:
        """Begins to judge a process."""
        from vkharness.capture.launch import CapturedProcess, executable_of, name_of
        from vkharness.cli.verdict import make_analysis
        from vkharness.live.native_sites import NativeSites
        from vkharness.live.process_judge import ProcessJudge, process_of

        options = self._options
        path = trace_path_of(options, len(self._judges))
        sites = NativeSites(self._tables, options.skipped, at_once=path is not None)
        counts, eager = not options.ignored.entries, options.breaks or None
        analysis = make_analysis(options.model, options.bounds, options.strict, counts, eager)
        trace = None if path is None else LateTrace(path)
        judge = ProcessJudge(
            folder,
            analysis,
            sites,
            live=True,
            sink=None if trace is None else trace.take,
            on_finding=tell_at_once if options.tells_at_once else None,
            last_frame=self._last_frame,
            stops=self._stops(),
        )
        number = process_of(folder)
        process = CapturedProcess(folder, number, name_of(number), executable=executable_of(number))
        self._judges.append((judge, analysis, process, trace))
        return judge

    def _stops(self) -> Stops | None:
        from vkharness.live.stops import Stops

        return Stops(self._stops_at, self._options.break_at) if self._options.waits else None

    def _stops_at(self, finding: Finding) -> bool:
        self._options.ignored.mark([finding])
        return self._options.breaks and finding.counts

    def follow(self, environment: dict[str, str], program: ProgramFolder) -> tuple[ProgramEnd, int]:
        """Runs the program to its end and judges meanwhile; how it ended, and its process."""
        from vkharness.device.parent_death import start_that_dies

        try:
            process = start_that_dies(self._command, environment)
        except OSError as error:
            raise UserError(f"{self._command[0]}: cannot be started: {error.strerror or error}") from None
        with self._signals(process), _shown_progress(self._judges) as show:
            ended = os.pidfd_open(process.pid)
            try:
                program.follow(ended, lambda: self._told(process, show))
                if process.poll() is None and (self.is_enough or self._interrupts):
                    process.terminate()
            finally:
                os.close(ended)
            code = _ended_soon(process) if self.is_enough or self._interrupts else process.wait()
            if not self.is_enough and not self._interrupts:
                self._follow_longer(program)
        stopped = self.is_enough and code in (-signal.SIGTERM, -signal.SIGKILL)
        return ProgramEnd.of_process(0 if stopped else code), process.pid

    def _follow_longer(self, program: ProgramFolder) -> None:
        """Judges what processes do that have not ended with the program, as long as they may take."""
        until = time.monotonic() + LONGER
        for judge, *_ in self._judges:
            if (left := judge.running) is not None:
                try:
                    program.follow(left, lambda: self._is_left or time.monotonic() >= until)
                finally:
                    os.close(left)

    def tell(self, end: ProgramEnd, process: int) -> int:
        """Ends the judging, and tells the verdicts."""
        interrupted = INTERRUPTED_WHY if self._is_left else ""
        judged = []
        # A process that runs another program in its place has a folder for each, and the last one is what ended.
        ended = next((each for each, _, captured, _ in reversed(self._judges) if captured.process == process), None)
        for judge, analysis, captured, trace in self._judges:
            its = end if judge is ended else None
            if judge.executable and judge.executable != captured.executable:
                captured.executable, captured.name = judge.executable, Path(judge.executable).name
            elif not captured.executable:  # it had ended when its folder was found
                captured.executable = str(Path(self._command[0]).absolute())
                captured.name = captured.name or Path(captured.executable).name
            why = interrupted or (str(end) if its is not None and end.failed else "")
            if (left := judge.running) is not None:
                os.close(left)
                why = why or f"{captured} still ran"
                echo(f"vkharness: {captured} outlives the program: judged up to there", err=True)
            judge.finish(why)
            if trace is not None:
                self._untaken.take(trace.close)
            _tell_of_errors(judge.session)
            if judge.session.calls:
                judged.append(JudgedProcess(captured, analysis, judge.session, its))
        if interrupted:
            self.patience.pressed += 1
        return tell_processes(judged, end, self._options, self.patience, self._untaken)

    @property
    def _is_left(self) -> bool:
        """Whether the user does not wait for the judging."""
        return self._interrupts > 1

    def _told(self, process: subprocess.Popen[bytes], show: Any) -> bool:
        show()
        self._is_over = process.poll() is not None
        self.is_enough = any(judge.is_enough for judge, *_ in self._judges)
        return self.is_enough or self._is_left

    @contextmanager
    def _signals(self, process: subprocess.Popen[bytes]) -> Iterator[None]:
        """Ctrl-C reaches the program by itself, from the terminal; a second one says that its verdict is wanted now. So
        does the first one after the program's end was noticed: the one that ends it may be told later than its end."""

        def pressed(*_: object) -> None:
            self._interrupts += 2 if self._is_over else 1

        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, pressed)
        signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
        try:
            yield
        finally:
            self.patience.begin()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _ended_soon(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a program that was asked to end; it is killed when it does not do so within seconds."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(GRACE)
    process.kill()
    return process.wait()


class LateTrace:
    """The trace of a process, which begins with its first block."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: Any = None

    def take(self, block: Block) -> None:
        """Appends a block."""
        if self._writer is None:
            from vkharness.trace.codec import TraceWriter

            self._writer = TraceWriter(self._path)
        self._writer.keep(block)

    def close(self) -> None:
        """Finishes the file, if there was a block. Raises UserError."""
        if self._writer is not None:
            self._writer.close()


def tell_at_once(finding: Finding) -> None:
    """Prints a finding as it comes: the line of the call first."""
    from vkharness.report.printable import printable

    where = f"{finding.site}: " if finding.site else ""
    echo(f"{printable(where)}{finding.hazard}: {printable(finding.message)}", err=True)


@contextmanager
def _shown_progress(judges: Sequence[Any]) -> Iterator[Any]:
    """On a terminal: commands a second, frames, findings and how far judging is behind. In a pipe, nothing."""
    from vkharness.cli.progress import progress

    with progress("waiting for the first Vulkan call") as update:
        last = [time.monotonic(), 0]

        def show() -> None:
            now = time.monotonic()
            if now - last[0] < 0.5:
                return
            calls = sum(judge.session.calls for judge, *_ in judges)
            frames = max((judge.session.frames for judge, *_ in judges), default=0)
            found = sum(judge.findings for judge, *_ in judges)
            behind = sum(judge.bytes_waiting for judge, *_ in judges)
            rate = (calls - last[1]) / (now - last[0])
            last[:] = now, calls
            update(f"{rate:,.0f} calls/s, {frames:,} frames, {found:,} findings, {behind / 1e6:,.1f} MB behind")

        yield show
