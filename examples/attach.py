"""Attach to your own program: a copy without a barrier, then the same with one, each in a session.

A session sees only what is created while it is attached, so the device is made inside it.

    $ python examples/attach.py
    no barrier: hazards
      READ_AFTER_WRITE: vkCmdCopyBuffer at examples/attach.py:25 after vkCmdFillBuffer at examples/attach.py:22
    barrier: clean
"""

import vulkan as vk
from device import Device, transfer_barrier

import vkharness


def fill_and_copy(barrier):
    """Fills a buffer and copies it, on a device of its own."""
    device = Device()
    a, b = device.buffer(), device.buffer()
    commands = device.begin()
    vk.vkCmdFillBuffer(commands, a, 0, 256, 0x11111111)
    if barrier:
        transfer_barrier(commands)
    vk.vkCmdCopyBuffer(commands, a, b, 1, [vk.VkBufferCopy(srcOffset=0, dstOffset=0, size=256)])
    device.submit(commands)


for barrier in (False, True):
    with vkharness.attach() as session:
        fill_and_copy(barrier)
    print("barrier:" if barrier else "no barrier:", session.verdict)
    for found in session.findings:
        later, earlier = found.place, found.prior
        print(f"  {found.hazard}: {later.command} at {later.site} after {earlier.command} at {earlier.site}")
