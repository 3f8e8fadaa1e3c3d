"""In how many rows with a hazard runs as recorded showed it, by strategy and by family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from vkharness.results.result_lines import RowResult

ANY = "any"
"""Beside the strategies: rows that at least one of them showed."""


@dataclass(slots=True)
class NativeCounts:
    """The rows that ran as recorded."""

    hazards: Counter[str] = field(default_factory=Counter)
    """Rows with a hazard, by family."""
    shown: dict[str, Counter[str]] = field(default_factory=dict)
    """By strategy, and `ANY`: those of them that were corrupt, by family."""
    unchanged: dict[str, Counter[str]] = field(default_factory=dict)
    """By strategy: rows that do not allow it, by the reason."""
    relations: Counter[str] = field(default_factory=Counter)
    """Rows with a hazard between two accesses, by how their executions lie to each other on the device."""
    witnessed: Counter[str] = field(default_factory=Counter)
    """Those of them of which an allowed outcome shows a hazard in bytes."""
    seen: Counter[str] = field(default_factory=Counter)
    """Those of them that a run as recorded showed."""
    clean: int = 0
    corrupt: list[str] = field(default_factory=list)
    """Rows without a hazard that ran as recorded, and the ids of those that were corrupt."""


def count_native(rows: Iterable[RowResult]) -> NativeCounts:
    """Counts the rows of a run. What is from before there were strategies counts as `plain`."""
    found = NativeCounts()
    for row in rows:
        verdict = (row.row.get("verdicts") or {}).get("native")
        if verdict is None:
            continue
        runs = verdict.get("strategies") or [{"strategy": "plain", **verdict}]
        for each in runs:
            found.shown.setdefault(each["strategy"], Counter())
            if each.get("reason"):
                found.unchanged.setdefault(each["strategy"], Counter())[each["reason"]] += 1
        if not row.row["expected"]:
            found.clean += 1
            found.corrupt += [row.nodeid] if verdict["corrupt"] else []
            continue
        found.hazards[row.claim.family] += 1
        if relation := verdict.get("relation"):
            shown = ((row.row["verdicts"].get("witness")) or {}).get("shown", 0)
            found.relations[relation] += 1
            found.witnessed[relation] += bool(shown)
            found.seen[relation] += bool(verdict["corrupt"])
        for strategy in [each["strategy"] for each in runs if each["corrupt"]] + [ANY] * bool(verdict["corrupt"]):
            found.shown.setdefault(strategy, Counter())[row.claim.family] += 1
    if found.shown:
        found.shown[ANY] = found.shown.pop(ANY, Counter())
    return found
