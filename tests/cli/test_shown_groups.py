"""`vkharness replay --mode witness` of a group of which one finding cannot be executed, and another is shown."""

from __future__ import annotations

from typing import Any

from vkharness.case.group_replays import show_group
from vkharness.findings import FailedCallError, Finding, Hazard, Place
from vkharness.groups import Group, groups_of
from vkharness.report.replay_text import result_lines
from vkharness.suite.faults.subjects import _group_end
from vkharness.verdicts import Status

SHOWN = {"shown": True, "reason": "", "outcome": "late:1", "differences": [], "at": 0}


class FailsOnce:
    """A worker whose driver fails at the first of its jobs."""

    def __init__(self) -> None:
        self.asked = 0

    def call(self, _: str, __: dict[str, Any]) -> dict[str, Any]:
        self.asked += 1
        if self.asked == 1:
            raise FailedCallError("vkQueueSubmit failed on lavapipe: VK_ERROR_DEVICE_LOST")
        return dict(SHOWN)


def group_of_two() -> Group:
    """One missing dependency, of two images."""
    late, early = Place(20, "vkCmdDraw", None), Place(10, "vkCmdDraw", None)
    two = [Finding(Hazard.READ_AFTER_WRITE, "read", "write", late, early, image, "VkImage") for image in (7, 8)]
    (group,) = groups_of(two)
    return group


def test_a_call_that_failed_is_told_although_the_hazard_is_shown() -> None:
    result = show_group(FailsOnce(), {"device": "lavapipe", "trace": "t.jsonl"}, None, group_of_two())
    failed = "vkQueueSubmit failed on lavapipe: VK_ERROR_DEVICE_LOST"
    assert (result["shown"], result["failed"]) == (True, [failed])
    assert f"   one of these could not be executed: {failed}" in list(result_lines("witness", result))
    assert _group_end(result).status is Status.DEVICE_LOST
