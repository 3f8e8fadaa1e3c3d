"""Bindless buffers: a shader writes the buffer whose index another buffer holds; the barrier names the buffer next to it."""

from short_names import *
from small_engine import Engine

e = Engine()
buffers = [e.buffer(1024) for _ in range(4)]
choice = e.buffer(64, data=(2).to_bytes(4, "little"))
out = e.buffer(1024, host=True)
scatter = e.compute("array_any_index.comp", [STORAGE, STORAGE], push=4, counts={0: 4})
commands = e.commands()
e.dispatch(commands, scatter, [buffers, choice], 4, b"\7\0\0\0")
e.buffer_barrier(commands, buffers[2 if MENDED else 1], "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COPY/TRANSFER_READ")
e.copy(commands, buffers[2], out)
e.submit(commands)
e.idle()
