"""A scenario's requirements of a device: kinds of queues and extensions, and the buffer usage that extensions add."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vkharness.findings import LacksError
from vkharness.spec.enums import VkBufferUsage, VkQueueFlag

QUEUE_KINDS = {
    "GRAPHICS": VkQueueFlag.GRAPHICS | VkQueueFlag.COMPUTE,
    "COMPUTE": VkQueueFlag.COMPUTE,
    "TRANSFER": VkQueueFlag.TRANSFER,
    "SPARSE_BINDING": VkQueueFlag.SPARSE_BINDING,
}
"""The VkQueueFlags that a queue of each kind has at least."""
HEADLESS = ("VK_KHR_surface", "VK_EXT_headless_surface")
SURFACE_EXTENSIONS = (*HEADLESS, "VK_KHR_get_surface_capabilities2", "VK_EXT_surface_maintenance1")
"""Instance extensions. All other extensions of a scenario are device extensions."""
PRESENTS = ("VK_KHR_swapchain", *HEADLESS)
"""The extensions that a scenario with a swapchain needs."""
PRESENT_FENCES = ("VK_KHR_swapchain", "VK_EXT_swapchain_maintenance1", *SURFACE_EXTENSIONS)
"""The extensions that a scenario with fences of presents needs."""
BUFFER_USAGE = {
    "VK_KHR_buffer_device_address": VkBufferUsage.SHADER_DEVICE_ADDRESS,
    "VK_EXT_conditional_rendering": VkBufferUsage.CONDITIONAL_RENDERING_EXT,
    "VK_EXT_descriptor_buffer": VkBufferUsage.SHADER_DEVICE_ADDRESS | VkBufferUsage.RESOURCE_DESCRIPTOR_BUFFER_EXT,
    "VK_EXT_transform_feedback": VkBufferUsage.TRANSFORM_FEEDBACK_BUFFER_EXT
    | VkBufferUsage.TRANSFORM_FEEDBACK_COUNTER_BUFFER_EXT,
    "VK_KHR_acceleration_structure": VkBufferUsage.SHADER_DEVICE_ADDRESS
    | VkBufferUsage.ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR
    | VkBufferUsage.ACCELERATION_STRUCTURE_STORAGE_KHR,
}
"""The VkBufferUsageFlags that extensions add."""


def queue_masks(kinds: Sequence[str]) -> list[int]:
    """The VkQueueFlags of the queues to request: one queue for graphics and compute, then one of each kind."""
    return [QUEUE_KINDS["GRAPHICS"], *(QUEUE_KINDS[kind] for kind in kinds)]


def split_extensions(vk: Any, needed: Iterable[str]) -> tuple[list[str], list[str]]:
    """(instance extensions, device extensions) out of the needed ones.

    Raises `LacksError` when the driver lacks an instance extension.
    """
    several = list(needed)
    instance = [name for name in several if name in SURFACE_EXTENSIONS]
    if instance:
        offered = {each.extensionName for each in vk.vkEnumerateInstanceExtensionProperties(None)}
        missing = [name for name in instance if name not in offered]
        if missing:
            raise LacksError(f"cannot run here: the driver has no {', '.join(missing)}")
    return instance, [name for name in several if name not in SURFACE_EXTENSIONS]


def buffer_usage(extensions: Iterable[str]) -> int:
    """The VkBufferUsageFlags that these extensions add."""
    usage = 0
    for name in extensions:
        usage |= BUFFER_USAGE.get(name, 0)
    return usage
