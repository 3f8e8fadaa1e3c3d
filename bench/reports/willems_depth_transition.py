"""Sascha Willems 1283: a depth image is transitioned in each frame behind a barrier without the accesses of the frame before."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
depth, color = e.image(format=D32), e.image()
pipe = e.graphics("fullscreen.vert", "gradient.frag", depth=D32)
TESTS = "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS"
for _number in range(2):
    c = e.commands()
    before = f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_WRITE" if MENDED else f"{TESTS}/"
    e.transition(
        c,
        depth,
        "UNDEFINED",
        "DEPTH_STENCIL_ATTACHMENT_OPTIMAL",
        before,
        f"{TESTS}/DEPTH_STENCIL_ATTACHMENT_WRITE|DEPTH_STENCIL_ATTACHMENT_READ",
    )
    e.transition(
        c,
        color,
        "UNDEFINED",
        "COLOR_ATTACHMENT_OPTIMAL",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
    )
    e.rendering(c, [(color.view(), "CLEAR", "STORE")], (depth.view(), "CLEAR", "STORE"))
    e.bind(c, pipe)
    vk.vkCmdDraw(c, 3, 1, 0, 0)
    vk.vkCmdEndRendering(c)
    e.submit(c)
e.idle()
