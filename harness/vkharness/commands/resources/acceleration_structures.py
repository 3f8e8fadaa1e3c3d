"""Acceleration structures and buffer device addresses as objects, and the host's calls on them.

Specification: "Acceleration Structures"; VK_KHR_buffer_device_address.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from vkharness.commands.contents.built_structures import ANYWHERE, NOWHERE, UNKNOWN, Built, StructurePlace
from vkharness.commands.contents.content_steps import Overwritten
from vkharness.commands.drawing.geometry import geometries, has_instances, shape
from vkharness.commands.handlers import call
from vkharness.commands.object_state import ObjectState
from vkharness.findings import Certainty
from vkharness.spec.enums import VK_WHOLE_SIZE, VkAccelerationStructureType, VkBuildAccelerationStructureMode
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Effect, StreamEvent, Unmodelled, UnmodelledCall
from vkharness.trace.host_effects import HostAccess
from vkharness.trace.resources import Buffer

SIZES = 4096
"""The most scratch sizes remembered for one shape of build, and the most shapes."""


@dataclass(slots=True)
class AccelerationStructure:
    """A VkAccelerationStructureKHR: bytes [offset, offset + size) of a buffer."""

    id: int
    buffer: int
    offset: int
    size: int


@call("vkCreateAccelerationStructureKHR", "vkCreateAccelerationStructure2KHR")
def create_structure(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds an acceleration structure in a range of a buffer, or of device addresses. From now on contents are followed,
    since instances in memory name structures."""
    info = call.args["pCreateInfo"]
    id = call.args["pAccelerationStructure"]
    objects.contents.needed()
    objects.contents.has_structures = True
    if "addressRange" in info:
        place = info["addressRange"]
        found = objects.addresses.find(place["address"], place["size"])
        if found is None:
            return ()  # whoever uses it says that its creation was not seen
        objects.add(AccelerationStructure(id, found[0].id, found[1], place["size"]))
    else:
        objects.add(AccelerationStructure(id, info["buffer"], info["offset"], info["size"]))
    _forget(objects, id)
    return ()


@call("vkDestroyAccelerationStructureKHR")
def destroy_structure(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes an acceleration structure. Its bytes stay the buffer's."""
    _forget(objects, call.args["accelerationStructure"])
    objects.remove(call.args["accelerationStructure"])
    return ()


def _forget(objects: ObjectState, id: int) -> None:
    place = structure_place(objects, id)
    if place is not None:
        objects.contents.memory.structures.destroy(place)


@call("vkGetAccelerationStructureDeviceAddressKHR")
def get_structure_address(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the address by which instances name a structure."""
    place = structure_place(objects, call.args["pInfo"]["accelerationStructure"])
    if place is not None and call.result:
        objects.contents.memory.structures.addresses[call.result] = place
    return ()


@call("vkGetBufferDeviceAddress")
def get_buffer_address(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the address that the call returned. Traces of some tools lack it, so that addresses stay unknown."""
    buffer = objects.buffer(call.args["pInfo"]["buffer"])
    if buffer is not None and call.result and objects.addresses.add(call.result, buffer):
        objects.readdress()
    return ()


@call("vkGetAccelerationStructureBuildSizesKHR")
def get_build_sizes(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the scratch size of a build, since the build itself does not state it."""
    info, said = call.args["pBuildInfo"], call.args["pSizeInfo"]
    if said is not None:
        if len(objects.build_sizes) >= SIZES:
            objects.build_sizes.clear()
        by_counts = objects.build_sizes.setdefault(shape(info), {})
        if len(by_counts) >= SIZES:
            by_counts.clear()
        by_counts[tuple(call.args["pMaxPrimitiveCounts"] or ())] = (said["buildScratchSize"], said["updateScratchSize"])
    return ()


def scratch_bytes(objects: ObjectState, info: dict[str, Any], counts: list[int], update: bool) -> int | None:
    """Scratch bytes of a build of so many primitives: what was said for the fewest primitives that suffice.

    None when the program never asked.
    """
    fitting = [
        said[update]
        for most, said in objects.build_sizes.get(shape(info), {}).items()
        if len(most) == len(counts) and all(count <= limit for count, limit in zip(counts, most, strict=True))
    ]
    return min(fitting, default=None)


def place(objects: ObjectState, id: int) -> tuple[Buffer, tuple[int, int]] | None:
    """The buffer of an acceleration structure and its addresses there; None when it is unknown."""
    held = objects.get(AccelerationStructure, id)
    buffer = objects.buffer(held.buffer) if held is not None else None
    if held is None or buffer is None:
        return None
    return buffer, buffer.span(held.offset, held.size)


def structure_place(objects: ObjectState, id: int) -> StructurePlace | None:
    """The memory of an acceleration structure; None when it is unknown."""
    found = place(objects, id)
    return None if found is None else StructurePlace(found[0].space, found[1], found[0].id)


def structure(objects: ObjectState, access_kind: int, id: int) -> Iterator[Effect]:
    """An access of a whole acceleration structure."""
    found = place(objects, id)
    if found is None:
        yield Unmodelled("an acceleration structure whose creation was not seen")
        return
    buffer, span = found
    if span[0] < span[1]:
        yield Access(access_kind, buffer.space, (span,), buffer.id)


def addressed(objects: ObjectState, access_kind: int, address: int, size: int) -> Iterator[Effect]:
    """An access of bytes at a device address. An address that vkGetBufferDeviceAddress never returned
    is not modelled."""
    found = objects.addresses.find(address)
    if found is None:
        yield Unmodelled("a device address of no known buffer")
        return
    buffer, offset = found
    yield Access(access_kind, buffer.space, (buffer.span(offset, size),), buffer.id)


def serialized(objects: ObjectState, access_kind: int, place: dict[str, Any], header: int) -> Iterator[Effect]:
    """An access of serialized bytes: of the header for sure. Only the device knows how many more there are. Where what
    could be reached counts, these are all up to the end of the buffer."""
    address = int(place.get("deviceAddress", 0))
    yield from addressed(objects, access_kind, address, header)
    found = objects.addresses.find(address)
    if found is None or not objects.contents.bounds:
        yield Unmodelled("serialized acceleration structures and micromaps, beyond the header")
        return
    buffer, offset = found
    rest = buffer.span(offset + header, VK_WHOLE_SIZE)
    if rest[0] < rest[1]:
        yield Access(access_kind, buffer.space, (rest,), buffer.id, certainty=Certainty.BOUND)


@call("vkBuildAccelerationStructuresKHR")
def host_build(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host writes the structures and reads the sources of updates. All other memory belongs to the program, so
    that it is not known which structures instances name."""
    yield from deferred(call)
    for info in call.args["pInfos"] or ():
        if info["mode"] == VkBuildAccelerationStructureMode.UPDATE:
            yield from accessed_by_host(objects, call, info["srcAccelerationStructure"], False)
        yield from accessed_by_host(objects, call, info["dstAccelerationStructure"], True)
        top, named = info["type"] == VkAccelerationStructureType.TOP_LEVEL, any(map(has_instances, geometries(info)))
        if named:
            yield UnmodelledCall(f"{call.name}, the structures that instances in memory of the host name")
        _host_built(objects, info["dstAccelerationStructure"], Built(not top, ANYWHERE if named else NOWHERE))


@call("vkCopyAccelerationStructureKHR")
def host_copy(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host reads one structure and writes another."""
    yield from deferred(call)
    yield from accessed_by_host(objects, call, call.args["pInfo"]["src"], False)
    yield from accessed_by_host(objects, call, call.args["pInfo"]["dst"], True)
    source, target = (structure_place(objects, call.args["pInfo"][name]) for name in ("src", "dst"))
    if source is not None and target is not None:
        objects.contents.memory.structures.copy(source, target)


@call("vkCopyAccelerationStructureToMemoryKHR", "vkCopyMicromapToMemoryEXT")
def host_serialize(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host reads a structure, or a micromap, which is one range of a buffer as well."""
    yield from deferred(call)
    yield from accessed_by_host(objects, call, call.args["pInfo"]["src"], False)


@call("vkCopyMemoryToAccelerationStructureKHR")
def host_deserialize(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host writes a structure."""
    yield from deferred(call)
    yield from accessed_by_host(objects, call, call.args["pInfo"]["dst"], True)
    _host_built(objects, call.args["pInfo"]["dst"], UNKNOWN)


@call("vkWriteAccelerationStructuresPropertiesKHR")
def host_write_properties(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host reads structures."""
    for id in call.args["pAccelerationStructures"] or ():
        yield from accessed_by_host(objects, call, id, False)


def deferred(call: Call) -> Iterator[StreamEvent]:
    """Whether a call is deferred: it goes on after its return, in the threads that join it."""
    if call.args["deferredOperation"]:
        yield UnmodelledCall(f"{call.name}, deferred")


def _host_built(objects: ObjectState, id: int, built: Built) -> None:
    place = structure_place(objects, id)
    if place is not None:
        objects.contents.memory.structures.build(place, built)


def accessed_by_host(objects: ObjectState, call: Call, id: int, write: bool) -> Iterator[StreamEvent]:
    """The host reads or writes a structure or a micromap."""
    found = place(objects, id)
    if found is None:
        yield UnmodelledCall(f"{call.name} of an acceleration structure whose creation was not seen")
        return
    buffer, span = found
    if write:
        objects.contents.change((Overwritten(((buffer.space, span),)),))
    if span[0] < span[1]:
        yield HostAccess(call.index, call.name, call.site, buffer.space, (span,), buffer.id, write=write)
