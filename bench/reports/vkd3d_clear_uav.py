"""vkd3d-proton 2857: a compute shader clears a buffer, the next one accumulates into it, with nothing between."""

from short_names import *
from small_engine import Engine

e = Engine()
counts, words, out = e.buffer(1024), e.buffer(1024, data=bytes(range(256)) * 4), e.buffer(1024, host=True)
clear = e.compute("fill_words.comp", [STORAGE], push=4)
add = e.compute("atomic_add.comp", [STORAGE], push=4)
commands = e.commands()
e.dispatch(commands, clear, [counts], 4, b"\0\0\0\0")
if MENDED:
    e.barrier(
        commands, "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COMPUTE_SHADER/SHADER_STORAGE_READ|SHADER_STORAGE_WRITE"
    )
e.dispatch(commands, add, [counts], 4, b"\5\0\0\0")
e.barrier(commands, "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "COPY/TRANSFER_READ")
e.copy(commands, counts, out)
e.submit(commands)
e.idle()
