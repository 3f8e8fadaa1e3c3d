"""The end of a run on the terminal: families by device in a few lines, what the words mean, and where everything is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from vkharness.report.computed_text import computed_line
from vkharness.report.native_table import print_native
from vkharness.report.rows import UNKNOWN, unknown_layers
from vkharness.report.story_text import story_lines
from vkharness.report.text import WITHIN_COMMANDS
from vkharness.results.computed_counts import count_computed
from vkharness.results.native_counts import count_native
from vkharness.results.result_lines import RowResult
from vkharness.results.states import GOOD, RowState

MOST_LINES = 14
"""Families, or devices, with a line of their own; those in which every row passed share one where there are more."""
MOST_DEVICES = 3
"""Devices with a column of their own; of more, each has a line and families have none."""
MOST_STORIES = 5
"""Lines about causes of failures."""
COLOURS = {RowState.PASS: "green", RowState.EXPECTED_FAIL: "green", RowState.SKIP: "yellow"}
COLOURS |= dict.fromkeys((RowState.FLAKE, RowState.KNOWN_FLAKE), "magenta")
MEANINGS = {
    RowState.FAIL: "a judge disagrees, or the scenario itself is wrong",
    RowState.SKIP: "the device lacks what the row needs, or a list says to skip it",
    RowState.CRASH: "the driver's process ended",
    RowState.TIMEOUT: "no answer within the time limit",
    RowState.DEVICE_LOST: "the driver answered VK_ERROR_DEVICE_LOST",
    RowState.FLAKE: "attempts of this run differ",
    RowState.MISSING: "the run ended without the row",
    RowState.KNOWN_FLAKE: "did not pass, and stands in the list of flakes",
    RowState.EXPECTED_FAIL: "did what the list of failures says",
    RowState.IMPROVED_PASS: "passed, and the list of failures says otherwise",
    RowState.IMPROVED_SKIP: "was skipped, and the list of failures says otherwise",
    RowState.IMPROVED_FAIL: "only failed, and the list of failures says worse",
}
"""Meanings of the states of rows, for the legend; a pass needs none."""


def print_summary(rows: Sequence[RowResult], console: Console, artifacts: str) -> None:
    """Prints at most 40 lines: a table, what states mean, causes of failures, the sums, the folder of the artifacts.
    Where hazards were shown as recorded, another table has as many lines more as they have families."""
    console.print(_table(rows))
    counts = _counted(rows)
    for state in counts:
        if state in MEANINGS:
            console.print(Text.assemble((f"{state}", _colour(state)), f": {MEANINGS[state]}"), soft_wrap=True)
    for line in story_lines(rows, MOST_STORIES):
        console.print(Text(line), style="bold", soft_wrap=True)
    shown = sum(_is_shown(each) for each in rows)
    held = sum(each.row["witness"].startswith("held") for each in rows)
    sums = Text(f"{len(rows)} rows: ")
    sums.append_text(_states(counts))
    sums.append(f"; hazards shown in {shown} row{'s' * (shown != 1)}, other orders held in {held}")
    console.print(sums, soft_wrap=True)
    console.print(computed_line(count_computed(rows)), soft_wrap=True)
    for version, count in sorted(unknown_layers(each.row for each in rows).items()):
        text = f"layer {version}: {count} row{'s' * (count != 1)} with a difference that is {UNKNOWN}"
        console.print(text, soft_wrap=True, highlight=False)
    storing = sum(bool(each.row.get("storing_shaders")) for each in rows)
    if storing:
        console.print(f"{WITHIN_COMMANDS}: in {storing} row{'s' * (storing != 1)}", soft_wrap=True, highlight=False)
    native = count_native(rows)
    if native.hazards:
        print_native(native, console)
    console.print(f"artifacts: {artifacts}", soft_wrap=True, markup=False)


def _is_shown(row: RowResult) -> bool:
    return bool(row.row["witness"].startswith("shown"))


def _table(rows: Sequence[RowResult]) -> Table:
    devices = sorted({each.row["device"] for each in rows})
    if len(devices) > MOST_DEVICES:
        return _columns("device", ["rows"], _few([(name, [mine]) for name, mine in _by(rows, devices, "device")]))
    families = _by(rows, sorted({each.claim.family for each in rows}), "family")
    lines = [
        (family, [[each for each in mine if each.row["device"] == name] for name in devices])
        for family, mine in families
    ]
    return _columns("family", devices, _few(lines))


def _by(rows: Sequence[RowResult], names: Sequence[str], key: str) -> Iterator[tuple[str, list[RowResult]]]:
    found: dict[str, list[RowResult]] = {name: [] for name in names}
    for row in rows:
        found[row.claim.family if key == "family" else row.row["device"]].append(row)
    yield from found.items()


Line = tuple[str, list[list[RowResult]]]


def _few(lines: list[Line]) -> Iterator[Line]:
    """The lines, those in which every row passed as one where there are many; the rest of very many as one, too."""
    if len(lines) <= MOST_LINES:
        yield from lines
        return
    passed = [line for line in lines if all(row.state is RowState.PASS for mine in line[1] for row in mine)]
    others = [line for line in lines if line not in passed]
    yield from others[:MOST_LINES]
    for words, several in (("more", others[MOST_LINES:]), ("others", passed)):
        if several:
            yield (
                f"{len(several)} {words}",
                [
                    [row for mine in column for row in mine]
                    for column in zip(*(each for _, each in several), strict=True)
                ],
            )


def _columns(first: str, headings: Sequence[str], lines: Iterator[Line]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in (first, *headings):
        table.add_column(Text(heading), no_wrap=True, overflow="ellipsis")
    for name, cells in lines:
        table.add_row(Text(name), *map(_cell, cells))
    return table


def _cell(rows: Sequence[RowResult]) -> Text:
    """`130`; `2 Fail of 130`; `5 of 130 did not pass`."""
    others = {state: count for state, count in _counted(rows).items() if state is not RowState.PASS}
    if not others:
        return Text(str(len(rows)) if rows else "-", "green" if rows else "")
    state, count = next(iter(others.items()))
    if len(others) == 1:
        return Text(f"{count} {state} of {len(rows)}", _colour(state))
    return Text(f"{sum(others.values())} of {len(rows)} did not pass", _colour(state))


def _counted(rows: Sequence[RowResult]) -> Counter[RowState]:
    """How many rows have each state, those that need a look first."""
    counts = Counter(each.state for each in rows)
    order = sorted(counts, key=lambda state: (state in GOOD, state is not RowState.PASS, state))
    return Counter({state: counts[state] for state in order})


def _states(counts: Counter[RowState]) -> Text:
    """`2 Fail, 130 Pass`."""
    words = [Text(f"{count} {state}", _colour(state)) for state, count in counts.items()]
    return Text(", ").join(words) if words else Text("-")


def _colour(state: RowState) -> str:
    return COLOURS.get(state, "bold red")
