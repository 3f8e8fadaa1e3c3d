"""shadPS4 4611: vertices that a dispatch wrote are read by a draw with no barrier, over frames."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
words, vertices = e.buffer(256, data=bytes(range(256))), e.buffer(256)
target, out = e.image(), e.buffer(1024, host=True)
skin = e.compute("copy_words.comp", [STORAGE, STORAGE])
pipe = e.graphics("point_by_word.vert", "gradient.frag", points=True, vertices=(vk.VK_FORMAT_R32_UINT, 4))
fence = e.fence()
for _frame in range(2):
    commands = e.commands()
    e.dispatch(commands, skin, [words, vertices], 1)
    if MENDED:
        e.buffer_barrier(
            commands, vertices, "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "VERTEX_ATTRIBUTE_INPUT/VERTEX_ATTRIBUTE_READ"
        )
    e.transition(
        commands,
        target,
        "UNDEFINED",
        "COLOR_ATTACHMENT_OPTIMAL",
        "NONE",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
    )
    e.rendering(commands, [(target.view(), "CLEAR", "STORE")])
    e.bind(commands, pipe)
    vk.vkCmdBindVertexBuffers(commands, 0, 1, [vertices.handle], [0])
    vk.vkCmdDraw(commands, 64, 1, 0, 0)
    vk.vkCmdEndRendering(commands)
    e.transition(
        commands,
        target,
        "COLOR_ATTACHMENT_OPTIMAL",
        "TRANSFER_SRC_OPTIMAL",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
        "COPY/TRANSFER_READ",
    )
    e.read_back(commands, target, out)
    e.submit(commands, fence=fence)
    e.wait(fence)
