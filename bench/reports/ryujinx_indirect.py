"""Ryujinx 3798: a staged copy of draw parameters is made visible to shaders and vertices, not to indirect commands."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
staging = e.buffer(64, data=b"".join(v.to_bytes(4, "little") for v in (3, 1, 0, 0, 3, 1, 0, 0)))
args, target, out = e.buffer(64), e.image(), e.buffer(1024, host=True)
pipe = e.graphics("fullscreen.vert", "gradient.frag")
commands = e.commands()
e.copy(commands, staging, args)
extra = "|INDIRECT_COMMAND_READ" if MENDED else ""
e.buffer_barrier(
    commands,
    args,
    "TRANSFER/TRANSFER_WRITE",
    "ALL_COMMANDS/VERTEX_ATTRIBUTE_READ|INDEX_READ|UNIFORM_READ|SHADER_READ|SHADER_WRITE|TRANSFER_READ" + extra,
)
e.transition(
    commands,
    target,
    "UNDEFINED",
    "COLOR_ATTACHMENT_OPTIMAL",
    "TOP_OF_PIPE",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
)
e.rendering(commands, [(target.view(), "CLEAR", "STORE")])
e.bind(commands, pipe)
vk.vkCmdDrawIndirect(commands, args.handle, 0, 2, 16)
vk.vkCmdEndRendering(commands)
e.submit_drawn(commands, target, out)
