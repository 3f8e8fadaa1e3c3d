"""hypermine 392: an updated buffer is made visible to shader reads; the dispatch reads it as a uniform buffer."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
params, out = e.buffer(256), e.buffer(1024, host=True)
kernel = e.compute("sum_uniform.comp", [UNIFORM, STORAGE])
commands = e.commands()
vk.vkCmdUpdateBuffer(commands, params.handle, 0, 256, vk.ffi.new("char[]", bytes(range(1, 256)) + b"\0"))
access = "SHADER_READ|UNIFORM_READ" if MENDED else "SHADER_READ"
e.barrier(commands, "TRANSFER/TRANSFER_WRITE", f"COMPUTE_SHADER/{access}")
e.dispatch(commands, kernel, [params, out], 1)
e.submit(commands)
e.idle()
