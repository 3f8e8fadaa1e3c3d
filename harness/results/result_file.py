"""A results file as it is written: each line is on the disk before the next row begins.

The process that runs a row writes its line, so nothing that is finished waits in a pipe. Several processes append to
one file: a lock keeps their lines apart, and whoever holds it cuts off what a killed process left half-written.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.findings import UserError
from harness.line_file import append_line, cut_half_line
from harness.results.result_lines import RowResult, RunEnd, RunHeader


class ResultFile:
    """Appends to one file. Each call opens it anew, so that any process may write at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, header: RunHeader) -> None:
        """Starts the file of a new run; what was there before is gone. Raises `UserError`."""
        with self._locked(os.O_CREAT) as handle:
            os.ftruncate(handle, 0)
            append_line(handle, json.dumps(header.to_dict()))

    def resume(self, started: str) -> None:
        """Says that a run goes on that was ended before its end. Raises `UserError`."""
        self._append({"kind": "resume", "started": started})

    def row(self, result: RowResult) -> None:
        """Keeps a row that is done. Raises `UserError`."""
        self._append(result.to_dict())

    def end(self, end: RunEnd) -> None:
        """Says that the run came to its end. Raises `UserError`."""
        self._append(end.to_dict())

    def _append(self, line: Mapping[str, Any]) -> None:
        with self._locked(0) as handle:
            cut_half_line(handle)
            append_line(handle, json.dumps(line))

    @contextmanager
    def _locked(self, flags: int) -> Iterator[int]:
        try:
            if flags:
                self.path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | flags, 0o666)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield handle
            finally:
                os.close(handle)
        except OSError as error:
            raise UserError(f"{self.path}: cannot be written: {error.strerror}") from None
