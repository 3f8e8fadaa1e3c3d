"""One cause is one story: what two rows share, what sets them apart, and with which row to start."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.results.test_results_file import changed, result
from tests.support.run_results import LAVAPIPE
from vkharness.report.rows import needless_text
from vkharness.report.story_text import story_heading, story_lines
from vkharness.results.result_lines import MalformedLineError, RowResult
from vkharness.results.states import GOOD, RowState
from vkharness.results.stories import LONGEST, MOST_READ, cause_of, general, stories_of


def row(
    name: str,
    reason: str = "",
    state: RowState = RowState.FAIL,
    *,
    rule: str = "",
    problem: str = "",
    retried: str = "",
) -> RowResult:
    made = result(name, RowState.FAIL)
    said = changed(changed(made.row, "reasons", [reason] if reason else []), "problem", problem)
    return replace(made, row=said, state=state, retried=retried, claim=replace(made.claim, rule=rule))


@pytest.mark.parametrize(
    ("one", "other", "cause"),
    [
        (row("a", "model: on buffer 7"), row("b", "model: on image 9"), "Fail, model"),
        (row("a", "layer 1.3.239: x"), row("b", "layer 1.3.239: y"), "Fail, layer 1.3.239"),
        (row("a", "not modelled: vkA"), row("b", "not modelled: vkB"), "Fail, not modelled"),
        (row("a", "model: x", rule="r"), row("b", "model: y", rule=" r ,"), "Fail, model, rule r"),
        (row("a", "model: x", rule="r,s"), row("b", "model: y", rule=""), "Fail, model"),
        (row("a", needless_text("layer 1.3.239", "one")), row("b", needless_text("layer 1.3.239", "two")),
         "Fail, expectation is not needed for layer 1.3.239"),
        (row("a", problem="killed by SIGSEGV", state=RowState.CRASH),
         row("b", problem="killed by SIGSEGV", state=RowState.CRASH), "Crash, killed by SIGSEGV"),
        (row("a", problem="Traceback (x)\n  y\nKeyError: 'a'"), row("b", problem="Traceback (x)\nKeyError: 'b'"),
         "Fail, KeyError: '#'"),
        (row("a", problem="/tmp/a/b.so: offset 0x1f of 12"), row("b", problem="/c.so: offset 0x2 of 1.5"),
         "Fail, #: offset # of #"),
        (row("a", retried="witness: x", state=RowState.FLAKE), row("b", retried="witness: y", state=RowState.FLAKE),
         "Flake, witness"),
    ],
)  # fmt: skip
def test_rows_of_one_cause(one: RowResult, other: RowResult, cause: str) -> None:
    (story,) = stories_of([one, other])
    assert (story.cause, len(story.rows)) == (cause, 2)


@pytest.mark.parametrize(
    "other",
    [
        row("b", "witness: x", rule="r"),
        row("b", "model: x", rule="s"),
        row("b", "model: x", RowState.IMPROVED_FAIL, rule="r"),
    ],
)
def test_rows_of_two_causes(other: RowResult) -> None:
    assert len(stories_of([row("a", "model: x", rule="r"), other])) == 2


@pytest.mark.parametrize("state", sorted(GOOD - {RowState.FLAKE}))
def test_a_row_that_needs_no_look_has_no_cause(state: RowState) -> None:
    assert cause_of(row("a", "model: x", state)) == "" and stories_of([row("a", "model: x", state)]) == []


def test_the_largest_is_first_and_begins_with_the_whole_variant() -> None:
    one = row("c", "witness: x")
    several = [row(name, "model: x") for name in ("a", "whole", "a_longer_name")]
    longer = replace(several[1], nodeid=f"z/{several[1].nodeid}")
    found = stories_of([one, longer, *several])
    assert [(each.cause, each.first.nodeid) for each in found] == [
        ("Fail, model", several[1].nodeid),
        ("Fail, witness", one.nodeid),
    ]
    assert stories_of([several[2], several[0]])[0].first is several[0]


def test_lines() -> None:
    rows = [row("whole", "model: x"), row("b", "model: x"), row("c", "witness: x"), row("d", "native: x")]
    first, *rest = story_lines(rows, 3)
    assert first == "Fail, model on lavapipe: 2 rows, first copy/x.py::x[whole-lavapipe]"
    assert rest == [
        f"Fail, {judge} on lavapipe: 1 row, copy/x.py::x[{name}-lavapipe]"
        for judge, name in (("native", "d"), ("witness", "c"))
    ]
    assert story_lines(rows, 2) == [first, "2 more causes: 2 rows"]
    assert story_lines(rows, 1) == ["3 more causes: 4 rows"]
    assert story_lines(rows, 0) == [] == story_lines([], 3)
    assert story_lines([row("\x1b[2J", problem="\x1b[2J")], 1)[0].isprintable()


def broken(name: str, promise: str, *commands: str, device: str = LAVAPIPE, rule: str = "") -> RowResult:
    made = row(name, "bytes: x", rule=rule)
    left = {"known": 4, "total": 4, "broken": promise, "difference": "x", "commands": [*commands]}
    said = changed(made.row, "verdicts", {**made.row["verdicts"], "bytes": left})
    return replace(made, row=changed(said, "device", device))


def test_a_broken_promise_comes_before_every_judge_and_says_what_its_rows_have_in_common() -> None:
    rows = [
        *(row(name, "model: x") for name in "abcd"),
        broken("e", "barrier", "vkCmdCopyBuffer", "vkCmdFillBuffer", rule="one"),
        broken("whole", "barrier", "vkCmdDispatch", "vkCmdFillBuffer", device="b", rule="another"),
        broken("g", "dependency", rule="a-chain"),
        broken("h", "dependency", rule="another"),
        broken("i", "no such promise"),
    ]
    assert [story_heading(each) for each in stories_of(rows)] == [
        "the driver breaks barriers on b, lavapipe, always with vkCmdFillBuffer",
        "the driver breaks a dependency, rule a-chain on lavapipe",
        "the driver breaks a dependency, rule another on lavapipe",
        "Fail, model on lavapipe",
        "Fail, bytes on lavapipe",
    ]
    assert stories_of(rows)[0].to_dict() == {
        "cause": "the driver breaks barriers",
        "promise": "barrier",
        "devices": ["b", "lavapipe"],
        "commands": ["vkCmdFillBuffer"],
        "rows": [rows[4].nodeid, rows[5].nodeid],
        "first": rows[5].nodeid,
    }


def test_of_many_devices_and_commands_a_few_are_named() -> None:
    rows = [broken(name, "barrier", *"abcd", device=name) for name in "abcde"]
    assert [story_heading(each) for each in stories_of(rows)] == ["the driver breaks barriers on a and 4 more"]


@pytest.mark.parametrize("left", ["x", {"broken": 1}, {"commands": "x"}, {"commands": [1]}])
def test_what_a_file_says_of_bytes_is_checked(left: object) -> None:
    line = broken("a", "barrier").to_dict()
    line["row"]["verdicts"]["bytes"] = left
    with pytest.raises(MalformedLineError):
        RowResult.from_dict(line)


def test_of_a_long_reason_a_part_is_read() -> None:
    assert len(general("x" * 10**6)) == LONGEST
    assert general("'" * 10**6).count("#") <= MOST_READ
