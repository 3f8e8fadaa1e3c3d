"""A dispatch stores an image, a draw loads it as a storage image; the barrier makes it visible to sampled reads."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
image, target, out = e.image(), e.image(), e.buffer(1024, host=True)
store = e.compute("image_store_2d.comp", [STORED], push=4)
pipe = e.graphics("fullscreen.vert", "loaded_texel_color.frag", [STORED])
c = e.commands()
e.transition(c, image, "UNDEFINED", "GENERAL", "NONE", "COMPUTE_SHADER/SHADER_STORAGE_WRITE")
e.dispatch(c, store, [image.view()], 4, b"\1\2\3\4")
e.transition(
    c,
    image,
    "GENERAL",
    "GENERAL",
    "COMPUTE_SHADER/SHADER_STORAGE_WRITE",
    "FRAGMENT_SHADER/" + ("SHADER_STORAGE_READ" if MENDED else "SHADER_SAMPLED_READ"),
)
e.transition(
    c, target, "UNDEFINED", "COLOR_ATTACHMENT_OPTIMAL", "NONE", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
)
e.rendering(c, [(target.view(), "CLEAR", "STORE")])
e.bind(c, pipe, [image.view()])
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
