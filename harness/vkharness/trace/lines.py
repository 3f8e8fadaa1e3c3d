"""From a trace file to JSON objects, one a block, with bounded memory; every complaint is one line, `file:line: what`.

Accepted are JSON Lines and the indented array that `gfxrecon-convert --format json` writes. In the second, each
top-level object starts with a line `{` and ends with a line `}` or `},`, so that no block needs a parser to be found.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import msgspec

from vkharness.findings import UserError
from vkharness.plain_file import open_plain

T = TypeVar("T")
Frame = tuple[int, bytes, bool]
"""Line number of its start, bytes, whether its end was found, of one block."""

MAX_BLOCK = 64 << 20
"""The most bytes that one block may have. A larger block is refused before it is parsed."""


class Corrupt(Exception):
    """An error in one block. `read_objects` and the codec add the file and the line."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = ""

    def inside(self, outer: str) -> Corrupt:
        """The same complaint, with one more step of the path to the value put in front (`.pRegions`, `[3]`)."""
        self.where = outer + self.where
        return self

    def __str__(self) -> str:
        return f"{self.where.lstrip('.')}: {self.what}" if self.where else self.what


def _no_constant(name: str) -> Any:
    raise Corrupt(f"{name} is not a JSON number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object from its pairs, refused when a key comes twice (readers would disagree on which one counts)."""
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Corrupt(f"the key {twice[:80]!r} comes twice in one object")
    return result


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)


_read, _write = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
_NO_BRACKETS = bytes(set(range(256)) - set(b"{}[]"))
QUICK_BLOCK = 1 << 20
"""The most bytes of a block that is read quickly."""
SHALLOW = 100
"""The most values inside one another of a block that is read quickly; far fewer than any reader can take."""


def parse(raw: bytes) -> dict[str, Any]:
    """One JSON object from its bytes; raises Corrupt with the reason.

    Nearly every block is written in the one way in which a writer writes it: without spaces, each key once. Then
    msgspec writes what it read as the very bytes that it was, and they have no other meaning. Every other block is read
    by `json`, which finds keys that come twice, and says what is wrong.
    """
    if len(raw) <= QUICK_BLOCK and raw.endswith(b"\n"):
        try:
            value = _read(raw)
            if type(value) is dict and _write(value) + b"\n" == raw and _is_shallow(raw):
                return value
        except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
            pass
    return _parse_any(raw)


def _is_shallow(raw: bytes) -> bool:
    """Whether no more than `SHALLOW` values are inside one another. Brackets in texts may make it say no."""
    if raw.count(b"{") + raw.count(b"[") <= SHALLOW:
        return True
    left = raw.translate(None, _NO_BRACKETS)
    for _ in range(SHALLOW):
        left = left.replace(b"{}", b"").replace(b"[]", b"")
        if not left:
            return True
    return False


def _parse_any(raw: bytes) -> dict[str, Any]:
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
    except RecursionError:
        raise Corrupt("nested too deeply") from None
    except UnicodeDecodeError as error:
        raise Corrupt(f"not UTF-8 text at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise Corrupt(f"not JSON: {error.msg} at column {error.colno}") from None
    except ValueError:  # a number with more digits than Python converts
        raise Corrupt("a number with too many digits") from None
    if not isinstance(value, dict):
        raise Corrupt(f"expected a JSON object, found {type(value).__name__}")
    return value


def open_trace(path: Path) -> BinaryIO:
    """The file opened for reading; raises UserError when it cannot be."""
    try:
        return open_plain(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None


def read_objects(path: Path, notes: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yields (line number, object) of each block. Raises UserError; appends to `notes` when the end is cut off."""
    return read_lines(path, notes, parse)


def read_lines(
    path: Path, notes: list[str], read: Callable[[bytes], T], frames: Iterator[Frame] | None = None
) -> Iterator[tuple[int, T]]:
    """Yields (line number, what `read` makes of its bytes) of each block; `read` raises Corrupt. `frames` are those of
    a file that has to be expanded.

    Raises UserError, and appends to `notes` when the end is cut off. A file that ends in the middle of a block is a
    crashed capture: what comes before is yielded, and a note says so. The first object is needed whole: without it
    there is nothing to say about the file.
    """
    whole = 0
    for number, raw, ended in _frames(path) if frames is None else frames:
        try:
            value = read(raw)
        except Corrupt as error:
            if not ended and whole:
                notes.append(f"{path}:{number}: the trace ends in the middle of a block; {whole} whole ones before it")
                return
            raise UserError(f"{path}:{number}: {error}") from None
        whole += 1
        yield number, value
    if not whole:
        raise UserError(f"{path}: empty, not a trace")


def _frames(path: Path) -> Iterator[Frame]:
    with open_trace(path) as file:
        first = file.readline(3)
        file.seek(0)
        yield from _array_frames(path, file) if first.strip() == b"[" else _line_frames(path, file)


def _line_frames(path: Path, file: BinaryIO) -> Iterator[Frame]:
    number = 0
    while raw := file.readline(MAX_BLOCK + 1):
        number += 1
        if len(raw) > MAX_BLOCK:
            raise _too_long(path, number)
        if raw.strip():
            yield number, raw, raw.endswith(b"\n")


def _array_frames(path: Path, file: BinaryIO) -> Iterator[Frame]:
    number, start, size = 0, 0, 0
    pieces: list[bytes] = []
    while raw := file.readline(MAX_BLOCK + 1):
        number += 1
        bare = raw.rstrip()
        if not pieces and bare in (b"", b"[", b"]"):
            continue
        start = start if pieces else number
        size += len(raw)
        if size > MAX_BLOCK:
            raise _too_long(path, start)
        if bare in (b"}", b"},"):
            pieces.append(b"}")
            yield start, b"".join(pieces), True
            pieces, size = [], 0
        else:
            pieces.append(raw)
    if pieces:
        yield start, b"".join(pieces), False


def _too_long(path: Path, number: int) -> UserError:
    return UserError(
        f"{path}:{number}: a block of more than {MAX_BLOCK >> 20} MiB, which no converter writes: not read"
    )
