"""VulkanTutorial with the acquire waited for at COLOR_ATTACHMENT_OUTPUT, and no external dependency of the render pass."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False, surface=True)
chain, images = e.swapchain(images=3)
OUT = "COLOR_ATTACHMENT_OUTPUT"
deps = [(vk.VK_SUBPASS_EXTERNAL, 0, f"{OUT}/", f"{OUT}/COLOR_ATTACHMENT_WRITE")] if MENDED else []
made = e.render_pass(
    [(images[0].info["format"], "CLEAR", "STORE", "UNDEFINED", "PRESENT_SRC_KHR")], [([0], None, [])], deps
)
frames = [e.framebuffer(made, [i.view()]) for i in images]
pipe = e.graphics("fullscreen.vert", "gradient.frag", render_pass=made)
acquired, fences = [e.semaphore() for _ in range(2)], [e.fence(True) for _ in range(2)]
rendered = [e.semaphore() for _ in images]
for number in range(5):
    slot = number % 2
    e.wait(fences[slot])
    index = e.acquire(chain, acquired[slot])
    c = e.commands()
    e.begin_pass(c, made, frames[index], ["color"])
    e.bind(c, pipe)
    vk.vkCmdDraw(c, 3, 1, 0, 0)
    vk.vkCmdEndRenderPass(c)
    e.submit(c, [(acquired[slot], OUT)], [(rendered[index],)], fences[slot])
    e.present(chain, index, [rendered[index]])
e.idle()
