"""prosper 3248: all levels are cleared, then copied over one by one; the barrier between names reads alone."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
MIPS = 3
texture = e.image(16, 16, mips=MIPS)
parts = [e.image(16 >> m, 16 >> m) for m in range(MIPS)]
outs = [e.buffer(1024, host=True) for _ in range(MIPS)]
commands = e.commands()
for part in parts:
    e.transition(commands, part, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "TOP_OF_PIPE", "TRANSFER/TRANSFER_WRITE")
    vk.vkCmdClearColorImage(
        commands,
        part.handle,
        layout("TRANSFER_DST_OPTIMAL"),
        vk.VkClearColorValue(float32=[0.9, 0.2, 0.3, 1]),
        1,
        [part.range()],
    )
    e.transition(
        commands,
        part,
        "TRANSFER_DST_OPTIMAL",
        "TRANSFER_SRC_OPTIMAL",
        "TRANSFER/TRANSFER_WRITE",
        "TRANSFER/TRANSFER_READ",
    )
e.transition(commands, texture, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "TOP_OF_PIPE", "TRANSFER/TRANSFER_WRITE")
vk.vkCmdClearColorImage(
    commands,
    texture.handle,
    layout("TRANSFER_DST_OPTIMAL"),
    vk.VkClearColorValue(float32=[0, 0, 0, 1]),
    1,
    [texture.range()],
)
if MENDED:
    e.barrier(commands, "TRANSFER/TRANSFER_WRITE", "TRANSFER/TRANSFER_WRITE")
for mip, part in enumerate(parts):
    region = vk.VkImageCopy(
        part.layers(),
        vk.VkOffset3D(0, 0, 0),
        texture.layers(mip),
        vk.VkOffset3D(0, 0, 0),
        vk.VkExtent3D(part.width, part.height, 1),
    )
    vk.vkCmdCopyImage(
        commands,
        part.handle,
        layout("TRANSFER_SRC_OPTIMAL"),
        texture.handle,
        layout("TRANSFER_DST_OPTIMAL"),
        1,
        [region],
    )
e.transition(
    commands,
    texture,
    "TRANSFER_DST_OPTIMAL",
    "TRANSFER_SRC_OPTIMAL",
    "TRANSFER/TRANSFER_WRITE",
    "TRANSFER/TRANSFER_READ",
)
for mip in range(MIPS):
    e.read_back(commands, texture, outs[mip], mip)
e.submit(commands)
e.idle()
