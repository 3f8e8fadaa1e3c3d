"""Asks a physical device whether it writes depth and stencil apart: few programs do, and what races depends on it.

Specification: VkPhysicalDeviceMaintenance7PropertiesKHR; rules.md#writes-to-one-aspect-may-rewrite-the-other.
"""

from __future__ import annotations

import struct
from typing import Any

from harness.record import struct_layout as layout
from harness.spec.enums import VkStructureType

EXTENSION = b"VK_KHR_maintenance7"
_SIZE, _OFFSET = 56, 20
"""Bytes of the struct, and where separateDepthStencilAttachmentAccess is in it. The package does not declare it."""


def separate_aspects(physical: Any) -> int:
    """separateDepthStencilAttachmentAccess, a VkBool32, of a VkPhysicalDevice (a cffi value).

    0 where the device lacks VK_KHR_maintenance7, as it promises nothing then.
    """
    ffi, lib = layout.package_ffi(), _library()
    if not _has_extension(ffi, lib, physical):
        return 0
    told = ffi.new("uint64_t[]", _SIZE // 8)
    data = ffi.buffer(told)
    data[0:4] = struct.pack("I", VkStructureType.PHYSICAL_DEVICE_MAINTENANCE_7_PROPERTIES_KHR)
    asked = ffi.new("VkPhysicalDeviceProperties2 *")
    asked.sType = VkStructureType.PHYSICAL_DEVICE_PROPERTIES_2
    asked.pNext = told
    lib.vkGetPhysicalDeviceProperties2(physical, asked)
    return int(struct.unpack_from("I", data, _OFFSET)[0] != 0)


def _library() -> Any:
    """The package's library itself, also while a session stands in for it."""
    from vulkan import _vulkan

    lib = _vulkan.lib
    proxy = vars(lib).get("_proxy") if hasattr(lib, "__dict__") else None
    return lib if proxy is None else proxy.lib


def _has_extension(ffi: Any, lib: Any, physical: Any) -> bool:
    count = ffi.new("uint32_t *")
    lib.vkEnumerateDeviceExtensionProperties(physical, ffi.NULL, count, ffi.NULL)
    listed = ffi.new("VkExtensionProperties[]", count[0])
    lib.vkEnumerateDeviceExtensionProperties(physical, ffi.NULL, count, listed)
    return any(ffi.string(each.extensionName) == EXTENSION for each in listed)
