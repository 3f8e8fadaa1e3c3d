"""vkd3d-proton 963: results of queries are copied over bytes that a copy wrote, with nothing between."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
source, held, out = e.buffer(256, data=bytes(range(256))), e.buffer(256), e.buffer(256, host=True)
pool = vk.vkCreateQueryPool(
    e.device, vk.VkQueryPoolCreateInfo(queryType=vk.VK_QUERY_TYPE_OCCLUSION, queryCount=4), None
)
target = e.image()
pipe = e.graphics("fullscreen.vert", "gradient.frag")
commands = e.commands()
vk.vkCmdResetQueryPool(commands, pool, 0, 4)
e.transition(
    commands, target, "UNDEFINED", "COLOR_ATTACHMENT_OPTIMAL", "NONE", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
)
e.rendering(commands, [(target.view(), "CLEAR", "STORE")])
for query in range(4):
    vk.vkCmdBeginQuery(commands, pool, query, 0)
    e.bind(commands, pipe)
    vk.vkCmdDraw(commands, 3, query, 0, 0)
    vk.vkCmdEndQuery(commands, pool, query)
vk.vkCmdEndRendering(commands)
e.copy(commands, source, held)
if MENDED:
    e.buffer_barrier(commands, held, "COPY/TRANSFER_WRITE", "COPY/TRANSFER_WRITE")
vk.vkCmdCopyQueryPoolResults(
    commands, pool, 0, 4, held.handle, 0, 8, vk.VK_QUERY_RESULT_64_BIT | vk.VK_QUERY_RESULT_WAIT_BIT
)
e.buffer_barrier(commands, held, "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ")
e.copy(commands, held, out)
e.submit(commands)
e.idle()
