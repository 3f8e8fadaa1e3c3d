"""A scenario or a driver that fails inside `mutate`, `matrix` or a campaign costs its own row and fails the run."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.fault_drivers import built, planned
from vkharness.campaign.kinds import do_chunk
from vkharness.campaign.plan import Plan
from vkharness.cli import main
from vkharness.device.drivers import Driver
from vkharness.device.faults.fault_plan import Fault
from vkharness.suite.matrix.judge_cells import judge_together
from vkharness.verdicts import Status

WORD = "".join(["scena", "rio"])
CLAIMS = f'''"""Claims of a test."""

import os, threading

from vkharness.suite import Rig, read_after_write, {WORD}

HAZARD = read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")


def copied(rig: Rig) -> None:
    a, b = rig.buffer(), rig.buffer()
    with rig.submission() as commands:
        commands.fill(a, 1)
        commands.barrier("fill before copy", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.copy(a, b)
'''
BODIES = {
    "aborts": "os.abort()",
    "is_fine": "copied(rig)",
    "leaves": "raise SystemExit(7)",
    "loses_the_device": "import vulkan; raise vulkan.VkErrorDeviceLost()",
    "raises": "raise ValueError('a mistake\\nin a claim')",
    "runs_as_well": "copied(rig)",
}
TOLD = {
    "aborts": "died: the driver process was killed by SIGABRT",
    "leaves": "died: the driver process exited with 7",
    "loses_the_device": "device lost: a call failed: VK_ERROR_DEVICE_LOST",
    "raises": "failed: in a claim",
}
SEED, CELLS = 5, 4
"""Cells of which one is executed in other orders and three show a hazard."""
HANG_SECONDS = "20"


def claims(folder: Path, bodies: dict[str, str]) -> Path:
    file = folder / f"{WORD}_lost.py"
    parts = (
        f'\n\n@{WORD}(without={{"fill before copy": [HAZARD]}})\ndef {WORD}_{name}(rig: Rig) -> None:\n'
        f'    """A claim."""\n    {body}\n'
        for name, body in bodies.items()
    )
    file.write_text(CLAIMS + "".join(parts))
    return file


def ran(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([*map(str, arguments)])
    assert isinstance(left.value.code, int)
    return left.value.code


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return built(tmp_path_factory.mktemp("faults"))


@pytest.mark.driver
def test_a_lost_claim_costs_its_mutants_and_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answers = tmp_path / "mutants.json"
    file = claims(tmp_path, BODIES)
    assert ran("mutate", file, "--layer", "off", "--jobs", 2, "--json", answers) == 1
    printed = capsys.readouterr().out
    for name, reason in TOLD.items():
        assert f"lost: {tmp_path.name}/{WORD}_{name}: {reason}\n" in printed
    assert "4 of 6 scenarios are lost: no mutant of them was judged" in printed
    made = Counter(each["scenario"].rpartition("rio_")[2] for each in json.loads(answers.read_text())["mutants"])
    assert {name for name, count in made.items() if count == 1} == set(TOLD)
    assert made["is_fine"] == made["runs_as_well"] > 5


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("x = 1\n1 / 0\n", ":2: cannot be imported: ZeroDivisionError: division by zero\n"),
        (
            "import no_such_package\n",
            ":1: cannot be imported: ModuleNotFoundError: No module named 'no_such_package'\n",
        ),
        ("def f(:\n", ": cannot be imported: SyntaxError: invalid syntax\n"),
    ],
)
def test_a_file_that_cannot_be_imported_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, told: str
) -> None:
    file = tmp_path / f"{WORD}_broken.py"
    file.write_text(text)
    for _ in range(2):  # what was begun to be imported is not taken for a module
        assert ran("mutate", file) == 2
        assert capsys.readouterr().err == f"vkharness: {file}{told}"


@pytest.mark.driver
def test_claims_that_are_not_lost_fail_no_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ran("mutate", claims(tmp_path, {"is_fine": "copied(rig)"}), "--layer", "off", "--jobs", 1) == 0
    assert "lost" not in capsys.readouterr().out


@pytest.mark.driver
def test_a_claim_that_hangs_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = claims(tmp_path, {"hangs": "threading.Event().wait()", "is_fine": "copied(rig)"})
    assert ran("mutate", file, "--layer", "off", "--jobs", 1, "--timeout", HANG_SECONDS) == 1
    printed = capsys.readouterr().out
    assert f"{WORD}_hangs: timed out: the driver process gave no answer in time\n" in printed
    assert "1 of 2 scenarios are lost" in printed


@pytest.mark.driver
@pytest.mark.parametrize(
    ("fault", "status", "reason"),
    [
        ("crash:30", Status.DIED, "the driver process was killed by SIGSEGV"),
        ("leave:30", Status.DIED, "the driver process exited with 3"),
        ("hang:30", Status.TIMED_OUT, "the driver process gave no answer in time"),
        ("device-lost:2:vkQueueSubmit", Status.DEVICE_LOST, "vkQueueSubmit failed: VK_ERROR_DEVICE_LOST"),
        (
            "out-of-device-memory:2:vkAllocateMemory",
            Status.FAILED,
            "vkAllocateMemory failed: VK_ERROR_OUT_OF_DEVICE_MEMORY",
        ),
    ],
)
def test_a_fault_of_the_driver_costs_one_cell(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    faulty: Driver,
    fault: str,
    status: Status,
    reason: str,
) -> None:
    kind, at, *command = fault.split(":")
    options = ("--sample", CELLS, "--seed", SEED, "--layer", "off", "--jobs", 1, "--timeout", HANG_SECONDS)
    with planned(tmp_path, Fault(kind, int(at), *command), monkeypatch) as plan:
        assert ran("matrix", "--device", f"lavapipe={faulty.manifest}", "--json", tmp_path / "rows", *options) == 1
        assert plan.struck
    rows = json.loads((tmp_path / "rows").read_text())["rows"]
    lost = [row for row in rows if row["status"] != Status.PASSED]
    assert len(rows) == CELLS and [row["status"] for row in lost] == [status]
    printed = capsys.readouterr().out
    assert f"{status}: {lost[0]['scenario']} on {lost[0]['device']}: {reason}\n" in printed


@pytest.mark.driver
def test_a_fault_costs_no_batch_of_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: Driver) -> None:
    device = f"lavapipe={faulty.manifest}"
    for kind in ("crash", "device-lost"):
        with planned(tmp_path, Fault(kind, 2), monkeypatch) as plan:
            rows = dict(judge_together([1, 2, 3], device))
            assert plan.struck
        assert sorted(rows) == [1, 2, 3]
        (lost,) = (row for row in rows.values() if row.status is not Status.PASSED)
        assert "each passes alone" in lost.problem


@pytest.mark.driver
@pytest.mark.parametrize(
    ("work", "kind", "at"),
    [
        ("orders", "crash", 25),
        ("mends", "device-lost", 2),
        ("layer", "out-of-host-memory", 25),
        ("matrix", "leave", 25),
    ],
)
def test_a_fault_costs_one_seed_of_a_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: Driver, work: str, kind: str, at: int
) -> None:
    plan: dict[str, Any] = Plan(work, 1, 3, 3, device=f"lavapipe={faulty.manifest}", layer="today").to_dict()
    with planned(tmp_path, Fault(kind, at), monkeypatch) as faults:
        result = do_chunk(plan, 0, 0, 3)
        assert faults.struck
    assert len(result["discoveries"]) == 1
