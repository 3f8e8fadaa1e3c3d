"""Files that say which findings are known and do not count: what `--ignore FILE` reads.

    [[ignore]]
    hazard = "READ_AFTER_WRITE"
    resource = "shadow map*"
    label = "*main pass*"
    site = "*/renderer.py:*"
    reason = "the engine's issue 812"
    expires = 2026-12-31

The four patterns are those of `fnmatch`, with upper and lower case apart. An entry has at least one of them, and covers
the findings that all of them fit: `resource` the debug name of the resource, `site` and `label` one of the two calls, a
label with its regions as in reports ("main pass / opaque"). Of the stack of a call, each frame will do that the two
calls do not have in common, whichever of them is shown: that depends on what else the program has called so far. Each
entry has a reason. `expires` is its last day.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from vkharness.call_sites import own_frames
from vkharness.findings import Finding, UserError
from vkharness.plain_file import read_plain

VERSION = 1
"""Of this format; a file may name it as `version`."""
PATTERNS = ("hazard", "resource", "site", "label")
KEYS = {*PATTERNS, "reason", "expires"}
LABELS = " / "
"""Stands between the labels of nested regions."""


@dataclass(slots=True)
class IgnoreEntry:
    """One entry: patterns of what it covers, None where anything will do, and the reason."""

    where: str
    """The file and the number of the entry, from 1."""
    hazard: str | None
    resource: str | None
    site: str | None
    label: str | None
    reason: str
    matches: int = 0
    """How many findings it covered so far that no earlier entry covers."""

    def covers(self, finding: Finding) -> bool:
        """Whether all of the patterns fit."""
        return (
            _fits(self.hazard, finding.hazard)
            and _fits(self.resource, finding.resource_name)
            and _fits(self.site, *_lines(finding))
            and _fits(self.label, LABELS.join(finding.labels), LABELS.join(finding.prior_labels))
        )


class IgnoreFile:
    """The entries of one file."""

    def __init__(self, entries: list[IgnoreEntry]) -> None:
        self.entries = entries

    def mark(self, findings: Iterable[Finding]) -> None:
        """Writes the reason of the first entry that covers it into each finding."""
        for finding in findings:
            for entry in self.entries:
                if entry.covers(finding):
                    entry.matches += 1
                    finding.ignored = entry.reason
                    break

    def unused(self) -> list[str]:
        """A line for each entry that covered nothing, or nothing that an earlier entry leaves."""
        return [
            f"{each.where} covers no finding, or none that an earlier one leaves ({each.reason})"
            for each in self.entries
            if not each.matches
        ]

    def require_use(self) -> None:
        """Raises `UserError` when an entry covered nothing: what it was for is mended, or has another name."""
        unused = self.unused()
        if unused:
            raise UserError("; ".join(unused))


def read_ignore_file(path: Path, today: date) -> IgnoreFile:
    """The entries of a file.

    Raises `UserError`, one line, for a file that is no such file, and for an entry that expired before `today`.
    """
    try:
        document = tomllib.loads(read_plain(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: is no TOML: {error}") from None
    listed = document.get("ignore", [])
    version = document.get("version", VERSION)
    if type(version) is int and version > VERSION:
        raise UserError(f"{path}: version {version} of a newer vkharness; this one reads version {VERSION}")
    if document.keys() - {"ignore", "version"} or version != VERSION or not isinstance(listed, list):
        raise UserError(f"{path}: has [[ignore]] entries and nothing else but version = {VERSION}")
    return IgnoreFile([_entry(f"{path}: entry {at}", each, today) for at, each in enumerate(listed, start=1)])


def _entry(where: str, value: Any, today: date) -> IgnoreEntry:
    if not isinstance(value, dict):
        raise UserError(f"{where} is no table")
    for key in value:
        if key not in KEYS:
            raise UserError(f"{where} has {key!r}: the keys are {', '.join((*PATTERNS, 'reason', 'expires'))}")
        if key != "expires" and not (isinstance(value[key], str) and value[key].strip()):
            raise UserError(f"{where}: {key} is no text")
    if "reason" not in value:
        raise UserError(f"{where} has no reason")
    if not value.keys() & set(PATTERNS):
        raise UserError(f"{where} has none of {', '.join(PATTERNS)}")
    reason = " ".join(value["reason"].split())
    expires = value.get("expires")
    if expires is not None:
        if type(expires) is not date:
            raise UserError(f"{where}: expires is no date, as in expires = 2026-12-31")
        if expires < today:
            raise UserError(f"{where} expired on {expires} ({reason})")
    return IgnoreEntry(where, value.get("hazard"), value.get("resource"), value.get("site"), value.get("label"), reason)


def _lines(finding: Finding) -> list[str]:
    """`file:line` of both calls: of each frame that they do not have in common."""
    stacks = own_frames(finding.place.site, finding.prior.site)
    return [frame.site for stack in stacks for frame in stack] or [""]


def _fits(pattern: str | None, *texts: str) -> bool:
    return pattern is None or any(fnmatchcase(text, pattern) for text in texts)
