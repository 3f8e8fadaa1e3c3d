"""vulkano 1816: blits from one level to the next of one image count as uses of one level, and get no barrier."""

from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
MIPS = 4
texture, source = e.image(16, 16, mips=MIPS), e.buffer(1024, data=bytes(range(256)) * 4)
outs = [e.buffer(1024, host=True) for _ in range(MIPS)]
commands = e.commands()
e.transition(commands, texture, "UNDEFINED", "TRANSFER_DST_OPTIMAL", "TOP_OF_PIPE", "TRANSFER/TRANSFER_WRITE")
e.upload(commands, source, texture)
e.transition(
    commands,
    texture,
    "TRANSFER_DST_OPTIMAL",
    "GENERAL",
    "TRANSFER/TRANSFER_WRITE",
    "TRANSFER/TRANSFER_READ|TRANSFER_WRITE",
)
for mip in range(MIPS - 1):
    if mip and MENDED:
        e.barrier(commands, "TRANSFER/TRANSFER_WRITE", "TRANSFER/TRANSFER_READ")
    e.blit(commands, texture, mip, ("GENERAL", "GENERAL"))
e.transition(commands, texture, "GENERAL", "TRANSFER_SRC_OPTIMAL", "TRANSFER/TRANSFER_WRITE", "TRANSFER/TRANSFER_READ")
for mip in range(MIPS):
    e.read_back(commands, texture, outs[mip], mip)
e.submit(commands)
e.idle()
