"""Asks a physical device whether it writes depth and stencil apart: few programs do, and what races depends on it.

Specification: VkPhysicalDeviceMaintenance7PropertiesKHR; rules.md#writes-to-one-aspect-may-rewrite-the-other.
"""

from __future__ import annotations

import struct
from typing import Any

from vkharness.record import struct_layout as layout
from vkharness.spec.enums import VkStructureType

EXTENSION = b"VK_KHR_maintenance7"
_SIZE, _OFFSET = 56, 20
"""Bytes of the struct, and where separateDepthStencilAttachmentAccess is in it. The package does not declare it."""
_NOT_FILLED_IN = 0xFFFF_FFFF
"""No VkBool32: what stays there if the driver does not know the struct."""


def separate_aspects(physical: Any) -> int | None:
    """separateDepthStencilAttachmentAccess, a VkBool32, of a VkPhysicalDevice (a cffi value).

    0 where the device lacks VK_KHR_maintenance7, as it promises nothing then. None where it cannot be asked: there is
    no physical device, the loader lacks a function, or the property was not filled in.
    """
    ffi = layout.package_ffi()
    if not physical:
        return None
    try:
        return _told(ffi, _library(), physical)
    except (AttributeError, ffi.error):
        return None


def _told(ffi: Any, lib: Any, physical: Any) -> int | None:
    if not _has_extension(ffi, lib, physical):
        return 0
    told = ffi.new("uint64_t[]", _SIZE // 8)
    data = ffi.buffer(told)
    data[0:4] = struct.pack("I", VkStructureType.PHYSICAL_DEVICE_MAINTENANCE_7_PROPERTIES_KHR)
    data[_OFFSET : _OFFSET + 4] = struct.pack("I", _NOT_FILLED_IN)
    asked = ffi.new("VkPhysicalDeviceProperties2 *")
    asked.sType = VkStructureType.PHYSICAL_DEVICE_PROPERTIES_2
    asked.pNext = told
    lib.vkGetPhysicalDeviceProperties2(physical, asked)
    value: int = struct.unpack_from("I", data, _OFFSET)[0]
    return None if value == _NOT_FILLED_IN else int(value != 0)


def _library() -> Any:
    """The package's library itself, also while a session stands in for it."""
    from vulkan import _vulkan

    # Not by `vars`: the library's dictionary has every symbol of its header, also those that the loader lacks.
    stand_in = getattr(_vulkan.lib, "_proxy", None)
    return _vulkan.lib if stand_in is None else stand_in.lib


def _has_extension(ffi: Any, lib: Any, physical: Any) -> bool:
    count = ffi.new("uint32_t *")
    lib.vkEnumerateDeviceExtensionProperties(physical, ffi.NULL, count, ffi.NULL)
    listed = ffi.new("VkExtensionProperties[]", count[0])
    lib.vkEnumerateDeviceExtensionProperties(physical, ffi.NULL, count, listed)
    return any(ffi.string(each.extensionName) == EXTENSION for each in listed)
