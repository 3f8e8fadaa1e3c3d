"""Calls that the `vulkan` package raises an exception for: which call it was, and what the driver answered."""

from __future__ import annotations

import re
from typing import NamedTuple

from vkharness.findings import DeviceLostError, FailedCallError

PREFIX = "VkError"
"""Begins the names of the exceptions: VK_ERROR_DEVICE_LOST is VkErrorDeviceLost."""
DEVICE_LOST = "VK_ERROR_DEVICE_LOST"


class FailedCall(NamedTuple):
    """A call and its VkResult."""

    command: str
    result: str

    @property
    def is_lost(self) -> bool:
        """Whether the driver has lost the device."""
        return self.result == DEVICE_LOST

    def __str__(self) -> str:
        return f"{self.command} failed: {self.result}"


def result_name(error: BaseException) -> str:
    """'VK_ERROR_DEVICE_LOST' for an exception of the package; empty for any other."""
    name = type(error).__name__
    if not name.startswith(PREFIX) or name == PREFIX:
        return ""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def refusal(what: str, result: str) -> FailedCallError:
    """The error that says that `what` came to a result, as 'VK_ERROR_DEVICE_LOST'."""
    return (DeviceLostError if result == DEVICE_LOST else FailedCallError)(f"{what}: {result}")


def failed_call(error: BaseException) -> FailedCall | None:
    """The call that an exception comes from: the first one that lost the device, else the first one that failed, since
    others fail on the way out. None where no call failed."""
    found: list[FailedCall] = []
    raised: BaseException | None = error
    while raised is not None:
        if result_name(raised):
            found.insert(0, FailedCall(_command(raised), result_name(raised)))
        raised = raised.__cause__ or raised.__context__
    return next((each for each in found if each.is_lost), found[0] if found else None)


def _command(error: BaseException) -> str:
    """The function of the package that raised an exception."""
    names = ["a call"]
    place = error.__traceback__
    while place is not None:
        if place.tb_frame.f_code.co_name.startswith("vk"):
            names.append(place.tb_frame.f_code.co_name)
        place = place.tb_next
    return names[-1]
