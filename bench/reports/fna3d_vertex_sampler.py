"""FNA3D 128: a texture that vertex shaders sample gets a barrier to fragment shaders."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
texture, target = e.image(), e.image()
staging = e.buffer(1024, data=bytes(range(256)) * 4)
out = e.buffer(1024, host=True)
pipe = e.graphics("point_by_sampled_texel.vert", "gradient.frag", [SAMPLED], points=True)


def upload(commands):
    e.transition(commands, texture, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "TOP_OF_PIPE", "TRANSFER/TRANSFER_WRITE")
    e.upload(commands, staging, texture)
    stage = "VERTEX_SHADER" if MENDED else "FRAGMENT_SHADER"
    e.transition(
        commands,
        texture,
        "TRANSFER_DST_OPTIMAL",
        "SHADER_READ_ONLY_OPTIMAL",
        "TRANSFER/TRANSFER_WRITE",
        f"{stage}/SHADER_READ",
    )


commands = e.commands()
upload(commands)
e.transition(
    commands,
    target,
    "UNDEFINED",
    "COLOR_ATTACHMENT_OPTIMAL",
    "TOP_OF_PIPE",
    "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
)
e.rendering(commands, [(target.view(), "CLEAR", "STORE")])
e.bind(commands, pipe, [texture.view()])
vk.vkCmdDraw(commands, 64, 1, 0, 0)
vk.vkCmdEndRendering(commands)
e.submit_drawn(commands, target, out)
