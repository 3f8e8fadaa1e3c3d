"""The chunks of a packed trace: pieces of bounded size with a checksum, and an index by frame behind them.

    head    magic, version of the format
    chunk   mark, kind, size, checksum; then so many bytes
    ...
    tail    mark, checksum, place of the first chunk of the index

Chunks of the stream are compressed. One of the kind BEGINS starts a group, which can be read by itself; those of the
kind GOES_ON that follow belong to it. A file that was cut off has no tail, and is read up to its last whole chunk.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple

from vkharness.findings import UserError
from vkharness.trace.lines import open_trace

SUFFIX = ".vkt"
"""Of the name of a packed trace."""
MAGIC = b"\x93VKT\r\n\x1a\n"
VERSION = 3
LARGEST = 1 << 20
"""Bytes of a chunk at most."""
_FILE = struct.Struct("<8sI4x")
_CHUNK = struct.Struct("<4sB3xII")
_TAIL = struct.Struct("<4sIQ")
ENTRY = struct.Struct("<QQQQ")
"""Of the index: a group."""
_CHUNK_MARK, _TAIL_MARK = b"vkc\n", b"end\n"


HEAD = _FILE.pack(MAGIC, VERSION)
"""How each file begins."""


class ChunkKind(IntEnum):
    """What a chunk holds."""

    BEGINS = 1
    GOES_ON = 2
    FILLS = 3
    """Nothing: it keeps the file in proportion to what its chunks expand to."""
    INDEX = 4


_KINDS = frozenset(ChunkKind)


class PackedGroup(NamedTuple):
    """What the index says of a group."""

    place: int
    """Of its first chunk, in bytes."""
    line: int
    """Number of its first line in the stream."""
    frames: int
    """Presents in the lines before it."""
    contents: int
    """How many contents are before it."""


class PackedChunk(NamedTuple):
    """A whole chunk."""

    kind: ChunkKind
    data: bytes
    place: int


def write_all(handle: int, data: bytes | bytearray) -> None:
    """Writes all bytes to an open file. Raises OSError."""
    left = memoryview(data)
    while left:
        left = left[os.write(handle, left) :]


class ChunkWriter:
    """Writes a packed file from its beginning to an open file."""

    def __init__(self, handle: int) -> None:
        """Raises OSError, as everything here does."""
        self._handle = handle
        write_all(handle, HEAD)
        self.place = len(HEAD)
        """Where the next chunk begins."""

    def write(self, kind: ChunkKind, data: bytes) -> None:
        """Writes a chunk, or several where one is too small."""
        for at in range(0, len(data), LARGEST):
            part = data[at : at + LARGEST]
            write_all(self._handle, chunk(kind, part))
            self.place += _CHUNK.size + len(part)
            kind = ChunkKind.GOES_ON if kind is ChunkKind.BEGINS else kind

    def end(self, groups: list[PackedGroup]) -> None:
        """Writes the index and the tail."""
        place = self.place
        self.write(ChunkKind.INDEX, b"".join(ENTRY.pack(*each) for each in groups))
        write_all(self._handle, tail(place))


def chunk(kind: int, data: bytes) -> bytes:
    """A chunk with its head."""
    return _CHUNK.pack(_CHUNK_MARK, kind, len(data), zlib.crc32(data, kind)) + data


def tail(place: int) -> bytes:
    """The tail of a file whose index begins at a place."""
    return _TAIL.pack(_TAIL_MARK, zlib.crc32(place.to_bytes(8, "little")), place)


def parts_of(data: bytes) -> list[tuple[int, bytes]]:
    """The kinds and bytes of the chunks of a file, whatever is wrong with them: for who changes files on purpose."""
    found, at = [], len(HEAD)
    while data.startswith(_CHUNK_MARK, at) and at + _CHUNK.size <= len(data):
        _, kind, size, _ = _CHUNK.unpack_from(data, at)
        at += _CHUNK.size + size
        found.append((kind, data[at - size : at]))
    return found


def is_packed(head: bytes) -> bool:
    """Whether a file that begins with these bytes is a packed trace."""
    return head.startswith(MAGIC)


def read_chunks(path: Path, notes: list[str], place: int = 0) -> Iterator[PackedChunk]:
    """Yields the chunks of a packed file from the one at a place on, or from the first.

    A file that ends in the middle of one is read up to there, and `notes` get a line. Raises UserError for one that is
    damaged.
    """
    with open_trace(path) as file:
        _require_version(path, file.read(_FILE.size))
        file.seek(max(place, _FILE.size))
        while True:
            place = file.tell()
            head = file.read(_CHUNK.size)
            if head.startswith(_TAIL_MARK) and len(head) == _TAIL.size:
                _require_tail(path, place, head, file)
                return
            found = _read_chunk(path, place, head, file)
            if found is None:
                if head:
                    notes.append(f"{path}: the file ends in the middle of a chunk, at byte {place}: read up to there")
                return
            yield found


def _read_chunk(path: Path, place: int, head: bytes, file: BinaryIO) -> PackedChunk | None:
    """The chunk with a head; None where the file ends within it."""
    if len(head) < _CHUNK.size:
        return None
    mark, kind, size, checksum = _CHUNK.unpack(head)
    if mark != _CHUNK_MARK or kind not in _KINDS or size > LARGEST:
        raise UserError(f"{path}: byte {place}: no chunk of a packed trace: the file is damaged")
    data = file.read(size)
    if len(data) < size:
        return None
    if zlib.crc32(data, kind) != checksum:
        raise UserError(f"{path}: byte {place}: a chunk whose checksum is wrong: the file is damaged")
    return PackedChunk(ChunkKind(kind), data, place)


def _require_tail(path: Path, place: int, last: bytes, file: BinaryIO) -> None:
    if last != tail(_TAIL.unpack(last)[2]) or file.read(1):
        raise UserError(f"{path}: byte {place}: no end of a packed trace: the file is damaged")


def _require_version(path: Path, head: bytes) -> None:
    if len(head) < _FILE.size:
        raise UserError(f"{path}: the file ends in its head: nothing to read")
    version = _FILE.unpack(head)[1]
    if version != VERSION:
        raise UserError(
            f"{path}: trace version {version} in one file; this vkharness reads version {VERSION}: update it"
        )


def read_index(path: Path) -> list[PackedGroup]:
    """The groups of a packed file, in order; none where it was cut off. Raises UserError."""
    with open_trace(path) as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - _TAIL.size))
        last = file.read(_TAIL.size)
    place = _TAIL.unpack(last)[2] if len(last) == _TAIL.size else end
    if place >= end or last != tail(place):
        return []
    held = b"".join(each.data for each in read_chunks(path, [], place) if each.kind is ChunkKind.INDEX)
    groups = [PackedGroup(*each) for each in ENTRY.iter_unpack(held[: len(held) // ENTRY.size * ENTRY.size])]
    rising = all(a.place < b.place and a.line <= b.line and a.frames <= b.frames for a, b in pairwise(groups))
    if not rising or any(each.place >= place for each in groups):
        raise UserError(f"{path}: byte {place}: no index of a packed trace: the file is damaged")
    return groups
