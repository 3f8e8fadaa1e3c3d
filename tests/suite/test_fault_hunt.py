"""The hunt with faults of a driver: each costs one row, which says why, and leaves nothing; what it would notice."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fault_drivers import built
from tests.support.suite_runs import CLAIM, FILE, suite
from vkharness.cli import main
from vkharness.device.faults.fault_driver import compiler
from vkharness.device.faults.fault_plan import FAULT_FILE, KINDS, Fault, FaultPlan
from vkharness.results.read_results import read_results
from vkharness.results.result_lines import reason_of
from vkharness.results.states import RowState
from vkharness.suite.faults.fault_hunt import faults_of, hunt
from vkharness.suite.faults.leaks import Held, processes_with
from vkharness.suite.faults.subjects import Ended, RowEnd, status_of
from vkharness.verdicts import Status

SEED, COUNT, SECONDS = 20261123, 24, 20.0
"""A hang takes the seconds, of which the process of a driver needs some to begin."""
USUAL = Ended({"a": RowEnd(Status.PASSED, "", "x"), "b": RowEnd(Status.PASSED, "", "y")})
LOST = RowEnd(Status.DEVICE_LOST, "vkQueueSubmit failed: VK_ERROR_DEVICE_LOST", "")


@pytest.mark.driver
@pytest.mark.slow
def test_each_kind_of_fault_costs_one_row_and_leaves_nothing(tmp_path: Path) -> None:
    if compiler() is None:
        pytest.skip("no C compiler here, with which the fault driver is built")
    file = tmp_path / FILE
    file.write_text(CLAIM)
    print(f"seed {SEED}")
    before, folder = dict(os.environ), tmp_path / "files"
    folder.mkdir()
    result = hunt(main, "lavapipe", COUNT, SEED, SECONDS, [file], folder)
    assert result.wrong == []
    assert set(result.struck) == set(KINDS) and result.struck.total() >= COUNT
    assert len(result.subjects) > 1 and len(result.commands) > 5
    assert dict(os.environ) == before


def ended(code: int = 1, **rows: RowEnd) -> Ended:
    return Ended(USUAL.rows | rows, code)


def test_a_fault_that_costs_its_row_is_right() -> None:
    fault = Fault("device-lost", 3)
    assert list(faults_of(fault, "vkQueueSubmit", ended(a=LOST), USUAL)) == []
    assert list(faults_of(fault, "", ended(0), USUAL)) == []


@pytest.mark.parametrize(
    ("fault", "struck", "found", "told"),
    [
        ("device-lost", "vkQueueSubmit", ended(0, a=LOST), "exit code 0"),
        ("device-lost", "vkQueueSubmit", ended(), "0 rows changed"),
        ("device-lost", "vkQueueSubmit", ended(a=LOST, b=LOST), "2 rows changed"),
        ("device-lost", "vkQueueSubmit", Ended({"a": LOST}, 1), "rows ['a'] for ['a', 'b']"),
        ("device-lost", "vkWaitForFences", ended(a=LOST), "a row does not name vkWaitForFences"),
        (
            "crash",
            "vkQueueSubmit",
            ended(a=LOST),
            "a row is device lost (vkQueueSubmit failed: VK_ERROR_DEVICE_LOST), and",
        ),
        ("device-lost", "vkQueueSubmit", ended(a=LOST._replace(status=Status.FAILED)), "and not device lost"),
        ("crash", "", ended(a=LOST), "row a changed without a fault"),
    ],
)
def test_what_is_wrong_is_noticed(fault: str, struck: str, found: Ended, told: str) -> None:
    assert any(told in line for line in faults_of(Fault(fault, 1), struck, found, USUAL))


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("", Status.PASSED),
        ("vkharness: lavapipe gave no answer in time while it replayed x", Status.TIMED_OUT),
        ("vkharness: lavapipe killed by SIGSEGV while it replayed x", Status.DIED),
        ("vkharness: vkQueueSubmit failed on lavapipe: VK_ERROR_DEVICE_LOST", Status.DEVICE_LOST),
        ("vkharness: vkMapMemory failed on lavapipe: VK_ERROR_OUT_OF_HOST_MEMORY", Status.FAILED),
    ],
)
def test_a_line_of_a_replay_tells_its_state(said: str, status: Status) -> None:
    assert status_of(said) is status


def test_what_is_left_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = Held.now(tmp_path)
    assert before.beyond(before) == []
    with (tmp_path / "file").open("w"):
        left = Held.now(tmp_path).beyond(before)
    assert len(left) == 2 and left[0].startswith("descriptor ") and left[1] == "file file is left"
    assert Held.now(tmp_path).beyond(before) == ["file file is left"]


def test_processes_are_found_by_their_environment(tmp_path: Path) -> None:
    environment = {**os.environ, FAULT_FILE: str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=environment) as child:
        assert child.stdin is not None
        while processes_with(FAULT_FILE, str(tmp_path), ()) != [child.pid]:
            assert child.poll() is None  # it has not begun yet
        assert processes_with(FAULT_FILE, str(tmp_path), [child.pid]) == []
        child.stdin.close()
    assert processes_with(FAULT_FILE, str(tmp_path), ()) == []


@pytest.mark.driver
@pytest.mark.parametrize(
    ("fault", "state", "reason"),
    [
        ("device-lost:1:vkQueueSubmit", RowState.DEVICE_LOST, "vkQueueSubmit failed: VK_ERROR_DEVICE_LOST"),
        ("crash:1:vkCmdFillBuffer", RowState.CRASH, "the driver process was killed by SIGSEGV"),
        (
            "out-of-host-memory:1:vkEndCommandBuffer",
            RowState.FAIL,
            "vkEndCommandBuffer failed: VK_ERROR_OUT_OF_HOST_MEMORY",
        ),
    ],
)
def test_a_run_of_the_suite_goes_on_after_a_fault(tmp_path: Path, fault: str, state: RowState, reason: str) -> None:
    kind, at, command = fault.split(":")
    driver = built(tmp_path / "driver")
    with FaultPlan(tmp_path / "plan") as plan:
        plan.plan(Fault(kind, int(at), command))
        options = ("--vk-device", f"lavapipe={driver.manifest}", "--vk-layer", "off", "--vk-artifacts", "artifacts")
        ran = suite(tmp_path, *options, **{FAULT_FILE: str(tmp_path / "plan")})
        assert plan.struck == command
    rows = read_results(tmp_path / "artifacts").rows.values()
    assert [each.state for each in rows] == [state, RowState.PASS]
    assert reason_of(next(iter(rows)).row) == reason
    assert ran.code == 1 and f"{state}: " in ran.output
