"""Which memory of a stream is not HOST_COHERENT."""

from __future__ import annotations

from typing import Any

from vkharness.spec.enums import VkMemoryProperty
from vkharness.spec.shapes import main_name
from vkharness.trace.calls import Call


class NonCoherent:
    """Which memory objects are host-visible and not coherent, as far as the program asked what memory there is."""

    def __init__(self) -> None:
        self.memories: set[int] = set()
        self._flags: dict[int, list[int]] = {}
        """VkMemoryPropertyFlags of the memory types, by physical device."""
        self._physical: dict[int, int] = {}
        """Physical device by device."""

    def note(self, call: Call) -> None:
        """Takes a call of a trace in, which succeeded."""
        noted = {
            "vkGetPhysicalDeviceMemoryProperties": self.types_told,
            "vkGetPhysicalDeviceMemoryProperties2": self.types_told,
            "vkCreateDevice": self.device_made,
            "vkAllocateMemory": self.allocated,
        }.get(main_name(call.name))
        if noted is not None:
            noted(call.args)

    def types_told(self, args: dict[str, Any]) -> None:
        """vkGetPhysicalDeviceMemoryProperties."""
        found = args["pMemoryProperties"]
        types = found.get("memoryProperties", found)["memoryTypes"]
        self._flags[args["physicalDevice"]] = [each["propertyFlags"] for each in types]

    def device_made(self, args: dict[str, Any]) -> None:
        """vkCreateDevice."""
        self._physical[args["pDevice"]] = args["physicalDevice"]

    def allocated(self, args: dict[str, Any]) -> None:
        """vkAllocateMemory."""
        flags = self._flags.get(self._physical.get(args["device"], 0), [])
        index = args["pAllocateInfo"].get("memoryTypeIndex", len(flags))
        if (
            0 <= index < len(flags)
            and flags[index] & (VkMemoryProperty.HOST_VISIBLE | VkMemoryProperty.HOST_COHERENT)
            == VkMemoryProperty.HOST_VISIBLE
        ):
            self.memories.add(args["pMemory"])
