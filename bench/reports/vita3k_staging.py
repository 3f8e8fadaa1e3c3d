"""Vita3K 4098: a ring of staging buffers is reused before the copy out of it has ended."""

from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
ring = [e.buffer(1024, host=True) for _ in range(2)]
textures = [e.image() for _ in range(4)]
fences = [None] * 2
out = e.buffer(1024, host=True)


def upload(number):
    slot = number % 2
    if fences[slot] is not None and MENDED:
        e.wait(fences[slot])
    fences[slot] = fences[slot] or e.fence()
    fence = fences[slot] if MENDED else e.fence()
    fences[slot] = fence
    ring[slot].mapped[0:1024] = bytes([number + 1]) * 1024
    c = e.commands()
    e.transition(c, textures[number], "UNDEFINED", "TRANSFER_DST_OPTIMAL", "TOP_OF_PIPE", "TRANSFER/TRANSFER_WRITE")
    e.upload(c, ring[slot], textures[number])
    e.transition(
        c,
        textures[number],
        "TRANSFER_DST_OPTIMAL",
        "SHADER_READ_ONLY_OPTIMAL",
        "TRANSFER/TRANSFER_WRITE",
        "FRAGMENT_SHADER/SHADER_READ",
    )
    e.submit(c, fence=fence)


for number in range(4):
    upload(number)
e.idle()
