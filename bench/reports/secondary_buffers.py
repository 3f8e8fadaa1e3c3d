"""A secondary command buffer copies what the primary filled; the primary has no barrier before it executes it."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
a, b = e.buffer(1024), e.buffer(1024, host=True)
second = vk.vkAllocateCommandBuffers(
    e.device, vk.VkCommandBufferAllocateInfo(commandPool=e.pools[0], level=1, commandBufferCount=1)
)[0]
vk.vkBeginCommandBuffer(second, vk.VkCommandBufferBeginInfo(pInheritanceInfo=vk.VkCommandBufferInheritanceInfo()))
e.copy(second, a, b)
vk.vkEndCommandBuffer(second)
c = e.commands()
vk.vkCmdFillBuffer(c, a.handle, 0, 1024, 0x01020304)
if MENDED:
    e.barrier(c, "TRANSFER/TRANSFER_WRITE", "TRANSFER/TRANSFER_READ")
vk.vkCmdExecuteCommands(c, 1, [second])
e.submit(c)
e.idle()
