"""The results file: whole after a kill, one clear line for what is malformed, and every earlier version readable."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from vkharness.findings import UserError
from vkharness.results import result_lines
from vkharness.results.read_results import read_results
from vkharness.results.result_file import ResultFile
from vkharness.results.result_lines import ClaimText, RowResult, RunEnd, RunHeader
from vkharness.results.states import RowState
from vkharness.suite.row import Row

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "tests" / "data" / "formats" / "results"
HEADER = RunHeader("0.1.0", "3.11.2", "2026-01-31T02:00:00+00:00")


def result(name: str, state: RowState = RowState.PASS) -> RowResult:
    claim = ClaimText("A claim.", "A claim.", "copy/x.py", 7, "copy")
    row = Row("copy/x", name, "lavapipe", []).to_dict()
    return RowResult(f"copy/x.py::x[{name}-lavapipe]", row, state, state, 0.25, claim, (state,))


def written(folder: Path, *names: str) -> Path:
    file = ResultFile(folder / "results.jsonl")
    file.begin(HEADER)
    for name in names:
        file.row(result(name))
    return file.path


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "a", "b")
    ResultFile(path).end(RunEnd(2, 1.5, 1))
    found = read_results(tmp_path)
    assert (found.path, found.header, found.end, found.notes) == (path, HEADER, RunEnd(2, 1.5, 1), [])
    assert list(found.rows.values()) == [result("a"), result("b")]
    assert Row.from_dict(found.rows[result("a").nodeid].row) == Row("copy/x", "a", "lavapipe", [])


@pytest.mark.parametrize("path", sorted(KEPT.glob("version-*.jsonl")), ids=lambda path: path.stem)
def test_the_files_of_every_version_are_read(path: Path) -> None:
    found = read_results(path)
    assert found.end is not None and len(found.rows) == found.end.rows == 3
    assert {each.state for each in found.rows.values()} == {RowState.PASS}
    assert [each.device for each in found.header.devices] == ["lavapipe", "swiftshader"]
    for each in found.rows.values():
        Row.from_dict(each.row)


def test_each_version_has_a_file_that_is_kept() -> None:
    kept = {path.stem for path in KEPT.glob("version-*.jsonl")}
    assert kept == {*(f"version-{number}" for number in range(1, result_lines.VERSION + 1)), "version-1-bytes"}


def test_the_written_schema_names_every_key() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([a-z_]+)`", page))
    kinds = (RunHeader, RowResult, ClaimText, RunEnd, result_lines.DeviceIdentity, result_lines.LayerIdentity)
    assert {each.name for kind in kinds for each in fields(kind)} - named == set()
    assert {state for state in RowState if f"`{state}`" not in page} == set()


def test_a_new_run_replaces_the_file_and_a_resumed_one_goes_on(tmp_path: Path) -> None:
    path = written(tmp_path, "a")
    ResultFile(path).resume("2026-01-31T03:00:00+00:00")
    ResultFile(path).row(result("b"))
    found = read_results(path)
    assert len(found.rows) == 2 and found.resumed == ["2026-01-31T03:00:00+00:00"] and found.end is None
    assert read_results(written(tmp_path)).rows == {}


@pytest.mark.parametrize("cut", [1, 200, 4000])
def test_a_line_that_was_cut_off_is_left_out_and_written_over(tmp_path: Path, cut: int) -> None:
    path = written(tmp_path, "a", "b" * 5000)
    size = path.stat().st_size
    os.truncate(path, size - cut)
    found = read_results(path)
    assert len(found.rows) == 1
    assert found.notes == [
        f"{path}:3: the last line is cut off; it is left out",
        f"{path}: the run did not come to its end; 1 rows are done",
    ]
    ResultFile(path).row(result("c"))
    assert [each.row["variant"] for each in read_results(path).rows.values()] == ["a", "c"]


def test_a_process_that_is_killed_loses_no_row_that_it_finished(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from vkharness.results.result_file import ResultFile
from tests.results.test_results_file import HEADER, result
file = ResultFile(Path({str(tmp_path / "results.jsonl")!r}))
file.begin(HEADER)
for number in range(5):
    file.row(result(str(number)))
os.kill(os.getpid(), signal.SIGKILL)
"""
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    assert ran.returncode == -signal.SIGKILL
    assert len(read_results(tmp_path).rows) == 5


def test_several_processes_write_one_file(tmp_path: Path) -> None:
    path = written(tmp_path)
    program = """
import sys
from pathlib import Path
from vkharness.results.result_file import ResultFile
from tests.results.test_results_file import result
for number in range(40):
    ResultFile(Path(sys.argv[1])).row(result(f"{sys.argv[2]}-{number}"))
"""
    running = [subprocess.Popen([sys.executable, "-c", program, str(path), who], cwd=ROOT) for who in "ab"]
    assert [each.wait() for each in running] == [0, 0]
    assert len(read_results(path).rows) == 80


def changed(line: dict[str, Any], keys: str, value: Any) -> dict[str, Any]:
    """A copy with the member that `a.b.c` names set to another value; None takes it out."""
    copy: dict[str, Any] = json.loads(json.dumps(line))
    *outer, last = keys.split(".")
    inner = copy
    for key in outer:
        inner = inner[key]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return copy


@pytest.mark.parametrize(
    ("keys", "value", "message"),
    [
        ("kind", "walk", "no line is of the kind 'walk'"),
        ("kind", None, "'kind' is not a text"),
        ("nodeid", 7, "'nodeid' is not a text"),
        ("result", "pass", "no state is called 'pass'"),
        ("result", "ExpectedFail", "'result' is 'ExpectedFail', which holds a row against a baseline"),
        ("state", None, "'state' is not a text"),
        ("seconds", True, "'seconds' is not a number from 0 on"),
        ("seconds", float("nan"), "'seconds' is not a number from 0 on"),
        ("attempts", [1], "a member of 'attempts' is not a text"),
        ("claim.line", "7", "'line' is not a whole number"),
        ("claim", [], "'claim' is not an object"),
        ("row.expected", "x", "'expected' is not a list"),
        ("row.verdicts", None, "'verdicts' is not an object"),
        ("row.verdicts.native", {"corrupt": 3, "times": 2}, "'native' has more corrupt runs than runs"),
        ("row.layers", {"1.3.239": 5}, "a member of 'layers' is not a text"),
        ("row.layer_disagreements", {"1.3.239": [5]}, "a member of '1.3.239' is not a text"),
    ],
)
def test_a_row_that_is_malformed_is_one_line_of_error(tmp_path: Path, keys: str, value: Any, message: str) -> None:
    path = written(tmp_path)
    with path.open("a") as file:
        file.write(json.dumps(changed(result("a").to_dict(), keys, value)) + "\n")
    with pytest.raises(UserError) as raised:
        read_results(path)
    assert str(raised.value) == f"{path}:2: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "{path}: empty: not a results file"),
        (b"{}\n", "{path}:1: does not begin with a line of the kind 'run': not a results file"),
        (b"\xff\n", "{path}:1: not JSON"),
        (b"[" * 100_000 + b"\n", "{path}:1: not JSON"),
        (b"7\n", "{path}:1: not a JSON object"),
        (b'{"kind": "run"', "{path}:1: does not begin with a line of the kind 'run': not a results file"),
        (b'{"kind": "run"}\n', "{path}:1: 'format' is not 'vkharness results': not a results file"),
        (
            json.dumps({**HEADER.to_dict(), "version": 2}).encode() + b"\n",
            "{path}:1: version 2 of the format; this harness reads version 1",
        ),
        (
            json.dumps({**HEADER.to_dict(), "shard": [1]}).encode() + b"\n",
            "{path}:1: 'shard' is not a list of two numbers",
        ),
        (json.dumps({**HEADER.to_dict(), "devices": [{}]}).encode() + b"\n", "{path}:1: 'device' is not a text"),
    ],
)
def test_a_file_that_is_none_is_one_line_of_error(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_bytes(text)
    with pytest.raises(UserError) as raised:
        read_results(path)
    assert str(raised.value) == message.format(path=path)


def test_a_line_has_a_longest_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vkharness.results.read_results.LONGEST_LINE", 1000)
    path = written(tmp_path, "a" * 2000)
    with pytest.raises(UserError, match=":2: a line is longer than 1000 bytes"):
        read_results(path)


def test_what_cannot_be_opened_is_one_line_of_error(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"none: cannot be read: No such file or directory$"):
        read_results(tmp_path / "none")
    with pytest.raises(UserError, match=r"none: cannot be written: No such file or directory$"):
        ResultFile(tmp_path / "none").row(result("a"))
