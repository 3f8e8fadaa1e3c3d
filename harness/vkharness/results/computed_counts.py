"""How much of what the rows of a run left was held against bytes that no driver computed, and why not the rest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from vkharness.results.result_lines import RowResult
from vkharness.results.stories import general

NOT_SAID = "not said"
"""The reason of rows of earlier runs, which kept none."""


class Share(StrEnum):
    """How many of the bytes of a row were computed."""

    ALL = "all"
    PART = "part"
    NONE = "none"


def share_of(known: int, total: int, unknown: Sequence[str]) -> Share:
    """The share of a row of which `known` of `total` bytes were computed; `unknown` says why others were not.

    >>> share_of(0, 0, ["sparse"]), share_of(0, 0, []), share_of(1, 2, [])
    (<Share.NONE: 'none'>, <Share.ALL: 'all'>, <Share.PART: 'part'>)
    """
    if known == total and not unknown:
        return Share.ALL
    return Share.PART if known else Share.NONE


@dataclass(frozen=True, slots=True)
class ComputedRow:
    """A row of which bytes were computed, or could have been."""

    nodeid: str
    known: int
    total: int
    share: Share
    reasons: tuple[str, ...]
    """Why bytes were not computed, without what is of this row alone."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "nodeid": self.nodeid,
            "computed": str(self.share),
            "known": self.known,
            "total": self.total,
            "reasons": list(self.reasons),
        }


@dataclass(frozen=True, slots=True)
class ComputedCounts:
    """The rows of a run whose bytes were judged."""

    rows: list[ComputedRow] = field(default_factory=list)

    def of(self, share: Share) -> int:
        """How many rows have that share."""
        return sum(each.share is share for each in self.rows)

    def by_reason(self) -> dict[str, list[ComputedRow]]:
        """The rows of which not all bytes were computed, by their first reason, of which others often follow; the
        reason of the most rows first."""
        found: dict[str, list[ComputedRow]] = {}
        for row in self.rows:
            if row.reasons:
                found.setdefault(row.reasons[0], []).append(row)
        return dict(sorted(found.items(), key=lambda item: (-len(item[1]), item[0])))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able: the counts, and the rows by reason."""
        reasons = [
            {"reason": reason, "count": len(rows), "rows": [each.to_dict() for each in rows]}
            for reason, rows in self.by_reason().items()
        ]
        return {**{str(share): self.of(share) for share in Share}, "reasons": reasons}


def count_computed(rows: Iterable[RowResult]) -> ComputedCounts:
    """Counts the rows of a run; those without a verdict about bytes (skipped, crashed, of an earlier format) are left
    out."""
    found = ComputedCounts()
    for row in rows:
        verdict = row.row["verdicts"].get("bytes")
        if verdict is None:
            continue
        known, total, said = verdict["known"], verdict["total"], verdict.get("unknown") or ()
        share = share_of(known, total, said)
        reasons = dict.fromkeys(map(general, said)) or ([] if share is Share.ALL else [NOT_SAID])
        found.rows.append(ComputedRow(row.nodeid, known, total, share, tuple(reasons)))
    return found
