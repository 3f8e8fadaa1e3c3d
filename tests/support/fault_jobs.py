"""Jobs of tests/device/test_fault_driver.py in a driver's process."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import Any

from vkharness.device.failed_calls import result_name
from vkharness.rig.rig import Rig


def calls(after: list[str]) -> dict[str, Any]:
    """Fills a buffer and submits that, twice; the first byte then. With `after`, the results of these calls instead."""
    found: list[str] = []
    # The wait before a lost device is destroyed fails, too.
    with suppress(Exception) if after else nullcontext(), Rig() as rig:
        if after:
            found += _results(rig, after)
            return {"results": found}
        values = []
        for _ in range(2):
            buffer = rig.buffer(16)
            with rig.commands() as commands:
                commands.fill(buffer, 7)
            rig.submit(commands, sync2=True)
            rig.wait()
            values.append(rig.host_read(buffer)[0])
        return {"values": values}
    return {"results": found}


def last_wait() -> dict[str, Any]:
    """Work that nobody waits for until everything is destroyed."""
    with Rig() as rig:
        buffer = rig.buffer(1 << 26)
        with rig.commands() as commands:
            for word in range(20):
                commands.fill(buffer, word)
        rig.submit(commands)
        return {}


def _results(rig: Rig, names: list[str]) -> list[str]:
    """Returns the exception of each call, by name; empty for none."""
    vk, fence = rig.vk, rig.fence()
    made = {
        "vkQueueSubmit2": lambda: rig.submit(sync2=True),
        "vkQueueWaitIdle": rig.wait,
        "vkDeviceWaitIdle": lambda: vk.vkDeviceWaitIdle(rig.device),
        "vkGetFenceStatus": lambda: rig.signaled(fence),
        "vkCreateFence": rig.fence,
    }
    found = []
    for name in names:
        try:
            made[name]()
            found.append("")
        except vk.VkError as error:
            # Status codes that are no errors are exceptions of the package, too.
            found.append(result_name(error))
    return found
