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

from vkharness.findings import UnwrittenError
from vkharness.line_file import append_line, cut_half_line
from vkharness.results.result_lines import RowResult, RunEnd, RunHeader
from vkharness.whole_file import replacing


class ResultFile:
    """Appends to one file. Each call opens it anew, so that any process may write at any time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, header: RunHeader) -> None:
        """Starts the file of a new run, which takes the place of an earlier one. Raises `UnwrittenError`."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with replacing(Path(os.path.realpath(self.path))) as part:
                part.write_text(json.dumps(header.to_dict()) + "\n", encoding="utf-8")
        except OSError as error:
            raise self._unwritten(error) from None

    def resume(self, started: str) -> None:
        """Says that a run goes on that was ended before its end. Raises `UnwrittenError`."""
        self._append({"kind": "resume", "started": started})

    def row(self, result: RowResult) -> None:
        """Keeps a row that is done. Raises `UnwrittenError`."""
        self._append(result.to_dict())

    def end(self, end: RunEnd) -> None:
        """Says that the run came to its end. Raises `UnwrittenError`."""
        self._append(end.to_dict())

    def _append(self, line: Mapping[str, Any]) -> None:
        with self._locked() as handle:
            cut_half_line(handle)
            append_line(handle, json.dumps(line))

    @contextmanager
    def _locked(self) -> Iterator[int]:
        try:
            handle = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                yield handle
            finally:
                os.close(handle)
        except OSError as error:
            raise self._unwritten(error) from None

    def _unwritten(self, error: OSError) -> UnwrittenError:
        return UnwrittenError(f"{self.path}: cannot be written: {error.strerror}")
