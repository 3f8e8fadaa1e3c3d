"""Rows of which not all bytes were computed, by the reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.results.test_results_file import HEADER, KEPT, changed, result
from vkharness.cli.computed import computed
from vkharness.results.computed_counts import NOT_SAID, Share, count_computed
from vkharness.results.read_results import read_results
from vkharness.results.result_file import ResultFile
from vkharness.results.result_lines import MalformedLineError, RowResult
from vkharness.verdicts import BytesVerdict


def row(name: str, known: int, total: int, *unknown: str) -> RowResult:
    made = result(name)
    verdict = BytesVerdict(known, total, unknown=unknown)
    told = {"known": verdict.known, "total": verdict.total, "broken": "", "difference": "", "unknown": list(unknown)}
    return RowResult.from_dict(changed(made.to_dict(), "row.verdicts.bytes", told))


ROWS = [
    row("whole", 4, 4),
    row("part", 1, 4, "vkCmdDraw: 3 views", "vkCmdCopyBuffer: follows"),
    row("none", 0, 4, "vkCmdDraw: 2 views"),
    row("unplayed", 0, 0, "block 7: no"),
    result("skipped"),
]


def test_rows_stand_under_their_first_reason_in_general_words() -> None:
    counts = count_computed(ROWS)
    assert [counts.of(share) for share in Share] == [1, 1, 2]
    found = {reason: [each.nodeid for each in rows] for reason, rows in counts.by_reason().items()}
    assert found == {"vkCmdDraw: # views": [ROWS[1].nodeid, ROWS[2].nodeid], "block #: no": [ROWS[3].nodeid]}


def test_rows_of_earlier_runs_say_no_reason() -> None:
    earlier = changed(row("part", 1, 4).to_dict(), "row.verdicts.bytes.unknown", None)
    assert list(count_computed([RowResult.from_dict(earlier)]).by_reason()) == [NOT_SAID]


@pytest.mark.parametrize("wrong", [{"known": "1"}, {"total": None}, {"unknown": [1]}, {"unknown": "x"}])
def test_a_malformed_verdict_is_refused(wrong: dict[str, object]) -> None:
    said = changed(row("part", 1, 4).to_dict(), "reason", "")
    said["row"]["verdicts"]["bytes"] |= wrong
    with pytest.raises(MalformedLineError, match=next(iter(wrong))):
        RowResult.from_dict(said)


def test_the_command_lists_rows_and_writes_json(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / "results.jsonl")
    file.begin(HEADER)
    for each in ROWS:
        file.row(each)
    done = CliRunner().invoke(computed, [str(tmp_path), "--json", str(tmp_path / "out.json")])
    assert (done.exit_code, done.output.splitlines()) == (
        0,
        [
            "bytes computed without the driver: all in 1 rows, a part in 1, none in 2",
            "2 rows: vkCmdDraw: # views",
            f"  none  {ROWS[2].nodeid}",
            f"  1 of 4 bytes  {ROWS[1].nodeid}",
            "1 row: block #: no",
            f"  none  {ROWS[3].nodeid}",
        ],
    )
    told = json.loads((tmp_path / "out.json").read_text())
    assert (told["all"], told["part"], told["none"]) == (1, 1, 2)
    assert told["reasons"][0]["rows"][0]["reasons"] == ["vkCmdDraw: # views", "vkCmdCopyBuffer: follows"]


def test_a_run_that_was_kept_says_why() -> None:
    counts = count_computed(read_results(KEPT / "version-1-bytes.jsonl").rows.values())
    assert {reason: len(rows) for reason, rows in counts.by_reason().items()} == {
        "vkCmdCopyQueryPoolResults: not followed": 3
    }
