"""Known results of a driver: files in the forms of deqp-runner and of Mesa's lists of known results.

A folder has up to three files for each driver, and for all drivers under the name `all`:

    lavapipe-fails.txt     copy/scenario_x[whole],Fail          one row and its state a line
    lavapipe-skips.txt     query/.*                             regular expressions of rows that are not run
    lavapipe-flakes.txt    queue/scenario_y\\[.*                 regular expressions of rows that may fail

A row is called `FAMILY/SCENARIO[VARIANT]`. Expressions are searched anywhere in the name, as deqp-runner does; one that
may take long, as a repeat in a repeat may, is refused. Empty lines and lines that begin with `#` say nothing. A first
line `# vkharness baseline, version 1` may name the version: a later one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vkharness.findings import UserError
from vkharness.plain_file import open_plain
from vkharness.results.expressions import compiled
from vkharness.results.result_lines import RowResult
from vkharness.results.states import RowState

EXPECTABLE = frozenset({RowState.FAIL, RowState.CRASH, RowState.TIMEOUT, RowState.DEVICE_LOST})
"""States of a row that a list of failures may expect."""
ALL = "all"
"""The driver whose lists hold for every driver."""
LONGEST_LIST = 16 << 20
"""Bytes."""
VERSION = 1
"""Of the lists; they say so at most in a comment, since they are deqp-runner's."""
VERSION_LINE = re.compile(r"# vkharness baseline, version (\d{1,9})\b")


@dataclass(frozen=True, slots=True)
class ListedPattern:
    """One expression of a list."""

    expression: re.Pattern[str]
    where: str
    """The file and the line."""


@dataclass(slots=True)
class Baseline:
    """The lists that hold for one driver."""

    fails: dict[str, tuple[RowState, str]] = field(default_factory=dict)
    """State and place in the list, by the name of the row."""
    skips: list[ListedPattern] = field(default_factory=list)
    flakes: list[ListedPattern] = field(default_factory=list)

    def skip(self, name: str) -> str:
        """The place of the list that says not to run a row; empty when none does."""
        return _first(self.skips, name)

    def hold(self, name: str, result: RowState) -> tuple[RowState, str]:
        """The state of a row with that result, and the place of the list that decides it (empty: none does)."""
        flake = _first(self.flakes, name)
        if flake and (result in EXPECTABLE or result is RowState.FLAKE):
            return RowState.KNOWN_FLAKE, flake
        expected, where = self.fails.get(name, (None, ""))
        if expected is None or result is RowState.FLAKE or (flake and result is RowState.PASS):
            return result, ""
        if result is expected:
            return RowState.EXPECTED_FAIL, where
        better = {RowState.PASS: RowState.IMPROVED_PASS, RowState.SKIP: RowState.IMPROVED_SKIP}
        if result in better:
            return better[result], where
        return (RowState.IMPROVED_FAIL if result is RowState.FAIL else result), where


def unmatched_lines(baselines: Mapping[str, Baseline], names: Mapping[str, Collection[str]]) -> list[str]:
    """The lines of lists that are about no row, as `FILE:LINE: TEXT`. Both are given by driver; a line of the lists for
    all drivers counts where it is about a row of any."""
    lines: dict[str, str] = {}
    met: set[str] = set()
    for driver, baseline in baselines.items():
        rows = names.get(driver, ())
        for name, (_, where) in baseline.fails.items():
            lines[where] = name
            if name in rows:
                met.add(where)
        for each in [*baseline.skips, *baseline.flakes]:
            lines[each.where] = each.expression.pattern
            if any(map(each.expression.search, rows)):
                met.add(each.where)
    return [f"{where}: {text}" for where, text in lines.items() if where not in met]


def row_name(row: Mapping[str, Any]) -> str:
    """Returns the name of a row (`Row.to_dict`) in lists: `copy/scenario_x[whole]`, the same on every driver."""
    return f"{row['scenario']}[{row['variant']}]"


def read_baseline(folder: Path, driver: str) -> Baseline:
    """The lists of a driver, and of all drivers. A list that is absent says nothing.

    Raises `UserError`, one line with the file and the line's number, and where there is no such folder.
    """
    if not folder.is_dir():
        raise UserError(f"baseline {folder}: no such folder")
    baseline = Baseline()
    for name in (ALL, driver):
        for where, line in _lines(list_path(folder, name, "fails")):
            row, comma, state = line.rpartition(",")
            if not comma or state not in EXPECTABLE:
                states = ", ".join(sorted(EXPECTABLE))
                raise UserError(f"{where}: not of the form NAME,STATE with one of the states {states}")
            baseline.fails[row] = RowState(state), where
        baseline.skips += _patterns(list_path(folder, name, "skips"))
        baseline.flakes += _patterns(list_path(folder, name, "flakes"))
    return baseline


def list_path(folder: Path, driver: str, kind: str) -> Path:
    """The list of that kind: `fails`, `skips` or `flakes`."""
    return folder / f"{driver}-{kind}.txt"


def updated_fails(text: str, rows: Iterable[RowResult], covered: Baseline) -> str:
    """The list of failures of a driver after a run: what failed is in it, what did not is not.

    `text` is the list so far; its comments stay, and so do its lines about rows that did not run. What stands in one of
    the lists of `covered` is not repeated.
    """
    results = {row_name(each.row): each.result for each in rows}
    kept = []
    for line in text.splitlines():
        name = line.rpartition(",")[0]
        if line.startswith("#") or not line or results.get(name, RowState.SKIP) is RowState.SKIP:
            kept.append(line)
            results.pop(name, None)
        elif results[name] in EXPECTABLE:
            kept.append(f"{name},{results.pop(name)}")
    new = [
        f"{name},{result}"
        for name, result in results.items()
        if result in EXPECTABLE and covered.hold(name, result)[0] is result
    ]
    return "".join(f"{line}\n" for line in [*kept, *sorted(new)])


def updated_flakes(text: str, rows: Iterable[RowResult], covered: Baseline) -> str:
    """The list of flakes of a driver after a run: as it was, and each flake that no line of `covered` fits."""
    names = {row_name(each.row) for each in rows if each.result is RowState.FLAKE}
    new = sorted(re.escape(name) for name in names if not _first(covered.flakes, name))
    return "".join(f"{line}\n" for line in [*text.splitlines(), *new])


def _first(patterns: Iterable[ListedPattern], name: str) -> str:
    return next((each.where for each in patterns if each.expression.search(name)), "")


def _patterns(path: Path) -> Iterator[ListedPattern]:
    for where, line in _lines(path):
        try:
            yield ListedPattern(compiled(line), where)
        except (re.error, RecursionError, OverflowError) as error:
            raise UserError(f"{where}: not a regular expression: {error}") from None


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """(file and line, text) of each line that says something."""
    for number, line in enumerate(read_list(path).splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield f"{path}:{number}", line.strip()


def read_list(path: Path) -> str:
    """The text of a list; empty where there is none. Raises `UserError`."""
    try:
        with open_plain(path) as file:
            text = file.read(LONGEST_LIST + 1).decode("utf-8")
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not text in UTF-8") from None
    if len(text) > LONGEST_LIST:
        raise UserError(f"{path}: longer than {LONGEST_LIST} bytes")
    version = VERSION_LINE.match(text)
    if version and int(version[1]) > VERSION:
        raise UserError(f"{path}:1: version {version[1]} of a newer vkharness; this one reads version {VERSION}")
    return text
