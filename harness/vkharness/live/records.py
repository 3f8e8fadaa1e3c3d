"""The records of one process, in order: a folder of segments that grow while the program runs.

A segment is a file of 16 MiB or more, which the layer maps. Records follow its head, each at a multiple of 8 bytes; the
size of one is written last, so that what has a size is complete. A segment that is consumed is removed, unless the
stream is kept. The judge reads copies: the program may change the file, or cut it off, at any time.
"""

from __future__ import annotations

import os
import struct
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

from vkharness.findings import UserError
from vkharness.plain_file import open_plain
from vkharness.trace.work_budget import spend_reading

MAGIC, VERSION = 0x53484B56, 1
GOES_ON = 0xFFFF_FFFF
"""In place of a size: the next record is in the next segment."""
LARGEST = 1 << 32
"""Bytes of a segment at most."""
WINDOW = 1 << 16
"""Bytes of a segment that are read at once; more of a longer record."""
BYTES_A_UNIT = 64
"""Bytes of a record that are one unit of work to read."""
HEAD = struct.Struct("<IIQQQ32x")
"""Of a segment: magic, version, number, size of the file, process."""
_SIZE = struct.Struct("<I")
RECORD = struct.Struct("<IHHIIQ")
"""Head of a record: size, kind, command, thread, stack, serial number."""


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
    """A record, at its place in what was read of a segment."""

    size: int
    kind: int
    command: int
    thread: int
    stack: int
    serial: int
    segment: bytes
    at: int

    def payload(self) -> bytes:
        """A copy of what follows the head."""
        return self.segment[self.at + RECORD.size : self.at + self.size]


class Damaged(Exception):
    """The stream cannot be followed from here on. The message says where and why."""


class _Segment:
    """A segment that is open."""

    def __init__(self, path: Path, number: int) -> None:
        self.path, self.number = path, number
        self._file = open_plain(path)
        try:
            self.size = os.fstat(self._file.fileno()).st_size
            if not HEAD.size + RECORD.size <= self.size <= LARGEST:
                raise Damaged(f"{path.name}: {self.size} bytes are no size of a segment")
            magic, version, told, length, _ = HEAD.unpack(self._bytes(0, HEAD.size))
            if (magic, told, length) != (MAGIC, number, self.size):
                raise Damaged(f"{path.name}: no segment {number} of the mirror layer")
            if version != VERSION:
                raise Damaged(f"{path.name}: version {version} of a newer mirror layer: update vkharness")
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Lets go of the file."""
        self._file.close()

    def read(self, at: int, least: int) -> bytes:
        """So many bytes from a place on at least, or up to the end; up to the first record that is not complete where
        its writer is at work. More than a window are those of one record that is complete."""
        if least > WINDOW:
            return self._bytes(at, least)
        size = min(WINDOW, self.size - at)
        before = self._bytes(at, size)
        # In one go the size of a record may be read after its bytes.
        found = self._bytes(at, size)
        return found if found == before else found[: _complete(before)]

    def _bytes(self, at: int, size: int) -> bytes:
        found = os.pread(self._file.fileno(), size, at)
        if len(found) < size:
            raise Damaged(f"{self.path.name}: it was cut off at byte {at + len(found)}")
        return found


def _complete(window: bytes) -> int:
    """How many bytes the records have that are complete."""
    at = 0
    while at + _SIZE.size <= len(window) and (size := _SIZE.unpack_from(window, at)[0]) not in (0, GOES_ON):
        at += size
    return min(at, len(window))


class _Window(NamedTuple):
    """What was read last for one purpose."""

    number: int = -1
    """Of the segment."""
    begin: int = 0
    bytes: bytes = b""

    def has(self, number: int, at: int, size: int) -> bool:
        """Whether so many bytes of a segment are there."""
        return number == self.number and self.begin <= at and at + size <= self.begin + len(self.bytes)


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
        self._taken = self._at
        """Where the record is that was taken last."""
        self._near, self._far = _Window(), _Window()
        """For `take`, and for `returned`."""

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
        self._near, found, self._at = self._read(self._near, self._at)
        if found is not None:
            self._taken = self._at[0], self._at[1] - found.size
        self._seen = max(self._seen, self._at)
        self._let_go(self._at[0])
        return found

    def take_many(self, take: Callable[[bytes, int, int], tuple[int, int, int]], most: int) -> tuple[int, int, int]:
        """Lets somebody else take the next records: `take` gets bytes, the place in them and how many at most, and
        gives the place behind them, how many, and the serial number of the last one. The bytes, how many, and that
        number."""
        number, at = self._at
        if not self._near.has(number, at, RECORD.size):
            return 0, 0, 0
        place = at - self._near.begin
        behind, count, serial = take(self._near.bytes, place, most)
        self._at = number, at + behind - place
        self._seen = max(self._seen, self._at)
        return behind - place, count, serial

    def give_back(self) -> None:
        """The record that was taken last is the next one again."""
        self._at = self._taken

    def returned(self, serial: int) -> int | None:
        """The result of the call that began with the record `serial`; None where it has not come yet. What comes before
        it is not taken."""
        while serial not in self._results:
            self._far, record, self._seen = self._read(self._far, self._seen)
            if record is None:
                return None
            if record.kind == Kind.RETURN and record.size >= RECORD.size + 16:
                begun, result = struct.unpack_from("<QQ", record.segment, record.at + RECORD.size)
                self._results[begun] = result
        return self._results.pop(serial)

    def missing(self) -> str:
        """What of the stream is not there although its writer went on behind it, in words; empty where nothing is."""
        number, at = self._at
        segment, following = self._segment(number), self._name(number + 1)
        if segment is None:
            return f"{self._name(number)} is not there"
        if at + _SIZE.size <= segment.size and segment.read(at, 0)[: _SIZE.size] == _SIZE.pack(GOES_ON):
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

    def _read(self, window: _Window, place: tuple[int, int]) -> tuple[_Window, Record | None, tuple[int, int]]:
        """The window then, the record at a place, None where there is none yet, and the place behind it."""
        number, at = place
        while True:
            segment = self._segment(number)
            if segment is None:
                return window, None, place
            size = GOES_ON
            if at + _SIZE.size <= segment.size:
                window, size = self._sized(window, segment, at)
            if size != GOES_ON:
                break
            number, at = number + 1, HEAD.size
        if not size:
            return window, None, (number, at)
        if size % 8 or size < RECORD.size or at + size > segment.size:
            raise Damaged(f"{segment.path.name}, byte {at}: a record of {size} bytes")
        if not window.has(number, at, size):
            if size > WINDOW:  # a file with holes takes no room for them, and memory does
                spend_reading(size // BYTES_A_UNIT, "bytes of a record")
            window = _Window(number, at, segment.read(at, size))
        if not window.has(number, at, size):  # somebody changes what was complete
            return window, None, (number, at)
        begin = at - window.begin
        _, kind, command, thread, stack, serial = RECORD.unpack_from(window.bytes, begin)
        record = Record(size, kind, command, thread, stack, serial, window.bytes, begin)
        return window, record, (number, at + size)

    @staticmethod
    def _sized(window: _Window, segment: _Segment, at: int) -> tuple[_Window, int]:
        """The size of the record at a place, 0 where there is none yet, and the window with that."""
        for is_new in (False, True):
            if is_new:
                window = _Window(segment.number, at, segment.read(at, 0))
            if window.has(segment.number, at, _SIZE.size):
                size: int = _SIZE.unpack_from(window.bytes, at - window.begin)[0]
                if size:  # else it may have come meanwhile
                    return window, size
        return window, 0

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
            gone.close()
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
