"""Acceleration structures of triangles and of instances, as functions that take the rig or a command buffer."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vkharness.rig.buffers_images import BuffersImages
from vkharness.rig.core import RigBuffer, RigCommandBuffer
from vkharness.spec.enums import VkAccelerationStructureType, VkFormat, VkGeometryType, VkIndexType, VkStructureType

RAYS = (
    "VK_KHR_acceleration_structure",
    "VK_KHR_buffer_device_address",
    "VK_KHR_deferred_host_operations",
    "VK_KHR_ray_query",
)
"""The extensions that a scenario with rays needs."""
TRIANGLE = struct.pack("<9f", 0, 0, 0, 1, 0, 0, 0, 1, 0)
ALIGNED = 256
"""Bytes. Scratch memory begins at multiples of it: no device asks for more
(minAccelerationStructureScratchOffsetAlignment)."""


@dataclass(slots=True)
class RigStructure:
    """An acceleration structure with its device address, and the build that makes it."""

    handle: Any
    address: int
    info: Any
    """VkAccelerationStructureBuildGeometryInfoKHR."""
    primitives: int
    kept: Sequence[Any]
    """The objects in host memory to which `info` points; it must not outlive them."""


def bottom_level(rig: BuffersImages, vertices: RigBuffer) -> RigStructure:
    """A structure of one triangle, of three positions of three floats."""
    ffi = rig.vk.ffi
    geometry = ffi.new(
        "VkAccelerationStructureGeometryKHR *", {"sType": VkStructureType.ACCELERATION_STRUCTURE_GEOMETRY_KHR}
    )
    geometry.geometryType = VkGeometryType.TRIANGLES
    triangles = geometry.geometry.triangles
    triangles.sType = VkStructureType.ACCELERATION_STRUCTURE_GEOMETRY_TRIANGLES_DATA_KHR
    triangles.vertexFormat, triangles.vertexStride = VkFormat.R32G32B32_SFLOAT, 12
    triangles.maxVertex, triangles.indexType = 2, VkIndexType.NONE_KHR
    triangles.vertexData.deviceAddress = _address(rig, vertices)
    return _made(rig, VkAccelerationStructureType.BOTTOM_LEVEL, geometry, 1)


def instance(bottom: RigStructure, shift: float = 0.0) -> bytes:
    """A VkAccelerationStructureInstanceKHR, moved to the right."""
    return struct.pack("<12f2IQ", 1, 0, 0, shift, 0, 1, 0, 0, 0, 0, 1, 0, 0xFF << 24, 0, bottom.address)


def top_level(rig: BuffersImages, instances: RigBuffer, count: int) -> RigStructure:
    """A structure of the instances in a buffer."""
    geometry = rig.vk.ffi.new(
        "VkAccelerationStructureGeometryKHR *", {"sType": VkStructureType.ACCELERATION_STRUCTURE_GEOMETRY_KHR}
    )
    geometry.geometryType = VkGeometryType.INSTANCES
    geometry.geometry.instances.sType = VkStructureType.ACCELERATION_STRUCTURE_GEOMETRY_INSTANCES_DATA_KHR
    geometry.geometry.instances.data.deviceAddress = _address(rig, instances)
    return _made(rig, VkAccelerationStructureType.TOP_LEVEL, geometry, count)


def build(commands: RigCommandBuffer, *structures: RigStructure) -> None:
    """vkCmdBuildAccelerationStructuresKHR of all of them in one call."""
    ffi = commands.vk.ffi
    infos = ffi.new("VkAccelerationStructureBuildGeometryInfoKHR[]", [each.info[0] for each in structures])
    ranges = [
        ffi.new("VkAccelerationStructureBuildRangeInfoKHR *", {"primitiveCount": each.primitives})
        for each in structures
    ]
    several = ffi.new("VkAccelerationStructureBuildRangeInfoKHR *[]", ranges)
    commands.rig.c_function("vkCmdBuildAccelerationStructuresKHR")(commands.handle, len(structures), infos, several)


def structure_address(rig: BuffersImages, handle: Any) -> bytes:
    """The device address of a VkAccelerationStructureKHR, as the 8 bytes that an instance has of it."""
    asked = rig.vk.ffi.new(
        "VkAccelerationStructureDeviceAddressInfoKHR *",
        {"sType": VkStructureType.ACCELERATION_STRUCTURE_DEVICE_ADDRESS_INFO_KHR},
    )
    asked.accelerationStructure = handle
    address = int(rig.c_function("vkGetAccelerationStructureDeviceAddressKHR")(rig.device, asked))
    return address.to_bytes(8, "little")


def _address(rig: BuffersImages, buffer: RigBuffer) -> int:
    low, high = rig.address(buffer)
    return low | high << 32


def _made(rig: BuffersImages, level: int, geometry: Any, count: int) -> RigStructure:
    """The structure of one geometry, in a buffer of its own, with scratch memory for its build."""
    vk, ffi = rig.vk, rig.vk.ffi
    info = ffi.new(
        "VkAccelerationStructureBuildGeometryInfoKHR *",
        {"sType": VkStructureType.ACCELERATION_STRUCTURE_BUILD_GEOMETRY_INFO_KHR, "type": level},
    )
    info.geometryCount, info.pGeometries = 1, geometry
    sizes = ffi.new(
        "VkAccelerationStructureBuildSizesInfoKHR *",
        {"sType": VkStructureType.ACCELERATION_STRUCTURE_BUILD_SIZES_INFO_KHR},
    )
    most = ffi.new("uint32_t[]", [count])
    rig.c_function("vkGetAccelerationStructureBuildSizesKHR")(rig.device, 1, info, most, sizes)
    storage = rig.buffer(sizes.accelerationStructureSize)
    created = vk.VkAccelerationStructureCreateInfoKHR(
        buffer=storage.handle, size=sizes.accelerationStructureSize, type=level
    )
    handle = rig.function("vkCreateAccelerationStructureKHR")(rig.device, created, None)
    rig.own("AccelerationStructureKHR", handle)
    scratch = rig.buffer(sizes.buildScratchSize + ALIGNED)
    info.dstAccelerationStructure = handle
    info.scratchData.deviceAddress = -(-_address(rig, scratch) // ALIGNED) * ALIGNED
    address = int.from_bytes(structure_address(rig, handle), "little")
    return RigStructure(handle, address, info, count, (geometry, storage, scratch))
