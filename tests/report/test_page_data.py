"""Data of a page: values and their palette, captions, the code, and files that are not read."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.support.run_results import (
    EVIL,
    FILE,
    LAVAPIPE,
    clean_row,
    failed_row,
    hazardous_row,
    header,
    result,
    write_clean_trace,
    write_source,
)
from vkharness.cli.report import report
from vkharness.replay.contents.observe import Surface
from vkharness.report import surface_values
from vkharness.report.page.code_lines import code_of, excerpt
from vkharness.report.page.row_pictures import difference_text, pictures_of, what_text
from vkharness.report.page.scenario_data import Places, data_of_scenario, judges
from vkharness.report.surface_values import VALUES, drawing_of, load_values, save_values
from vkharness.results.result_file import ResultFile
from vkharness.results.result_lines import FILE_NAME, RowResult, RunEnd
from vkharness.results.states import RowState
from vkharness.suite import row_evidence
from vkharness.suite.row_evidence import evidence

NAME = "image-9-color-mip0-layer0"
ENTRY: dict[str, Any] = {
    "resource": 9,
    "kind": "image",
    "subresource": {"aspect": 1, "mip": 0, "layer": 0},
    "surface": NAME,
    "format": "VK_FORMAT_R8G8B8A8_UNORM",
    "samples": 1,
}


def places_of(drawing: dict[str, Any], which: str) -> list[int]:
    packed = zlib.decompress(base64.b64decode(drawing[which]))
    return [int(place) for place in np.frombuffer(packed, f"<u{drawing['bits'] // 8}")]


def test_a_drawing_has_each_value_once_with_its_colour_and_its_number() -> None:
    before = np.full(24, 0x11, np.uint8)
    after = before.copy()
    after[4:8] = (1, 0, 0, 0)
    drawing = drawing_of(Surface(7, None, before), Surface(7, None, after))
    assert (drawing["width"], drawing["height"], drawing["slices"], drawing["bits"]) == (4, 2, 1, 8)
    values = {value: number for value, _, number in drawing["palette"]}
    assert values == {"01000000": "0x00000001 = 1", "11111111": "0x11111111 = 286331153"}
    one, all_right, beyond = (list(values).index("01000000"), list(values).index("11111111"), 2)
    assert places_of(drawing, "expected") == [all_right] * 6 + [beyond] * 2
    assert places_of(drawing, "observed") == [all_right, one, *[all_right] * 4, beyond, beyond]


def test_an_image_has_the_numbers_of_its_format() -> None:
    before, after = np.zeros((1, 2, 3, 4), np.uint8), np.zeros((1, 2, 3, 4), np.uint8)
    after[0, 1, 2] = (255, 0, 51, 255)
    drawing = drawing_of(*(Surface(9, (1, 0, 0), each, ENTRY["format"]) for each in (before, after)))
    assert [each for each in drawing["palette"] if each[0] == "ff0033ff"] == [["ff0033ff", "#ff0033", "1, 0, 0.2, 1"]]
    assert (drawing["height"], drawing["width"]) == (2, 3)


def test_of_a_large_surface_the_rows_around_the_first_difference_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surface_values, "MOST_TEXELS", 64)
    before = np.zeros(4 * 64 * 100, np.uint8)
    after = before.copy()
    after[4 * (64 * 50 + 3)] = 1
    drawing = drawing_of(Surface(7, None, before), Surface(7, None, after))
    assert (drawing["first"], drawing["width"], drawing["height"]) == ([0, 50], 64, 1)
    assert drawing["total"] == 6400
    assert [
        expected != observed
        for expected, observed in zip(places_of(drawing, "expected"), places_of(drawing, "observed"), strict=True)
    ].index(True) == 3


def test_values_that_are_not_ours_are_not_read(tmp_path: Path) -> None:
    good = np.zeros((1, 1, 1, 4), np.uint8)
    save_values(tmp_path / VALUES, {NAME: (Surface(9, (1, 0, 0), good), Surface(9, (1, 0, 0), good))})
    assert load_values(tmp_path / VALUES, ENTRY) is not None
    several: tuple[dict[str, Any], ...] = (
        {"surface": "other"},
        {"subresource": None},
        {"subresource": {}},
        {"resource": None},
        {"samples": "x"},
    )
    for wrong in several:
        assert load_values(tmp_path / VALUES, {**ENTRY, **wrong}) is None
    (tmp_path / VALUES).write_bytes(b"no archive")
    assert load_values(tmp_path / VALUES, ENTRY) is None
    arrays: dict[str, Any] = {f"{NAME}-expected": np.array([print], object), f"{NAME}-observed": good}
    np.savez(tmp_path / "pickled.npz", **arrays)
    assert load_values(tmp_path / "pickled.npz", ENTRY) is None


def test_values_that_unpack_to_very_much_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(surface_values, "MOST_BYTES", 1000)
    large = np.zeros((1, 100, 100, 4), np.uint8)
    save_values(tmp_path / VALUES, {NAME: (Surface(9, (1, 0, 0), large), Surface(9, (1, 0, 0), large))})
    assert load_values(tmp_path / VALUES, ENTRY) is None


def test_captions() -> None:
    entry = {**ENTRY, "count": 1, "total": 64, "first": [3, 1, 0], "expected": "00", "observed": "ff"}
    assert difference_text(entry) == "64 texels, 1 differs, first at (3, 1): 00 expected, ff observed"
    assert what_text(entry, {"9": "sky\x1b"}, "8 x 8") == (
        'image 9 "sky\\x1b", VK_FORMAT_R8G8B8A8_UNORM, 8 x 8, mip 0, layer 0, colour'
    )
    word = {"resource": 7, "kind": "buffer", "subresource": None, "count": 64, "total": 256, "first": [16]}
    word |= {"expected": "11111111", "observed": "aeaeaeae"}
    assert difference_text(word) == "256 words, 64 differ, first at byte 16: 11111111 expected, aeaeaeae observed"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"differences": [3, {"kind": "buffer"}]}', '{"differences": [{"first": []}]}']
)
def test_a_record_that_is_not_ours_shows_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "record.json").write_text(text)
    assert [each["surfaces"] for each in pictures_of(tmp_path, {}, {})] in ([], [[]])


def test_code_has_its_lines_its_tokens_and_its_dependencies(tmp_path: Path) -> None:
    write_source(tmp_path)
    code = code_of(tmp_path, FILE, 5)
    assert code is not None
    lines = dict(code["lines"])
    assert (min(lines), max(lines)) == (4, 10)
    assert "".join(text for _, text in lines[8]) == "    commands.fill(a, 7)  # the earlier access"
    assert lines[8][-1] == ["comment", "# the earlier access"]
    assert lines[5][0] == ["keyword", "def"]
    assert [kind for kind, _ in lines[7]] == ["string"], "the end of a string of two lines"
    assert code["dependencies"]["fill before copy"] == [9]
    around = excerpt(tmp_path, FILE, 2)
    assert around is not None and [number for number, _ in around["lines"]] == [1, 2, 3, 4, 5]


def test_code_outside_the_sources_is_not_read(tmp_path: Path) -> None:
    write_source(tmp_path)
    (tmp_path / "secret.py").write_text("def found():\n    pass\n")
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "broken.py").write_text("def (:\n")
    for name in ("../secret.py", str(tmp_path / "secret.py"), "broken.py", "missing.py", "/etc/passwd", "a\0b.py"):
        assert code_of(tmp_path / "inside", name, 1) is None
    assert code_of(tmp_path, "secret.py", 1) is not None


def test_records_and_traces_outside_the_results_are_not_read(tmp_path: Path) -> None:
    outside = hazardous_row(tmp_path / "elsewhere")
    (tmp_path / "results").mkdir()
    row = clean_row("transfer/scenario_copy")
    row.syncval = row.expected = ["READ_AFTER_WRITE a after b"]
    row.artifacts = [f"../elsewhere/{outside.artifacts[0]}", str(tmp_path / "elsewhere" / outside.artifacts[0])]
    row.scenario = f"../elsewhere/{outside.scenario}"
    row.variant = outside.variant
    data = data_of_scenario(
        [result(row).to_dict()], 1, Places(tmp_path / "results", tmp_path, tmp_path / "page"), never
    )
    (said,) = data["rows"].values()
    assert (said["pictures"], data["evidence"], data["surfaces"]) == ([], {}, {})


def never(trace: Path) -> dict[str, Any]:
    raise AssertionError(f"{trace} was read")


def test_a_row_without_its_artifacts_still_has_its_words(tmp_path: Path) -> None:
    row = hazardous_row(tmp_path / "gone")
    data = data_of_scenario([result(row).to_dict()], 1, Places(tmp_path, tmp_path, tmp_path / "page"), never)
    (said,) = data["rows"].values()
    assert said["judges"][0] == {"judge": "syncval", "word": row.syncval[0], "agrees": True, "more": []}
    assert data["code"] is None


def test_judges_that_had_nothing_to_say_neither_agree_nor_differ() -> None:
    row = clean_row("a/scenario_b")
    assert {each["judge"]: each["agrees"] for each in judges(row.to_dict())} == {
        "syncval": True, "model": True, "Khronos layer 1.3.239": True, "pixels": None, "bytes": None,
        "native runs": None,
    }  # fmt: skip
    said = judges(failed_row("a/scenario_b", "model only: x").to_dict())
    assert said[1] == {"judge": "model", "word": "disagrees", "agrees": False, "more": ["model only: x"]}


def test_evidence_of_a_trace(tmp_path: Path) -> None:
    row = hazardous_row(tmp_path)
    found = evidence(tmp_path / row.scenario / row.variant / LAVAPIPE / "trace.jsonl")
    (group,) = found["groups"]
    assert (group["number"], group["finding"]["hazard"], group["count"]) == (1, "READ_AFTER_WRITE", 1)
    assert 'class="missing"' in group["order"]
    assert any("VK_ACCESS_2_TRANSFER_WRITE_BIT" in line for line in group["mend"])
    assert EVIL in found["names"].values()
    assert "<script" not in group["order"]
    (tmp_path / "broken.jsonl").write_text("{")
    assert "broken.jsonl" in evidence(tmp_path / "broken.jsonl")["problem"]


def test_evidence_of_a_clean_trace_says_what_orders_two_accesses(tmp_path: Path) -> None:
    found = evidence(write_clean_trace(tmp_path, clean_row("copy/scenario_x")))
    assert (found["problem"], found["groups"]) == ("", [])
    (pair,) = found["ordered"]
    said = "\n".join(pair["lines"])
    assert "first   vkCmdFillBuffer" in said and "then    vkCmdCopyBuffer" in said
    assert "available by vkCmdPipelineBarrier" in said
    assert "in order: vkCmdCopyBuffer" in pair["order"] and "missing" not in pair["order"]
    assert pair["order"].count(" chain") >= 2 and 'class="order ordered"' in pair["order"]


def test_a_clean_row_has_commands_that_explain_it(tmp_path: Path) -> None:
    row = clean_row("copy/scenario_x")
    write_clean_trace(tmp_path, row)
    data = data_of_scenario([result(row).to_dict()], 1, Places(tmp_path, tmp_path, tmp_path / "page"), evidence)
    assert len(data["evidence"]["whole"]["ordered"]) == 1
    (said,) = data["rows"].values()
    assert [command.split()[1] for _, command in said["commands"][1:]] == ["check", "explain"]


def written(folder: Path, *results: RowResult) -> Path:
    file = ResultFile(folder / FILE_NAME)
    file.begin(header())
    for each in results:
        file.row(each)
    return file.path


def test_an_error_of_ours_costs_the_evidence_of_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = hazardous_row(tmp_path)

    def broken(*args: object) -> None:
        raise KeyError("pSubmits")

    monkeypatch.setattr(row_evidence, "asked", broken)
    problem = evidence(tmp_path / row.scenario / row.variant / LAVAPIPE / "trace.jsonl")["problem"]
    assert problem == "internal error: KeyError: 'pSubmits'; `vkharness mend` on the trace shows where"


def test_the_command_makes_the_page_of_a_run_that_was_killed(tmp_path: Path) -> None:
    write_source(tmp_path)
    failed = hazardous_row(tmp_path)
    path = written(tmp_path, result(clean_row("barrier/scenario_one")), result(failed, RowState.FAIL))
    ran = CliRunner().invoke(report, [str(path), "--sources", str(tmp_path), "-o", str(tmp_path / "page")])
    assert ran.exit_code == 0, ran.output
    assert "the run did not come to its end" in ran.output
    text = (tmp_path / "page" / "data" / "2.js").read_text()
    data = json.loads(text.removeprefix("vkharness.take_scenario(2,").removesuffix(");\n"))
    (said,) = data["rows"].values()
    assert any("vkharness replay traces/2/1/trace.jsonl --mode witness" in command for _, command in said["commands"])
    assert (tmp_path / "page" / "traces" / "2" / "1" / "trace.jsonl").read_bytes() == (
        tmp_path / failed.scenario / failed.variant / LAVAPIPE / "trace.jsonl"
    ).read_bytes()
    assert "did not come to its end" in (tmp_path / "page" / "index.html").read_text()


def test_a_page_can_be_made_again(tmp_path: Path) -> None:
    path = written(tmp_path, result(clean_row("barrier/scenario_one")))
    ResultFile(path).end(RunEnd(1, 0.5, 0))
    pages = []
    for _ in range(2):
        assert CliRunner().invoke(report, [str(tmp_path)]).exit_code == 0
        pages.append({each.name: each.read_bytes() for each in (tmp_path / "report").rglob("*") if each.is_file()})
    assert pages[0] == pages[1]


def test_text_of_a_results_file_is_escaped_in_the_head(tmp_path: Path) -> None:
    file = ResultFile(tmp_path / FILE_NAME)
    file.begin(header(device=[EVIL]))
    assert CliRunner().invoke(report, [str(tmp_path)]).exit_code == 0
    assert "<script>window" not in (tmp_path / "report" / "index.html").read_text()


def changes_of(page: Path) -> list[tuple[str, str, str]]:
    text = (page / "data" / "run.js").read_text()
    data = json.loads(text.removeprefix("vkharness.take_run(").removesuffix(");\n"))
    return [tuple(each.values()) for each in data["changes"]]


def test_changes_are_those_since_an_earlier_run_or_what_no_list_expects(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    passed, failed = clean_row("barrier/scenario_one"), failed_row("barrier/scenario_one", "model only: x")
    written(old, result(passed), result(clean_row("barrier/scenario_gone")))
    file = ResultFile(new / FILE_NAME)
    file.begin(header(baseline="known"))
    file.row(result(failed, RowState.FAIL))
    for more, kinds in ((["--since", str(old)], {"new failure", "went", "set-up"}), ([], {"Fail"})):
        assert CliRunner().invoke(report, [str(new), "-o", str(tmp_path / "page"), *more]).exit_code == 0
        changes = {kind: (row, text) for kind, row, text in changes_of(tmp_path / "page")}
        assert set(changes) == kinds
        row, text = changes.get("new failure") or changes["Fail"]
        assert row == f"{FILE}::scenario_one[whole-lavapipe]" and "model only: x" in text
