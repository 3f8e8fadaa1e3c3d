"""Rows that need a look, by their cause: many rows that fail for one cause are one story.

The cause of a row is the promise that the driver broke, if the bytes of the row show one, with the rule that its
scenario claims where the promise is a dependency. Else it is what the row did, and the judge that disagrees.

>>> general("image 0x7f3a of 'sky' has 12 texels in /tmp/a/b.jsonl")
"image # of '#' has # texels in #"
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vkharness.results.result_lines import RowResult, reason_of
from vkharness.results.states import GOOD, RowState

BROKEN = {
    "computation": "the driver computes wrongly",
    "barrier": "the driver breaks barriers",
    "dependency": "the driver breaks a dependency",
}
"""Names of causes, by `verdicts.bytes.broken` of the rows."""
LONGEST = 100
"""Characters of a reason that are compared and told."""
MOST_READ = 1000
"""Characters of a reason that are looked at."""
_JUDGE = re.compile(r"(?:syncval|model|witness|native|bytes|not modelled|layer [\w.+-]{1,32})(?=: )")
"""The judge's name with which a reason begins where one disagrees."""
_NEEDLESS = re.compile(r"expectation is not needed for [\w.+ -]{1,48}(?=: )")
_SPECIFIC = re.compile(r"'[^']*'|\"[^\"]*\"|(?<![\w.])/[^\s:;,]+|\b0x[0-9a-fA-F]+\b|\b\d+(?:\.\d+)*\b")
"""Words that differ from row to row: what is quoted, paths, and numbers."""


@dataclass(frozen=True, slots=True)
class Story:
    """The rows of one cause."""

    cause: str
    rows: tuple[RowResult, ...]

    @property
    def first(self) -> RowResult:
        """The row to start from: of a whole scenario where there is one, with the shortest id."""
        return min(self.rows, key=lambda row: (row.row["variant"] != "whole", len(row.nodeid), row.nodeid))

    @property
    def promise(self) -> str:
        """The promise that the driver broke: a key of `BROKEN`, or empty."""
        return _promise(self.first)

    @property
    def devices(self) -> list[str]:
        """The devices of the rows, by name."""
        return sorted({each.row["device"] for each in self.rows})

    @property
    def commands(self) -> list[str]:
        """The commands that the streams of all rows have in common, by name, where a promise is broken."""
        several = [set(_bytes_of(each).get("commands") or ()) for each in self.rows]
        return sorted(set.intersection(*several)) if self.promise else []

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; rows by their ids."""
        return {
            "cause": self.cause,
            "promise": self.promise,
            "devices": self.devices,
            "commands": self.commands,
            "rows": [each.nodeid for each in self.rows],
            "first": self.first.nodeid,
        }


def needs_a_look(row: RowResult) -> bool:
    """Whether a row is told in a story: it fails the run, or it is a flake that no list names."""
    return row.state not in GOOD or row.state is RowState.FLAKE


def cause_of(row: RowResult) -> str:
    """Why a row needs a look, without what is of this row alone; empty for one that needs none.

    That is the promise that the driver broke, or the state with the judge that disagrees first (or else the reason in
    general words); and the rule of its claim where that names one, but for promises that concern every rule.
    """
    if not needs_a_look(row):
        return ""
    promise = _promise(row)
    rules = [each for each in map(str.strip, row.claim.rule.split(",")) if each]
    rule = f"rule {rules[0]}" if len(rules) == 1 and promise not in ("computation", "barrier") else ""
    said = [BROKEN[promise], rule] if promise else [str(row.state), _heading(row), rule]
    return ", ".join(each for each in said if each)


def stories_of(rows: Iterable[RowResult]) -> list[Story]:
    """The stories of the rows that need a look: broken promises first, then the one of the most rows."""
    found: dict[str, list[RowResult]] = {}
    for row in rows:
        if cause := cause_of(row):
            found.setdefault(cause, []).append(row)
    stories = [Story(cause, tuple(several)) for cause, several in found.items()]
    return sorted(stories, key=lambda story: (not story.promise, -len(story.rows), story.cause))


def general(text: str) -> str:
    """A text with `#` for numbers, paths and what is in quotation marks, cut to `LONGEST` characters."""
    words = _SPECIFIC.sub(_sign, text[:MOST_READ])
    return words if len(words) <= LONGEST else f"{words[: LONGEST - 1]}…"


def _heading(row: RowResult) -> str:
    said = row.row["reasons"][0] if row.row["reasons"] else ""
    reason = said or (row.retried if row.state is RowState.FLAKE else "") or reason_of(row.row)
    judge = _JUDGE.match(reason) or _NEEDLESS.match(reason)
    return general(reason) if judge is None else judge[0]


def _sign(found: re.Match[str]) -> str:
    quote = found[0][0]
    return f"{quote}#{quote}" if quote in "'\"" else "#"


def _promise(row: RowResult) -> str:
    broken = str(_bytes_of(row).get("broken", ""))
    return broken if broken in BROKEN else ""


def _bytes_of(row: RowResult) -> Mapping[str, Any]:
    return row.row["verdicts"].get("bytes") or {}
