"""VulkanTutorial 308: the external dependency of a shared depth image waits for early tests, and the frame before wrote in late ones."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
depth, colors = e.image(format=D32, usage=0x20), [e.image() for _ in range(2)]
outs = [e.buffer(1024, host=True) for _ in range(2)]
OUT, TESTS = "COLOR_ATTACHMENT_OUTPUT", "EARLY_FRAGMENT_TESTS"
before = (
    f"{OUT}|{TESTS}|LATE_FRAGMENT_TESTS/COLOR_ATTACHMENT_WRITE|DEPTH_STENCIL_ATTACHMENT_WRITE"
    if MENDED
    else f"{OUT}|{TESTS}/"
)
form = [
    (RGBA, "CLEAR", "STORE", "UNDEFINED", "TRANSFER_SRC_OPTIMAL"),
    (D32, "CLEAR", "DONT_CARE", "UNDEFINED", "DEPTH_STENCIL_ATTACHMENT_OPTIMAL"),
]
made = e.render_pass(
    form,
    [([0], 1, [])],
    [
        (vk.VK_SUBPASS_EXTERNAL, 0, before, f"{OUT}|{TESTS}/COLOR_ATTACHMENT_WRITE|DEPTH_STENCIL_ATTACHMENT_WRITE"),
        (0, vk.VK_SUBPASS_EXTERNAL, f"{OUT}/COLOR_ATTACHMENT_WRITE", "TRANSFER/TRANSFER_READ"),
    ],
)
frames = [e.framebuffer(made, [c.view(), depth.view()]) for c in colors]
pipe = e.graphics("fullscreen.vert", "gradient.frag", render_pass=made, depth=D32)
for number in range(2):
    c = e.commands()
    e.begin_pass(c, made, frames[number], ["color", "depth"])
    e.bind(c, pipe)
    vk.vkCmdDraw(c, 3, 1, 0, 0)
    vk.vkCmdEndRenderPass(c)
    e.read_back(c, colors[number], outs[number])
    e.submit(c)
e.idle()
