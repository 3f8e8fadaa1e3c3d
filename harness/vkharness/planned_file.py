"""Files of long work that goes on after a kill: JSON Lines, the plan of the work first, then a line for what is done.

The first line is `{"format": "vkharness campaign", "version": 1, "harness": "0.1.0", "plan": {...}}`. The other lines
are the caller's. What a line says is done for good, and a last line that a kill cut off is dropped when the file is
opened again.
"""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import vkharness
from vkharness.findings import UnwrittenError, UserError
from vkharness.line_file import append_line, cut_half_line, read_lines
from vkharness.plain_file import open_plain

LONGEST_LINE = 64 << 20
"""Bytes of one line that are read."""


class PlannedWork(NamedTuple):
    """A kind of work that is kept in such a file."""

    format: str
    version: int
    name: str
    """For messages: `campaign`."""

    def trouble(self, path: Path, number: int, reason: object) -> UserError:
        """The error of a line that is none of such work."""
        return UserError(f"{path}:{number}: not a line of a {self.name}: {reason}")

    def take(self, path: Path, lines: Iterable[dict[str, Any]], take: Callable[[dict[str, Any]], object]) -> None:
        """Calls `take` with each line after the plan. An exception that says that a line has another form becomes the
        `UserError` of that line."""
        for number, line in enumerate(lines, 2):
            try:
                take(line)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                raise self.trouble(path, number, error) from None


class Known(NamedTuple):
    """Contents of a file, as JSON."""

    plan: dict[str, Any]
    lines: list[dict[str, Any]]
    """Those after the plan: the first is line 2 of the file."""


class PlannedFile:
    """Such a file, open for appending. One process writes it at a time."""

    def __init__(self, path: Path, work: PlannedWork, plan: dict[str, Any], check: Callable[[Known], None]) -> None:
        """Opens a file, or makes it for this plan. `check` gets what it holds, and raises `UserError` where the work
        cannot go on with that; the file is as it was then. Raises `UserError`, also while somebody else writes it."""
        self._path = path
        try:
            self._file = open(path, "ab+")  # noqa: SIM115 (closed by `close`)
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            known = read_planned(path, work)
            if known is not None:
                check(known)
            cut_half_line(self._file.fileno())
            if known is None:
                first = {"format": work.format, "version": work.version, "harness": vkharness.__version__, "plan": plan}
                self.append(first)
        except BlockingIOError:
            self._file.close()
            raise UserError(f"{path}: another {work.name} is writing it") from None
        except BaseException:
            self._file.close()
            raise

    def append(self, line: dict[str, Any]) -> None:
        """Writes a line; it is on the disk when this returns. Raises `UnwrittenError`."""
        try:
            append_line(self._file.fileno(), json.dumps(line, separators=(",", ":")))
        except OSError as error:
            raise UnwrittenError(f"{self._path}: cannot be written: {error.strerror}; what was done is kept") from None

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_planned(path: Path, work: PlannedWork) -> Known | None:
    """Reads a file, without a last line that was cut off; None where it holds nothing. Raises `UserError`."""
    known = None
    try:
        with open_plain(path) as file:
            for value in read_lines(path, file, LONGEST_LINE, f"not a line of a {work.name}: "):
                if value is None:
                    break
                if known is None:
                    known = Known(_plan_of(path, work, value), [])
                else:
                    known.lines.append(value)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    return known


def _plan_of(path: Path, work: PlannedWork, first: dict[str, Any]) -> dict[str, Any]:
    if first.get("format") != work.format:
        raise work.trouble(path, 1, f"format is {first.get('format')!r}")
    if first.get("version") != work.version:
        raise work.trouble(path, 1, f"version {first.get('version')} is not known here")
    plan = first.get("plan")
    if not isinstance(plan, dict):
        raise work.trouble(path, 1, "it has no plan")
    return plan
