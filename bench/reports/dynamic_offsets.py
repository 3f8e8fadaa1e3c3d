"""Per-object uniforms at dynamic offsets of one buffer, updated by vkCmdUpdateBuffer between draws' passes (Willems 313 on the device)."""

import struct

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
uniforms, outs = e.buffer(1024), [e.buffer(1024, host=True) for _ in range(2)]
targets = [e.image() for _ in range(2)]
pipe = e.graphics("fullscreen.vert", "uniform_color.frag", [UNIFORM])
sets = [e.set(pipe, [(uniforms, at, 64)]) for at in (0, 256)]
c = e.commands()
for number in range(2):
    for at in (0, 256):
        vk.vkCmdUpdateBuffer(
            c, uniforms.handle, at, 16, vk.ffi.new("char[16]", struct.pack("4f", (number + 1) / 4, at / 512, 0.5, 1))
        )
    e.barrier(c, "TRANSFER/TRANSFER_WRITE", "FRAGMENT_SHADER/UNIFORM_READ")
    e.transition(
        c,
        targets[number],
        "UNDEFINED",
        "COLOR_ATTACHMENT_OPTIMAL",
        "TOP_OF_PIPE",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
    )
    e.rendering(c, [(targets[number].view(), "CLEAR", "STORE")])
    for held in sets:
        e.bind(c, pipe, held)
        vk.vkCmdDraw(c, 3, 1, 0, 0)
    vk.vkCmdEndRendering(c)
    if MENDED:
        e.barrier(c, "FRAGMENT_SHADER", "TRANSFER")
for number in range(2):
    e.transition(
        c,
        targets[number],
        "COLOR_ATTACHMENT_OPTIMAL",
        "TRANSFER_SRC_OPTIMAL",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
        "TRANSFER/TRANSFER_READ",
    )
    e.read_back(c, targets[number], outs[number])
e.submit(c)
e.idle()
