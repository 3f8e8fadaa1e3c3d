"""Several runs as one: parts, configurations, what is missing, and the page with what lies beside each file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.run_results import LAVAPIPE, clean_row, hazardous_row, header, result, write_source
from vkharness.cli.report import report
from vkharness.findings import UserError
from vkharness.report.page.scenario_data import Places
from vkharness.results.join_runs import join_runs
from vkharness.results.read_results import Results
from vkharness.results.result_file import ResultFile
from vkharness.results.result_lines import FILE_NAME, DeviceIdentity, LayerIdentity, RowResult, RunEnd, RunHeader
from vkharness.results.states import RowState

OLD, NEW = (
    DeviceIdentity(LAVAPIPE, LAVAPIPE, "1.3", each, "c0ffee", "icd.json", "lib.so") for each in ("22.3", "25.0")
)
END = RunEnd(1, 1.0, 0)
LAYER = LayerIdentity("1.3.239", "layer.json", "layer.so")


def run(name: str, *scenarios: str, end: RunEnd | None = END, **members: Any) -> Results:
    head = replace(header(), **({"devices": (OLD,)} | members))
    rows = [result(clean_row(each)) for each in scenarios]
    return Results(Path(name) / FILE_NAME, head, {each.nodeid: each for each in rows}, end=end)


def test_parts_of_one_run() -> None:
    whole = join_runs([run("s1", "a/scenario_x", shard=(1, 2)), run("s2", "a/scenario_y", shard=(2, 2))])
    assert [each.row["scenario"] for each in whole.rows.values()] == ["a/scenario_x", "a/scenario_y"]
    assert (whole.header.shard, whole.header.devices, whole.notes) == (None, (OLD,), [])
    assert [(each.file, each.shard, each.rows) for each in whole.joined] == [
        ("s1/results.jsonl", (1, 2), 1),
        ("s2/results.jsonl", (2, 2), 1),
    ]
    assert whole.end == RunEnd(2, 2.0, 0)
    assert [each.folder for each in whole.origins.values()] == [Path("s1"), Path("s2")]


@pytest.mark.parametrize(
    ("shards", "note"),
    [
        ([(1, 3), (3, 3)], "part 2 of 3 is missing beside s0/results.jsonl, s1/results.jsonl"),
        ([(2, 3)], "parts 1, 3 of 3 are missing beside s0/results.jsonl"),
        ([(1, 1 << 60)], f"parts 2, 3, 4, 5, 6, 7, 8, 9 and {(1 << 60) - 9} more of {1 << 60} are missing"),
        ([(0, 1), (9, -3)], "part 1 of 1 is missing beside s0/results.jsonl"),
    ],
)
def test_missing_parts_are_named(shards: list[tuple[int, int]], note: str) -> None:
    whole = join_runs([run(f"s{at}", f"a/scenario_{at}", shard=each) for at, each in enumerate(shards)])
    assert len(whole.notes) == 1 and whole.notes[0].startswith(note)


def test_parts_of_runs_on_other_builds_are_parts_of_other_runs() -> None:
    whole = join_runs([
        run("old", "a/scenario_x", shard=(1, 2)), run("new", "a/scenario_y", shard=(2, 2), devices=(NEW,))
    ])  # fmt: skip
    assert whole.notes == ["part 2 of 2 is missing beside old/results.jsonl",
                           "part 1 of 2 is missing beside new/results.jsonl"]  # fmt: skip


@pytest.mark.parametrize("other", [{"devices": (NEW,)}, {"layers": (replace(LAYER, version="1.4.364"),)}])
def test_the_same_row_in_another_configuration_is_on_a_device_of_another_name(other: dict[str, Any]) -> None:
    whole = join_runs([run("old", "a/scenario_x"), run("new", "a/scenario_x", **other)])
    ids = list(whole.rows)
    assert [each.rpartition("[")[2] for each in ids] == ["whole-lavapipe]", "whole-lavapipe-2]"]
    assert [each.row["device"] for each in whole.rows.values()] == [each.device for each in whole.header.devices]
    assert [each.devices for each in whole.joined] == [("lavapipe",), ("lavapipe-2",)]
    origin = whole.origins[ids[1]]
    assert (origin.folder, origin.nodeid, origin.driver) == (Path("new"), ids[0], "lavapipe=icd.json")


def test_a_name_that_another_run_has_is_not_given_again() -> None:
    taken = replace(OLD, device="lavapipe-2")
    whole = join_runs([
        run("old", devices=(OLD,)), run("new", devices=(NEW,)), run("more", devices=(taken,)),
        run("older", devices=(replace(OLD, driver_version="21"),)),
    ])  # fmt: skip
    assert [each.device for each in whole.header.devices] == ["lavapipe", "lavapipe-3", "lavapipe-2", "lavapipe-4"]


def test_the_same_row_twice_is_an_error() -> None:
    with pytest.raises(UserError) as raised:
        join_runs([run("one", "a/scenario_x"), run("two", "a/scenario_x")])
    assert str(raised.value) == (
        "two/results.jsonl: one/results.jsonl has the row 'scenarios/transfer/scenario_copies.py::"
        "scenario_x[whole-lavapipe]', too, on the same driver and layers"
    )


def test_options_versions_and_ends_of_all() -> None:
    whole = join_runs([
        run("one", options={"native": 3, "artifacts": "one", "baseline": None}, seed=1),
        run("two", options={"native": 3, "artifacts": "two", "baseline": "known"}, harness="0.2.0",
            end=RunEnd(0, 2, 2)),
        run("three", options={"native": 3, "artifacts": "one", "baseline": None}, end=RunEnd(0, 3, 5)),
    ])  # fmt: skip
    assert whole.header.options == {"native": 3, "artifacts": "one, two", "baseline": "known"}
    assert (whole.header.harness, whole.header.seed) == ("0.1.0, 0.2.0", None)
    assert whole.end == RunEnd(1, 6.0, 2)
    assert join_runs([run("one"), run("two", end=None)]).end is None


def written(folder: Path, head: RunHeader, *rows: RowResult) -> None:
    file = ResultFile(folder / FILE_NAME)
    file.begin(head)
    for each in rows:
        file.row(each)
    file.end(RunEnd(len(rows), 1.0, 0))


def test_a_page_of_two_builds_has_what_lies_beside_each_file(tmp_path: Path) -> None:
    write_source(tmp_path)
    heads = [replace(header(), devices=(each,), shard=shard) for each, shard in ((OLD, (1, 2)), (NEW, None))]
    for name, head in zip(("old", "new"), heads, strict=True):
        written(tmp_path / name, head, result(hazardous_row(tmp_path / name), RowState.FAIL))
    ran = CliRunner().invoke(
        report, [*(str(tmp_path / each) for each in ("old", "new")), "--sources", str(tmp_path),
                 "-o", str(tmp_path / "page")]
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    assert "vkharness: note: part 2 of 2 is missing beside" in ran.output
    index = (tmp_path / "page" / "index.html").read_text()
    assert "part 2 of 2 is missing" in index and "device lavapipe-2" in index and "2 runs joined" in index
    text = (tmp_path / "page" / "data" / "1.js").read_text()
    data = json.loads(text.removeprefix("vkharness.take_scenario(1,").removesuffix(");\n"))
    assert [len(each["pictures"]) for each in data["rows"].values()] == [1, 1]
    again = [row["commands"][0][1] for row in data["rows"].values()]
    assert again[0].endswith("-lavapipe]' --vk-device lavapipe")
    assert again[1].endswith("-lavapipe]' --vk-device lavapipe=icd.json")
    for at, name in enumerate(("old", "new"), 1):
        trace = tmp_path / name / "transfer/scenario_copy/without_fill_before_copy/lavapipe/trace.jsonl"
        assert (tmp_path / "page" / "traces" / "1" / str(at) / "trace.jsonl").read_bytes() == trace.read_bytes()


def test_places_know_a_row_of_one_file_by_its_own_name(tmp_path: Path) -> None:
    line = result(clean_row("a/scenario_x")).to_dict()
    origin = Places(tmp_path, tmp_path, tmp_path).origin(line)
    assert (origin.folder, origin.device, origin.nodeid) == (tmp_path, LAVAPIPE, line["nodeid"])
