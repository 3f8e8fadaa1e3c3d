"""Output of a run beside its results: progress, a short summary, the table, CSV and JUnit files."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from tests.support.run_results import LAVAPIPE, SWIFTSHADER, clean_row, failed_row, result
from tests.support.suite_runs import CLAIM, suite
from vkharness.report.text import WITHIN_COMMANDS
from vkharness.results.result_lines import RowResult
from vkharness.results.states import RowState
from vkharness.suite.csv_files import FAILURES, RESULTS, write_csv_files
from vkharness.suite.row import Row, settle
from vkharness.suite.row_progress import CLEAR, RowProgress, carry, failure_line
from vkharness.suite.row_summary import print_summary
from vkharness.suite.row_table import print_table
from vkharness.verdicts import BytesVerdict, LayerVerdict, Status


def printed(rows: list[RowResult], width: int = 80) -> list[str]:
    text = io.StringIO()
    print_summary(rows, Console(file=text, width=width), "artifacts")
    return text.getvalue().splitlines()


def of_family(family: str, where: str = LAVAPIPE, state: RowState = RowState.PASS) -> RowResult:
    return result(clean_row(f"{family}/scenario_x", where), state)


def test_the_summary_has_a_line_for_each_family_and_a_column_for_each_driver() -> None:
    lines = printed(
        [of_family("draw"), of_family("draw", SWIFTSHADER, RowState.FAIL), of_family("event"), of_family("draw")]
    )
    assert re.split(r"\s{2,}", lines[0].strip()) == ["family", "lavapipe", "swiftshader"]
    assert re.split(r"\s{2,}", lines[1].strip()) == ["draw", "2", "1 Fail of 1"]
    assert re.split(r"\s{2,}", lines[2].strip()) == ["event", "1", "-"]
    assert lines[3] == "Fail: a judge disagrees, or the scenario itself is wrong"
    assert lines[4].startswith("Fail, rule read-after-write on swiftshader: 1 row, ")
    assert lines[5] == "4 rows: 1 Fail, 3 Pass; hazards shown in 0 rows, other orders held in 0"
    assert lines[6] == "bytes computed without the driver: all in 0 rows, a part in 0, none in 0"


def test_rows_of_a_layer_that_nobody_asked_are_one_line() -> None:
    rows = [clean_row(f"draw/scenario_{name}") for name in "abc"]
    for each in rows[:2]:
        each.layers = {"1.3.275": LayerVerdict(disagreements=("layer-only: x", "ours-only: y"))}
        settle(each, [])
    lines = printed([result(each) for each in rows])
    assert [line for line in lines if "1.3.275" in line] == [
        "layer 1.3.275: 2 rows with a difference that is not known for this layer"
    ]


def test_the_summary_counts_rows_whose_bytes_nobody_computed() -> None:
    rows = [clean_row(f"draw/scenario_{name}") for name in "abcd"]
    rows[0].bytes, rows[1].bytes = BytesVerdict(4, 4), BytesVerdict(1, 4, unknown=("vkCmdDraw: lines",))
    rows[2].bytes = BytesVerdict(0, 0, unknown=("cannot be replayed",))
    assert "bytes computed without the driver: all in 1 rows, a part in 1, none in 1" in printed(
        [result(each) for each in rows]
    )


def test_the_summary_says_what_is_not_judged_where_shaders_store() -> None:
    rows = [clean_row(f"draw/scenario_{name}") for name in "ab"]
    assert not [line for line in printed([result(each) for each in rows]) if line.startswith(WITHIN_COMMANDS)]
    rows[1].storing_shaders = True
    assert f"{WITHIN_COMMANDS}: in 1 row" in printed([result(each) for each in rows], 180)
    assert Row.from_dict(rows[1].to_dict()).storing_shaders


@pytest.mark.parametrize("devices", [2, 9])
def test_the_summary_of_a_large_run_has_fewer_than_40_lines(devices: int) -> None:
    """With every state there is, and more families than lines."""
    states = list(RowState)
    rows = [
        of_family(f"family{at}", f"device{which}", states[at % len(states)] if at > 40 else RowState.PASS)
        for at in range(70)
        for which in range(devices)
    ]
    rows[0].row["storing_shaders"] = True
    lines = printed(rows, 120)
    assert len(lines) < 39, "\n".join(lines)  # the reporter adds one
    assert f"{70 * devices} rows:" in "\n".join(lines)
    if devices == 2:
        assert any(line.startswith("43 others ") for line in lines)


@pytest.mark.parametrize("width", [80, 100, 180])
def test_the_status_of_each_row_can_be_seen(width: int) -> None:
    rows = [clean_row("draw/scenario_of_a_thing_with_a_name_that_is_long_enough", where) for where in ("a", "b")]
    rows[1].status, rows[1].reasons = Status.FAILED, ["model: x"]
    rows[1].syncval = ["READ_RACING_WRITE vkCmdDispatchIndirect after vkCmdCopyBuffer"]
    rows.append(
        Row("draw/scenario_other", "without_a_dependency", "c", [], problem="it died", status=Status.DEVICE_LOST)
    )
    text = io.StringIO()
    print_table(rows, Console(file=text, width=width))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert [line.split("  ")[0].strip() for line in lines if re.match(r"\w", line)][:4] == [
        "status", "passed", "failed", str(Status.DEVICE_LOST)
    ]  # fmt: skip
    assert "held 2/2" in " ".join(text.getvalue().split())


def test_csv_files(tmp_path: Path) -> None:
    rows = [
        result(clean_row("b/scenario_x", variant="without_a,_b"), seconds=1.25),
        result(failed_row("a/scenario_y", "model: x"), RowState.CRASH),
        of_family("c", state=RowState.EXPECTED_FAIL),
    ]
    write_csv_files(tmp_path, rows)
    assert list(csv.reader((tmp_path / RESULTS).read_text().splitlines())) == [
        ["a/scenario_y[whole] on lavapipe", "Crash", "0.500"],
        ["b/scenario_x[without_a,_b] on lavapipe", "Pass", "1.250"],
        ["c/scenario_x[whole] on lavapipe", "ExpectedFail", "0.500"],
    ]
    assert (tmp_path / FAILURES).read_text() == "a/scenario_y[whole] on lavapipe,Crash\n"


def test_rows_of_one_name_are_rows_of_their_own_in_csv_files(tmp_path: Path) -> None:
    """Two files of one folder may have claims of one name."""
    write_csv_files(tmp_path, [result(clean_row("a/scenario_x"), seconds=each) for each in (2.0, 1.0)])
    assert [line.rpartition(",")[2] for line in (tmp_path / RESULTS).read_text().splitlines()] == ["2.000", "1.000"]


class Terminal:
    """As much of pytest's reporter as the progress uses."""

    def __init__(self, is_terminal: bool) -> None:
        self.isatty, self.verbosity, self.showfspath = is_terminal, 0, True
        self.text = ""
        self._tw = SimpleNamespace(hasmarkup=is_terminal, fullwidth=60, write=self.write, width_of_current_line=0)

    def write(self, text: str, flush: bool = False) -> None:
        self.text += text

    def write_line(self, line: str, **markup: bool) -> None:
        self.text += f"{line}\n"


def report_of(row: RowResult, when: str = "call") -> Any:
    report = SimpleNamespace(when=when, passed=row.state is RowState.PASS)
    carry(report, row)  # type: ignore[arg-type]
    return report


def followed(is_terminal: bool) -> tuple[Terminal, RowProgress]:
    terminal = Terminal(is_terminal)
    progress = RowProgress(terminal, 7)  # type: ignore[arg-type]
    failed = result(failed_row("draw/scenario_x", "\x1b[2Jx"), RowState.FAIL)
    for row in (of_family("draw"), failed):
        progress.pytest_runtest_logstart(row.nodeid)
        progress.pytest_runtest_logreport(report_of(row))
    progress.pytest_runtest_logstart("scenarios/a.py::scenario_with_a_long_name_that_does_not_fit_into_the_line[whole]")
    progress.pytest_sessionfinish()
    return terminal, progress


FAILED = "Fail: draw/x [whole] on lavapipe: model: \\x1b[2Jx"


def test_on_a_terminal_one_line_names_the_current_row() -> None:
    terminal, progress = followed(True)
    drawn = [part.split("\n")[0] for part in terminal.text.split(CLEAR) if part]
    assert drawn[0].startswith("0/7  scenario_copies.py::scenario_x")
    assert drawn[1].startswith("1/7  1 Pass  scenario_copies.py::scenario_x")
    assert drawn[2] == FAILED
    assert drawn[3].startswith("2/7  1 Pass, 1 Fail  a.py::scenario_with_a_long_name")
    assert max(map(len, (drawn[0], drawn[1], drawn[3]))) < 60
    assert terminal.text.endswith(CLEAR)
    assert progress.pytest_report_teststatus(report_of(of_family("draw"))) == ("passed", "", "")
    assert progress.pytest_report_teststatus(report_of(of_family("draw"), "teardown")) is None, "it is no second row"
    assert not terminal.showfspath


def test_in_a_pipe_only_failures_are_written() -> None:
    terminal, progress = followed(False)
    assert terminal.text == f"{FAILED}\n"
    assert progress.pytest_report_teststatus(report_of(of_family("draw"))) is None


def test_a_failed_row_is_one_line() -> None:
    row = clean_row("draw/scenario_x")
    row.problem = "the driver process was killed by SIGSEGV\nand said this"
    assert failure_line(result(row, RowState.CRASH)) == (
        "Crash: draw/x [whole] on lavapipe: the driver process was killed by SIGSEGV"
    )


WRONG = CLAIM.replace("read_after_write", "write_after_write")


@pytest.mark.driver
@pytest.mark.parametrize("processes", [(), ("-n", "1")], ids=["one process", "a worker"])
def test_files_of_a_run_with_a_failed_row(tmp_path: Path, processes: tuple[str, ...]) -> None:
    ran = suite(
        tmp_path, "--vk-device", LAVAPIPE, "--vk-layer", "off", "--junitxml", "junit.xml", "--vk-report", "page",
        *processes, text=WRONG, COLUMNS="80",
    )  # fmt: skip
    assert ran.code == 1
    assert "\x1b" not in ran.output
    assert re.search(
        r"^Fail: .*copy \[without_fill_before_copy\] on lavapipe: syncval: missing ", ran.output, re.MULTILINE
    )
    assert "2 rows: 1 Fail, 1 Pass; hazards shown in 1 row, " in ran.output
    assert "passed  " not in ran.output, "no table"
    assert (tmp_path / "page" / "index.html").exists()
    failed = list(csv.reader((tmp_path / "artifacts" / FAILURES).read_text().splitlines()))
    assert [(name.partition("[")[2], state) for name, state in failed] == [
        ("without_fill_before_copy] on lavapipe", "Fail")
    ]
    cases = {case.get("name", ""): case for case in ElementTree.parse(tmp_path / "junit.xml").iter("testcase")}
    (wrong,) = (case for name, case in cases.items() if "without" in name)
    properties = {each.get("name"): each.get("value") for each in wrong.iter("property")}
    assert {key: properties[key] for key in ("driver", "layer", "variant", "state", "witness")} == {
        "driver": LAVAPIPE, "layer": "none", "variant": "without_fill_before_copy", "state": "Fail",
        "witness": "shown 1/1",
    }  # fmt: skip
    assert str(properties["cause"]).startswith("Fail, syncval")
    assert [sum(each.get("name") == "cause" for each in case.iter("property")) for case in cases.values()].count(1) == 1
    assert properties["expected"] == "WRITE_AFTER_WRITE vkCmdCopyBuffer after vkCmdFillBuffer"
    assert (tmp_path / "artifacts" / str(properties["artifact"]) / "record.json").exists()
    assert not any("row" in str(name) for name in properties)
    failure = wrong.find("failure")
    assert failure is not None and failure.text is not None
    for words in ("expected: WRITE_AFTER_WRITE", "witness: shown 1/1", "artifacts: "):
        assert words in failure.text
