"""Fills a buffer and copies it with no barrier between, through a star import: a read after write hazard."""

import atexit
import os
import sys
import threading

from rig import Rig
from vulkan import *

rig = Rig()
a, _ = rig.buffer()
b, _ = rig.buffer()
commands = rig.commands()
vkCmdFillBuffer(commands, a, 0, 1024, 7)
if "--barrier" in sys.argv:
    barrier = VkMemoryBarrier(srcAccessMask=VK_ACCESS_TRANSFER_WRITE_BIT, dstAccessMask=VK_ACCESS_TRANSFER_READ_BIT)
    transfer = VK_PIPELINE_STAGE_TRANSFER_BIT
    vkCmdPipelineBarrier(commands, transfer, transfer, 0, 1, [barrier], 0, None, 0, None)
vkCmdCopyBuffer(commands, a, b, 1, [VkBufferCopy(0, 0, 1024)])
rig.submit(commands)
print("main is", __name__, "of", os.path.basename(__file__), sys.argv[1:], os.path.basename(sys.path[0]))
if "--thread" in sys.argv:
    threading.Thread(target=lambda: print("the thread ran")).start()
atexit.register(rig.close)
if "--exit" in sys.argv:
    sys.exit(7)
if "--raise" in sys.argv:
    raise RuntimeError("of the program itself")
