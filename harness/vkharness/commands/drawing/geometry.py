"""The reads of an acceleration structure build: vertices, indices, transforms, boxes and instances, in exact ranges.

Specification: "Acceleration Structures", VkAccelerationStructureBuildRangeInfoKHR.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from vkharness.commands.drawing.vertex import INDEX_BYTES
from vkharness.spec.enums import VkStructureType
from vkharness.spec.formats import format_of
from vkharness.trace.chain import chained, links

MICROMAP = VkStructureType.ACCELERATION_STRUCTURE_TRIANGLES_OPACITY_MICROMAP_EXT

"""Bytes of an index by VkIndexType; VK_INDEX_TYPE_NONE_KHR is not among them."""
TRANSFORM_BYTES, AABB_BYTES, INSTANCE_BYTES, ADDRESS_BYTES = 48, 24, 64, 8

Piece = tuple[int, int]
"""A device address, and a size in bytes."""
Info = dict[str, Any]
RANGE = ("primitiveCount", "primitiveOffset", "firstVertex", "transformOffset")
"""The members of a VkAccelerationStructureBuildRangeInfoKHR, of 4 bytes each."""


class InstanceArray(NamedTuple):
    """The instances of a geometry, or pointers to them: the address of the first, and how many there are."""

    address: int
    number: int
    are_pointers: bool

    @property
    def stride(self) -> int:
        """Bytes from one to the next."""
        return ADDRESS_BYTES if self.are_pointers else INSTANCE_BYTES


def geometries(info: Info) -> list[Info | None]:
    """The geometries of a VkAccelerationStructureBuildGeometryInfoKHR, given in one of two arrays."""
    listed = info["pGeometries"] or info["ppGeometries"] or []
    return [each[0] if isinstance(each, list) and each else each for each in listed]


def shape(info: Info) -> tuple[Any, ...]:
    """The facts on which the sizes of an acceleration structure depend, except for the numbers of primitives and
    addresses."""
    return (info["type"], info["flags"], *(_geometry_shape(each) for each in geometries(info)))


def _geometry_shape(geometry: Info | None) -> tuple[Any, ...]:
    if geometry is None:
        return ()
    triangles = geometry["geometry"].get("triangles") or {}
    parts = tuple(triangles.get(name) for name in ("vertexFormat", "maxVertex", "indexType"))
    return (geometry["geometryType"], geometry["flags"], *parts)


def inputs(geometry: Info | None, build: Info) -> Iterator[Piece | str]:
    """The addresses that the build of one geometry reads, or the name of what is not known.

    `build` is its VkAccelerationStructureBuildRangeInfoKHR.
    """
    if not build["primitiveCount"]:
        return
    data = (geometry or {"geometry": {}})["geometry"]
    if data.get("triangles"):
        yield from _triangles(data["triangles"], build)
    elif data.get("aabbs"):
        stride = data["aabbs"]["stride"]
        size = (build["primitiveCount"] - 1) * stride + AABB_BYTES
        yield (_address(data["aabbs"]["data"]) + build["primitiveOffset"], size)
    elif data.get("instances"):
        array = instance_array(geometry, build)
        assert array is not None
        yield (array.address, array.number * array.stride)
    else:
        yield "the geometry of an acceleration structure build"


def _triangles(data: Info, build: Info) -> Iterator[Piece | str]:
    if any(link["sType"] != MICROMAP for link in links(data)):
        yield "motion or micromaps of triangles in an acceleration structure build"
    yield from _micromap_indices(chained(data, MICROMAP), build)
    count, offset, stride = 3 * build["primitiveCount"], build["primitiveOffset"], data["vertexStride"]
    vertices, size = _address(data["vertexData"]), format_of(data["vertexFormat"]).block_bytes
    first = build["firstVertex"]
    index = INDEX_BYTES.get(data["indexType"])
    if index is not None:
        yield (_address(data["indexData"]) + offset, count * index)
        offset, count = 0, max(0, data["maxVertex"] + 1 - first)
    if count:
        yield (vertices + offset + first * stride, (count - 1) * stride + size)
    if _address(data["transformData"]):
        yield (_address(data["transformData"]) + build["transformOffset"], TRANSFORM_BYTES)


def _micromap_indices(micromap: Info | None, build: Info) -> Iterator[Piece]:
    """The index into a micromap that each triangle has, if they have any."""
    size = INDEX_BYTES.get(micromap["indexType"]) if micromap is not None else None
    if micromap is not None and size is not None:
        yield (_address(micromap["indexBuffer"]), (build["primitiveCount"] - 1) * micromap["indexStride"] + size)


def micromap_of(geometry: Info | None) -> int:
    """The micromap of triangles; 0 where they have none."""
    triangles = (geometry or {"geometry": {}})["geometry"].get("triangles")
    return int((chained(triangles, MICROMAP) or {}).get("micromap", 0))


def has_instances(geometry: Info | None) -> bool:
    """Whether a geometry is an array of instances."""
    return bool(geometry and geometry["geometry"].get("instances"))


def instance_array(geometry: Info | None, build: Info) -> InstanceArray | None:
    """The instances of a geometry; None where it has none."""
    if geometry is None or not has_instances(geometry) or not build["primitiveCount"]:
        return None
    data = geometry["geometry"]["instances"]
    start = _address(data["data"]) + build["primitiveOffset"]
    return InstanceArray(start, build["primitiveCount"], bool(data["arrayOfPointers"]))


def _address(value: Info) -> int:
    return int(value.get("deviceAddress", 0))
