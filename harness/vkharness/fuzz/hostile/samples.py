"""Inputs of hostile hunts: the files that a command is given, and where the first ones come from."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from vkharness.findings import UserError
from vkharness.fuzz.hostile.binary_changes import SPIRV_MAGIC
from vkharness.fuzz.hostile.record_changes import PAGE, is_segment, trimmed
from vkharness.trace.file_kinds import FileKind
from vkharness.trace.file_kinds import kind_of as stream_kind

TRACE, PACKED, CAPTURE, DUMP = "trace", "packed", "capture", "dump"
IGNORE, OBSERVATIONS, RESULTS = "ignore", "observations", "results"
TEXT = "text"
"""Stream text."""
OF_STREAM = {FileKind.TRACE: TRACE, FileKind.PACKED: PACKED, FileKind.CAPTURE: CAPTURE, FileKind.TEXT: TEXT}
"""The kind of a stream of calls by that of the file; of all others, which are text, it is `DUMP`."""
STREAM_KINDS = (TRACE, PACKED, CAPTURE, DUMP)
"""Streams of calls."""
EXPECTATIONS, BASELINE, STREAMS = "expectations", "baseline", "streams"
CAMPAIGN, ANSWERS, HUNT, SHADER = "campaign", "answers", "hunt", "shader"
RECORDS = "records"
"""What a process under the mirror layer wrote: its folder, of which a segment is changed."""
PROCESS = "process-1"
"""The name of that folder in a sample."""
OF_FORMAT = {
    "vkharness results": RESULTS,
    "vkharness campaign": CAMPAIGN,
    "vkharness matrix": ANSWERS,
    "vkharness hostile hunt": HUNT,
}
"""The kind of a file of lines by the format that its first line names."""
OF_TABLE = ((b"[[expect]]", EXPECTATIONS), (b"[[stream]]", STREAMS))
PARTIAL = ".partial"
"""At the end of the name of a folder that is being made."""
SMALLEST = "smallest"
"""The folder of the smallest input of a fault; empty while it is looked for."""
LARGEST = 4 << 20
"""Bytes of the largest file that is taken as a sample."""


class Sample(NamedTuple):
    """Files by their name relative to one folder. The one called `subject` is what is changed, and what a command
    reads."""

    kind: str
    subject: str
    files: dict[str, bytes]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self.files.values()))

    def with_subject(self, data: bytes) -> Sample:
        """The same with other bytes in the file that is changed."""
        return self._replace(files={**self.files, self.subject: data})

    def write(self, folder: Path) -> None:
        """Puts the files into a folder."""
        for name, data in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def keep(self, folder: Path, told: str = "") -> bool:
        """Makes a folder with the files, and with what is told of them; it appears whole or not at all. False where
        one is there, which stays as it is, but if it is empty."""
        part = folder.with_name(f"{folder.name}.{os.getpid()}{PARTIAL}")
        shutil.rmtree(part, ignore_errors=True)
        self.write(part)
        if told:
            (part / "fault.txt").write_text(told, encoding="utf-8", errors="backslashreplace")
        try:
            part.rename(folder)
        except OSError:
            shutil.rmtree(part)
            if not folder.is_dir():
                raise
            return False
        return True


def remove_left(keep: Path) -> None:
    """Removes from the folder of a hunt what a hunt that was killed had not made whole."""
    for left in (*keep.glob(f"*{PARTIAL}"), *keep.glob(f"*/*{PARTIAL}")):
        shutil.rmtree(left)
    for unfinished in keep.glob(f"*/{SMALLEST}"):
        with suppress(OSError):  # it has a file: it is whole
            unfinished.rmdir()


def kind_of(path: Path, head: bytes) -> str:
    """The kind of a file by its name and its first bytes; empty for one of no known kind."""
    if head[:4] == SPIRV_MAGIC:
        return SHADER
    if is_segment(head):
        return RECORDS
    if path.suffix == ".toml":
        return next((kind for table, kind in OF_TABLE if table in head), IGNORE)
    if path.name.endswith(("-fails.txt", "-skips.txt", "-flakes.txt")):
        return BASELINE
    stream = stream_kind(head)
    if stream is not None:
        return OF_STREAM.get(stream, DUMP)
    first = head.partition(b"\n")[0]
    if b'"header"' in first:  # a trace of which the beginning was changed
        return TRACE
    try:
        value = json.loads(first)
    except ValueError:
        return ""
    if not isinstance(value, dict):
        return ""
    if "vkharness_observations" in value:
        return OBSERVATIONS
    return OF_FORMAT.get(str(value.get("format")), "")


def read_sample(path: Path) -> Sample | None:
    """A file with those beside it that it names; None for one of no known kind, or a large one."""
    with path.open("rb") as file:
        kind = kind_of(path, file.read(4096))
    if kind == RECORDS:
        return _records(path)
    if not kind or path.stat().st_size > LARGEST:
        return None
    data = path.read_bytes()
    files = {path.name: data}
    if kind == TRACE:
        files.update(_binaries(path, data))
    archive = path.with_suffix("")
    if kind == DUMP and archive.suffix == ".zip" and archive.is_file() and archive.stat().st_size <= LARGEST:
        files[archive.name] = archive.read_bytes()
    return Sample(kind, path.name, files)


def _records(segment: Path) -> Sample | None:
    """A segment with the others of its folder, and the page; None of a large stream."""
    beside = sorted(segment.parent.glob("segment-*"))
    if sum(each.stat().st_blocks * 512 for each in beside) > LARGEST:
        return None
    files = {f"{PROCESS}/{each.name}": trimmed(each.read_bytes()) for each in beside}
    if (page := segment.parent / PAGE).is_file():
        files[f"{PROCESS}/{PAGE}"] = page.read_bytes()
    return Sample(RECORDS, f"{PROCESS}/{segment.name}", files)


def _binaries(trace: Path, data: bytes) -> Iterator[tuple[str, bytes]]:
    """The files in folders beside a trace that its text names."""
    for folder in trace.parent.glob(f"{trace.stem}*"):
        for path in sorted(folder.iterdir()) if folder.is_dir() else ():
            if path.is_file() and path.stat().st_size <= LARGEST:
                name = path.relative_to(trace.parent).as_posix()
                if folder.suffix == ".shaders" or name.encode() in data:
                    yield name, path.read_bytes()


def read_samples(paths: Iterable[Path]) -> list[Sample]:
    """The samples among files and in folders. Raises `UserError` where there is none."""
    found = []
    for path in paths:
        files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        try:
            found += [sample for each in files if (sample := read_sample(each)) is not None]
        except OSError as error:
            raise UserError(f"{error.filename}: cannot be read: {error.strerror}") from None
        if not path.is_dir() and not found:
            raise UserError(f"{path}: no trace, capture, list of known findings, observations or results")
    return found
