"""Your own tests: with `--vk-sync` a test that causes a hazard fails, and the failure names both calls.

Without the option nothing is recorded, and the test passes: software drivers run the copy after the fill anyway.

    $ pytest --vk-sync examples/test_own_tests.py  # exits 1
    ...
    SYNC-HAZARD-READ-AFTER-WRITE: vkCmdCopyBuffer reads VkBuffer 11 [0, 256), which vkCmdFillBuffer wrote. ...
        vkCmdCopyBuffer at examples/test_own_tests.py:42
        vkCmdFillBuffer at examples/test_own_tests.py:41
    ...
    FAILED examples/test_own_tests.py::test_forgets_the_barrier - ...
    ... 1 failed, 1 passed in ...

    $ pytest examples/test_own_tests.py
    ... 2 passed in ...
"""

import pytest
import vulkan as vk
from device import Device, transfer_barrier


@pytest.fixture(scope="module")
def device():
    """One device for all tests."""
    return Device()


def test_waits_for_the_fill(device):
    a, b = device.buffer(), device.buffer()
    commands = device.begin()
    vk.vkCmdFillBuffer(commands, a, 0, 256, 7)
    transfer_barrier(commands)
    vk.vkCmdCopyBuffer(commands, a, b, 1, [vk.VkBufferCopy(srcOffset=0, dstOffset=0, size=256)])
    device.submit(commands)


def test_forgets_the_barrier(device):
    a, b = device.buffer(), device.buffer()
    commands = device.begin()
    vk.vkCmdFillBuffer(commands, a, 0, 256, 7)
    vk.vkCmdCopyBuffer(commands, a, b, 1, [vk.VkBufferCopy(srcOffset=0, dstOffset=0, size=256)])
    device.submit(commands)
