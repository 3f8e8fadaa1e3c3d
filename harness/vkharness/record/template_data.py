"""Reads what an application hands to a descriptor update template, by the template's entries.

(Specification: "Descriptor Update Templates".) Elements of an entry lie `stride` bytes apart from `offset`; each is
what a VkWriteDescriptorSet of that descriptor type would point to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vkharness.record import struct_layout as layout
from vkharness.spec.enums import VkDescriptorType, VkDescriptorUpdateTemplateType, VkStructureType
from vkharness.spec.followed import BUFFERS, IMAGES, TEXEL_BUFFERS
from vkharness.trace.templates import BIND_POINT, PUSH_INFO, WRITES


class Templates:
    """The templates of one session by id.

    `read_struct` reads the struct of a name at an address, `table` gives the ids of a type's handles.
    """

    def __init__(
        self,
        read_struct: Callable[[str, int], dict[str, Any]],
        table: Callable[[str], Mapping[int, int]],
        memory: layout.ReadMemory = layout.OWN_MEMORY,
    ) -> None:
        self._read_struct, self._table, self._memory = read_struct, table, memory
        self._infos: dict[int, dict[str, Any]] = {}

    def created(self, args: dict[str, Any]) -> None:
        """Takes the arguments of a vkCreateDescriptorUpdateTemplate that succeeded."""
        self._infos[args["pDescriptorUpdateTemplate"]] = args["pCreateInfo"]

    def destroyed(self, template: int) -> None:
        """Forgets a template; 0 is ignored."""
        self._infos.pop(template, None)

    def read(self, args: dict[str, Any], data: int) -> dict[str, Any]:
        """Our keys for the arguments of a call that applies a template to memory at `data`; {} for an unknown one.

        `BufferError` where an element of the template has no memory: the call cannot be read.
        """
        info = self._infos.get(args["descriptorUpdateTemplate"])
        if info is None or not data:
            return {}
        target = args.get("descriptorSet", 0)
        writes = [self._write(target, entry, data) for entry in info["pDescriptorUpdateEntries"] or ()]
        if info["templateType"] == VkDescriptorUpdateTemplateType.PUSH_DESCRIPTORS:
            return {BIND_POINT: info["pipelineBindPoint"], WRITES: writes}
        return {WRITES: writes}

    def read_pushed(self, args: dict[str, Any], info: int) -> dict[str, Any]:
        """The same for a call with its parameters in a VkPushDescriptorSetWithTemplateInfo that lies at `info`."""
        if not info:
            return {}
        offset = layout.fields_of("VkPushDescriptorSetWithTemplateInfoKHR")["pData"].offset
        return self.read(args[PUSH_INFO], self._memory.one("Q", info + offset))

    def _write(self, target: int, entry: dict[str, Any], data: int) -> dict[str, Any]:
        kind, count = entry["descriptorType"], entry["descriptorCount"]
        first, stride = data + entry["offset"], entry["stride"]

        def places(size: int) -> Iterator[int]:
            for at in range(count):
                self._memory.there(first + at * stride, size, "pData")
                yield first + at * stride

        chain, images, buffers, views = None, None, None, None
        if kind in IMAGES:
            images = self._structs("VkDescriptorImageInfo", places)
        elif kind in BUFFERS:
            buffers = self._structs("VkDescriptorBufferInfo", places)
        elif kind in TEXEL_BUFFERS:
            views = self._handles("VkBufferView", places)
        elif kind == VkDescriptorType.INLINE_UNIFORM_BLOCK:
            chain = {
                "sType": VkStructureType.WRITE_DESCRIPTOR_SET_INLINE_UNIFORM_BLOCK,
                "pNext": None,
                "dataSize": count,
            }
            self._memory.there(first, count, "pData")
            chain["pData"] = self._memory.blob(first, count)
        elif kind == VkDescriptorType.ACCELERATION_STRUCTURE_KHR:
            handles = self._handles("VkAccelerationStructureKHR", places)
            chain = {
                "sType": VkStructureType.WRITE_DESCRIPTOR_SET_ACCELERATION_STRUCTURE_KHR,
                "pNext": None,
                "accelerationStructureCount": count,
            }
            chain["pAccelerationStructures"] = handles
        return {
            "sType": VkStructureType.WRITE_DESCRIPTOR_SET,
            "pNext": chain,
            "dstSet": target,
            "dstBinding": entry["dstBinding"],
            "dstArrayElement": entry["dstArrayElement"],
            "descriptorCount": count,
            "descriptorType": kind,
            "pImageInfo": images,
            "pBufferInfo": buffers,
            "pTexelBufferView": views,
        }

    def _structs(self, kind: str, places: Callable[[int], Iterator[int]]) -> list[dict[str, Any]]:
        return [self._read_struct(kind, address) for address in places(layout.size_of(kind))]

    def _handles(self, kind: str, places: Callable[[int], Iterator[int]]) -> list[int]:
        table = self._table(kind)
        return [table[self._memory.one("Q", address)] for address in places(layout.size_of(kind))]


def hooks(templates: Templates) -> dict[str, Callable[..., Any]]:
    """Functions that generated code calls, by the names that it uses."""
    return {
        "template_created": templates.created,
        "template_destroyed": templates.destroyed,
        "template_data": templates.read,
        "pushed_data": templates.read_pushed,
    }
