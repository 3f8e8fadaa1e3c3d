"""Deferred shading in two subpasses of one render pass with no dependency between them (tile-based GPUs show it)."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
gbuffer, lit, out = e.image(usage=0x90), e.image(), e.buffer(1024, host=True)
OUT, FRAG = "COLOR_ATTACHMENT_OUTPUT", "FRAGMENT_SHADER"
deps = [(1, vk.VK_SUBPASS_EXTERNAL, f"{OUT}/COLOR_ATTACHMENT_WRITE", "TRANSFER/TRANSFER_READ")]
if MENDED:
    deps.append((0, 1, f"{OUT}/COLOR_ATTACHMENT_WRITE", f"{FRAG}/INPUT_ATTACHMENT_READ"))
form = [
    (RGBA, "CLEAR", "DONT_CARE", "UNDEFINED", "SHADER_READ_ONLY_OPTIMAL"),
    (RGBA, "CLEAR", "STORE", "UNDEFINED", "TRANSFER_SRC_OPTIMAL"),
]
made = e.render_pass(form, [([0], None, []), ([1], None, [0])], deps)
frame = e.framebuffer(made, [gbuffer.view(), lit.view()])
fill = e.graphics("fullscreen.vert", "gradient.frag", render_pass=made)
shade = e.graphics("fullscreen.vert", "invert_input.frag", [INPUT], render_pass=made, subpass=1)
c = e.commands()
e.begin_pass(c, made, frame, ["color", "color"])
e.bind(c, fill)
vk.vkCmdDraw(c, 3, 1, 0, 0)
vk.vkCmdNextSubpass(c, 0)
e.bind(c, shade, [gbuffer.view()])
vk.vkCmdDraw(c, 3, 1, 0, 0)
vk.vkCmdEndRenderPass(c)
e.read_back(c, lit, out)
e.submit(c)
e.idle()
