"""vkd3d-proton 945, render graphs: two transient targets share memory; the second is transitioned without waiting for readers of the first."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
first = e.image()
second = e.image(memory=first.memory)
final, out = e.image(), e.buffer(1024, host=True)
draw, sample = (
    e.graphics("fullscreen.vert", "gradient.frag"),
    e.graphics("fullscreen.vert", "sample_color.frag", [SAMPLED]),
)
OUT = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
c = e.commands()
for image in (first, final):
    e.transition(c, image, "UNDEFINED", "COLOR_ATTACHMENT_OPTIMAL", "NONE", OUT)
e.rendering(c, [(first.view(), "CLEAR", "STORE")])
e.bind(c, draw)
vk.vkCmdDraw(c, 3, 1, 0, 0)
vk.vkCmdEndRendering(c)
e.transition(
    c, first, "COLOR_ATTACHMENT_OPTIMAL", "SHADER_READ_ONLY_OPTIMAL", OUT, "FRAGMENT_SHADER/SHADER_SAMPLED_READ"
)
e.rendering(c, [(final.view(), "CLEAR", "STORE")])
e.bind(c, sample, [first.view()])
vk.vkCmdDraw(c, 3, 1, 0, 0)
vk.vkCmdEndRendering(c)
e.transition(c, second, "UNDEFINED", "COLOR_ATTACHMENT_OPTIMAL", "FRAGMENT_SHADER" if MENDED else "NONE", OUT)
e.rendering(c, [(second.view(), "CLEAR", "STORE")])
vk.vkCmdEndRendering(c)
e.transition(c, final, "COLOR_ATTACHMENT_OPTIMAL", "TRANSFER_SRC_OPTIMAL", OUT, "COPY/TRANSFER_READ")
e.read_back(c, final, out)
e.submit(c)
e.idle()
