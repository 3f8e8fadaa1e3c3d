"""Runs of many rows: nothing finished is lost, parts are stable, flakes count once, and known results are known."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.support.suite_runs import Ran, suite
from vkharness.findings import UserError
from vkharness.results.read_results import read_results
from vkharness.results.result_lines import RowResult
from vkharness.results.states import RowState
from vkharness.suite.selection import in_shard, parse_shard

QUICK = ("--vk-device", "lavapipe", "--vk-layer", "off")
HEAD = '''"""Claims of a test."""

import os
import signal
import threading
from pathlib import Path

from vkharness.suite import Rig, read_after_write, scenario

HERE = Path(__file__).parent


def first_time(name: str) -> bool:
    there = (HERE / name).exists()
    (HERE / name).touch()
    return not there
'''


WORD = "".join(["scena", "rio"])


def claim(name: str, body: str = "rig.buffer()") -> str:
    return (
        f'\n\n@scenario()\ndef {"scena"}rio_{name}(rig: Rig) -> None:\n    """A claim called {name}."""\n    {body}\n'
    )


def claims(**bodies: str) -> str:
    return HEAD + "".join(claim(name, body or "rig.buffer()") for name, body in bodies.items())


CRASHES = "os.kill(os.getpid(), signal.SIGSEGV)"
FAILS = "raise ValueError('by itself')"
LOSES = "import vulkan; raise vulkan.VkErrorDeviceLost()"
HANGS = "threading.Event().wait()"
FLAKY = "assert not first_time('flaky'), 'for the first time'"


def rows(folder: Path) -> dict[str, RowResult]:
    """The rows of a run, by the name of the claim without its first word."""
    found = read_results(folder / "artifacts").rows.values()
    return {each.row["scenario"].partition("rio_")[2]: each for each in found}


def states(folder: Path) -> dict[str, RowState]:
    return {name: each.state for name, each in rows(folder).items()}


PASS, FAIL, CRASH, FLAKE = RowState.PASS, RowState.FAIL, RowState.CRASH, RowState.FLAKE


@pytest.mark.driver
@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "several"])
def test_a_run_that_was_killed_goes_on(tmp_path: Path, processes: tuple[str, ...]) -> None:
    killing = "os.kill(os.getppid(), signal.SIGKILL) if first_time('killed') else rig.buffer()"
    text = claims(a=FAILS, b="", c=killing, d="")
    killed = suite(tmp_path, *QUICK, text=text)
    assert killed.code == -signal.SIGKILL
    assert states(tmp_path) == {"a": FAIL, "b": PASS}
    resumed = suite(tmp_path, *QUICK, "--vk-resume", *processes, text=text)
    assert states(tmp_path) == {"a": FAIL, "b": PASS, "c": PASS, "d": PASS}
    assert resumed.code == 1, "a row of the first part failed"
    assert "note: 2 rows are done; this run goes on" in resumed.output and "2 passed" in resumed.output
    assert "4 rows: " in resumed.output, "the table has all rows"
    again = suite(tmp_path, *QUICK, "--vk-resume", *processes, text=text)
    assert again.code == 1 and "4 rows: " in again.output and len(rows(tmp_path)) == 4
    found = read_results(tmp_path / "artifacts")
    assert len(found.resumed) == 2 and found.end is not None and found.end.rows == 4


@pytest.mark.driver
def test_a_run_goes_on_with_the_same_set_up_only(tmp_path: Path) -> None:
    assert suite(tmp_path, *QUICK, "--vk-resume", text=claims(a="")).code == 0, "nothing is done: it begins"
    other = suite(tmp_path, "--vk-device", "swiftshader", "--vk-layer", "off", "--vk-resume", text=claims(a=""))
    assert other.code == pytest.ExitCode.USAGE_ERROR
    assert "ERROR: --vk-resume: the results are of another run: devices was " in other.output
    native = suite(tmp_path, *QUICK, "--vk-resume", "--vk-native", "2", text=claims(a=""))
    assert native.code == pytest.ExitCode.USAGE_ERROR and "with another --vk-native" in native.output
    (tmp_path / "artifacts" / "results.jsonl").write_text("{}\n")
    broken = suite(tmp_path, *QUICK, "--vk-resume", text=claims(a=""))
    assert broken.code == pytest.ExitCode.USAGE_ERROR and "results.jsonl:1: does not begin with a line" in broken.output


def test_parts_are_all_and_apart_and_a_new_row_moves_no_other() -> None:
    ids = [f"copy/x.py::x[{number}-lavapipe]" for number in range(1000)]
    parts = [{each for each in ids if in_shard(each, (part, 8))} for part in range(1, 9)]
    assert set().union(*parts) == set(ids) and sum(map(len, parts)) == len(ids)
    assert all(90 < len(part) < 160 for part in parts)
    assert [number for number in range(12) if in_shard(ids[number], (1, 2))] == STABLE


STABLE = [0, 1, 5, 6, 9, 10, 11]
"""Rows of twelve in the first of two parts: these must not change from one release to the next."""


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "a/8", "1/0", "-1/8", "1/8/2"])
def test_a_part_that_is_none(text: str) -> None:
    assert parse_shard("3/8") == (3, 8)
    with pytest.raises(UserError, match=f"--vk-shard {text}: not of the form K/N with K from 1 to N"):
        parse_shard(text)


@pytest.mark.driver
def test_parts_of_a_run(tmp_path: Path) -> None:
    text, seen = claims(a="", b="", c="", d=""), []
    for part in (1, 2):
        ran = suite(tmp_path, *QUICK, "--vk-shard", f"{part}/2", text=text)
        assert ran.code in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
        found = read_results(tmp_path / "artifacts")
        assert found.header.shard == (part, 2)
        seen += sorted(rows(tmp_path))
    assert sorted(seen) == ["a", "b", "c", "d"]
    wrong = suite(tmp_path, *QUICK, "--vk-shard", "3/2", text="raise RuntimeError('collected')")
    assert wrong.code == pytest.ExitCode.USAGE_ERROR and "collected" not in wrong.output


@pytest.mark.driver
def test_a_row_that_differs_is_a_flake_and_counts_once(tmp_path: Path) -> None:
    ran = suite(tmp_path, *QUICK, "--vk-retries", "2", text=claims(a=FAILS, b=FLAKY, c=""))
    assert ran.code == 1 and "1 failed, 2 passed" in ran.output and "3 rows: 1 Fail, 1 Pass, 1 Flake" in ran.output
    found = rows(tmp_path)
    assert {name: each.attempts for name, each in found.items()} == {
        "a": (FAIL, FAIL, FAIL),
        "b": (FAIL, PASS),
        "c": (PASS,),
    }
    assert states(tmp_path) == {"a": FAIL, "b": FLAKE, "c": PASS}
    assert found["b"].retried == "AssertionError: for the first time"
    assert "Flake: " in ran.output and "AssertionError: for the first time" in ran.output


@pytest.mark.driver
def test_a_row_that_never_passes_is_no_flake(tmp_path: Path) -> None:
    body = f"{CRASHES} if not first_time('x') else {FAILS.removeprefix('raise ')}.missing"
    suite(tmp_path, *QUICK, "--vk-retries", "1", text=claims(a=body))
    assert rows(tmp_path)["a"].attempts == (FAIL, CRASH) and states(tmp_path) == {"a": CRASH}


@pytest.mark.driver
def test_crash_timeout_and_lost_device_are_states_and_can_be_expected(tmp_path: Path) -> None:
    text = claims(a=CRASHES, b=LOSES, c="", d=FAILS)
    lists = tmp_path / "known"
    first = suite(tmp_path, *QUICK, "--vk-baseline", lists, "--vk-update-baseline", text=text)
    assert first.code == 0, first.output
    known = (("a", "Crash"), ("b", "DeviceLost"), ("d", "Fail"))
    lines = [f"{tmp_path.name}/{WORD}_{name}[whole],{state}" for name, state in known]
    assert (lists / "lavapipe-fails.txt").read_text().splitlines() == lines
    second = suite(tmp_path, *QUICK, "--vk-baseline", lists, text=text)
    assert second.code == 0 and "3 xfailed" in second.output
    assert [each.state for each in rows(tmp_path).values()] == [RowState.EXPECTED_FAIL] * 2 + [
        PASS,
        RowState.EXPECTED_FAIL,
    ]
    assert [each.result for each in rows(tmp_path).values()] == [CRASH, RowState.DEVICE_LOST, PASS, FAIL]
    third = suite(tmp_path, *QUICK, "--vk-baseline", lists, text=claims(a="", b=FAILS, c="", d=CRASHES))
    assert third.code == 1
    assert states(tmp_path) == {"a": RowState.IMPROVED_PASS, "b": RowState.IMPROVED_FAIL, "c": PASS, "d": CRASH}
    assert f"UnexpectedImprovement(Pass): {lists}/lavapipe-fails.txt:1 expects otherwise" in third.output


@pytest.mark.driver
def test_a_row_has_a_time_limit(tmp_path: Path) -> None:
    ran = suite(tmp_path, *QUICK, "--vk-timeout", "4", text=claims(a=HANGS))
    assert ran.code == 1 and states(tmp_path) == {"a": RowState.TIMEOUT}
    assert "the driver process gave no answer in time" in ran.output


@pytest.mark.driver
@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "several"])
def test_a_run_has_a_time_limit_and_goes_on(tmp_path: Path, processes: tuple[str, ...]) -> None:
    limited = suite(tmp_path, *QUICK, "--vk-time-limit", "9", *processes, text=claims(a="", b=HANGS, c=""))
    assert limited.code == 1 and "b" not in states(tmp_path)
    assert "FAILED: the time limit of 9 s is over, and " in limited.output
    resumed = suite(tmp_path, *QUICK, "--vk-resume", *processes, text=claims(a="", b="", c=""))
    assert resumed.code == 0 and states(tmp_path) == {"a": PASS, "b": PASS, "c": PASS}


@pytest.mark.driver
def test_lists_of_skips_and_flakes(tmp_path: Path) -> None:
    lists = tmp_path / "known"
    lists.mkdir()
    (lists / "all-skips.txt").write_text("# hangs\n_skipped\n")
    (lists / "lavapipe-flakes.txt").write_text("_flaky\n")
    text = claims(skipped=CRASHES, flaky=FAILS, good="")
    ran = suite(tmp_path, *QUICK, "--vk-baseline", lists, text=text)
    assert ran.code == 0, ran.output
    assert states(tmp_path) == {"skipped": RowState.SKIP, "flaky": RowState.KNOWN_FLAKE, "good": PASS}
    assert f"skipped: 1 rows: listed in {lists}/all-skips.txt:2" in ran.output


@pytest.mark.driver
def test_lines_of_lists_that_are_about_no_row_are_told(tmp_path: Path) -> None:
    lists = tmp_path / "known"
    lists.mkdir()
    (lists / "lavapipe-fails.txt").write_text("".join(f"copy/gone_{number}[whole],Fail\n" for number in range(4)))
    (lists / "all-flakes.txt").write_text("_good\n")
    chosen = (*QUICK, "--vk-baseline", lists)
    said = f"note: 4 lines of the baseline match no row of this run: {lists}/lavapipe-fails.txt:1: copy/gone_0[whole]; "
    ran = suite(tmp_path, *chosen, text=claims(good="", other=""))
    assert ran.code == 0 and said in ran.output and "3: copy/gone_2[whole]; and 1 more" in ran.output
    for part in (("-k", "good"), ("--vk-shard", "1/1")):
        ran = suite(tmp_path, *chosen, *part, text=claims(good="", other=""))
        assert ran.code == 0 and "match no row" not in ran.output


@pytest.mark.driver
def test_an_update_writes_flakes_and_nothing_else_fails(tmp_path: Path) -> None:
    lists, retries = tmp_path / "known", ("--vk-retries", "1")
    text = claims(a=FLAKY, b="")
    first = suite(tmp_path, *QUICK, *retries, "--vk-baseline", lists, "--vk-update-baseline", text=text)
    assert first.code == 0 and f"baseline: {lists}/lavapipe-flakes.txt written" in first.output
    assert not (lists / "lavapipe-fails.txt").exists()
    (tmp_path / "flaky").unlink()
    assert suite(tmp_path, *QUICK, *retries, "--vk-baseline", lists, text=text).code == 0
    assert states(tmp_path) == {"a": RowState.KNOWN_FLAKE, "b": PASS}


def refused(folder: Path, *arguments: object) -> Ran:
    return suite(folder, *arguments, text="raise RuntimeError('collected')")


@pytest.mark.driver
def test_lists_that_are_malformed_are_an_error_before_collection(tmp_path: Path) -> None:
    lists = tmp_path / "known"
    for message in ("no such folder", "lavapipe-fails.txt:1: not of the form NAME,STATE", "needs --vk-baseline"):
        if message == "needs --vk-baseline":
            ran = refused(tmp_path, *QUICK, "--vk-update-baseline")
        else:
            ran = refused(tmp_path, *QUICK, "--vk-baseline", lists)
        assert ran.code == pytest.ExitCode.USAGE_ERROR and message in ran.output and "collected" not in ran.output
        lists.mkdir(exist_ok=True)
        (lists / "lavapipe-fails.txt").write_text("copy/x\n")
