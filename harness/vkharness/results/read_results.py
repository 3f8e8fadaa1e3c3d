"""A results file as it is read: whole, or as far as a run came that was killed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.line_file import read_lines
from vkharness.plain_file import open_plain
from vkharness.results.result_lines import FILE_NAME, MalformedLineError, RowResult, RunEnd, RunHeader, member

LONGEST_LINE = 16 << 20
"""Bytes. A row has a few thousand."""


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Where a row of several joined runs comes from."""

    folder: Path
    """That of its own file, to which its paths are relative."""
    nodeid: str
    """Its id in its own file."""
    device: str
    """The name of its device there, which the folders of its artifacts have."""
    driver: str
    """That device as `--vk-device` takes it."""


@dataclass(frozen=True, slots=True)
class JoinedFile:
    """One of several files that were joined."""

    file: str
    started: str
    shard: tuple[int, int] | None
    rows: int
    devices: tuple[str, ...]
    """As the rows of the joined runs call them."""
    layers: tuple[str, ...]
    """Versions of the Khronos layers that were asked."""


@dataclass(slots=True)
class Results:
    """Contents of one results file, or of several that are joined (`vkharness.results.join_runs`)."""

    path: Path
    header: RunHeader
    rows: dict[str, RowResult] = field(default_factory=dict)
    """By the id of the row, in the order in which they were done."""
    resumed: list[str] = field(default_factory=list)
    """When the run went on after it had been ended, ISO 8601."""
    end: RunEnd | None = None
    """None where the run was killed."""
    notes: list[str] = field(default_factory=list)
    """Remarks for the reader that are no errors, a line each."""
    joined: list[JoinedFile] = field(default_factory=list)
    """The files that were joined; empty for one file."""
    origins: dict[str, RowOrigin] = field(default_factory=dict)
    """Where each row comes from, by its id; empty for one file."""


def results_path(place: Path) -> Path:
    """The file that `place` names: itself, or the results file of that folder."""
    return place / FILE_NAME if place.is_dir() else place


def read_results(place: Path) -> Results:
    """Reads the results at `place`, a file or the folder of one.

    A last line that was cut off is left out and noted, and so is a missing end. Raises `UserError`, one line with the
    file and the line's number, for anything else that is not as the schema says.
    """
    path = results_path(place)
    results: Results | None = None
    try:
        with open_plain(path) as file:
            for number, value in enumerate(read_lines(path, file, LONGEST_LINE), 1):
                try:
                    if results is None:
                        results = Results(path, _header(value))
                    elif value is None:
                        results.notes.append(f"{path}:{number}: the last line is cut off; it is left out")
                    else:
                        _take(results, value)
                except MalformedLineError as error:
                    raise UserError(f"{path}:{number}: {error}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    if results is None:
        raise UserError(f"{path}: empty: not a results file")
    if results.end is None:
        results.notes.append(f"{path}: the run did not come to its end; {len(results.rows)} rows are done")
    return results


def _header(value: dict[str, Any] | None) -> RunHeader:
    if value is None or value.get("kind") != "run":
        raise MalformedLineError("does not begin with a line of the kind 'run': not a results file")
    return RunHeader.from_dict(value)


def _take(results: Results, value: dict[str, Any]) -> None:
    kind = member(value, "kind", str)
    if kind == "row":
        row = RowResult.from_dict(value)
        results.rows[row.nodeid] = row
        results.end = None
    elif kind == "resume":
        results.resumed.append(member(value, "started", str))
        results.end = None
    elif kind == "end":
        seconds = value.get("seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise MalformedLineError("'seconds' is not a number")
        results.end = RunEnd(member(value, "rows", int), float(seconds), member(value, "exit", int))
    else:
        raise MalformedLineError(f"no line is of the kind {kind!r}")
