"""Files of UTF-16 with a byte order mark, as PowerShell's `>` makes them of what a program prints."""

from __future__ import annotations

import codecs
import io
from pathlib import Path
from typing import BinaryIO

from vkharness.trace.lines import open_trace

_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_READ = 1 << 14
"""Bytes that are read at a time."""


class _Recoded(io.RawIOBase):
    """The bytes of a file of UTF-16 as UTF-8. What is none is replaced."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]  # BufferedReader gives one
        while not self._ready and not self._ended:
            raw = self._file.read(_READ)
            self._ended = not raw
            self._ready = self._decoder.decode(raw, self._ended).encode()
        size = min(len(into), len(self._ready))
        into[:size], self._ready = self._ready[:size], self._ready[size:]
        return size

    def close(self) -> None:
        self._file.close()
        super().close()


def open_printed(path: Path) -> BinaryIO:
    """The file opened for reading, as UTF-8 where its first bytes say that it is of UTF-16. Raises UserError."""
    file = open_trace(path)
    is_utf16 = file.read(2) in _MARKS
    file.seek(0)
    return io.BufferedReader(_Recoded(file)) if is_utf16 else file
