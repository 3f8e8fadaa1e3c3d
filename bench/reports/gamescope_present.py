"""gamescope 1108: an image is presented with no semaphore after the composition."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(surface=True)
chain, images = e.swapchain(images=3)
fence = e.fence()
composed = [e.semaphore() for _ in images]
for number in range(4):
    index = e.acquire(chain, None, fence)
    e.wait(fence)
    c = e.commands()
    e.transition(c, images[index], "UNDEFINED", "TRANSFER_DST_OPTIMAL", "NONE", "CLEAR/TRANSFER_WRITE")
    vk.vkCmdClearColorImage(
        c,
        images[index].handle,
        layout("TRANSFER_DST_OPTIMAL"),
        vk.VkClearColorValue(float32=[number / 8, 0.2, 0.3, 1]),
        1,
        [images[index].range()],
    )
    e.transition(c, images[index], "TRANSFER_DST_OPTIMAL", "PRESENT_SRC_KHR", "CLEAR/TRANSFER_WRITE", "NONE")
    e.submit(c, [], [(composed[index],)] if MENDED else [])
    e.present(chain, index, [composed[index]] if MENDED else [])
e.idle()
