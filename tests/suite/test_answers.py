"""Tasks that have no answer: a lack is no mistake, and a lost device is neither."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from vkharness.device.failed_calls import failed_call
from vkharness.device.worker import answer
from vkharness.findings import DeviceLostError, FailedCallError, LacksError, UserError
from vkharness.replay.objects.target import ReplayDevice
from vkharness.suite.runner import work
from vkharness.verdicts import Status

HERE = "tests.suite.test_answers"


class VkErrorDeviceLost(Exception):
    """As the `vulkan` package calls it."""


class VkErrorOutOfHostMemory(Exception):
    """As the `vulkan` package calls it."""


KINDS = (LacksError, DeviceLostError, UserError, VkErrorDeviceLost, ZeroDivisionError)
RAISED: dict[str, type[Exception]] = {each.__name__: each for each in KINDS}


def fail(kind: str) -> dict[str, Any]:
    """A task that raises that exception."""
    raise RAISED[kind]("why")


def pass_(number: int) -> dict[str, Any]:
    """A task that answers."""
    return {"number": number}


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("LacksError", Status.UNAVAILABLE),
        ("UserError", Status.FAILED),
        ("DeviceLostError", Status.DEVICE_LOST),
        ("VkErrorDeviceLost", Status.DEVICE_LOST),
    ],
)
def test_each_kind_of_failure_has_its_status(kind: str, status: Status) -> None:
    found = work(f"{HERE}:fail", {"kind": kind})
    assert found["status"] == status and "why" in found["problem"]


def test_an_exception_of_a_task_costs_that_task() -> None:
    failed = work(f"{HERE}:fail", {"kind": "ZeroDivisionError"})
    assert failed["status"] == Status.FAILED and "ZeroDivisionError: why" in failed["problem"]
    unknown = work(f"{HERE}:no_such_task", {})
    assert "no_such_task" in unknown["problem"]


def vkQueueSubmit2() -> None:
    """As the `vulkan` package raises."""
    raise VkErrorDeviceLost


def vkDeviceWaitIdle() -> None:
    """As the `vulkan` package raises."""
    raise VkErrorOutOfHostMemory


def test_the_call_that_lost_the_device_is_named_and_not_those_that_failed_on_the_way_out() -> None:
    try:
        try:
            vkQueueSubmit2()
        finally:
            vkDeviceWaitIdle()
    except VkErrorOutOfHostMemory as error:
        assert str(failed_call(error)) == "vkQueueSubmit2 failed: VK_ERROR_DEVICE_LOST"
    with pytest.raises(VkErrorOutOfHostMemory) as raised:
        vkDeviceWaitIdle()
    assert failed_call(raised.value) == ("vkDeviceWaitIdle", "VK_ERROR_OUT_OF_HOST_MEMORY")
    assert failed_call(ZeroDivisionError()) is None


def test_an_answer_is_handed_on() -> None:
    assert [work(f"{HERE}:pass_", {"number": number}) for number in (7, 8)] == [
        {"value": {"number": 7}},
        {"value": {"number": 8}},
    ]


@pytest.mark.parametrize("kind", ["LacksError", "DeviceLostError", "UserError"])
def test_the_kind_of_an_error_travels(kind: str) -> None:
    request = {"target": f"{HERE}:fail", "arguments": {"kind": kind}}
    assert answer(request, ["tests"]) == {"user_error": "why", "kind": kind}


def test_a_replay_tells_a_lost_device_from_other_errors() -> None:
    device = cast(ReplayDevice, SimpleNamespace(target=SimpleNamespace(name="x", result_name=str)))
    ReplayDevice.check(device, 0, "vkQueueSubmit")
    with pytest.raises(DeviceLostError, match="vkQueueSubmit failed on x: -4"):
        ReplayDevice.check(device, -4, "vkQueueSubmit")
    with pytest.raises(FailedCallError, match="-2") as raised:
        ReplayDevice.check(device, -2, "vkQueueSubmit")
    assert type(raised.value) is FailedCallError
