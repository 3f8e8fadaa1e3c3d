"""Programs under the layer whose driver fails, loses its device or crashes: they end as they do without it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.fault_drivers import built
from tests.support.mirror_streams import compiled, layer_environment, process_folders
from vkharness.check import Analysis
from vkharness.device.drivers import Driver, environment
from vkharness.device.faults.fault_plan import FAULT_FILE, KINDS, Fault, FaultPlan
from vkharness.live.line_tables import LineTables
from vkharness.live.native_sites import NativeSites
from vkharness.live.process_judge import judge_folder
from vkharness.trace.calls import Block, Call

pytestmark = pytest.mark.driver


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return built(tmp_path_factory.mktemp("faults"))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled("mirrored.c", tmp_path_factory.mktemp("program"), "-lvulkan", "-pthread")


def ended(program: Path, driver: Driver, folder: Path, fault: Fault, out: Path | None) -> tuple[int, str]:
    """The exit code of a program that a fault strikes, and what it printed; under the layer with a folder for it."""
    alone = {"VK_INSTANCE_LAYERS": ""} if out is None else {}
    with FaultPlan(folder / "plan") as plan:
        plan.plan(fault)
        environ = {**layer_environment(out, **alone), **environment(driver), FAULT_FILE: str(folder / "plan")}
        done = subprocess.run([str(program), "copy"], env=environ, stdout=subprocess.PIPE, text=True, check=False)
        assert plan.struck == fault.command
    return done.returncode, done.stdout


@pytest.mark.parametrize(
    "fault",
    [
        Fault("out-of-device-memory", 1, "vkAllocateMemory"),
        Fault("out-of-host-memory", 1, "vkEndCommandBuffer"),
        Fault("device-lost", 1, "vkQueueSubmit"),
        Fault("device-lost", 1, "vkQueueWaitIdle"),
        Fault("crash", 1, "vkQueueSubmit"),
    ],
    ids=str,
)
def test_a_fault_is_in_the_stream_and_the_program_ends_as_without_the_layer(
    program: Path, faulty: Driver, tmp_path: Path, fault: Fault
) -> None:
    bare = ended(program, faulty, tmp_path, fault, None)
    assert ended(program, faulty, tmp_path, fault, tmp_path / "out") == bare and bare[0]
    (folder,) = process_folders(tmp_path / "out")
    blocks: list[Block] = []
    session = judge_folder(folder, Analysis(), NativeSites(LineTables()), blocks.append)
    assert not session.internal_errors and not session.findings
    last = blocks[-1]
    assert isinstance(last, Call)
    if fault.kind == "crash":
        assert session.verdict == "unknown" and last.unread.startswith(f"the process ended in {fault.command} after")
        return
    struck = [each for each in blocks if isinstance(each, Call) and each.name == fault.command]
    assert [each.result for each in struck] == [KINDS[fault.kind].result]
