"""The records of one process, in order: a folder of segments that grow while the program runs.

A segment is a file of 16 MiB or more, which the layer and the judge map. Records follow its head, each at a multiple of
8 bytes; the size of one is written last, so that what has a size is complete. A segment that is consumed is removed,
unless the stream is kept.
"""

from __future__ import annotations

import mmap
import os
import struct
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from vkharness.findings import UserError
from vkharness.plain_file import open_plain

MAGIC, VERSION = 0x53484B56, 1
GOES_ON = 0xFFFF_FFFF
"""In place of a size: the next record is in the next segment."""
LARGEST = 1 << 32
"""Bytes of a segment at most."""
HEAD = struct.Struct("<IIQQQ32x")
"""Of a segment: magic, version, number, size of the file, process."""
_SIZE = struct.Struct("<I")
_RECORD = struct.Struct("<IHHIIQ")


class Kind(IntEnum):
    """What a record is."""

    CALL = 1
    ENTER = 2
    RETURN = 3
    DATA = 4
    COMMAND = 5
    STACK = 6
    MODULE = 7
    UNSEEN = 8
    FILE = 9
    LOST = 10
    PROPERTY = 11


class Record(NamedTuple):
    """A record, at its place in a segment."""

    size: int
    kind: int
    command: int
    thread: int
    stack: int
    serial: int
    segment: mmap.mmap
    at: int

    def payload(self) -> bytes:
        """A copy of what follows the head."""
        return self.segment[self.at + _RECORD.size : self.at + self.size]


class Damaged(Exception):
    """The stream cannot be followed from here on. The message says where and why."""


class _Segment:
    """A segment that is mapped."""

    def __init__(self, path: Path, number: int) -> None:
        self.path = path
        with open_plain(path) as file:
            size = file.seek(0, 2)
            if not HEAD.size + _RECORD.size <= size <= LARGEST:
                raise Damaged(f"{path.name}: {size} bytes are no size of a segment")
            self.bytes = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
        magic, version, told, length, self.process = HEAD.unpack_from(self.bytes)
        if (magic, told, length) != (MAGIC, number, size):
            raise Damaged(f"{path.name}: no segment {number} of the mirror layer")
        if version != VERSION:
            raise Damaged(f"{path.name}: version {version} of a newer mirror layer: update vkharness")


class RecordStream:
    """The records of a process's folder. `take` gives one after the other, `returned` looks ahead."""

    def __init__(self, folder: Path, *, keeps: bool) -> None:
        """`keeps` leaves segments where they are."""
        self.folder = folder
        self._keeps = keeps
        self._segments: deque[_Segment] = deque()
        self._first = 0
        """Number of the first of them."""
        self._at = (0, HEAD.size)
        """The next record: number of its segment, place in it."""
        self._seen = self._at
        """Up to where results were looked for."""
        self._results: dict[int, int] = {}

    @property
    def consumed(self) -> int:
        """Segments that are done with."""
        return self._first

    @property
    def place(self) -> str:
        """Where the next record is, in words."""
        return f"{self._name(self._at[0])}, byte {self._at[1]}"

    def take(self) -> Record | None:
        """The next record; None where there is none yet. Raises Damaged, and OSError."""
        found, self._at = self._read(self._at)
        self._seen = max(self._seen, self._at)
        self._let_go(self._at[0])
        return found

    def take_many(self, take: Callable[[mmap.mmap, int, int], tuple[int, int, int]], most: int) -> tuple[int, int, int]:
        """Lets somebody else take the next records of a segment: `take` gets the segment, the place and how many at
        most, and gives the place behind them, how many, and the serial number of the last one. The bytes, how many, and
        that number."""
        number, at = self._at
        segment = self._segment(number)
        if segment is None:
            return 0, 0, 0
        behind, count, serial = take(segment.bytes, at, most)
        self._at = number, behind
        self._seen = max(self._seen, self._at)
        return behind - at, count, serial

    def give_back(self, record: Record) -> None:
        """The record that was taken last is the next one again."""
        self._at = self._at[0], record.at

    def returned(self, serial: int) -> int | None:
        """The result of the call that began with the record `serial`; None where it has not come yet. What comes before
        it is not taken."""
        while serial not in self._results:
            record, self._seen = self._read(self._seen)
            if record is None:
                return None
            if record.kind == Kind.RETURN and record.size >= _RECORD.size + 16:
                begun, result = struct.unpack_from("<QQ", record.segment, record.at + _RECORD.size)
                self._results[begun] = result
        return self._results.pop(serial)

    def missing(self) -> str:
        """What of the stream is not there although its writer went on behind it, in words; empty where nothing is."""
        number, at = self._at
        segment, following = self._segment(number), self._name(number + 1)
        if segment is None:
            return f"{self._name(number)} is not there"
        if _SIZE.unpack_from(segment.bytes, at)[0] == GOES_ON:
            return f"{following} is not there"
        return f"{self.place}: no record, and {following} follows" if _is_there(self.folder / following) else ""

    def close(self) -> None:
        """Lets go of all segments; those that are not kept are removed."""
        self._let_go(self._first + len(self._segments))

    def bytes_waiting(self) -> int:
        """Bytes of segments that are there and not consumed, about: the judge is so far behind."""
        number, at = self._at
        left = -at
        while (path := self.folder / self._name(number)).exists():
            left += path.stat().st_blocks * 512
            number += 1
        return max(0, left)

    def _read(self, place: tuple[int, int]) -> tuple[Record | None, tuple[int, int]]:
        """The record at a place, None where there is none yet, and the place behind it."""
        number, at = place
        while True:
            segment = self._segment(number)
            if segment is None:
                return None, place
            whole = segment.bytes
            size = _SIZE.unpack_from(whole, at)[0] if at + _SIZE.size <= len(whole) else GOES_ON
            if size != GOES_ON:
                break
            number, at = number + 1, HEAD.size
        if not size:
            return None, (number, at)
        if size % 8 or size < _RECORD.size or at + size > len(whole):
            raise Damaged(f"{segment.path.name}, byte {at}: a record of {size} bytes")
        size, kind, command, thread, stack, serial = _RECORD.unpack_from(whole, at)
        return Record(size, kind, command, thread, stack, serial, whole, at), (number, at + size)

    def _segment(self, number: int) -> _Segment | None:
        if number < self._first:
            raise Damaged(f"{self._name(number)}: it is gone")
        while number >= self._first + len(self._segments):
            following = self._first + len(self._segments)
            path = self.folder / self._name(following)
            if not _is_there(path):
                return None
            self._segments.append(_Segment(path, following))
        return self._segments[number - self._first]

    def _let_go(self, upto: int) -> None:
        while self._segments and self._first < upto:
            gone = self._segments.popleft()
            self._first += 1
            if not self._keeps:
                gone.path.unlink(missing_ok=True)

    @staticmethod
    def _name(number: int) -> str:
        return f"segment-{number:08d}"


def _is_there(path: Path) -> bool:
    """Whether a name is in its folder, even one of a link that leads nowhere."""
    return os.path.lexists(path)


def is_stream(folder: Path) -> bool:
    """Whether a folder is that of a process under the mirror layer."""
    return (folder / "control").is_file() or (folder / RecordStream._name(0)).is_file()


def streams_in(folder: Path) -> list[Path]:
    """The folders of processes in a folder: itself, or those in it. Raises UserError where there is none."""
    if is_stream(folder):
        return [folder]
    found = sorted((each for each in folder.iterdir() if is_stream(each)), key=lambda each: each.stat().st_mtime_ns)
    if not found:
        raise UserError(f"{folder}: a folder with nothing of the mirror layer in it (control, segment-00000000)")
    return found
