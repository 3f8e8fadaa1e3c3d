"""Lines of source of addresses in programs and libraries, from their debug information (DWARF), by `symbolic`.

Debug information may be in a file of its own: below /usr/lib/debug by the build id, or as `.gnu_debuglink` names it.
What is stale says nothing: the build id of the file must be that of the stream.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import re
import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from vkharness.plain_file import open_plain

DEBUG_FOLDERS = (Path("/usr/lib/debug"),)
LARGEST = 4 << 30
"""Bytes of a file at most whose lines are read."""
LONGEST = 1000
"""Characters of a function's name at most."""
MOST_INLINED = 64
_ELF = b"\x7fELF\x02\x01"
"""Of 64 bits, little endian."""


class Line(NamedTuple):
    """What an address is of."""

    site: str
    """`file:line`; without debug information the file that is mapped and the place in it."""
    function: str
    module: str
    is_known: bool = False
    """Whether there is debug information."""

    def __str__(self) -> str:
        return f"{self.function} at {self.site} in {self.module}"


class LineTables:
    """The tables of the files that were asked about. One object serves all processes of a program."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, str], Any] = {}
        self.lines = lru_cache(maxsize=1 << 16)(self._lines)
        """lines(path, build id, address in the file): the lines there, the innermost of inlined ones first."""

    def _lines(self, path: str, build: str, address: int) -> Sequence[Line]:
        table = self._table(path, build)
        found = []
        if table is not None and 0 <= address < 1 << 63:
            with contextlib.suppress(Exception):  # of the library, which has errors of its own for damaged tables
                found = table.lookup(address)[:MOST_INLINED]
        made = [_line(each, path, address) for each in found]
        return made or (Line(f"{path}+{address:#x}", "", path),)

    def _table(self, path: str, build: str) -> Any:
        if (path, build) not in self._tables:
            self._tables[path, build] = _open_table(Path(path), build)
        return self._tables[path, build]


def _line(found: Any, path: str, address: int) -> Line:
    function = demangled(found.symbol or "")[:LONGEST]
    if not found.full_path or not found.line:
        return Line(f"{path}+{address:#x}", function, path)
    return Line(f"{os.path.normpath(found.full_path)}:{found.line}", function, path, True)


_RUST_HASH = re.compile(r"::h[0-9a-f]{16}$")


def demangled(symbol: str) -> str:
    """The name of a function of C++ or Rust as their programmers write it; others as they are."""
    if not symbol.startswith(("_Z", "_R", "__Z")):
        return symbol
    from rust_demangler import demangle

    with contextlib.suppress(Exception):  # of the library, which has errors of its own for what is no such name
        found = str(demangle(symbol))
        if symbol.startswith("_R") or _RUST_HASH.search(found):
            return _RUST_HASH.sub("", found)
    return _of_cpp(symbol) or symbol


def _of_cpp(symbol: str) -> str:
    """The name of a function of C++; empty where there is no library that knows such names, or it is none."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return ""
    demangle, free = library.__cxa_demangle, ctypes.CDLL(None).free
    demangle.restype, free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
    status = ctypes.c_int()
    made = demangle(symbol.encode(), None, None, ctypes.byref(status))
    try:
        return ctypes.string_at(made).decode("utf-8", "replace") if made else ""
    finally:
        free(made)


def _open_table(path: Path, build: str) -> Any:
    """The table of a file, or of the file with its debug information; None where there is none that fits."""
    from symbolic.debuginfo import Archive

    table = None
    for each in _candidates(path, build):
        with contextlib.suppress(Exception):  # files are anybody's, and the library has errors of its own
            with open_plain(each) as file:
                if file.seek(0, 2) > LARGEST:
                    continue
            object_ = next(iter(Archive.open(str(each)).iter_objects()))
            if build and object_.code_id != build:
                continue
            made = object_.make_symcache()
            if "debug" in object_.features:
                return made
            table = table or made
    return table


def _candidates(path: Path, build: str) -> Iterator[Path]:
    """Files that may have the debug information of a file."""
    yield path
    if len(build) > 2:
        for folder in DEBUG_FOLDERS:
            yield folder / ".build-id" / build[:2] / f"{build[2:]}.debug"
    with contextlib.suppress(OSError, ValueError, struct.error), open_plain(path) as file:
        link = _section(file.fileno(), b".gnu_debuglink").split(b"\0", 1)[0].decode("utf-8", "replace")
        if link and "/" not in link:
            yield path.parent / link
            yield path.parent / ".debug" / link
            for folder in DEBUG_FOLDERS:
                yield folder / path.parent.relative_to("/") / link


def _section(descriptor: int, wanted: bytes) -> bytes:
    """The bytes of a section of an ELF file; none where it has no such section."""
    with mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ) as whole:
        if whole[:6] != _ELF:
            return b""
        (table,) = struct.unpack_from("<Q", whole, 40)
        size, count, names = struct.unpack_from("<HHH", whole, 58)
        if size != 64:
            return b""
        headers = [struct.unpack_from("<II16xQQ", whole, table + at * size) for at in range(count)]
        text = headers[names][2] if names < count else 0
        for name, _, begin, length in headers:
            if whole[text + name : text + name + len(wanted) + 1] == wanted + b"\0" and length <= 1 << 16:
                return whole[begin : begin + length]
    return b""
