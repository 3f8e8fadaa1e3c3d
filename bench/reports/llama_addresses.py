"""llama.cpp on device addresses: an operation reads the tensor that the one before wrote through its address, no barrier."""

import struct

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
a, b, c3 = (e.buffer(1024, address=True) for _ in range(3))
staging, out = e.buffer(1024, data=bytes(range(256)) * 4), e.buffer(1024, host=True)
move = e.compute("address_copy.comp", [], push=24)
commands = e.commands()
e.copy(commands, staging, a)
e.barrier(commands, "COPY/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ")
e.bind(commands, move, push=struct.pack("QQII", a.address, b.address, 256, 0))
vk.vkCmdDispatch(commands, 4, 1, 1)
if MENDED:
    e.barrier(commands, "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ")
e.bind(commands, move, push=struct.pack("QQII", b.address, c3.address, 256, 0))
vk.vkCmdDispatch(commands, 4, 1, 1)
e.barrier(commands, "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COPY/TRANSFER_READ")
e.copy(commands, c3, out)
e.submit(commands)
e.idle()
