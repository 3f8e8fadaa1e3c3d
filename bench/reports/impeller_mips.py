"""Impeller (engine 53082): mip levels of a rendered texture are made behind a barrier that waits for transfers alone."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
MIPS = 5
texture, out = e.image(16, 16, mips=MIPS), e.buffer(4096, host=True)
pipe = e.graphics("fullscreen.vert", "gradient.frag")


def generate_mips(commands):
    before = (
        "TRANSFER|COLOR_ATTACHMENT_OUTPUT/TRANSFER_WRITE|COLOR_ATTACHMENT_WRITE"
        if MENDED
        else "TRANSFER/TRANSFER_WRITE"
    )
    e.transition(
        commands,
        texture,
        "COLOR_ATTACHMENT_OPTIMAL",
        "TRANSFER_SRC_OPTIMAL",
        before,
        "TRANSFER/TRANSFER_READ",
        mip=0,
        mips=1,
    )
    e.transition(commands, texture, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "TRANSFER", "TRANSFER/TRANSFER_WRITE", mip=1)
    for mip in range(MIPS - 1):
        e.blit(commands, texture, mip)
        e.transition(
            commands,
            texture,
            "TRANSFER_DST_OPTIMAL",
            "TRANSFER_SRC_OPTIMAL",
            "TRANSFER/TRANSFER_WRITE",
            "TRANSFER/TRANSFER_READ",
            mip=mip + 1,
            mips=1,
        )


commands = e.commands()
e.transition(
    commands,
    texture,
    "UNDEFINED",
    "COLOR_ATTACHMENT_OPTIMAL",
    "TOP_OF_PIPE",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
    mips=1,
)
e.rendering(commands, [(texture.view(), "CLEAR", "STORE")])
e.bind(commands, pipe)
vk.vkCmdDraw(commands, 3, 1, 0, 0)
vk.vkCmdEndRendering(commands)
generate_mips(commands)
for mip in range(MIPS):
    e.read_back(commands, texture, out, mip, at=mip * 1024 if mip < 3 else 3072 + 64 * mip)
e.submit(commands)
e.idle()
