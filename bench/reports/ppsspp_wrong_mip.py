"""PPSSPP 14995: levels are made by dispatches; after each one the barrier names the wrong level."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
MIPS = 4
pyramid, source = e.image(16, 16, mips=MIPS), e.buffer(1024, data=bytes(range(256)) * 4)
outs = [e.buffer(1024, host=True) for _ in range(MIPS)]
shrink = e.compute("shrink_2d.comp", [STORED, STORED])
commands = e.commands()
e.transition(commands, pyramid, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "NONE", "COPY/TRANSFER_WRITE", mips=1)
e.upload(commands, source, pyramid)
e.transition(
    commands,
    pyramid,
    "TRANSFER_DST_OPTIMAL",
    "GENERAL",
    "COPY/TRANSFER_WRITE",
    "COMPUTE_SHADER|COPY/SHADER_STORAGE_READ|TRANSFER_READ",
    mips=1,
)
e.transition(commands, pyramid, "UNDEFINED", "GENERAL", "NONE", "COMPUTE_SHADER/SHADER_STORAGE_WRITE", mip=1)
for mip in range(1, MIPS):
    e.bind(commands, shrink, [pyramid.view(mip - 1), pyramid.view(mip)])
    groups = max(1, (16 >> mip) // 8)
    vk.vkCmdDispatch(commands, groups, groups, 1)
    named = mip if MENDED else mip - 1
    e.transition(
        commands,
        pyramid,
        "GENERAL",
        "GENERAL",
        "COMPUTE_SHADER/SHADER_STORAGE_WRITE",
        "COMPUTE_SHADER|COPY/SHADER_STORAGE_READ|TRANSFER_READ",
        mip=named,
        mips=1,
    )
for mip in range(MIPS):
    e.read_back(commands, pyramid, outs[mip], mip, held="GENERAL")
e.submit(commands)
e.idle()
