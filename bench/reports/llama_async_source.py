"""llama.cpp 23827: an asynchronous copy from host memory, whose source the host writes again before the copy ran."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
host, tensor, out = e.buffer(4096, host=True), e.buffer(4096), e.buffer(1024, host=True)
done = e.semaphore(True)
for token in range(1, 4):
    if MENDED and token > 1:
        vk.vkWaitSemaphores(e.device, vk.VkSemaphoreWaitInfo(pSemaphores=[done], pValues=[token - 1]), FOREVER)
    host.mapped[256:1280] = bytes([token * 3]) * 1024
    c = e.commands()
    e.barrier(c, "TRANSFER/TRANSFER_WRITE", "TRANSFER/TRANSFER_WRITE")
    e.copy(c, host, tensor, 1024, 256, 512)
    e.submit(c, [], [(done, token)])
e.idle()
