"""Names its objects and labels its work, and forgets the same barrier in each of five rounds."""

import vulkan as vk
from rig import Rig

rig = Rig(instance_extensions=["VK_EXT_debug_utils"])
ffi = vk.ffi


def extension(name):
    return vk.vkGetInstanceProcAddr(rig.instance, name)


def call_it(kind, handle, name):
    info = vk.VkDebugUtilsObjectNameInfoEXT(
        objectType=kind, objectHandle=int(ffi.cast("uintptr_t", handle)), pObjectName=name
    )
    extension("vkSetDebugUtilsObjectNameEXT")(rig.device, info)


a, _ = rig.buffer()
b, _ = rig.buffer()
call_it(vk.VK_OBJECT_TYPE_BUFFER, a, "particles \x1b[31m")
call_it(vk.VK_OBJECT_TYPE_QUEUE, rig.queue, "graphics")
for number in range(5):
    commands = rig.commands()
    call_it(vk.VK_OBJECT_TYPE_COMMAND_BUFFER, commands, f"round {number}")
    begin, end = extension("vkCmdBeginDebugUtilsLabelEXT"), extension("vkCmdEndDebugUtilsLabelEXT")
    begin(commands, vk.VkDebugUtilsLabelEXT(pLabelName=f"round {number}"))
    begin(commands, vk.VkDebugUtilsLabelEXT(pLabelName="clear"))
    vk.vkCmdFillBuffer(commands, a, 0, 1024, 7)
    end(commands)
    extension("vkCmdInsertDebugUtilsLabelEXT")(commands, vk.VkDebugUtilsLabelEXT(pLabelName="upload"))
    vk.vkCmdCopyBuffer(commands, a, b, 1, [vk.VkBufferCopy(0, 0, 1024)])
    end(commands)
    rig.submit(commands)
rig.close()
