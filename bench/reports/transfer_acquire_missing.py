"""A texture is uploaded on the transfer queue and released; the graphics queue never acquires it."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(families=3)
GRAPHICS, TRANSFER = 0, 2
texture, staging, out = e.image(), e.buffer(1024, data=bytes(range(256)) * 4), e.buffer(1024, host=True)
pipe = e.graphics("fullscreen.vert", "sample_color.frag", [SAMPLED])
target, done = e.image(), e.semaphore()
pair = (TRANSFER, GRAPHICS)
c = e.commands(TRANSFER)
e.transition(c, texture, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "NONE", "COPY/TRANSFER_WRITE")
e.upload(c, staging, texture)
e.transition(c, texture, "TRANSFER_DST_OPTIMAL", "SHADER_READ_ONLY_OPTIMAL", "COPY/TRANSFER_WRITE", "NONE", pair)
e.submit(c, [], [(done,)], family=TRANSFER)
c = e.commands()
if MENDED:
    e.transition(
        c,
        texture,
        "TRANSFER_DST_OPTIMAL",
        "SHADER_READ_ONLY_OPTIMAL",
        "NONE",
        "FRAGMENT_SHADER/SHADER_SAMPLED_READ",
        pair,
    )
e.transition(
    c, target, "UNDEFINED", "COLOR_ATTACHMENT_OPTIMAL", "NONE", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
)
e.rendering(c, [(target.view(), "CLEAR", "STORE")])
e.bind(c, pipe, [texture.view()])
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
e.submit(c, [(done, "ALL_COMMANDS")])
e.idle()
