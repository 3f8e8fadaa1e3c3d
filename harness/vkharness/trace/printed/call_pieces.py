"""A file that says how each of its calls begins, cut into calls."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO, NamedTuple

from vkharness.trace.lines import MAX_BLOCK, Corrupt

_READ = 1 << 20
"""Bytes that are read at a time."""
_LONGEST_START = 512
"""Bytes of a beginning that may lie in two of them."""


class CallPiece(NamedTuple):
    """The bytes from where a call begins to where the next one does."""

    raw: bytes
    line: int
    is_last: bool


def call_pieces(file: BinaryIO, start: re.Pattern[bytes]) -> Iterator[CallPiece]:
    """The pieces of an open file, in order. Raises Corrupt for a call that is too long."""
    waiting, line = b"", 1
    begun = 0  # bytes of the beginning with which `waiting` starts; 0 where it starts with none
    while piece := file.read(_READ):
        searched = max(begun, len(waiting) - _LONGEST_START)
        waiting += piece
        found = list(start.finditer(waiting, searched))
        starts = [*([0] if begun else []), *(each.start() for each in found)]
        counted = 0
        for begin, end in pairwise(starts):
            line += waiting.count(b"\n", counted, begin)
            counted = begin
            yield CallPiece(waiting[begin:end], line, False)
        keep = starts[-1] if starts else max(0, len(waiting) - _LONGEST_START)
        begun = found[-1].end() - keep if found else begun
        line += waiting.count(b"\n", counted, keep)
        waiting = waiting[keep:]
        if len(waiting) > MAX_BLOCK:
            raise Corrupt(f"a call of more than {MAX_BLOCK >> 20} MiB, which the layer does not write: not read")
    if begun:
        yield CallPiece(waiting, line, True)
