"""Files of JSON Lines that grow while something long goes on, and lose nothing that is done.

A line is on the disk once `append_line` returns. A last line that a killed process left half-written ends in no
newline: `read_lines` tells of it, and `cut_half_line` takes it off before the next line is appended.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from vkharness.findings import UserError

TAIL = 1 << 16
"""Bytes that are read at once while the end of the last whole line is looked for."""


def append_line(handle: int, text: str) -> None:
    """Writes a line to the end of an open file, and syncs it."""
    unsent = memoryview(text.encode() + b"\n")
    os.lseek(handle, 0, os.SEEK_END)
    while unsent:
        unsent = unsent[os.write(handle, unsent) :]
    os.fsync(handle)


def cut_half_line(handle: int) -> None:
    """Ends an open file behind its last whole line."""
    end = os.fstat(handle).st_size
    while end:
        begin = max(0, end - TAIL)
        newline = os.pread(handle, end - begin, begin).rfind(b"\n")
        if newline >= 0:
            end = begin + newline + 1
            break
        end = begin
    os.ftruncate(handle, end)


def read_lines(path: Path, file: IO[bytes], longest: int, trouble: str = "") -> Iterator[dict[str, Any] | None]:
    """The lines as objects; None for a last one that was cut off.

    Raises `UserError` with the number of a line that is none or has over `longest` bytes, `trouble` before the reason.
    """
    number = 0
    while line := file.readline(longest + 1):
        number += 1
        if len(line) > longest:
            raise UserError(f"{path}:{number}: {trouble}a line is longer than {longest} bytes")
        if not line.endswith(b"\n"):
            yield None
            return
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            raise UserError(f"{path}:{number}: {trouble}not JSON") from None
        if not isinstance(value, dict):
            raise UserError(f"{path}:{number}: {trouble}not a JSON object")
        yield value
