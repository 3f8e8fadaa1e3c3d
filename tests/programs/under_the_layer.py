"""Fill then copy, with the Khronos layer enabled and a messenger, under the mirror: both must speak."""

import os

import vulkan as vk
from rig import Rig

import vkharness

os.environ["VK_LAYER_ENABLES"] = "VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT"
said = []


def hear(severity, kinds, data, user):
    """Called by the layer, from inside the mirrored call."""
    name = vk.ffi.string(data.pMessageIdName).decode()
    if "HAZARD" in name:
        said.append(name)
    return 0


with vkharness.attach() as session:
    rig = Rig(layers=["VK_LAYER_KHRONOS_validation"], instance_extensions=["VK_EXT_debug_utils"])
    info = vk.VkDebugUtilsMessengerCreateInfoEXT(messageSeverity=0x1100, messageType=7, pfnUserCallback=hear)
    create = vk.vkGetInstanceProcAddr(rig.instance, "vkCreateDebugUtilsMessengerEXT")
    destroy = vk.vkGetInstanceProcAddr(rig.instance, "vkDestroyDebugUtilsMessengerEXT")
    messenger = create(rig.instance, info, None)
    a, _ = rig.buffer()
    b, _ = rig.buffer()
    commands = rig.commands()
    vk.vkCmdFillBuffer(commands, a, 0, 1024, 7)
    vk.vkCmdCopyBuffer(commands, a, b, 1, [vk.VkBufferCopy(0, 0, 1024)])
    rig.submit(commands)
    destroy(rig.instance, messenger, None)
    rig.close()
for name in dict.fromkeys(said):
    print("layer:", name)
for finding in session.findings:
    print("mirror:", finding.vuid)
if session.internal_errors:
    raise SystemExit(session.internal_errors[0])
