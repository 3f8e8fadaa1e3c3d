"""What a scenario asks of a device: kinds of queues, extensions, and what these add to the usage of buffers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.findings import UserError
from harness.spec.enums import VkBufferUsage, VkQueueFlag

QUEUE_KINDS = {
    "GRAPHICS": VkQueueFlag.GRAPHICS | VkQueueFlag.COMPUTE,
    "COMPUTE": VkQueueFlag.COMPUTE,
    "TRANSFER": VkQueueFlag.TRANSFER,
}
"""VkQueueFlags that a queue of each kind has at least."""
SURFACE_EXTENSIONS = ("VK_KHR_surface", "VK_EXT_headless_surface")
"""Instance extensions; what a scenario needs beside them are device extensions."""
PRESENTS = ("VK_KHR_swapchain", *SURFACE_EXTENSIONS)
"""What a scenario with a swapchain needs."""
BUFFER_USAGE = {
    "VK_EXT_conditional_rendering": VkBufferUsage.CONDITIONAL_RENDERING_EXT,
    "VK_EXT_transform_feedback": VkBufferUsage.TRANSFORM_FEEDBACK_BUFFER_EXT
    | VkBufferUsage.TRANSFORM_FEEDBACK_COUNTER_BUFFER_EXT,
    "VK_KHR_acceleration_structure": VkBufferUsage.SHADER_DEVICE_ADDRESS
    | VkBufferUsage.ACCELERATION_STRUCTURE_BUILD_INPUT_READ_ONLY_KHR
    | VkBufferUsage.ACCELERATION_STRUCTURE_STORAGE_KHR,
}
"""The uses of buffers that extensions add, as VkBufferUsageFlags."""


def queue_masks(kinds: Sequence[str]) -> list[int]:
    """What a device is asked for: a queue for graphics and compute, then one of each kind."""
    return [QUEUE_KINDS["GRAPHICS"], *(QUEUE_KINDS[kind] for kind in kinds)]


def split_extensions(vk: Any, needed: Iterable[str]) -> tuple[list[str], list[str]]:
    """(instance extensions, device extensions) of what a scenario needs. UserError when the driver lacks one of the
    first."""
    several = list(needed)
    instance = [name for name in several if name in SURFACE_EXTENSIONS]
    if instance:
        offered = {each.extensionName for each in vk.vkEnumerateInstanceExtensionProperties(None)}
        missing = [name for name in instance if name not in offered]
        if missing:
            raise UserError(f"cannot run here: the driver has no {', '.join(missing)}")
    return instance, [name for name in several if name not in SURFACE_EXTENSIONS]


def buffer_usage(extensions: Iterable[str]) -> int:
    """The uses of buffers that these extensions add."""
    usage = 0
    for name in extensions:
        usage |= BUFFER_USAGE.get(name, 0)
    return usage
