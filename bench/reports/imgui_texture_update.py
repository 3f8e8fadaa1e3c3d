"""Dear ImGui 8772: the font atlas is updated while the frame before still samples it; the barrier waits for the host alone."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
texture, target = e.image(), e.image()
staging = [e.buffer(1024, data=bytes([17 * (i + 1)]) * 1024) for i in range(2)]
out = e.buffer(1024, host=True)
pipe = e.graphics("fullscreen.vert", "sample_color.frag", [SAMPLED])
commands = [e.commands() for _ in range(2)]


def update(c, number):
    before = "HOST/HOST_WRITE" if number == 0 or not MENDED else "HOST|FRAGMENT_SHADER/HOST_WRITE"
    e.transition(
        c,
        texture,
        "UNDEFINED" if number == 0 else "SHADER_READ_ONLY_OPTIMAL",
        "TRANSFER_DST_OPTIMAL",
        before,
        "TRANSFER/TRANSFER_WRITE",
    )
    e.upload(c, staging[number], texture)
    e.transition(
        c,
        texture,
        "TRANSFER_DST_OPTIMAL",
        "SHADER_READ_ONLY_OPTIMAL",
        "TRANSFER/TRANSFER_WRITE",
        "FRAGMENT_SHADER/SHADER_READ",
    )


def frame(c, number):
    update(c, number)
    e.transition(
        c,
        target,
        "UNDEFINED",
        "COLOR_ATTACHMENT_OPTIMAL",
        "COLOR_ATTACHMENT_OUTPUT|TRANSFER",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
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
        "TRANSFER/TRANSFER_READ",
    )
    if number == 0:
        e.read_back(c, target, out)
    e.submit(c)


frame(commands[0], 0)
frame(commands[1], 1)
e.idle()
