"""Godot 81059: a depth image goes from one pass to the next behind a barrier that names late tests alone."""

import struct

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
depth, color, out = e.image(format=D32), e.image(), e.buffer(1024, host=True)
write = e.graphics("fullscreen.vert", "write_depth.frag", push=4, colors=(), depth=D32)
test = e.graphics("fullscreen.vert", "gradient.frag", depth=D32, depth_write=False)
commands = e.commands()
e.transition(
    commands,
    depth,
    "UNDEFINED",
    "DEPTH_STENCIL_ATTACHMENT_OPTIMAL",
    "TOP_OF_PIPE",
    "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE|DEPTH_STENCIL_ATTACHMENT_READ",
)
e.transition(
    commands,
    color,
    "UNDEFINED",
    "COLOR_ATTACHMENT_OPTIMAL",
    "TOP_OF_PIPE",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
)
e.rendering(commands, [], (depth.view(), "CLEAR", "STORE"))
e.bind(commands, write, push=struct.pack("f", 0.5))
vk.vkCmdDraw(commands, 3, 1, 0, 0)
vk.vkCmdEndRendering(commands)
early = "EARLY_FRAGMENT_TESTS|" if MENDED else ""
e.barrier(
    commands,
    f"{early}LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE",
    f"{early}LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE",
)
e.rendering(commands, [(color.view(), "CLEAR", "STORE")], (depth.view(), "LOAD", "STORE"))
e.bind(commands, test)
vk.vkCmdDraw(commands, 3, 1, 0, 0)
vk.vkCmdEndRendering(commands)
e.transition(
    commands,
    color,
    "COLOR_ATTACHMENT_OPTIMAL",
    "TRANSFER_SRC_OPTIMAL",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
    "TRANSFER/TRANSFER_READ",
)
e.read_back(commands, color, out)
e.submit(commands)
e.idle()
