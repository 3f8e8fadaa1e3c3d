"""VulkanTutorial 87, vkmark 69: one uniform buffer, written by the host for each frame, two frames in flight."""

import struct

import vulkan as vk
from short_names import *
from small_engine import Engine

e = Engine(sync2=False)
count = 2 if MENDED else 1
uniforms = [e.buffer(64, host=True) for _ in range(count)]
targets = [e.image() for _ in range(2)]
out = [e.buffer(1024, host=True) for _ in range(2)]
pipe = e.graphics("fullscreen.vert", "uniform_color.frag", [UNIFORM])
sets = [e.set(pipe, [u]) for u in uniforms]
fences, commands = [e.fence(True) for _ in range(2)], [e.commands() for _ in range(2)]
for c in commands:
    vk.vkEndCommandBuffer(c)


def draw_frame(number):
    slot = number % 2
    e.wait(fences[slot])
    uniforms[slot % count].mapped[0:16] = struct.pack("4f", number / 8, 0.5, 0.25, 1.0)
    c = e.begin(commands[slot])
    e.transition(
        c,
        targets[slot],
        "UNDEFINED",
        "COLOR_ATTACHMENT_OPTIMAL",
        "COLOR_ATTACHMENT_OUTPUT",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
    )
    e.rendering(c, [(targets[slot].view(), "CLEAR", "STORE")])
    e.bind(c, pipe, sets[slot % count])
    vk.vkCmdDraw(c, 3, 1, 0, 0)
    vk.vkCmdEndRendering(c)
    e.transition(
        c,
        targets[slot],
        "COLOR_ATTACHMENT_OPTIMAL",
        "TRANSFER_SRC_OPTIMAL",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
        "TRANSFER/TRANSFER_READ",
    )
    e.read_back(c, targets[slot], out[slot])
    e.submit(c, fence=fences[slot])


for number in range(4):
    draw_frame(number)
e.idle()
