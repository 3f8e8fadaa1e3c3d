"""SDL_gpu 13009: buffers bound for reading and writing get a barrier to reads alone; the next dispatch writes them."""

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine()
a, b = e.buffer(1024), e.buffer(1024)
kernel = e.compute("add_words.comp", [STORAGE] * 3)
args = e.buffer(16, data=(4).to_bytes(4, "little") + (1).to_bytes(4, "little") * 2)


def use(commands, read, write):
    e.bind(commands, kernel, [read, read, write])
    vk.vkCmdDispatchIndirect(commands, args.handle, 0)
    after = "SHADER_STORAGE_READ|SHADER_STORAGE_WRITE" if MENDED else "SHADER_STORAGE_READ"
    e.buffer_barrier(
        commands, write, "COMPUTE_SHADER/SHADER_STORAGE_WRITE", f"VERTEX_SHADER|FRAGMENT_SHADER|COMPUTE_SHADER/{after}"
    )


fence = e.fence()
for frame in range(3):
    commands = e.commands()
    use(commands, a, b)
    e.submit(commands, fence=fence)
    if frame == 2:
        e.wait(fence)
    else:
        fence = e.fence()
e.idle()
