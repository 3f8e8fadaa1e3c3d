"""GPU culling: the draw count is reset for the next frame behind a barrier that waits for shaders, while draws still read it."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(count=True)
count, commands_buffer = e.buffer(64), e.buffer(256)
target, out = e.image(), e.buffer(1024, host=True)
cull = e.compute("cull_draws.comp", [STORAGE, STORAGE])
pipe = e.graphics("fullscreen.vert", "gradient.frag")
for frame in range(2):
    c = e.commands()
    if frame:
        e.barrier(c, "DRAW_INDIRECT|CLEAR/TRANSFER_WRITE" if MENDED else "CLEAR/TRANSFER_WRITE", "CLEAR/TRANSFER_WRITE")
        e.barrier(c, "DRAW_INDIRECT", "COMPUTE_SHADER")
    vk.vkCmdFillBuffer(c, count.handle, 0, 4, 0)
    e.barrier(c, "CLEAR/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE")
    e.dispatch(c, cull, [count, commands_buffer], 1)
    e.barrier(c, "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "DRAW_INDIRECT/INDIRECT_COMMAND_READ")
    e.transition(
        c,
        target,
        "UNDEFINED",
        "COLOR_ATTACHMENT_OPTIMAL",
        "COLOR_ATTACHMENT_OUTPUT|COPY/COLOR_ATTACHMENT_WRITE",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
    )
    e.rendering(c, [(target.view(), "CLEAR", "STORE")])
    e.bind(c, pipe)
    vk.vkCmdDrawIndirectCount(c, commands_buffer.handle, 0, count.handle, 0, 4, 16)
    vk.vkCmdEndRendering(c)
    e.submit(c)
e.idle()
