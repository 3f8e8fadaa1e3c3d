"""The zip beside a capture's XML: one file for each number by which a value refers to bytes."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

from vkharness.plain_file import open_plain
from vkharness.trace.binaries import MAX_BINARY
from vkharness.trace.expanded_room import ExpandedRoom
from vkharness.trace.lines import Corrupt

_END = b"PK\5\6"
_END_SIZE = 22
"""Bytes of the record at the end, which RenderDoc writes without a comment."""
_LOCATOR = b"PK\6\7"
_LOCATOR_SIZE = 20
"""Of the record before it in archives of more than 4 GiB."""
_MOST_DIRECTORY = 16 << 20
"""Bytes of the list of files: some 300,000."""
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, OSError, EOFError, ValueError)


class ByteArchive:
    """The bytes of one capture. `trouble` says why there are none."""

    def __init__(self, xml: Path) -> None:
        self.path = xml.with_suffix("")
        self.trouble = ""
        self.is_missing = False
        self._file: BinaryIO | None = None
        self._zip: zipfile.ZipFile | None = None
        self._sizes: dict[str, zipfile.ZipInfo] = {}
        self._room = ExpandedRoom(xml, 0)
        try:
            self._open(xml)
        except FileNotFoundError:
            self.is_missing = True
            self.trouble = f"{self.path.name}, which has the bytes, is not beside it"
        except _BROKEN as error:
            self.trouble = f"{self.path.name} cannot be read: {_said(error)}"
        except Corrupt as error:
            self.trouble = f"{self.path.name} cannot be read: {error}"

    def _open(self, xml: Path) -> None:
        if self.path.suffix != ".zip":
            raise FileNotFoundError
        if not self.path.resolve().is_relative_to(xml.parent.resolve()):
            raise Corrupt("a link out of the folder")
        file = self._file = open_plain(self.path)
        size = file.seek(0, 2)
        file.seek(max(0, size - _END_SIZE - _LOCATOR_SIZE))
        end = file.read()
        record, locator = end[-_END_SIZE:], end[:-_END_SIZE]
        directory = int.from_bytes(record[12:16], "little")
        if record[:4] != _END or locator.startswith(_LOCATOR) or directory > _MOST_DIRECTORY:
            raise Corrupt("no zip as RenderDoc writes it")
        self._room = ExpandedRoom(xml, size + xml.stat().st_size)
        self._zip = zipfile.ZipFile(file)
        self._sizes = {each.filename: each for each in self._zip.infolist()}

    def load(self, text: str, size: int, chunk: int) -> bytes | None:
        """The bytes with this number; None where there is no archive. Raises Corrupt."""
        if self._zip is None:
            return None
        number = decimal(text, 9)
        name = "" if number is None else f"{number:06}"
        found = self._sizes.get(name)
        if found is None:
            raise Corrupt(f"{text[:20]!r} is no file of {self.path.name}")
        if found.file_size != size or size > MAX_BINARY or found.compress_type not in _METHODS:
            raise Corrupt(f"{name} of {self.path.name} has {found.file_size} bytes where the capture says {size}")
        self._room.take(chunk, size, found.compress_size)
        try:
            with self._zip.open(found) as file:
                data = file.read(size)
        except _BROKEN as error:
            raise Corrupt(f"{name} of {self.path.name} cannot be read: {_said(error)}") from None
        if len(data) != size:
            raise Corrupt(f"{name} of {self.path.name} ends early")
        return data

    def close(self) -> None:
        """Closes the file."""
        if self._file is not None:
            self._file.close()


def decimal(text: str, digits: int = 20) -> int | None:
    """The number that a text says in so many decimal digits at most; None for what is none."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None


def _said(error: Exception) -> str:
    return str(getattr(error, "strerror", None) or error)[:120].replace("\n", " ")
