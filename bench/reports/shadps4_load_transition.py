"""shadPS4 4348: a transition makes the target visible to writes alone; the load operation reads it."""

import struct

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
target, source, out = e.image(), e.buffer(1024, data=bytes(range(256)) * 4), e.buffer(1024, host=True)
pipe = e.graphics("fullscreen.vert", "constant_color.frag", push=16, blend=True)
c = e.commands()
e.transition(c, target, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "NONE", "COPY/TRANSFER_WRITE")
e.upload(c, source, target)
read = "COLOR_ATTACHMENT_READ|" if MENDED else ""
e.transition(
    c,
    target,
    "TRANSFER_DST_OPTIMAL",
    "COLOR_ATTACHMENT_OPTIMAL",
    "COPY/TRANSFER_WRITE",
    f"COLOR_ATTACHMENT_OUTPUT/{read}COLOR_ATTACHMENT_WRITE",
)
e.rendering(c, [(target.view(), "LOAD", "STORE")])
e.bind(c, pipe, push=struct.pack("4f", 0.1, 0.2, 0.3, 0.4))
vk.vkCmdDraw(c, 3, 1, 0, 0)
vk.vkCmdEndRendering(c)
e.transition(
    c,
    target,
    "COLOR_ATTACHMENT_OPTIMAL",
    "TRANSFER_SRC_OPTIMAL",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
    "COPY/TRANSFER_READ",
)
e.read_back(c, target, out)
e.submit(c)
e.idle()
