"""Changes between two runs: one kind a row, rates with their intervals, and which are worse."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.results.test_results_file import HEADER, changed, result
from vkharness.cli.compare import compare
from vkharness.report.run_changes import comparison_lines, page_changes
from vkharness.results.compare_runs import WORSE, ChangeKind, Rate, compare_runs, difference_interval
from vkharness.results.read_results import Results
from vkharness.results.result_file import ResultFile
from vkharness.results.result_lines import DeviceIdentity, LayerIdentity, RowResult, RunEnd
from vkharness.results.states import RowState

END = RunEnd(0, 1.0, 0)


def run(*rows: RowResult, end: RunEnd | None = END, **header: Any) -> Results:
    return Results(Path("results.jsonl"), replace(HEADER, **header), {each.nodeid: each for each in rows}, end=end)


def row(did: RowState = RowState.PASS, state: RowState | None = None, name: str = "a", **members: Any) -> RowResult:
    made = result(name, did)
    said = made.row
    for keys, value in members.items():
        said = changed(said, keys.replace("__", "."), value)
    return replace(made, row=said, state=state or did)


def kinds(before: Results, after: Results) -> list[ChangeKind]:
    return [each.kind for each in compare_runs(before, after).changes]


PASS, FAIL, CRASH, FLAKE, SKIP = RowState.PASS, RowState.FAIL, RowState.CRASH, RowState.FLAKE, RowState.SKIP
EXPECTED, KNOWN = RowState.EXPECTED_FAIL, RowState.KNOWN_FLAKE


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (row(PASS), row(PASS), None),
        (row(PASS), row(FAIL), ChangeKind.NEW_FAILURE),
        (row(PASS), row(CRASH), ChangeKind.NEW_FAILURE),
        (row(SKIP), row(RowState.TIMEOUT), ChangeKind.NEW_FAILURE),
        (row(FLAKE), row(FAIL), ChangeKind.NEW_FAILURE),
        (row(FAIL, KNOWN), row(FAIL), ChangeKind.NEW_FAILURE),
        (row(FAIL), row(FAIL), None),
        (row(FAIL, EXPECTED), row(FAIL), None),
        (row(FAIL, EXPECTED), row(CRASH), ChangeKind.NEW_FAILURE),
        (row(FAIL), row(CRASH), ChangeKind.OTHER_FAILURE),
        (row(PASS), row(FAIL, EXPECTED), None),
        (row(PASS), row(FLAKE), ChangeKind.NEW_FLAKE),
        (row(PASS), row(FLAKE, KNOWN), None),
        (row(FLAKE), row(FLAKE), None),
        (row(PASS), row(SKIP), ChangeKind.NEW_SKIP),
        (row(FAIL), row(PASS), ChangeKind.FIXED),
        (row(FLAKE), row(PASS), ChangeKind.FIXED),
        (row(FAIL, EXPECTED), row(PASS, RowState.IMPROVED_PASS), ChangeKind.UNEXPECTED),
        (row(PASS), row(PASS, layers={"1.3.239": "agrees"}), None),
        (row(PASS, syncval=["H"]), row(PASS), ChangeKind.VERDICT),
        (row(PASS, model="agrees"), row(PASS, model="disagrees"), ChangeKind.VERDICT),
    ],
)
def test_what_became_of_a_row(before: RowResult, after: RowResult, kind: ChangeKind | None) -> None:
    assert kinds(run(before), run(after)) == ([] if kind is None else [kind])


def test_rows_that_came_and_went() -> None:
    told = compare_runs(run(row(name="a")), run(row(name="b"), row(FAIL, name="c")))
    assert [(each.kind, each.name) for each in told.changes] == [
        (ChangeKind.NEW_FAILURE, "copy/x[c] on lavapipe"),
        (ChangeKind.WENT, "copy/x[a] on lavapipe"),
        (ChangeKind.CAME, "copy/x[b] on lavapipe"),
    ]
    assert (told.changes[1].before, told.changes[1].after) == (PASS, RowState.MISSING)


def test_a_layer_is_compared_with_its_own_version() -> None:
    before = row(layers={"1.3.239": "agrees", "1.4.350": "agrees"})
    after = row(layers={"1.3.239": "disagrees", "1.4.364": "disagrees"})
    (change,) = compare_runs(run(before), run(after)).changes
    assert (change.kind, change.before, change.after) == (
        ChangeKind.VERDICT,
        "layer 1.3.239: agrees",
        "layer 1.3.239: disagrees",
    )


def test_the_set_up_of_both_runs() -> None:
    device = DeviceIdentity("lavapipe", "llvmpipe", "1.3.230", "Mesa 22.3.6", "ab", "/a.json", "/a.so")
    before = run(devices=(device,), layers=(LayerIdentity("1.3.239", "", ""),), options={"native": 0, "device": ["x"]})
    after = run(
        devices=(replace(device, uuid="cd", manifest="/b.json"),),
        layers=(LayerIdentity("1.4.364", "", ""),),
        options={"native": 5, "device": ["y"]},
    )
    assert compare_runs(before, after).set_up == [
        "device lavapipe: llvmpipe, API 1.3.230, Mesa 22.3.6, UUID ab -> llvmpipe, API 1.3.230, Mesa 22.3.6, UUID cd",
        "layers: 1.3.239 -> 1.4.364",
        "--vk-native: 0 -> 5",
    ]
    assert compare_runs(before, before).set_up == []


def native(corrupt: int, times: int) -> RowResult:
    return row(verdicts__native={"corrupt": corrupt, "times": times})


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [((0, 100), (8, 100), True), ((0, 100), (3, 100), False), ((50, 100), (20, 100), True), ((0, 0), (5, 5), False)],
)
def test_another_rate_of_corruption(before: tuple[int, int], after: tuple[int, int], told: bool) -> None:
    found = compare_runs(run(native(*before)), run(native(*after)))
    assert [each.kind for each in found.changes] == ([ChangeKind.RATE] if told else [])
    assert not found.is_worse


def test_intervals_of_rates() -> None:
    """The figures are those of Newcombe's paper on differences of proportions (1998), example (a), method 10."""
    low, high = difference_interval(Rate(48, 80), Rate(56, 70))
    assert (round(low, 4), round(high, 4)) == (0.0524, 0.3339)
    assert str(Rate(0, 10)) == "0/10 (95 %: 0.0% to 27.8%)"
    assert str(Rate(10, 10)) == "10/10 (95 %: 72.2% to 100.0%)"


@pytest.mark.parametrize(("seconds", "told"), [(0.9, False), (1.4, False), (1.6, True)])
def test_a_row_that_is_slower(seconds: float, told: bool) -> None:
    found = compare_runs(run(replace(row(), seconds=0.5)), run(replace(row(), seconds=seconds)))
    assert [each.kind for each in found.changes] == ([ChangeKind.SLOWER] if told else [])
    assert not found.is_worse


def test_a_run_that_was_ended_early() -> None:
    told = compare_runs(run(row()), run(row(), end=None))
    assert told.is_worse and told.incomplete == ["later run, results.jsonl: 1 rows are done, and then it was ended"]
    assert not compare_runs(run(row(), end=None), run(row())).is_worse
    assert compare_runs(run(row()), run(row(), end=replace(END, exit=2))).is_worse
    assert not compare_runs(run(row()), run(row(), end=replace(END, exit=1))).is_worse


def test_what_is_worse() -> None:
    assert {ChangeKind.NEW_FAILURE, ChangeKind.OTHER_FAILURE, ChangeKind.NEW_FLAKE, ChangeKind.NEW_SKIP} < WORSE
    assert WORSE - {ChangeKind.WENT} == set(list(ChangeKind)[:4])


def test_the_words() -> None:
    failing = row(FAIL, reasons=["model: differs"])
    told = compare_runs(run(row(), row(name="b")), run(failing, row(FLAKE, name="b")))
    assert list(comparison_lines(told)) == [
        f"worse: Fail, model on lavapipe: 1 row, {failing.nodeid}",
        f"worse: Flake on lavapipe: 1 row, {result('b').nodeid}",
        "new failure: 1",
        "  copy/x[a] on lavapipe: Pass -> Fail",
        "      model: differs",
        "new flake: 1",
        "  copy/x[b] on lavapipe: Pass -> Flake",
        "2 rows, then 2: 1 new failure, 1 new flake",
        "worse",
    ]
    assert page_changes(told) == [
        {"kind": "new failure", "row": failing.nodeid, "text": "Pass -> Fail: model: differs"},
        {"kind": "new flake", "row": result("b").nodeid, "text": "Pass -> Flake"},
    ]


@pytest.mark.parametrize(("later", "code"), [("good", 0), ("bad", 1), ("none", 2)])
def test_the_command(tmp_path: Path, later: str, code: int) -> None:
    for name, state in (("good", PASS), ("bad", FAIL)):
        file = ResultFile(tmp_path / name / "results.jsonl")
        file.begin(HEADER)
        file.row(row(state))
        file.end(END)
    out = tmp_path / "changes.json"
    ran = CliRunner().invoke(compare, [str(tmp_path / "good"), str(tmp_path / later), "--json", str(out)])
    if later == "none":
        assert "cannot be read" in str(ran.exception)
        return
    assert ran.exit_code == code
    document = json.loads(out.read_text())
    assert document["worse"] == bool(code) and [each["kind"] for each in document["changes"]] == ["new failure"] * code
    assert [each["rows"] for each in document["stories"]] == [[result("a").nodeid]] * code
