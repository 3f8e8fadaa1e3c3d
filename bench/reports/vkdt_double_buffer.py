"""vkdt 293: the graph runs on the compute queue into two buffers in turn; the display reads one without waiting for its value."""

from short_names import *
from small_engine import Engine

e = Engine(families=2)
words, pair = e.buffer(1024, data=bytes(range(256)) * 4), [e.buffer(1024) for _ in range(2)]
out = e.buffer(1024, host=True)
graph = e.compute("copy_words.comp", [STORAGE, STORAGE])
value, shown = e.semaphore(True), e.semaphore(True)
for number in range(1, 4):
    c = e.commands(1)
    e.dispatch(c, graph, [words, pair[number % 2]])
    e.buffer_barrier(c, pair[number % 2], "COMPUTE_SHADER/SHADER_STORAGE_WRITE", "NONE", families=(1, 0))
    e.submit(c, [(shown, "COMPUTE_SHADER", number - 2)] if number > 2 else [], [(value, number)], family=1)
    c = e.commands()
    e.buffer_barrier(c, pair[number % 2], "COPY", "COPY/TRANSFER_READ", families=(1, 0))
    e.copy(c, pair[number % 2], out)
    e.barrier(c, "COPY/TRANSFER_WRITE", "COPY/TRANSFER_WRITE")
    waited = number if MENDED else number - 1
    e.submit(c, [(value, "ALL_COMMANDS" if MENDED else "COPY", waited)] if waited else [], [(shown, number)])
e.idle()
