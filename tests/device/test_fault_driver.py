"""The fault driver: it hands calls on, and each kind of fault strikes once, at the call that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.fault_drivers import built, planned
from vkharness.device.drivers import Driver, find_driver
from vkharness.device.faults.fault_driver import MAY_LOSE, build_fault_driver
from vkharness.device.faults.fault_plan import FAULT, KINDS, Fault
from vkharness.device.process import Died, Worker
from vkharness.findings import DeviceLostError, FailedCallError, UserError

CALLS = "tests.support.fault_jobs:calls"
AT_WORK = "tests.support.fault_jobs:last_wait"


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Driver:
    return built(tmp_path_factory.mktemp("faults"))


def answered(worker: Worker, after: Sequence[str] = ()) -> dict[str, Any]:
    answer = worker.call(CALLS, {"after": [*after]})
    assert not isinstance(answer, Died), answer
    return answer


def test_calls_go_on_to_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: Driver) -> None:
    with planned(tmp_path, Fault("hang", 10_000), monkeypatch) as plan, Worker(faulty, packages=["tests"]) as worker:
        assert answered(worker)["values"] == [7, 7]
        assert (plan.struck, plan.calls > 20) == ("", True)


@pytest.mark.parametrize("kind", [name for name in KINDS if name != "hang"])
def test_a_fault_strikes_once_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: Driver, kind: str
) -> None:
    fault = Fault(kind, 2, "vkQueueSubmit2")
    with planned(tmp_path, fault, monkeypatch) as plan, Worker(faulty, packages=["tests"]) as worker:
        if KINDS[kind].result:
            with pytest.raises(FailedCallError) as failed:
                worker.call(CALLS, {"after": []})
            result = f"VK_ERROR_{kind.replace('-', '_').upper()}"
            assert str(failed.value) == f"vkQueueSubmit2 failed: {result}"
            assert isinstance(failed.value, DeviceLostError) == (kind == "device-lost")
        else:
            assert isinstance(worker.call(CALLS, {"after": []}), Died)
        assert (plan.struck, plan.calls) == ("vkQueueSubmit2", 2)
        assert answered(worker)["values"] == [7, 7]


def test_a_lost_device_stays_lost_and_the_next_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: Driver
) -> None:
    names = ["vkQueueSubmit2", "vkQueueWaitIdle", "vkDeviceWaitIdle", "vkGetFenceStatus", "vkCreateFence"]
    with (
        planned(tmp_path, Fault("device-lost", 1, "vkQueueSubmit2"), monkeypatch) as plan,
        Worker(faulty, packages=["tests"]) as worker,
    ):
        answer = answered(worker, names)
        assert plan.struck == "vkQueueSubmit2"
        assert answer["results"] == [*["VK_ERROR_DEVICE_LOST"] * 4, ""]
        assert answered(worker, names)["results"] == [""] * 5


def test_a_fault_of_the_environment_strikes_in_each_process(faulty: Driver) -> None:
    for _ in range(2):
        with Worker(faulty, packages=["tests"], variables={FAULT: "leave:1:vkCreateDevice"}) as worker:
            answer = worker.call(CALLS, {"after": []})
            assert isinstance(answer, Died) and answer.exit_code == 3


def test_work_is_waited_for_though_the_wait_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, faulty: Driver
) -> None:
    fault = Fault("out-of-host-memory", 1, "vkDeviceWaitIdle")
    with planned(tmp_path, fault, monkeypatch) as plan, Worker(faulty, packages=["tests"]) as worker:
        with pytest.raises(FailedCallError, match="vkDeviceWaitIdle"):
            worker.call(AT_WORK, {})
        assert plan.struck == "vkDeviceWaitIdle"
        assert worker.call(AT_WORK, {}) == {}


@pytest.mark.parametrize("fault", ["crash", "crash:0", "no-such:1", "crash:1:vkNoSuch"])
def test_what_is_no_fault_is_named(faulty: Driver, fault: str) -> None:
    with Worker(faulty, packages=["tests"], variables={FAULT: fault}) as worker:
        with pytest.raises(UserError, match="vkCreateInstance failed"):
            worker.call(CALLS, {"after": []})
        assert f"fault driver: no fault can be read from {fault}" in worker.printed


def test_a_compiler_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "false")
    with pytest.raises(UserError, match="the fault driver cannot be built"):
        build_fault_driver(find_driver("lavapipe"), tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="no C compiler here"):
        build_fault_driver(find_driver("lavapipe"), tmp_path)


def test_the_commands_that_may_lose_a_device_are_those_of_the_registry() -> None:
    vulkan_object = pytest.importorskip("vulkan_object", reason="the registry's package is not installed")
    from vkharness.spec import _generated as tables

    registry = vulkan_object.get_vulkan_object()
    may = {
        tables.COMMAND_ALIASES.get(each.name, each.name)
        for each in registry.commands.values()
        if "VK_ERROR_DEVICE_LOST" in each.errorCodes and each.name in tables.COMMANDS
    }
    assert may == MAY_LOSE
