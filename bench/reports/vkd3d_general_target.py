"""vkd3d-proton 2136: a render target in the general layout; its barrier lacks the accesses of attachments."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
target, out = e.image(), e.buffer(1024, host=True)
pipe = e.graphics("fullscreen.vert", "gradient.frag")
load = e.compute("image_load_2d.comp", [STORED, STORAGE])
commands = e.commands()
e.transition(
    commands,
    target,
    "UNDEFINED",
    "GENERAL",
    "NONE",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE",
)
e.rendering(commands, [(target.view(), "CLEAR", "STORE", "GENERAL")])
e.bind(commands, pipe)
vk.vkCmdDraw(commands, 3, 1, 0, 0)
vk.vkCmdEndRendering(commands)
extra = "|COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE" if MENDED else ""
e.transition(
    commands,
    target,
    "GENERAL",
    "GENERAL",
    "ALL_COMMANDS/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE" + extra,
    "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE",
)
e.dispatch(commands, load, [target.view(), out], 4)
e.barrier(commands, "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "HOST/HOST_READ")
e.submit(commands)
e.idle()
