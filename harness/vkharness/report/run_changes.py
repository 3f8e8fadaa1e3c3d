"""Changes between two runs of the suite, in words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from vkharness.report.printable import printable
from vkharness.report.story_text import story_line
from vkharness.results.compare_runs import RowChange, RunComparison


def comparison_lines(told: RunComparison) -> Iterator[str]:
    """The causes of what is worse, what the runs differ in, each change below the kind of it, and the sums."""
    yield from (f"worse: {story_line(each)}" for each in told.stories)
    yield from (f"set-up: {line}" for line in told.set_up)
    yield from (f"incomplete: {line}" for line in told.incomplete)
    counts = []
    for kind, changes in groupby(told.changes, key=lambda change: change.kind):
        several = list(changes)
        counts.append(f"{len(several)} {kind}")
        yield f"{kind}: {len(several)}"
        yield from (f"  {line}" for change in several for line in change_lines(change))
    before, after = told.rows
    yield f"{before} rows, then {after}: {', '.join(counts) or 'no row changed'}"
    yield "worse" if told.is_worse else "nothing is worse"


def page_changes(told: RunComparison) -> list[dict[str, str]]:
    """The same for the page of the later run: `{"kind", "row", "text"}`; `row` is the id of a row where it can be."""
    said = [{"kind": "set-up", "row": line, "text": ""} for line in told.set_up + told.incomplete]
    for change in told.changes:
        text = f"{change.before} -> {change.after}" + (f": {change.reason}" if change.reason else "")
        said.append({"kind": str(change.kind), "row": change.nodeid, "text": text})
    return said


def change_lines(change: RowChange) -> Iterator[str]:
    """The row with what it was and is, and below it why."""
    yield printable(f"{change.name}: {change.before} -> {change.after}")
    if change.reason:
        yield printable(f"    {change.reason}")
