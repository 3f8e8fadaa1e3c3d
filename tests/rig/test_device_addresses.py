"""Memory of buffers with device addresses is allocated for that: without it a GPU faults, no software driver does."""

from __future__ import annotations

from typing import Any

import vkharness
from vkharness.device.drivers import find_driver
from vkharness.device.process import Died, Worker
from vkharness.rig.rig import Rig
from vkharness.spec.enums import VkMemoryAllocate
from vkharness.trace.calls import Call


def allocate() -> dict[str, Any]:
    """The flags of each allocation of a buffer with an address, as they were recorded."""
    with vkharness.attach(keep_trace=True) as session, Rig(("VK_KHR_buffer_device_address",), None) as rig:
        rig.address(rig.buffer())
    calls = [each for each in session.blocks or () if isinstance(each, Call) and each.name == "vkAllocateMemory"]
    return {"flags": [call.args["pAllocateInfo"]["pNext"]["flags"] for call in calls]}


def test_memory_of_buffers_with_addresses_says_so() -> None:
    with Worker(find_driver("lavapipe"), packages=["tests"]) as worker:
        said = worker.call("tests.rig.test_device_addresses:allocate")
    assert not isinstance(said, Died)
    assert set(said["flags"]) == {VkMemoryAllocate.DEVICE_ADDRESS}
