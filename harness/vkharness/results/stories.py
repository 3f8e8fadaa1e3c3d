"""Rows that did not pass, told by cause: thirty rows that fail for one cause are one story.

The cause of a row is the promise that the driver broke, if the row names one, with the rules that its scenario claims
where the promise is a dependency. Else it is what the row did, and the judge that disagrees.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vkharness.results.result_lines import RowResult
from vkharness.results.states import GOOD

BROKEN = {
    "computation": "the driver computes wrongly",
    "barrier": "the driver breaks barriers",
    "dependency": "the driver breaks a dependency",
}
"""What a story is called, by `verdicts.bytes.broken` of its rows."""


class Story(NamedTuple):
    """All rows with one cause; `first` is the one to start from."""

    cause: str
    rows: tuple[RowResult, ...]

    @property
    def first(self) -> RowResult:
        """The row that is easiest to look at: a whole scenario if there is one, with the shortest name."""
        return min(self.rows, key=lambda row: (row.claim.twin != "whole", len(row.nodeid), row.nodeid))

    def __str__(self) -> str:
        count = len(self.rows)
        return f"{self.cause}: {count} row{'s' * (count != 1)}, first {self.first.nodeid}"


def stories_of(rows: Iterable[RowResult]) -> list[Story]:
    """The stories of the rows that fail a run, the longest first."""
    found: dict[str, list[RowResult]] = {}
    for row in rows:
        if row.state not in GOOD:
            found.setdefault(cause_of(row), []).append(row)
    stories = [Story(cause, tuple(several)) for cause, several in found.items()]
    return sorted(stories, key=lambda story: (-len(story.rows), story.cause))


def cause_of(row: RowResult) -> str:
    """Why a row did not pass, in words that other rows with the same cause share."""
    broken = ((row.row.get("verdicts") or {}).get("bytes") or {}).get("broken")
    if broken:
        rules = row.claim.rule if broken == "dependency" else ""
        return BROKEN.get(broken, str(broken)) + (f" ({rules})" if rules else "")
    reasons = row.row.get("reasons") or []
    judge = str(reasons[0]).partition(":")[0] if reasons else ""
    return f"{row.state}: {judge}" if judge else str(row.state)
