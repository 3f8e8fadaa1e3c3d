"""One cause is one story."""

from __future__ import annotations

from dataclasses import replace

from tests.support.run_results import LAVAPIPE, clean_row, result
from vkharness.results.result_lines import RowResult
from vkharness.results.states import RowState
from vkharness.results.stories import stories_of


def failed(name: str, broken: str = "", reason: str = "", twin: str = "whole", rule: str = "") -> RowResult:
    made = result(clean_row(f"barrier/scenario_{name}", LAVAPIPE), RowState.FAIL)
    made.row["verdicts"]["bytes"] = {"known": 4, "total": 4, "broken": broken, "difference": "x"} if broken else None
    made.row["reasons"] = [reason] if reason else []
    return replace(made, claim=replace(made.claim, twin=twin, rule=rule))


def test_rows_with_one_cause_are_one_story_and_the_longest_comes_first() -> None:
    rows = [
        failed("a", reason="syncval: missing A"),
        failed("bb", "barrier", twin="without"),
        failed("long_name", "barrier"),
        failed("c", "dependency", rule="a-chain"),
        failed("d", "dependency", rule="another"),
        result(clean_row("barrier/scenario_e", LAVAPIPE), RowState.PASS),
    ]
    stories = stories_of(rows)
    assert [(story.cause, len(story.rows)) for story in stories] == [
        ("the driver breaks barriers", 2),
        ("Fail: syncval", 1),
        ("the driver breaks a dependency (a-chain)", 1),
        ("the driver breaks a dependency (another)", 1),
    ]
    assert stories[0].first is rows[2], "a whole scenario is where to start"
    assert str(stories[0]) == f"the driver breaks barriers: 2 rows, first {rows[2].nodeid}"


def test_a_row_without_a_verdict_is_told_by_what_it_did() -> None:
    crashed = result(clean_row("barrier/scenario_x", LAVAPIPE), RowState.CRASH)
    crashed.row["verdicts"] = {}
    assert [story.cause for story in stories_of([crashed])] == ["Crash"]
