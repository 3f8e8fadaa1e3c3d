"""Lists of known results: their forms, how a row is held against them, and what an update writes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.results.test_results_file import result
from vkharness.findings import UserError
from vkharness.results.baseline import (
    EXPECTABLE,
    Baseline,
    read_baseline,
    unmatched_lines,
    updated_fails,
    updated_flakes,
)
from vkharness.results.result_lines import RowResult
from vkharness.results.states import GOOD, RESULTS, RowState

PASS, FAIL, CRASH, FLAKE = RowState.PASS, RowState.FAIL, RowState.CRASH, RowState.FLAKE
LISTS = {
    "lavapipe-fails.txt": "# why\n\ncopy/x[a],Fail\ncopy/x[b, c],Crash\n",
    "lavapipe-flakes.txt": r"copy/x\[d",
    "lavapipe-skips.txt": "^query/\n",
    "all-fails.txt": "copy/x[e],DeviceLost\n",
    "swiftshader-fails.txt": "copy/x[f],Fail\n",
}


def folder(tmp_path: Path, lists: dict[str, str]) -> Path:
    for name, text in lists.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def row(name: str, state: RowState) -> RowResult:
    return result(name, state)


def test_the_lists_of_a_driver_and_of_all(tmp_path: Path) -> None:
    found = read_baseline(folder(tmp_path, LISTS), "lavapipe")
    assert {name: state for name, (state, _) in found.fails.items()} == {
        "copy/x[a]": FAIL,
        "copy/x[b, c]": CRASH,
        "copy/x[e]": RowState.DEVICE_LOST,
    }
    assert found.fails["copy/x[a]"][1] == f"{tmp_path}/lavapipe-fails.txt:3"
    assert found.skip("query/x[whole]") == f"{tmp_path}/lavapipe-skips.txt:1"
    assert found.skip("copy/query/x[whole]") == ""


@pytest.mark.parametrize(
    ("name", "result", "state"),
    [
        ("copy/x[a]", FAIL, RowState.EXPECTED_FAIL),
        ("copy/x[a]", PASS, RowState.IMPROVED_PASS),
        ("copy/x[a]", RowState.SKIP, RowState.IMPROVED_SKIP),
        ("copy/x[a]", CRASH, CRASH),
        ("copy/x[a]", FLAKE, FLAKE),
        ("copy/x[b, c]", CRASH, RowState.EXPECTED_FAIL),
        ("copy/x[b, c]", FAIL, RowState.IMPROVED_FAIL),
        ("copy/x[b, c]", RowState.TIMEOUT, RowState.TIMEOUT),
        ("copy/x[d]", FAIL, RowState.KNOWN_FLAKE),
        ("copy/x[d]", FLAKE, RowState.KNOWN_FLAKE),
        ("copy/x[d]", PASS, PASS),
        ("copy/x[e]", RowState.DEVICE_LOST, RowState.EXPECTED_FAIL),
        ("copy/x[f]", FAIL, FAIL),
        ("copy/x[g]", PASS, PASS),
    ],
)
def test_a_result_held_against_the_lists(tmp_path: Path, name: str, result: RowState, state: RowState) -> None:
    found, where = read_baseline(folder(tmp_path, LISTS), "lavapipe").hold(name, result)
    assert found is state
    assert bool(where) == (state not in (PASS, FLAKE) and name != "copy/x[f]")


def test_lines_that_are_about_no_row(tmp_path: Path) -> None:
    lists = folder(tmp_path, LISTS | {"all-flakes.txt": "x\\[f\n"})
    both = {name: read_baseline(lists, name) for name in ("lavapipe", "swiftshader")}
    rows = {"lavapipe": {"copy/x[a]", "copy/x[d]"}, "swiftshader": {"copy/x[f]", "query/y[whole]"}}
    assert unmatched_lines(both, rows) == [
        f"{tmp_path}/all-fails.txt:1: copy/x[e]",
        f"{tmp_path}/lavapipe-fails.txt:4: copy/x[b, c]",
        f"{tmp_path}/lavapipe-skips.txt:1: ^query/",
    ]
    everything = {"copy/x[e]", "copy/x[b, c]", "query/y[whole]"}
    assert unmatched_lines(both, rows | {"lavapipe": rows["lavapipe"] | everything}) == []


def test_every_result_without_lists_is_its_own_state() -> None:
    assert {each: Baseline().hold("x", each) for each in RESULTS} == {each: (each, "") for each in RESULTS}
    assert EXPECTABLE == RESULTS - GOOD


def test_expressions_of_lists_are_taken(tmp_path: Path) -> None:
    texts = ["query/.*", r"x\[(?:whole|half).*", "a.*b.*c|d.*e.*f", "[a-z]+(?:_x)?", "x{1,60000}", "(ab){1,3}"]
    read = read_baseline(folder(tmp_path, {"all-skips.txt": "\n".join(texts)}), "lavapipe")
    assert [each.expression.pattern for each in read.skips] == texts


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("lavapipe-fails.txt", "copy/x[a]\n", ":1: not of the form NAME,STATE with one of the states Crash, Device"),
        ("lavapipe-fails.txt", "\ncopy/x[a],Pass\n", ":2: not of the form NAME,STATE"),
        ("all-skips.txt", "a\n(\n", ":2: not a regular expression: "),
        ("lavapipe-flakes.txt", "a{99999999999999999999}\n", ":1: not a regular expression: "),
        ("all-skips.txt", "(a+)+$\n", ":1: not a regular expression: a repeat in a repeat"),
        ("all-skips.txt", "(((.*)*)*)*x\n", ":1: not a regular expression: a repeat in a repeat"),
        ("all-skips.txt", "(a|ab)*$\n", ":1: not a regular expression: alternatives in a repeat"),
        ("all-skips.txt", ".*a.*b.*c.*d.*e\n", ":1: not a regular expression: more than 4 repeats"),
    ],
)
def test_a_list_that_is_malformed_is_one_line_of_error(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        read_baseline(folder(tmp_path, {name: text}), "lavapipe")
    assert f"{tmp_path}/{name}{message}" in str(raised.value) and "\n" not in str(raised.value)


def test_what_is_no_list_is_one_line_of_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="none: no such folder"):
        read_baseline(tmp_path / "none", "lavapipe")
    (tmp_path / "lavapipe-fails.txt").write_bytes(b"\xff\xfe\n")
    with pytest.raises(UserError, match="not text in UTF-8"):
        read_baseline(tmp_path, "lavapipe")


def test_an_update_says_what_the_run_did() -> None:
    text = "# a note\ncopy/x[a],Fail\ncopy/x[b],Crash\ncopy/x[c],Fail\ncopy/x[gone],Fail\n"
    rows = [row("a", PASS), row("b", FAIL), row("c", RowState.SKIP), row("e", CRASH), row("d", FAIL), row("f", FLAKE)]
    known = Baseline(fails={"copy/x[d]": (FAIL, "all-fails.txt:1")})
    after = "# a note\ncopy/x[b],Fail\ncopy/x[c],Fail\ncopy/x[gone],Fail\ncopy/x[e],Crash\n"
    assert updated_fails(text, rows, known) == after
    assert updated_fails(after, rows, known) == after


def test_an_update_names_each_flake_once(tmp_path: Path) -> None:
    rows = [row("f", FLAKE), row("g", FLAKE), row("h", FAIL)]
    lists = folder(tmp_path, {"lavapipe-flakes.txt": "# known\nx.g\n"})
    known = read_baseline(lists, "lavapipe")
    after = updated_flakes("# known\nx.g\n", rows, known)
    assert after == "# known\nx.g\ncopy/x\\[f\\]\n"
    (lists / "lavapipe-flakes.txt").write_text(after)
    again = read_baseline(lists, "lavapipe")
    assert updated_flakes(after, rows, again) == after
    assert again.hold("copy/x[f]", FAIL)[0] is RowState.KNOWN_FLAKE
    assert replace(rows[0], state=RowState.KNOWN_FLAKE).state in GOOD
