"""wgpu 8853: two render passes to one colour target count as ordered, and get no barrier between them."""

import struct

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
target, out = e.image(32, 32), e.buffer(4096, host=True)
form = [(RGBA, "LOAD", "STORE", "COLOR_ATTACHMENT_OPTIMAL", "COLOR_ATTACHMENT_OPTIMAL")]
made = e.render_pass(form, [([0], None, [])], [])
frame = e.framebuffer(made, [target.view()], (32, 32))
pipe = e.graphics("fullscreen.vert", "constant_color.frag", push=16, render_pass=made, size=(32, 32), blend=True)


def draw(commands, red):
    e.begin_pass(commands, made, frame, [], (32, 32))
    e.bind(commands, pipe, push=struct.pack("4f", red, 0.25, 0.125, 1.0))
    vk.vkCmdDraw(commands, 3, 1, 0, 0)
    vk.vkCmdEndRenderPass(commands)


commands = e.commands()
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
    "COLOR_ATTACHMENT_OPTIMAL",
    "TRANSFER/TRANSFER_WRITE",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE",
)
draw(commands, 0.25)
if MENDED:
    e.barrier(
        commands,
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE",
    )
draw(commands, 0.5)
e.submit_drawn(commands, target, out)
