"""nope.gl 18: a draw reads a storage buffer, a dispatch then writes it: the barrier comes only behind the writer."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
words, fresh = e.buffer(256, data=bytes(range(256))), e.buffer(256, data=bytes([99]) * 256)
target, out = e.image(), e.buffer(1024, host=True)
pipe = e.graphics("fullscreen.vert", "stored_word_color.frag", [STORAGE])
kernel = e.compute("copy_words.comp", [STORAGE, STORAGE])
c = e.commands()
e.transition(
    c, target, "UNDEFINED", "COLOR_ATTACHMENT_OPTIMAL", "TOP_OF_PIPE", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
)
e.rendering(c, [(target.view(), "CLEAR", "STORE")])
e.bind(c, pipe, [words])
vk.vkCmdDraw(c, 3, 1, 0, 0)
vk.vkCmdEndRendering(c)
if MENDED:
    e.barrier(c, "FRAGMENT_SHADER", "COMPUTE_SHADER")
e.dispatch(c, kernel, [fresh, words], 1)
e.barrier(c, "COMPUTE_SHADER/SHADER_WRITE", "ALL_COMMANDS/SHADER_READ|SHADER_WRITE")
e.transition(
    c,
    target,
    "COLOR_ATTACHMENT_OPTIMAL",
    "TRANSFER_SRC_OPTIMAL",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
    "TRANSFER/TRANSFER_READ",
)
e.read_back(c, target, out)
e.submit(c)
e.idle()
