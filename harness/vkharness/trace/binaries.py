"""Byte blobs of a trace (SPIR-V, buffer contents), and how they lie in files beside it.

vkharness puts them in the folder `<trace stem>.bin/` under a hash of their content, so that equal blobs are stored
once. A trace names them relative to its own folder, as `gfxrecon-convert --include-binaries` does. A name that leaves
this folder is refused.
"""

from __future__ import annotations

import hashlib
import re
import stat
from pathlib import Path
from typing import Protocol

from vkharness.trace.lines import Corrupt
from vkharness.whole_file import remove_left, replacing

MAX_BINARY = 1 << 30
"""The most bytes that one file beside a trace may have."""
MAX_BLOB = 64 << 20
"""The most bytes of such a file that a parameter of a call names: a shader, data of a pipeline cache."""
SPARSE_FROM = 1 << 20
"""Bytes from which on a file must lie on the disk, at least a 64th of it. A file system may compress."""
MOST_KEPT = 64 << 20
"""Bytes of files that are kept, since several calls may name one."""

_OURS = re.compile(r"([0-9a-f]{32})\.bin\Z")


def _name_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32] + ".bin"


class BinaryWriter(Protocol):
    """Who keeps the blobs of a trace that is written."""

    def store(self, data: bytes) -> str:
        """Keeps bytes; the name for the next block."""


class BinaryReader(Protocol):
    """Who has the blobs of a trace that is read. Every error is a `MissingBytes`: one line, without the file and line
    of the trace."""

    def load(self, name: str, size: int | None, most: int | None = None) -> bytes:
        """The bytes of a name: exactly `size` unless that is None, and at most `most`, or MAX_BLOB."""

    def shader(self, module: int, size: int) -> bytes | None:
        """SPIR-V of a shader module that the trace does not name, None if it is not there."""


class FolderWriter:
    """Stores the blobs of one trace that is being written; `discard` takes back what this writer added."""

    def __init__(self, trace: Path) -> None:
        # A trace that is called *.bin itself must not be in the way of its folder.
        self.folder = trace.with_name((trace.name if trace.suffix == ".bin" else trace.stem) + ".bin")
        self._stored: set[str] = set()
        self._added: list[Path] = []

    def store(self, data: bytes) -> str:
        """Writes `data` if it is not there yet; returns its name relative to the trace's folder."""
        name = _name_of(data)
        if name not in self._stored:
            target = self.folder / name
            if not self._holds(target, data):
                self.folder.mkdir(parents=True, exist_ok=True)
                if not self._added:
                    remove_left(self.folder)
                with replacing(target, cleans=False) as part:
                    part.write_bytes(data)
                self._added.append(target)
            self._stored.add(name)
        return f"{self.folder.name}/{name}"

    @staticmethod
    def _holds(target: Path, data: bytes) -> bool:
        if not target.is_file() or target.is_symlink() or target.stat().st_size != len(data):
            return False
        return target.read_bytes() == data

    def discard(self) -> None:
        """Removes the files that this writer added, and the folder when nothing else is in it."""
        for path in self._added:
            path.unlink(missing_ok=True)
        self._added.clear()
        if self.folder.is_dir() and not any(self.folder.iterdir()):
            self.folder.rmdir()


class MissingBytes(Corrupt):
    """A file beside a trace that is not there, is another one, or may not be read. The trace is not whole."""


class FolderReader:
    """Finds the blobs of one trace: a `BinaryReader`."""

    def __init__(self, trace: Path) -> None:
        self.root = trace.parent.resolve()
        self._kept: dict[Path, bytes] = {}
        self._shaders = [trace.with_name(trace.stem + end) for end in (".gfxr.shaders", ".shaders")]

    def load(self, name: str, size: int | None, most: int | None = None) -> bytes:
        """The bytes of the file `name`, relative to the trace's folder."""
        path = self._inside(name)
        most = MAX_BLOB if most is None else most
        found = path.stat().st_size
        if size is not None and found != size:
            raise MissingBytes(f"the file {name!r} has {found} bytes where the trace says {size}")
        if found > most:
            raise MissingBytes(f"the file {name!r} has {found} bytes, more than the {most >> 20} MiB that are read")
        held = path.stat().st_blocks * 512
        if found > SPARSE_FROM and held < found // 64:
            raise MissingBytes(f"the file {name!r} has {found} bytes, of which {held} are on the disk: a sparse file")
        return self._read(path, name)

    def _read(self, path: Path, name: str) -> bytes:
        """The bytes of a file; those that were read last are kept, since several calls name one file."""
        data = self._kept.pop(path, None)
        if data is None:
            try:
                data = path.read_bytes()
            except OSError as error:
                raise MissingBytes(f"the file {path.name!r} cannot be read: {error.strerror}") from None
            if _OURS.match(path.name) and path.parent.name.endswith(".bin") and _name_of(data) != path.name:
                raise MissingBytes(f"the file {name!r} does not hold the bytes that it was named after")
        self._kept[path] = data
        while len(self._kept) > 1 and sum(map(len, self._kept.values())) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return data

    def shader(self, module: int, size: int) -> bytes | None:
        """SPIR-V of a shader module as `gfxrecon-extract` leaves it beside the trace, None if it is not there."""
        for folder in self._shaders:
            path = folder / f"sh{module}"
            if path.is_file():
                return self.load(f"{folder.name}/{path.name}", size)
        return None

    def _inside(self, name: str) -> Path:
        pure = Path(name)
        if not name or "\0" in name or pure.is_absolute() or ".." in pure.parts:
            raise MissingBytes(f"the file name {name[:120]!r} leaves the trace's folder")
        path = self.root / pure
        try:
            real = path.resolve(strict=True)
            mode = real.stat().st_mode
        except (OSError, RuntimeError, UnicodeEncodeError):
            raise MissingBytes(f"the file {name[:120]!r} that holds these bytes is missing") from None
        if not real.is_relative_to(self.root):
            raise MissingBytes(f"the file {name[:120]!r} is a link out of the trace's folder")
        if not stat.S_ISREG(mode):
            raise MissingBytes(f"{name[:120]!r} is not a regular file")
        return real
