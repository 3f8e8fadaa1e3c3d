"""o3de 5034: the image that takes over aliased memory is cleared before the barrier for the alias."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
first = e.image()
second = e.image(memory=first.memory)
source, outs = e.buffer(1024, data=bytes(range(256)) * 4), [e.buffer(1024, host=True) for _ in range(2)]
c = e.commands()
e.transition(c, first, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "NONE", "COPY/TRANSFER_WRITE")
e.upload(c, source, first)
e.transition(c, first, "TRANSFER_DST_OPTIMAL", "TRANSFER_SRC_OPTIMAL", "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ")
e.read_back(c, first, outs[0])
e.transition(c, second, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "COPY" if MENDED else "NONE", "CLEAR/TRANSFER_WRITE")
vk.vkCmdClearColorImage(
    c,
    second.handle,
    layout("TRANSFER_DST_OPTIMAL"),
    vk.VkClearColorValue(float32=[0.9, 0.2, 0.3, 1]),
    1,
    [second.range()],
)
e.barrier(c, "COPY", "CLEAR")
e.transition(c, second, "TRANSFER_DST_OPTIMAL", "TRANSFER_SRC_OPTIMAL", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
e.read_back(c, second, outs[1])
e.submit(c)
e.idle()
