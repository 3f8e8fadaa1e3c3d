"""Streams with acceleration structures, written by hand."""

from __future__ import annotations

import struct as packing
from typing import Any

from tests.support.interpreted import InterpretedStream
from tests.support.streams import struct
from vkharness.spec.enums import VkFormat, VkGeometryType, VkIndexType

BASE = 0x7F00_0000_0000
"""Device address of the first buffer that is stream of; the next ones follow at a distance."""
TRIANGLES, AABBS, INSTANCES = VkGeometryType.TRIANGLES, VkGeometryType.AABBS, VkGeometryType.INSTANCES
R32G32B32, UINT16, NO_INDEX = VkFormat.R32G32B32_SFLOAT, VkIndexType.UINT16, VkIndexType.NONE_KHR


class Rays(InterpretedStream):
    """A stream with one structure of 1,024 bytes at offset 256 of its buffer, an input buffer and scratch memory."""

    def __init__(self) -> None:
        super().__init__()
        self._address = BASE
        self.storage, self.data, self.scratch = self.buffer(4096), self.buffer(4096), self.buffer(4096)
        self.data_at, self.scratch_at = self.addressed(self.data), self.addressed(self.scratch)
        self.structure = self.made(256)
        self.begin()

    def addressed(self, buffer: int) -> int:
        """Tells of the buffer's device address."""
        self.call("vkGetBufferDeviceAddress", pInfo=struct("VkBufferDeviceAddressInfo", buffer=buffer))
        self._address += 1 << 20
        self.did(self._address)
        return self._address

    def made(self, offset: int) -> int:
        """Another structure."""
        info = struct("VkAccelerationStructureCreateInfoKHR", buffer=self.storage, offset=offset, size=1024)
        return self.make("vkCreateAccelerationStructureKHR", "pAccelerationStructure", info)

    def info(self, *geometries: dict[str, Any], **more: Any) -> dict[str, Any]:
        """VkAccelerationStructureBuildGeometryInfoKHR of a build."""
        made = {"dstAccelerationStructure": self.structure, "scratchData": {"deviceAddress": self.scratch_at}}
        return struct(
            "VkAccelerationStructureBuildGeometryInfoKHR", geometryCount=len(geometries),
            pGeometries=list(geometries), **{**made, **more},
        )  # fmt: skip

    def sizes(self, info: dict[str, Any], counts: list[int], build: int, update: int = 0) -> None:
        """Asks the driver for the sizes of a build."""
        said = struct("VkAccelerationStructureBuildSizesInfoKHR", buildScratchSize=build, updateScratchSize=update)
        self.call(
            "vkGetAccelerationStructureBuildSizesKHR", pBuildInfo=info, pMaxPrimitiveCounts=counts, pSizeInfo=said
        )


def at(address: int) -> dict[str, int]:
    return {"deviceAddress": address}


def triangles(vertices: int, stride: int = 12, indices: int = 0, last: int = 99, transform: int = 0) -> dict[str, Any]:
    data = struct(
        "VkAccelerationStructureGeometryTrianglesDataKHR",
        vertexFormat=R32G32B32, vertexData=at(vertices), vertexStride=stride, maxVertex=last,
        indexType=UINT16 if indices else NO_INDEX, indexData=at(indices), transformData=at(transform),
    )  # fmt: skip
    return geometry(TRIANGLES, triangles=data)


def geometry(kind: int, **data: dict[str, Any]) -> dict[str, Any]:
    return struct("VkAccelerationStructureGeometryKHR", geometryType=kind, geometry=data)


def ranges(count: int, offset: int = 0, first: int = 0, transform: int = 0) -> list[dict[str, int]]:
    return [struct("VkAccelerationStructureBuildRangeInfoKHR", primitiveCount=count, primitiveOffset=offset,
                   firstVertex=first, transformOffset=transform)]  # fmt: skip


AS_READ, AS_WRITE, BUILD = 0x200000, 0x400000, 0x2000000
"""VK_ACCESS_ACCELERATION_STRUCTURE_READ_BIT_KHR, WRITE_BIT_KHR, and the stage of builds."""
COMPUTE_STAGE, SHADER_READ, SHADER_WRITE = 0x800, 0x20, 0x40
TOP, BOTTOM = 0, 1


class Scene(Rays):
    """A top level structure in a buffer of its own, and bottom level structures with addresses, each in its own."""

    def __init__(self) -> None:
        super().__init__()
        self.named: dict[int, int] = {}
        """The addresses of structures."""
        self.homes: dict[int, int] = {}
        """Their buffers."""
        self.instances, self.instance_memory = self._visible(1 << 16)
        self.instances_at = self.addressed(self.instances)
        self.top = self.add(TOP)
        self.one, self.two = self.add(), self.add()
        for each in (self.info(triangles(0)), self.info(self.array())):
            self.sizes(each, [1 << 20], 0)

    def _visible(self, size: int) -> tuple[int, int]:
        memory = self.memory(size)
        return self.buffer(size, memory), memory

    def add(self, type: int = BOTTOM) -> int:
        """One more structure, with its address."""
        storage = self.buffer(1024)
        info = struct("VkAccelerationStructureCreateInfoKHR", buffer=storage, size=1024, type=type)
        made = self.make("vkCreateAccelerationStructureKHR", "pAccelerationStructure", info)
        asked = struct("VkAccelerationStructureDeviceAddressInfoKHR", accelerationStructure=made)
        self.call("vkGetAccelerationStructureDeviceAddressKHR", pInfo=asked)
        self._address += 1 << 20
        self.did(self._address)
        self.named[made], self.homes[made] = self._address, storage
        return made

    def array(self, pointers: bool = False, offset: int = 0) -> dict[str, Any]:
        """The instances as a geometry."""
        at_ = at(self.instances_at + offset)
        data = struct("VkAccelerationStructureGeometryInstancesDataKHR", data=at_, arrayOfPointers=int(pointers))
        return geometry(INSTANCES, instances=data)

    def bottom(self, *structures: int, **more: Any) -> int:
        """Builds bottom level structures, in one call."""
        infos = [
            self.info(triangles(self.data_at), type=BOTTOM, **{"dstAccelerationStructure": each, **more})
            for each in structures
        ]
        for info in infos:
            self.sizes(info, [1], 0)
        return self.cmd("BuildAccelerationStructuresKHR", pInfos=infos, ppBuildRangeInfos=[ranges(1)] * len(infos))

    def top_info(self, pointers: bool = False, offset: int = 0, **more: Any) -> dict[str, Any]:
        """The build of the top level structure."""
        info = self.info(self.array(pointers, offset), type=TOP, **{"dstAccelerationStructure": self.top, **more})
        self.sizes(info, [1 << 20], 0)
        return info

    def build_top(self, count: int, pointers: bool = False, offset: int = 0, **more: Any) -> int:
        """Builds the top level structure of the first instances."""
        info = self.top_info(pointers, offset, **more)
        return self.cmd("BuildAccelerationStructuresKHR", pInfos=[info], ppBuildRangeInfos=[ranges(count)])

    def instance(self, number: int, structure: int | None, offset: int = 0) -> int:
        """The host writes an instance of a structure, of an unknown one for None or of none for 0."""
        named = self.named.get(structure or 0, 0) if structure is not None else 0xABCDEF00
        return self.host_write(self.instance_memory, offset + 64 * number, bytes(56) + packing.pack("<Q", named))

    def after_builds(self, source: int = AS_WRITE, target: int = AS_READ | AS_WRITE, until: int = BUILD) -> int:
        """A barrier from builds."""
        one = struct("VkMemoryBarrier", srcAccessMask=source, dstAccessMask=target)
        return self.cmd("PipelineBarrier", srcStageMask=BUILD, dstStageMask=until, pMemoryBarriers=[one])
