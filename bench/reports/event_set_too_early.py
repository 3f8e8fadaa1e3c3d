"""A split barrier whose event is set before the dispatch that it is meant to cover."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
a, b = e.buffer(1024), e.buffer(1024)
source, out = e.buffer(1024, data=bytes(range(256)) * 4), e.buffer(1024, host=True)
kernel = e.compute("copy_words.comp", [STORAGE, STORAGE])
event = vk.vkCreateEvent(e.device, vk.VkEventCreateInfo(), None)
info = vk.VkDependencyInfo(
    pMemoryBarriers=[
        vk.VkMemoryBarrier2(
            srcStageMask=stages("COMPUTE_SHADER"),
            srcAccessMask=accesses("/SHADER_STORAGE_WRITE"),
            dstStageMask=stages("COPY"),
            dstAccessMask=accesses("/TRANSFER_READ"),
        )
    ]
)
c = e.commands()
if not MENDED:
    vk.vkCmdSetEvent2(c, event, info)
e.dispatch(c, kernel, [source, a])
if MENDED:
    vk.vkCmdSetEvent2(c, event, info)
e.dispatch(c, kernel, [source, b])
vk.vkCmdWaitEvents2(c, 1, [event], [info])
e.copy(c, a, out)
e.submit(c)
e.idle()
