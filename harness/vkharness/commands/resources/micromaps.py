"""Micromaps: builds, copies and serialized bytes (VK_EXT_opacity_micromap; specification: "Micromap").

A micromap is a range of its buffer, as an acceleration structure is. Builds of one call are in no order.
Rules: rules.md#a-build-accesses-its-inputs-its-structures-and-its-scratch-memory,
rules.md#builds-of-one-call-are-in-no-order.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.resources.acceleration_structures import (
    SIZES,
    AccelerationStructure,
    accessed_by_host,
    addressed,
    deferred,
    serialized,
    structure,
)
from vkharness.commands.resources.query import wrote_queries
from vkharness.findings import Certainty
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.calls import Call
from vkharness.trace.effects import Access, Effect, StreamEvent, Unmodelled
from vkharness.trace.operation_effects import NextOperation

READ = ACCESS_KIND["SYNC_MICROMAP_BUILD_EXT_MICROMAP_READ_EXT"].index
WRITE = ACCESS_KIND["SYNC_MICROMAP_BUILD_EXT_MICROMAP_WRITE_EXT"].index
INPUT = ACCESS_KIND["SYNC_MICROMAP_BUILD_EXT_SHADER_READ"].index
SERIALIZED_READ = ACCESS_KIND["SYNC_MICROMAP_BUILD_EXT_TRANSFER_READ"].index
SERIALIZED_WRITE = ACCESS_KIND["SYNC_MICROMAP_BUILD_EXT_TRANSFER_WRITE"].index
TRIANGLE_BYTES, HEADER_BYTES = 8, 32
"""Bytes of a VkMicromapTriangleEXT, and of the two UUIDs that serialized bytes begin with."""


class Micromap(AccelerationStructure):
    """A VkMicromapEXT: bytes [offset, offset + size) of a buffer."""


@call("vkCreateMicromapEXT")
def create_micromap(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds a micromap in a range of a buffer."""
    info = call.args["pCreateInfo"]
    objects.add(Micromap(call.args["pMicromap"], info["buffer"], info["offset"], info["size"]))
    return ()


@call("vkDestroyMicromapEXT")
def destroy_micromap(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Removes a micromap. Its bytes stay the buffer's."""
    objects.remove(call.args["micromap"])
    return ()


def _usages(info: dict[str, Any]) -> list[tuple[int, int, int]]:
    """(count, subdivision level, format) of each VkMicromapUsageEXT, given in one of two arrays."""
    listed = info["pUsageCounts"] or info["ppUsageCounts"] or []
    several = [each[0] if isinstance(each, list) and each else each for each in listed]
    return [(each["count"], each["subdivisionLevel"], each["format"]) for each in several]


@call("vkGetMicromapBuildSizesEXT")
def get_build_sizes(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Remembers the scratch size of a build, since the build itself does not state it."""
    info, said = call.args["pBuildInfo"], call.args["pSizeInfo"]
    if said is not None:
        if len(objects.build_sizes) >= SIZES:
            objects.build_sizes.clear()
        size = said["buildScratchSize"]
        objects.build_sizes[_shape(info)] = {(): (size, size)}
    return ()


def _shape(info: dict[str, Any]) -> tuple[Any, ...]:
    return ("micromap", info["type"], info["flags"], *_usages(info))


@command("vkCmdBuildMicromapsEXT")
def build(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes the micromaps and the scratch memory, and reads the inputs."""
    for number, info in enumerate(args["pInfos"] or ()):
        if number:
            yield NextOperation()
        yield from structure(objects, WRITE, info["dstMicromap"])
        sizes = objects.build_sizes.get(_shape(info))
        if sizes is None:
            yield Unmodelled("scratch memory whose size was not asked for")
        elif sizes[()][0]:
            yield from addressed(objects, WRITE, _address(info["scratchData"]), sizes[()][0])
        yield from _inputs(objects, info)


def _inputs(objects: ObjectState, info: dict[str, Any]) -> Iterator[Effect]:
    """The reads of triangles, exactly, and of their data: as many bytes as they have together. The triangles say where
    each lies."""
    usages = _usages(info)
    count = sum(each for each, _, _ in usages)
    if not count:
        return
    length = (count - 1) * info["triangleArrayStride"] + TRIANGLE_BYTES
    yield from addressed(objects, INPUT, _address(info["triangleArray"]), length)
    size = sum(number * -(-(form << 2 * level) // 8) for number, level, form in usages)
    for each in addressed(objects, INPUT, _address(info["data"]), size):
        if isinstance(each, Access):
            each.certainty = Certainty.DECLARED
        yield each


def _address(value: dict[str, Any]) -> int:
    return int(value.get("deviceAddress", 0))


@command("vkCmdCopyMicromapEXT")
def copy(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads one micromap and writes the other, also when it compacts."""
    yield from structure(objects, READ, args["pInfo"]["src"])
    yield from structure(objects, WRITE, args["pInfo"]["dst"])


@command("vkCmdCopyMicromapToMemoryEXT")
def serialize(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads a micromap and writes bytes, of which the header is certain."""
    yield from structure(objects, READ, args["pInfo"]["src"])
    yield from serialized(objects, SERIALIZED_WRITE, args["pInfo"]["dst"], HEADER_BYTES)


@command("vkCmdCopyMemoryToMicromapEXT")
def deserialize(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads bytes, of which the header is certain, and writes a micromap."""
    yield from serialized(objects, SERIALIZED_READ, args["pInfo"]["src"], HEADER_BYTES)
    yield from structure(objects, WRITE, args["pInfo"]["dst"])


@command("vkCmdWriteMicromapsPropertiesEXT")
def write_properties(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the micromaps, and writes one query each."""
    several = args["pMicromaps"] or ()
    for id in several:
        yield from structure(objects, READ, id)
    yield from wrote_queries(objects, args, len(several))


@call("vkBuildMicromapsEXT")
def host_build(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host writes micromaps. All other memory belongs to the program."""
    yield from deferred(call)
    for info in call.args["pInfos"] or ():
        yield from accessed_by_host(objects, call, info["dstMicromap"], True)


@call("vkCopyMicromapEXT")
def host_copy(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host reads one micromap and writes another."""
    yield from deferred(call)
    yield from accessed_by_host(objects, call, call.args["pInfo"]["src"], False)
    yield from accessed_by_host(objects, call, call.args["pInfo"]["dst"], True)


@call("vkCopyMemoryToMicromapEXT")
def host_deserialize(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host writes a micromap."""
    yield from deferred(call)
    yield from accessed_by_host(objects, call, call.args["pInfo"]["dst"], True)


@call("vkWriteMicromapsPropertiesEXT")
def host_write_properties(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """The host reads micromaps."""
    for id in call.args["pMicromaps"] or ():
        yield from accessed_by_host(objects, call, id, False)
