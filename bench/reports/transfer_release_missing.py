"""A vertex buffer is uploaded on the transfer queue; the graphics queue acquires it, and nobody released it (layers 39)."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(families=3)
GRAPHICS, TRANSFER = 0, 2
vertices, staging, out = e.buffer(256), e.buffer(256, data=bytes(range(256))), e.buffer(1024, host=True)
pipe = e.graphics("point_by_word.vert", "gradient.frag", points=True, vertices=(vk.VK_FORMAT_R32_UINT, 4))
target, done = e.image(), e.semaphore()
pair = (TRANSFER, GRAPHICS)
c = e.commands(TRANSFER)
e.copy(c, staging, vertices)
if MENDED:
    e.buffer_barrier(c, vertices, "COPY/TRANSFER_WRITE", "NONE", families=pair)
e.submit(c, [], [(done,)], family=TRANSFER)
c = e.commands()
e.buffer_barrier(c, vertices, "VERTEX_ATTRIBUTE_INPUT", "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ", families=pair)
e.transition(
    c, target, "UNDEFINED", "COLOR_ATTACHMENT_OPTIMAL", "NONE", "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
)
e.rendering(c, [(target.view(), "CLEAR", "STORE")])
e.bind(c, pipe)
vk.vkCmdBindVertexBuffers(c, 0, 1, [vertices.handle], [0])
vk.vkCmdDraw(c, 64, 1, 0, 0)
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
e.submit(c, [(done, "ALL_COMMANDS")])
e.idle()
