"""Filament 6718: indices are uploaded behind a barrier that covers vertex attributes and not indices."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
staging = e.buffer(64, data=b"".join(v.to_bytes(4, "little") for v in (0, 1, 2, 0, 1, 2)))
indices, target, out = e.buffer(64), e.image(), e.buffer(1024, host=True)
pipe = e.graphics("fullscreen.vert", "gradient.frag")
commands = e.commands()
e.copy(commands, staging, indices)
access = "VERTEX_ATTRIBUTE_READ|INDEX_READ" if MENDED else "VERTEX_ATTRIBUTE_READ"
e.buffer_barrier(commands, indices, "TRANSFER/TRANSFER_WRITE", f"VERTEX_INPUT/{access}")
e.transition(
    commands,
    target,
    "UNDEFINED",
    "COLOR_ATTACHMENT_OPTIMAL",
    "TOP_OF_PIPE",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
)
e.rendering(commands, [(target.view(), "CLEAR", "STORE")])
e.bind(commands, pipe)
vk.vkCmdBindIndexBuffer(commands, indices.handle, 0, vk.VK_INDEX_TYPE_UINT32)
vk.vkCmdDrawIndexed(commands, 6, 1, 0, 0, 0)
vk.vkCmdEndRendering(commands)
e.submit_drawn(commands, target, out)
