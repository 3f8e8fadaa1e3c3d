"""The lines of a trace that is written as text, with its contents in a folder beside it."""

from __future__ import annotations

from pathlib import Path

from vkharness.trace.binaries import FolderWriter
from vkharness.trace.packed_chunks import write_all


class PlainLines:
    """The lines and contents of a trace that is written to an open file: as `vkharness.trace.packed.PackedLines`."""

    def __init__(self, handle: int, path: Path) -> None:
        """`path` is the name that the file will have."""
        self._handle = handle
        self._binaries = FolderWriter(path)
        self._pending = bytearray()
        self.store = self._binaries.store
        self.discard = self._binaries.discard

    @property
    def waiting(self) -> int:
        """Bytes that are not in the file."""
        return len(self._pending)

    def line(self, raw: bytes, presents: bool) -> None:
        """Appends a line with its newline."""
        self._pending += raw

    def flush(self) -> None:
        """Brings what was appended to the file. Raises OSError."""
        write_all(self._handle, self._pending)
        self._pending = bytearray()

    def finish(self) -> None:
        """Brings the rest to the file. Raises OSError."""
        self.flush()
