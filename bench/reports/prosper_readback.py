"""prosper 2944, vkrunner 52: a readback is mapped after a fence, with no barrier to the host."""

import vulkan as vk
from short_names import *
from small_engine import Engine

import vkharness

e = Engine(sync2=False)
target, out = e.image(), e.buffer(1024, host=True)
commands, fence = e.commands(), e.fence()
e.transition(commands, target, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "TOP_OF_PIPE", "TRANSFER/TRANSFER_WRITE")
vk.vkCmdClearColorImage(
    commands,
    target.handle,
    layout("TRANSFER_DST_OPTIMAL"),
    vk.VkClearColorValue(float32=[0.1, 0.2, 0.3, 1]),
    1,
    [target.range()],
)
e.transition(
    commands,
    target,
    "TRANSFER_DST_OPTIMAL",
    "TRANSFER_SRC_OPTIMAL",
    "TRANSFER/TRANSFER_WRITE",
    "TRANSFER/TRANSFER_READ",
)
e.read_back(commands, target, out)
if MENDED:
    e.buffer_barrier(commands, out, "TRANSFER/TRANSFER_WRITE", "HOST/HOST_READ")
e.submit(commands, fence=fence)
e.wait(fence)
vkharness.host_read(out.mapped, 0, 1024)
assert bytes(out.mapped[0:4]) != b"\0\0\0\0"
