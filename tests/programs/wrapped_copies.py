"""Two passes that forget the same barrier, behind one helper. With `--mended`, the first one does not."""

import sys

import vulkan as vk
from rig import Rig

rig = Rig()
a, _ = rig.buffer()
b, _ = rig.buffer()
BARRIER = vk.VkMemoryBarrier(
    srcAccessMask=vk.VK_ACCESS_TRANSFER_WRITE_BIT,
    dstAccessMask=vk.VK_ACCESS_TRANSFER_READ_BIT | vk.VK_ACCESS_TRANSFER_WRITE_BIT,
)


def copy(commands, source, target):
    vk.vkCmdCopyBuffer(commands, source, target, 1, [vk.VkBufferCopy(0, 0, 1024)])


def barrier(commands):
    stage = vk.VK_PIPELINE_STAGE_TRANSFER_BIT
    vk.vkCmdPipelineBarrier(commands, stage, stage, 0, 1, [BARRIER], 0, None, 0, None)


def shadow_pass(commands):
    copy(commands, a, b)  # shadow, first
    if "--mended" in sys.argv:
        barrier(commands)
    copy(commands, b, a)  # shadow, second


def bloom_pass(commands):
    copy(commands, a, b)  # bloom, first
    copy(commands, b, a)  # bloom, second


def frame():
    for record in (shadow_pass, bloom_pass):
        commands = rig.commands()
        record(commands)
        rig.submit(commands)


frame()
rig.close()
