"""Packed traces: the lines of a trace, and the bytes that they name, compressed in one file.

What the chunks of a group expand to are lines of JSON (`vkharness.trace.codec`), each with its newline, and before a
line the contents that it is the first to name, each behind a line of its own:

    \\x01 4096
    ... so many bytes
    {"index":17,"meta":{"name":"FillMemoryCommand","args":{...,"size":4096,"data":"#3"}}}

Contents have numbers, from 1 in each file. A line names only contents of its own group.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.trace.binaries import MAX_BINARY, MAX_BLOB, MissingBytes
from vkharness.trace.expanded_room import A_BYTE, AT_FIRST
from vkharness.trace.lines import MAX_BLOCK, Frame
from vkharness.trace.packed_chunks import ChunkKind, ChunkWriter, PackedGroup, read_chunks
from vkharness.trace.work_budget import OverBudget, grow_file, spend_reading

LINES_OF_A_GROUP = 1 << 20
"""Bytes of lines from which on another group begins."""
CONTENTS_OF_A_GROUP = 32 << 20
"""Bytes of contents from which on another group begins."""
KEPT = 2 * CONTENTS_OF_A_GROUP
"""Bytes of contents that a reader keeps, beside those of the line that it reads."""
LEVEL = 1
"""Of zstd. Higher levels take many times as long, and make lines of calls little smaller."""
_MARK = b"\x01"
_PIECE = 1 << 16
"""Bytes that are expanded at a time."""
_WINDOW = 1 << 23
"""Bytes of what came before that the compressed bytes may refer to."""
COUNTED = 64
"""How many times its size what a chunk expands to counts as bytes of a file, for the work that a reader does."""


A_LINE = 4
"""Units of work that a line takes, or contents, whatever it holds."""
BYTES_A_UNIT = 64
"""Bytes of one that take another one."""
AN_ENTRY = 128
"""Bytes of contents that are kept beside their own."""


class PackedLines:
    """The lines and contents of a packed trace that is written to an open file. Raises OSError."""

    def __init__(self, handle: int) -> None:
        self._chunks = ChunkWriter(handle)
        self._groups: list[PackedGroup] = []
        self._pending = bytearray()
        self._compressed = bytearray()
        self._number = self._lines = self._frames = self._expanded = 0
        self._begin()

    def _begin(self) -> None:
        """Begins a group."""
        import zstandard

        self._compressor = zstandard.ZstdCompressor(level=LEVEL).compressobj()
        self._ending = zstandard.COMPRESSOBJ_FLUSH_BLOCK
        self._kind = ChunkKind.BEGINS
        self._stored: dict[bytes, int] = {}
        self._of_lines = self._of_contents = 0
        self._groups.append(PackedGroup(self._chunks.place, self._lines + 1, self._frames, self._number))

    def store(self, data: bytes) -> str:
        """Writes contents if they are not in the group; the name for the line that follows."""
        digest = hashlib.sha256(data).digest()
        number = self._stored.get(digest)
        if number is None:
            self._number += 1
            number = self._stored[digest] = self._number
            self._pending += b"%b %d\n" % (_MARK, len(data))
            self._take(self._pending)
            self._take(data)
            self._pending.clear()
            self._of_contents += len(data)
        return f"#{number}"

    def line(self, raw: bytes, presents: bool) -> None:
        """Appends a line with its newline; whether a frame ends with it."""
        self._pending += raw
        self._of_lines += len(raw)
        self._lines += 1
        self._frames += presents
        if self._of_lines > LINES_OF_A_GROUP or self._of_contents > CONTENTS_OF_A_GROUP:
            self._end()
            self._begin()

    @property
    def waiting(self) -> int:
        """Bytes that are not in the file."""
        return len(self._pending) + len(self._compressed)

    def flush(self) -> None:
        """Brings what was appended to the file, as a chunk."""
        if self._pending:
            self._take(self._pending)
            self._pending.clear()
            self._compressed += self._compressor.flush(self._ending)
        if self._compressed:
            self._chunks.write(self._kind, bytes(self._compressed))
            self._kind = ChunkKind.GOES_ON
            self._compressed.clear()
            self._fill()

    def finish(self) -> None:
        """Writes the end of the file."""
        self._end()
        self._chunks.end(self._groups)

    def discard(self) -> None:
        """Nothing: all is in the one file."""

    def _take(self, data: bytes | bytearray) -> None:
        self._expanded += len(data)
        self._compressed += self._compressor.compress(data)

    def _end(self) -> None:
        """Ends the group."""
        self._take(self._pending)
        self._pending.clear()
        self._compressed += self._compressor.flush()
        self.flush()

    def _fill(self) -> None:
        """Keeps the file in proportion to its contents: a reader expands no more than that (`PackedTrace`)."""
        lacking = (self._expanded - AT_FIRST // 2) // (A_BYTE // 2) - self._chunks.place
        if lacking > 0:
            self._chunks.write(ChunkKind.FILLS, bytes(lacking))


class PackedTrace:
    """A packed trace that is read: its lines one after the other, and the contents that they name."""

    def __init__(self, path: Path, notes: list[str]) -> None:
        """`notes` get a line where the file is cut off."""
        self._path, self._notes = path, notes
        self._contents: dict[str, bytes] = {}
        self._bytes = self._number = 0
        """Bytes that the contents which are kept take; how many contents there were."""

    def lines(self, start: PackedGroup | None = None) -> Iterator[Frame]:
        """Yields each line, from the first of a group on where one is given. Raises UserError."""
        start = PackedGroup(0, 1, 0, 0) if start is None else start
        number, self._number = start.line - 1, start.contents
        with io.BufferedReader(_Expanded(self._path, self._notes, start.place), _PIECE) as file:
            while raw := file.readline(MAX_BLOCK + 1):
                if raw.startswith(_MARK):
                    if not self._keep(raw, file):
                        return
                    continue
                number += 1
                if len(raw) > MAX_BLOCK:
                    raise UserError(f"{self._path}:{number}: a block of more than {MAX_BLOCK >> 20} MiB: not read")
                spend_reading(A_LINE + len(raw) // BYTES_A_UNIT, "lines of a packed trace")
                yield number, raw, raw.endswith(b"\n")
                while self._bytes > KEPT:
                    self._bytes -= len(self._contents.pop(next(iter(self._contents)))) + AN_ENTRY

    def _keep(self, head: bytes, file: io.BufferedReader[Any]) -> bool:
        """Keeps contents; whether they are whole."""
        digits = head[len(_MARK) + 1 : -1]
        if not head.endswith(b"\n"):
            return False
        if not digits.isdigit() or len(digits) > len(str(MAX_BINARY)) or int(digits) > MAX_BINARY:
            raise UserError(f"{self._path}: contents {self._number + 1} have no size that contents have")
        left, pieces = int(digits), []
        spend_reading(A_LINE, "contents of a packed trace")
        while left and (piece := file.read(min(left, _PIECE))):
            spend_reading(len(piece) // BYTES_A_UNIT, "contents of a packed trace")
            pieces.append(piece)
            left -= len(piece)
        if left:
            return False
        data = b"".join(pieces)
        self._number += 1
        self._contents[f"#{self._number}"] = data
        self._bytes += len(data) + AN_ENTRY
        return True

    def load(self, name: str, size: int | None, most: int | None = None) -> bytes:
        """The contents of a name. See `vkharness.trace.binaries.BinaryReader`."""
        data = self._contents.get(name)
        most = MAX_BLOB if most is None else most
        if data is None:
            raise MissingBytes(f"the contents {name[:120]!r} are not before the line that names them")
        if size is not None and len(data) != size:
            raise MissingBytes(f"the contents {name!r} have {len(data)} bytes where the trace says {size}")
        if len(data) > most:
            raise MissingBytes(
                f"the contents {name!r} have {len(data)} bytes, more than the {most >> 20} MiB of a call"
            )
        return data

    def shader(self, module: int, size: int) -> bytes | None:
        """None: nothing is beside the file."""
        return None


class _Expanded(io.RawIOBase):
    """What the chunks of a packed file expand to."""

    def __init__(self, path: Path, notes: list[str], place: int) -> None:
        self._pieces = _pieces(path, notes, place)
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        if not self._ready:
            self._ready = memoryview(next(self._pieces, b""))
        size = min(len(into), len(self._ready))
        into[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


class _GroupSource:
    """The compressed bytes of one group, as a file."""

    def __init__(self, chunks: Iterator[Any]) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")
        self.following: Any = next(chunks, None)
        """The first chunk behind the group."""
        self.stored = 0

    def begin(self) -> None:
        """The group is the one whose first chunk follows."""
        self._add()

    def _add(self) -> None:
        self._left = memoryview(self.following.data)
        self.stored += len(self._left)
        self.following = next(self._chunks, None)
        while self.following is not None and self.following.kind in (ChunkKind.FILLS, ChunkKind.INDEX):
            self.following = next(self._chunks, None)

    def read(self, size: int) -> bytes:
        """Some bytes; none at the end of the group."""
        while not self._left and self.following is not None and self.following.kind is ChunkKind.GOES_ON:
            self._add()
        found, self._left = self._left[:size], self._left[size:]
        return bytes(found)


def _pieces(path: Path, notes: list[str], place: int) -> Iterator[bytes]:
    """Yields what a file expands to from the group at a place on, in pieces. Raises UserError, and OverBudget for what
    is out of proportion."""
    import zstandard

    size = path.stat().st_size
    left, counted = AT_FIRST + A_BYTE * size, 0
    source = _GroupSource(read_chunks(path, notes, place))
    while source.following is not None:
        place, before, expanded, base = source.following.place, source.stored, 0, counted
        if source.following.kind is not ChunkKind.BEGINS:
            raise UserError(f"{path}: byte {place}: a chunk that belongs to nothing: the file is damaged")
        source.begin()
        try:
            reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).read_to_iter(
                source,  # type: ignore[arg-type]  # which has all of a file that is used
                read_size=_PIECE,
                write_size=_PIECE,
            )
            for piece in reader:
                left -= len(piece)
                expanded += len(piece)
                if left < 0:
                    raise OverBudget(
                        f"{path}: byte {place}: out of proportion to the size of its stream: more than "
                        f"{AT_FIRST + A_BYTE * size:,} bytes out of {size:,}",
                        located=True,
                    )
                now = base + min(expanded, COUNTED * (source.stored - before))
                grow_file(counted, now)
                counted = now
                yield piece
        except zstandard.ZstdError as error:
            raise UserError(f"{path}: byte {place}: a group that cannot be expanded ({str(error)[:80]})") from None
        if source.read(1):
            raise UserError(f"{path}: byte {place}: a group with bytes behind its end: the file is damaged")
