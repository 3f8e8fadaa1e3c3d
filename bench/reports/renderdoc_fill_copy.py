"""RenderDoc 3899: an indirect buffer is filled and then copied over without a barrier."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
source, held, out = e.buffer(256, data=bytes(range(256))), e.buffer(256), e.buffer(256, host=True)
commands = e.commands()
vk.vkCmdFillBuffer(commands, held.handle, 0, 256, 0)
if MENDED:
    e.buffer_barrier(commands, held, "TRANSFER/TRANSFER_WRITE", "TRANSFER/TRANSFER_WRITE")
e.copy(commands, source, held, 80, to=16)
e.buffer_barrier(commands, held, "TRANSFER/TRANSFER_WRITE", "TRANSFER/TRANSFER_READ")
e.copy(commands, held, out)
e.submit(commands)
e.idle()
