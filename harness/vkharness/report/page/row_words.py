"""A row as the list of the page has it: what is shown of it there, and what filters look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONGEST = 400
"""Characters of what a row says that the search looks at."""


def line_of(line: Mapping[str, Any], number: int) -> list[Any]:
    """`[id, family, scenario, variant, device, state, hazards, seconds, title, said, number]` of a line of results.

    `hazards` are the kinds that are expected or found, `said` is why the row needs a look, else what the pixels show;
    `number` is the file of its data.
    """
    row = line["row"]
    scenario = row["scenario"].rpartition("/")[2].removeprefix("scenario_")
    said = "; ".join(row["reasons"]) or row["problem"] or row["witness"]
    return [
        line["nodeid"],
        line["claim"]["family"],
        scenario,
        row["variant"],
        row["device"],
        line["state"],
        hazards_of(row),
        round(float(line["seconds"]), 2),
        line["claim"]["title"],
        said[:LONGEST],
        number,
    ]


def hazards_of(row: Mapping[str, Any]) -> list[str]:
    """The kinds of hazards that a row expects or finds."""
    return sorted({each.split(" ")[0] for each in (*row["expected"], *row["syncval"])})
