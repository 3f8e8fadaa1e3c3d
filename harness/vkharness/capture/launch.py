"""Runs a program under the capture layer, and gathers what each of its processes left.

The layer names a file by the second in which it was made. Two processes, or two instances of one process, may begin in
the same second, and the second one would overwrite the first. So each file gets a name of its own as soon as it
appears; the process that has it open goes on writing. Processes that begin within the same few milliseconds may still
share a file. Then nothing in it is whole, and `CapturedProcess.shared` says so.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vkharness.device.parent_death import start_that_dies
from vkharness.extras import brought_by
from vkharness.findings import UserError
from vkharness.verdicts import ProgramEnd

STEM = "calls"
"""The start of the names of capture files as the layer makes them (`_Gatherer` gives them others)."""


@dataclass(slots=True)
class CapturedProcess:
    """A capture file, and the process that wrote it: its number and its name, 0 and empty when it was gone already.

    `executable` is the file that the process ran, by its whole path. `instance` counts the captures of one process,
    which has one for each of its instances; 0 for the only one. `shared` says that several processes wrote it.
    """

    path: Path
    process: int = 0
    name: str = ""
    shared: bool = False
    instance: int = 0
    executable: str = ""

    def __str__(self) -> str:
        instance = f", instance {self.instance}" if self.instance else ""
        return f"process {self.process} ({self.name}){instance}" if self.process else "a process"


@dataclass(slots=True)
class ProgramRun:
    """How a program ended, the number of its process, and its captures."""

    end: ProgramEnd
    process: int
    captures: list[CapturedProcess]


class _Gatherer:
    """Gives each new capture file a name of its own."""

    def __init__(self) -> None:
        self.captures: list[CapturedProcess] = []
        self.complete = threading.Event()
        """Set when a capture file was closed: with a range of frames, nothing more will come."""
        self._lock = threading.Lock()

    def take(self, path: Path) -> None:
        """Renames a file of the layer's, and finds out whose it is."""
        if path.suffix != ".gfxr" or not path.name.startswith(STEM):
            return
        with self._lock:
            target = path.with_name(f"process-{len(self.captures) + 1}.gfxr")
            try:
                path.rename(target)
            except FileNotFoundError:
                return
            writers = _writers_of(target) or [(0, "")]
            process, name = writers[0]
            shared, executable = len(writers) > 1, executable_of(process)
            self.captures.append(CapturedProcess(target, process, name, shared, executable=executable))


def run_captured(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    started: Callable[[], object] = lambda: None,
    *,
    stop_after_capture: bool = False,
) -> ProgramRun:
    """Runs `command` to its end with the standard streams of this process.

    Its captures are in `folder`, in the order in which they began. An interrupt from the terminal ends the program, not
    this process. `started` is called once it runs. With `stop_after_capture` the program is asked to end (SIGTERM)
    once a capture file is complete.
    `UserError` when the program cannot be started.
    """
    gatherer = _Gatherer()
    with _observed(folder, gatherer):
        process, end = _run(command, environment, started, gatherer.complete if stop_after_capture else None)
    for left in sorted(folder.glob(f"{STEM}*.gfxr")):  # made at the very end
        gatherer.take(left)
    number_instances(gatherer.captures)
    return ProgramRun(end, process, gatherer.captures)


@contextlib.contextmanager
def _observed(folder: Path, gatherer: _Gatherer) -> Iterator[None]:
    """Tells the gatherer of each file that appears in a folder, and when a capture was written and closed."""
    with brought_by("capture", "--recorder gfxreconstruct"):
        from watchdog.events import FileClosedEvent, FileCreatedEvent, FileSystemEvent, FileSystemEventHandler
        from watchdog.observers import Observer

    class Handler(FileSystemEventHandler):
        def on_created(self, event: FileSystemEvent) -> None:
            if isinstance(event, FileCreatedEvent):
                gatherer.take(Path(os.fsdecode(event.src_path)))

        def on_closed(self, event: FileClosedEvent) -> None:
            if Path(os.fsdecode(event.src_path)).suffix == ".gfxr":
                gatherer.complete.set()

    observer = Observer()
    observer.schedule(Handler(), str(folder))
    observer.start()
    try:
        yield
    finally:
        observer.stop()
        observer.join()


def number_instances(captures: Sequence[CapturedProcess]) -> None:
    """Numbers the captures of processes that have several, from 1."""
    for process in {each.process for each in captures if each.process}:
        own = [each for each in captures if each.process == process]
        for number, each in enumerate(own if len(own) > 1 else (), 1):
            each.instance = number


def _run(
    command: Sequence[str],
    environment: Mapping[str, str],
    started: Callable[[], object],
    complete: threading.Event | None,
) -> tuple[int, ProgramEnd]:
    try:
        process = start_that_dies(command, environment)
    except OSError as error:
        raise UserError(f"{command[0]}: cannot be started: {error.strerror or error}") from None
    started()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    stopped = False
    try:
        while process.poll() is None:
            if complete is None:
                process.wait()
            elif complete.wait(0.1) and not stopped:
                stopped = True
                process.terminate()
                complete = None
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    asked_to = stopped and process.returncode == -signal.SIGTERM
    return process.pid, ProgramEnd.of_process(0 if asked_to else process.returncode)


def _writers_of(path: Path) -> list[tuple[int, str]]:
    """(process, name) of those who have a file open."""
    wanted = os.stat(path)
    others = [int(name) for name in os.listdir("/proc") if name.isdecimal() and int(name) != os.getpid()]
    return [(each, name_of(each)) for each in others if _holds(each, wanted)]


def _holds(process: int, wanted: os.stat_result) -> bool:
    """Whether a process has a file open. One that has ended or belongs to somebody else has none."""
    folder = f"/proc/{process}/fd"
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):  # closed by now
                if os.path.samestat(os.stat(f"{folder}/{name}"), wanted):
                    return True
    return False


def name_of(process: int) -> str:
    """The name of a process; empty when it is gone."""
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""


def executable_of(process: int) -> str:
    """The file that a process runs, by its whole path; empty when it is gone."""
    try:
        return os.readlink(f"/proc/{process}/exe")
    except OSError:
        return ""
