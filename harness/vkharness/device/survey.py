"""A survey of what a driver offers. It asks the driver itself, and runs in a worker, since asking can crash."""

from __future__ import annotations

from typing import Any

from vkharness.device.headless import API_1_1, API_1_2, Headless, import_vulkan, is_null_hardware
from vkharness.spec.enums import VkQueueFlag

ABILITIES = {
    "synchronization2": "synchronization2",
    "dynamic rendering": "dynamicRendering",
    "timeline semaphores": "timelineSemaphore",
    "push descriptors": "VK_KHR_push_descriptor",
    "external memory fd": "VK_KHR_external_memory_fd",
    "external semaphore fd": "VK_KHR_external_semaphore_fd",
    "ray query": "VK_KHR_ray_query",
    "host image copy": "VK_EXT_host_image_copy",
}
"""Abilities by common name, with the feature or device extension that provides each."""


def survey_job() -> dict[str, Any]:
    """`{"loader": version, "instance_extensions": [...], "devices": [device, ...]}` for the driver of this process.

    Raises `UserError` when the machine has no loader or the driver makes no instance.
    """
    vk = import_vulkan()
    extensions = [extension.extensionName for extension in vk.vkEnumerateInstanceExtensionProperties(None)]
    devices: list[dict[str, Any]] = []
    count = 1
    while len(devices) < count:
        with Headless(physical_device=len(devices), queues=(0,)) as headless:
            count = len(vk.vkEnumeratePhysicalDevices(headless.instance))
            devices.append(_describe(headless))
    if "VK_EXT_headless_surface" in extensions:
        for device in devices:
            device["abilities"].append("headless surface")
    return {
        "loader": version_text(vk.vkEnumerateInstanceVersion()),
        "instance_extensions": sorted(extensions),
        "devices": devices,
    }


def version_text(version: int) -> str:
    """`4206592` as `1.3.0`: major, minor and patch of VK_MAKE_API_VERSION."""
    return f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"


def _describe(headless: Headless) -> dict[str, Any]:
    vk, properties = headless.vk, headless.properties
    found = vk.vkEnumerateDeviceExtensionProperties(headless.physical_device, None)
    extensions = sorted(extension.extensionName for extension in found)
    families = vk.vkGetPhysicalDeviceQueueFamilyProperties(headless.physical_device)
    flags = 0
    for family in families:
        flags |= int(family.queueFlags)
    abilities = [
        word for word, bit in (("graphics", VkQueueFlag.GRAPHICS), ("compute", VkQueueFlag.COMPUTE)) if flags & bit
    ]
    have = {*headless.features, *extensions}
    abilities += [word for word, name in ABILITIES.items() if name in have]
    return {
        "name": headless.device_name,
        "api_version": version_text(properties.apiVersion),
        "driver_version": driver_version(headless),
        "uuid": _driver_uuid(vk, headless),
        "queue_families": [{"flags": int(family.queueFlags), "count": int(family.queueCount)} for family in families],
        "features": sorted(headless.features),
        "extensions": extensions,
        "executes": not is_null_hardware(),
        "memory_types": len(headless.memory_types),
        "abilities": abilities,
    }


def driver_version(headless: Headless) -> str:
    """The driver's own words for its version (VkPhysicalDeviceDriverProperties), else its number."""
    vk, number = headless.vk, headless.properties.driverVersion
    if headless.properties.apiVersion < API_1_2:
        return str(number)
    driver = vk.ffi.new("VkPhysicalDeviceDriverProperties *")
    driver.sType = vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES
    _ask(vk, headless, driver)
    name, info = (vk.ffi.string(text).decode() for text in (driver.driverName, driver.driverInfo))
    return f"{name} {info}".strip() or str(number)


def _driver_uuid(vk: Any, headless: Headless) -> str:
    """driverUUID of VkPhysicalDeviceIDProperties (Vulkan 1.1) in hexadecimal digits: another build has another one."""
    if headless.properties.apiVersion < API_1_1:
        return ""
    identity = vk.ffi.new("VkPhysicalDeviceIDProperties *")
    identity.sType = vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES
    _ask(vk, headless, identity)
    return bytes(identity.driverUUID).hex()


def _ask(vk: Any, headless: Headless, properties: Any) -> None:
    chain = vk.ffi.new("VkPhysicalDeviceProperties2 *")
    chain.sType = vk.VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2
    chain.pNext = properties
    vk.vkGetPhysicalDeviceProperties2(headless.physical_device, chain)
