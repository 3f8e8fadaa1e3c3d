"""The file of a capture: its header, and the blocks that follow, one at a time in memory.

A block is its size (of what follows these 12 bytes), its type, and its content. Bit 31 of the type says that the end of
the content is compressed. A block that is larger than its kind may be is passed over without being read.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from vkharness.findings import UserError
from vkharness.trace.binaries import MAX_BINARY
from vkharness.trace.lines import MAX_BLOCK, Corrupt

MAGIC = b"GFXR"
FRAME, STATE, META, FUNCTION, ANNOTATION, METHOD = 1, 2, 3, 4, 5, 6
COMPRESSED = 1 << 31

_HEADER = struct.Struct("<4sIII")
_OPTION = struct.Struct("<II")
_BLOCK = struct.Struct("<QI")
_COMPRESSION = 1
"""The key of the option that says how blocks are compressed."""
_NAMES = ("none", "lz4", "zlib", "zstd")
_MOST_OPTIONS = 64
_MOST_GROWTH = {1: 256, 2: 1100, 3: MAX_BINARY}
"""How many bytes one compressed byte can make at most, by compression."""


@dataclass(slots=True)
class RawBlock:
    """One block: its number in the file from 0, type without the bit of compression, and content."""

    number: int
    type: int
    compressed: bool
    content: bytes
    size: int
    """Bytes of the content in the file. `content` has fewer when the block is too large to be read."""


class CaptureFile:
    """A capture that is open. A context manager. Raises UserError when the file cannot be read or is no capture."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._file: BinaryIO = path.open("rb")
        except OSError as error:
            raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
        try:
            self.compression = self._read_header()
        except BaseException:
            self._file.close()
            raise
        self.size = os.fstat(self._file.fileno()).st_size
        """Bytes of the file."""

    def _read_header(self) -> int:
        """The number of the compression."""
        head = self._file.read(_HEADER.size)
        if len(head) < _HEADER.size or head[:4] != MAGIC:
            raise UserError(f"{self.path}: a capture that ends in its header")
        _, major, minor, options = _HEADER.unpack(head)
        if major > 0:
            raise UserError(f"{self.path}: a capture in the format {major}.{minor}; this vkharness reads up to 0.x")
        found = 0
        pairs = self._file.read(_OPTION.size * min(options, _MOST_OPTIONS))
        if options > _MOST_OPTIONS or len(pairs) < _OPTION.size * options:
            raise UserError(f"{self.path}: a capture that ends in its header")
        for key, value in _OPTION.iter_unpack(pairs):
            found = value if key == _COMPRESSION else found
        if found >= len(_NAMES):
            raise UserError(f"{self.path}: compressed in a way that this vkharness does not know (number {found})")
        return found

    def blocks(self, notes: list[str]) -> Iterator[RawBlock]:
        """The blocks in order. `notes` gets a line when the file ends in the middle of one."""
        number = 0
        at = self._file.tell()
        while head := self._file.read(_BLOCK.size):
            at += len(head)
            size, kind = _BLOCK.unpack(head) if len(head) == _BLOCK.size else (1, 0)
            if at + size > self.size:
                notes.append(f"{self.path}: the capture ends in the middle of block {number}")
                return
            limit = MAX_BINARY if kind & ~COMPRESSED == META else MAX_BLOCK
            content = self._file.read(min(size, limit) if size <= limit else 64)
            at += size
            self._file.seek(at)
            yield RawBlock(number, kind & ~COMPRESSED, bool(kind & COMPRESSED), content, size)
            number += 1

    def expand(self, data: bytes, size: int, limit: int = MAX_BLOCK) -> bytes:
        """The `size` bytes of which `data` is the compressed form. Raises Corrupt."""
        if size > limit:
            raise Corrupt(f"{size} bytes where at most {limit >> 20} MiB are read")
        if not self.compression:
            raise Corrupt("a compressed block in a file that says that it has none")
        if size > len(data) * _MOST_GROWTH[self.compression]:
            raise Corrupt(f"{size} bytes out of {len(data)} compressed ones")
        try:
            made = _EXPAND[self.compression](data, size)
        except ImportError:
            name = _NAMES[self.compression]
            package = "zstandard" if name == "zstd" else name
            raise UserError(f"{self.path}: compressed with {name}: pip install {package}") from None
        except Exception as error:  # each package has exceptions of its own, and bytes of a capture may cause any
            raise Corrupt(f"compressed bytes that cannot be read: {str(error)[:80]}") from None
        if len(made) != size:
            raise Corrupt(f"{len(made)} bytes out of compressed ones where the block says {size}")
        return made

    def __enter__(self) -> CaptureFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _lz4(data: bytes, size: int) -> bytes:
    import lz4.block

    made: bytes = lz4.block.decompress(data, uncompressed_size=size)
    return made


def _zlib(data: bytes, size: int) -> bytes:
    import zlib

    return zlib.decompressobj().decompress(data, size + 1)


def _zstd(data: bytes, size: int) -> bytes:
    import zstandard

    said = zstandard.frame_content_size(data)
    if said > size:
        raise Corrupt(f"{said} bytes where the block says {size}")
    made: bytes = zstandard.ZstdDecompressor().decompress(data, max_output_size=size)
    return made


_EXPAND = {1: _lz4, 2: _zlib, 3: _zstd}
