"""A staging ring of one buffer: the offset wraps to bytes that an earlier upload of the same submit still reads."""

from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
SIZE = 1024
ring = e.buffer(SIZE, host=True)
a, b, c2 = (e.buffer(512) for _ in range(3))
pending = []


def stage(target, byte, at):
    ring.mapped[at : at + 512] = bytes([byte]) * 512
    c = e.commands()
    e.copy(c, ring, target, 512, at)
    fence = e.fence()
    e.submit(c, fence=fence)
    pending.append(fence)


for number, target in enumerate((a, b, c2)):
    if MENDED and number == 2:
        e.wait(pending[0])
    stage(target, number + 1, number * 512 % SIZE)
e.idle()
