"""Commands on acceleration structures, and ray tracing: builds, copies, binding tables.

An acceleration structure is a range of its buffer, and its accesses are accesses of that range. The bottom level
structures to which a top level structure leads stand in device memory and are not followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from vkharness.commands.drawing.by_contents import INDIRECT_READ
from vkharness.commands.drawing.geometry import geometries, inputs
from vkharness.commands.drawing.invocations import UNKNOWN_INVOCATIONS
from vkharness.commands.drawing.pipelines import make_stage
from vkharness.commands.drawing.shaders import shader_effects
from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.resources.acceleration_structures import addressed, scratch_bytes, structure
from vkharness.spec.enums import VkBuildAccelerationStructureMode, VkPipelineBindPoint
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.calls import Call
from vkharness.trace.effects import Effect, StreamEvent, Unmodelled
from vkharness.trace.resources import Pipeline, PipelineLayout, Stage

BUILD_READ = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_BUILD_ACCELERATION_STRUCTURE_READ"].index
BUILD_WRITE = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_BUILD_ACCELERATION_STRUCTURE_WRITE"].index
BUILD_INPUT = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_BUILD_SHADER_READ"].index
BUILD_INDIRECT = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_BUILD_INDIRECT_COMMAND_READ"].index
COPY_READ = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_COPY_ACCELERATION_STRUCTURE_READ"].index
COPY_WRITE = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_COPY_ACCELERATION_STRUCTURE_WRITE"].index
SERIALIZED_READ = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_COPY_TRANSFER_READ"].index
SERIALIZED_WRITE = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_COPY_TRANSFER_WRITE"].index
TABLE_READ = ACCESS_KIND["SYNC_RAY_TRACING_SHADER_SHADER_BINDING_TABLE_READ"].index

RANGE_BYTES, RAYS_BYTES, RAYS2_BYTES, SERIALIZED_HEADER_BYTES = 16, 12, 104, 56
TABLES = (
    "pRaygenShaderBindingTable",
    "pMissShaderBindingTable",
    "pHitShaderBindingTable",
    "pCallableShaderBindingTable",
)


@command("vkCmdBuildAccelerationStructuresKHR")
def build(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes the structures and the scratch memory. Reads the inputs, and the source of an update."""
    for info, ranges in zip(args["pInfos"] or (), args["ppBuildRangeInfos"] or (), strict=False):
        yield from _built(objects, info, [each["primitiveCount"] for each in ranges or ()])
        for geometry, each in zip(geometries(info), ranges or (), strict=False):
            for piece in inputs(geometry, each):
                if isinstance(piece, str):
                    yield Unmodelled(piece)
                else:
                    yield from addressed(objects, BUILD_INPUT, *piece)


@command("vkCmdBuildAccelerationStructuresIndirectKHR")
def build_indirect(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the build ranges from device memory, so that the inputs cannot be known."""
    strides, counts = args["pIndirectStrides"] or (), args["ppMaxPrimitiveCounts"] or ()
    for at, info in enumerate(args["pInfos"] or ()):
        yield from _built(objects, info, list(counts[at] or ()) if at < len(counts) else [])
        for geometry in range(len(geometries(info))):
            address = args["pIndirectDeviceAddresses"][at] + geometry * strides[at]
            yield from addressed(objects, BUILD_INDIRECT, address, RANGE_BYTES)
        yield Unmodelled("inputs of an indirect acceleration structure build")


def _built(objects: ObjectState, info: dict[str, Any], counts: list[int]) -> Iterator[Effect]:
    """The accesses of the structures of one build. For an update in place the write stands for the read, too."""
    update = info["mode"] == VkBuildAccelerationStructureMode.UPDATE
    yield from structure(objects, BUILD_WRITE, info["dstAccelerationStructure"])
    if update and info["srcAccelerationStructure"] != info["dstAccelerationStructure"]:
        yield from structure(objects, BUILD_READ, info["srcAccelerationStructure"])
    size = scratch_bytes(objects, info, counts, update)
    if size is None:
        yield Unmodelled("scratch memory whose size was not asked for")
    elif size:
        yield from addressed(objects, BUILD_WRITE, info["scratchData"].get("deviceAddress", 0), size)


@command("vkCmdCopyAccelerationStructureKHR")
def copy(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads one structure and writes the other, also when it compacts."""
    yield from structure(objects, COPY_READ, args["pInfo"]["src"])
    yield from structure(objects, COPY_WRITE, args["pInfo"]["dst"])


@command("vkCmdCopyAccelerationStructureToMemoryKHR")
def serialize(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads a structure and writes bytes. Only the header of these is certain, since only the device knows how many
    they are."""
    yield from structure(objects, COPY_READ, args["pInfo"]["src"])
    yield from _serialized(objects, SERIALIZED_WRITE, args["pInfo"]["dst"])


@command("vkCmdCopyMemoryToAccelerationStructureKHR")
def deserialize(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads bytes and writes a structure. Only the header is certain, since the number of bytes stands in device
    memory."""
    yield from _serialized(objects, SERIALIZED_READ, args["pInfo"]["src"])
    yield from structure(objects, COPY_WRITE, args["pInfo"]["dst"])


def _serialized(objects: ObjectState, access_kind: int, place: dict[str, Any]) -> Iterator[Effect]:
    yield from addressed(objects, access_kind, place.get("deviceAddress", 0), SERIALIZED_HEADER_BYTES)
    yield Unmodelled("serialized acceleration structures, beyond the header")


@command("vkCmdWriteAccelerationStructuresPropertiesKHR")
def write_properties(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the structures. Barriers of the BUILD stage cover the COPY stage, so that either stage will do."""
    for id in args["pAccelerationStructures"] or ():
        yield from structure(objects, COPY_READ, id)


@call("vkCreateRayTracingPipelinesKHR")
def create_ray_tracing_pipelines(objects: ObjectState, call: Call) -> Iterable[StreamEvent]:
    """Adds pipelines with all stages, those of libraries included, since the binding tables decide which
    of them run."""
    for id, info in zip(call.args["pPipelines"] or (), call.args["pCreateInfos"] or (), strict=False):
        stages = [make_stage(objects, each) for each in info["pStages"] or ()]
        found: list[Stage] = [stage for stage in stages if stage is not None]
        libraries = [objects.get(Pipeline, each) for each in (info["pLibraryInfo"] or {}).get("pLibraries") or ()]
        for library in libraries:
            found += library.stages if library is not None else ()
        complete = None not in stages and None not in libraries
        layout = objects.get(PipelineLayout, info["layout"])
        objects.add(Pipeline(id, VkPipelineBindPoint.RAY_TRACING_KHR, layout, tuple(found) if complete else ()))
    return ()


@command("vkCmdTraceRaysKHR")
def trace_rays(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the binding tables and runs the shaders. A trace without rays runs nothing."""
    if args["width"] and args["height"] and args["depth"]:
        yield from _traced(objects, buffer, args)


@command("vkCmdTraceRaysIndirectKHR")
def trace_rays_indirect(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Like `trace_rays`, with the size of the grid in device memory."""
    yield from addressed(objects, INDIRECT_READ, args["indirectDeviceAddress"], RAYS_BYTES)
    yield from _traced(objects, buffer, args)


@command("vkCmdTraceRaysIndirect2KHR")
def trace_rays_indirect2(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the places of the binding tables, too, from device memory."""
    yield from addressed(objects, INDIRECT_READ, args["indirectDeviceAddress"], RAYS2_BYTES)
    yield Unmodelled("shader binding tables named in device memory")
    yield from shader_effects(objects, buffer, VkPipelineBindPoint.RAY_TRACING_KHR, UNKNOWN_INVOCATIONS)


def _traced(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterator[Effect]:
    for name in TABLES:
        table = args[name]
        if table and table["size"]:
            yield from addressed(objects, TABLE_READ, table["deviceAddress"], table["size"])
    yield from shader_effects(objects, buffer, VkPipelineBindPoint.RAY_TRACING_KHR, UNKNOWN_INVOCATIONS)
