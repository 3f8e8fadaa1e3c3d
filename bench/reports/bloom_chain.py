"""A bloom chain: down by blits, up by draws that blend; the way up reads the level that the draw before wrote."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
MIPS = 3
bloom = e.image(16, 16, mips=MIPS)
source, out = e.buffer(1024, data=bytes(range(256)) * 4), e.buffer(1024, host=True)
up = [
    e.graphics("fullscreen.vert", "half_color.frag", [SAMPLED], size=(16 >> m, 16 >> m), blend=True)
    for m in range(MIPS)
]
OUT = "COLOR_ATTACHMENT_OUTPUT"
c = e.commands()
e.transition(c, bloom, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "NONE", "COPY|BLIT/TRANSFER_WRITE")
e.upload(c, source, bloom)
for mip in range(MIPS - 1):
    e.transition(
        c,
        bloom,
        "TRANSFER_DST_OPTIMAL",
        "TRANSFER_SRC_OPTIMAL",
        "COPY|BLIT/TRANSFER_WRITE",
        "BLIT/TRANSFER_READ",
        mip=mip,
        mips=1,
    )
    e.blit(c, bloom, mip)
e.transition(
    c,
    bloom,
    "TRANSFER_DST_OPTIMAL",
    "SHADER_READ_ONLY_OPTIMAL",
    "BLIT/TRANSFER_WRITE",
    "FRAGMENT_SHADER/SHADER_SAMPLED_READ",
    mip=MIPS - 1,
    mips=1,
)
for mip in range(MIPS - 2, -1, -1):
    e.transition(
        c,
        bloom,
        "TRANSFER_SRC_OPTIMAL",
        "COLOR_ATTACHMENT_OPTIMAL",
        "BLIT/TRANSFER_READ",
        f"{OUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE",
        mip=mip,
        mips=1,
    )
    e.rendering(c, [(bloom.view(mip), "LOAD", "STORE")], size=(16 >> mip, 16 >> mip))
    e.bind(c, up[mip], [bloom.view(mip + 1)])
    vk.vkCmdDraw(c, 3, 1, 0, 0)
    vk.vkCmdEndRendering(c)
    e.transition(
        c,
        bloom,
        "COLOR_ATTACHMENT_OPTIMAL",
        "SHADER_READ_ONLY_OPTIMAL",
        f"{OUT}/COLOR_ATTACHMENT_WRITE",
        ("FRAGMENT_SHADER" if MENDED else OUT) + ("/SHADER_SAMPLED_READ" if MENDED else "/COLOR_ATTACHMENT_READ"),
        mip=mip,
        mips=1,
    )
e.transition(
    c,
    bloom,
    "SHADER_READ_ONLY_OPTIMAL",
    "TRANSFER_SRC_OPTIMAL",
    f"FRAGMENT_SHADER|{OUT}/COLOR_ATTACHMENT_WRITE",
    "COPY/TRANSFER_READ",
    mips=1,
)
e.read_back(c, bloom, out)
e.submit(c)
e.idle()
