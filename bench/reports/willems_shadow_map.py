"""Sascha Willems 335: the shadow pass ends with a dependency to BOTTOM_OF_PIPE; the scene samples the map in fragment shaders."""

import struct

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
shadow = e.image(32, 32, format=D32)
color, out = e.image(32, 32), e.buffer(4096, host=True)
LATE = "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"
after = "FRAGMENT_SHADER/SHADER_READ" if MENDED else "BOTTOM_OF_PIPE/"
made = e.render_pass(
    [(D32, "CLEAR", "STORE", "UNDEFINED", "DEPTH_STENCIL_READ_ONLY_OPTIMAL")],
    [([], 0, [])],
    [
        (vk.VK_SUBPASS_EXTERNAL, 0, "FRAGMENT_SHADER/", "EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"),
        (0, vk.VK_SUBPASS_EXTERNAL, LATE, after),
    ],
)
frame = e.framebuffer(made, [shadow.view()], (32, 32))
cast = e.graphics("fullscreen.vert", "write_depth.frag", push=4, colors=(), depth=D32, render_pass=made, size=(32, 32))
light = e.graphics("fullscreen.vert", "sample_color.frag", [SAMPLED], size=(32, 32))
commands = e.commands()
e.begin_pass(commands, made, frame, ["depth"], (32, 32))
e.bind(commands, cast, push=struct.pack("f", 0.25))
vk.vkCmdDraw(commands, 3, 1, 0, 0)
vk.vkCmdEndRenderPass(commands)
e.transition(
    commands,
    color,
    "UNDEFINED",
    "COLOR_ATTACHMENT_OPTIMAL",
    "TOP_OF_PIPE",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
)
e.rendering(commands, [(color.view(), "CLEAR", "STORE")], size=(32, 32))
e.bind(commands, light, [(shadow.view(), "DEPTH_STENCIL_READ_ONLY_OPTIMAL")])
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
