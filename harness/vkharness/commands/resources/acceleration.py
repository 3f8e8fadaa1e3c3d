"""Commands on acceleration structures, and ray tracing: builds, copies, binding tables.

An acceleration structure is a range of its buffer, and its accesses are accesses of that range.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from struct import Struct
from typing import Any

from vkharness.commands.contents.built_structures import UNKNOWN, StructureCopied, StructuresBuilt
from vkharness.commands.contents.content_steps import Deferred, Outcome, Overwritten, overwritten
from vkharness.commands.contents.known_memory import KnownMemory
from vkharness.commands.drawing.by_contents import INDIRECT_READ
from vkharness.commands.drawing.geometry import geometries
from vkharness.commands.drawing.invocations import UNKNOWN_INVOCATIONS
from vkharness.commands.drawing.pipelines import make_stage
from vkharness.commands.drawing.shaders import shader_effects
from vkharness.commands.handlers import call, command
from vkharness.commands.object_state import CommandBuffer, ObjectState
from vkharness.commands.resources.acceleration_structures import addressed, serialized, structure, structure_place
from vkharness.commands.resources.query import wrote_queries
from vkharness.commands.resources.structure_builds import Build, note, recorded_builds
from vkharness.spec.enums import VkPipelineBindPoint
from vkharness.spec.scopes import ACCESS_KIND
from vkharness.trace.calls import Call
from vkharness.trace.effects import Effect, StreamEvent, Unmodelled
from vkharness.trace.resources import Pipeline, PipelineLayout, Stage

COPY_READ = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_COPY_ACCELERATION_STRUCTURE_READ"].index
COPY_WRITE = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_COPY_ACCELERATION_STRUCTURE_WRITE"].index
SERIALIZED_READ = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_COPY_TRANSFER_READ"].index
SERIALIZED_WRITE = ACCESS_KIND["SYNC_ACCELERATION_STRUCTURE_COPY_TRANSFER_WRITE"].index
TABLE_READ = ACCESS_KIND["SYNC_RAY_TRACING_SHADER_SHADER_BINDING_TABLE_READ"].index

RAYS_BYTES, RAYS2_BYTES, SERIALIZED_HEADER_BYTES = 12, 104, 56
RAYS2 = Struct("<11Q3I4x")
"""A VkTraceRaysIndirectCommand2KHR: address, size and stride of each table (the first has none), and the grid."""
UNKNOWN_TABLES = Unmodelled("shader binding tables named in device memory", open=True)
TABLES = (
    "pRaygenShaderBindingTable",
    "pMissShaderBindingTable",
    "pHitShaderBindingTable",
    "pCallableShaderBindingTable",
)


@command("vkCmdBuildAccelerationStructuresKHR")
def build(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Writes the structures and the scratch memory. Reads the inputs, the source of an update, and the structures
    that instances name."""
    several = zip(args["pInfos"] or (), args["ppBuildRangeInfos"] or (), strict=False)
    return recorded_builds(objects, buffer, [Build(info, tuple(ranges or ())) for info, ranges in several])


@command("vkCmdBuildAccelerationStructuresIndirectKHR")
def build_indirect(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Like `build`, with the build ranges in device memory."""
    strides, most = args["pIndirectStrides"] or (), args["ppMaxPrimitiveCounts"] or ()
    addresses = args["pIndirectDeviceAddresses"] or ()
    several = []
    for at, info in enumerate(args["pInfos"] or ()):
        counts = tuple(most[at] or ()) if at < len(most) else ()
        places = tuple(addresses[at] + number * strides[at] for number in range(len(geometries(info))))
        several.append(Build(info, None, counts, places))
    return recorded_builds(objects, buffer, several)


@command("vkCmdCopyAccelerationStructureKHR")
def copy(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads one structure and writes the other, also when it compacts. The structures to which it leads are not
    read."""
    yield from structure(objects, COPY_READ, args["pInfo"]["src"])
    yield from structure(objects, COPY_WRITE, args["pInfo"]["dst"])
    source, target = (structure_place(objects, args["pInfo"][name]) for name in ("src", "dst"))
    if source is not None and target is not None:
        note(buffer, StructureCopied(source, target))


@command("vkCmdCopyAccelerationStructureToMemoryKHR")
def serialize(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads a structure and writes bytes. Only the header of these is certain, since only the device knows how many
    they are."""
    yield from structure(objects, COPY_READ, args["pInfo"]["src"])
    yield from serialized(objects, SERIALIZED_WRITE, args["pInfo"]["dst"], SERIALIZED_HEADER_BYTES)


@command("vkCmdCopyMemoryToAccelerationStructureKHR")
def deserialize(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads bytes and writes a structure. Only the header is certain, since the number of bytes stands in device
    memory. The structures that the bytes name "do not need to be built at deserialize time"."""
    yield from serialized(objects, SERIALIZED_READ, args["pInfo"]["src"], SERIALIZED_HEADER_BYTES)
    yield from structure(objects, COPY_WRITE, args["pInfo"]["dst"])
    place = structure_place(objects, args["pInfo"]["dst"])
    if place is not None:
        note(buffer, StructuresBuilt(((place, UNKNOWN),)))


@command("vkCmdWriteAccelerationStructuresPropertiesKHR")
def write_properties(objects: ObjectState, _: CommandBuffer, args: dict[str, Any]) -> Iterable[Effect]:
    """Reads the structures, and writes one query each. Barriers of the BUILD stage cover the COPY stage, so that either
    stage will do."""
    several = args["pAccelerationStructures"] or ()
    for id in several:
        yield from structure(objects, COPY_READ, id)
    yield from wrote_queries(objects, args, len(several))


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
    first = tuple(addressed(objects, INDIRECT_READ, args["indirectDeviceAddress"], RAYS2_BYTES))
    shaders = shader_effects(objects, buffer, VkPipelineBindPoint.RAY_TRACING_KHR, UNKNOWN_INVOCATIONS)
    effects = (*first, *shaders, UNKNOWN_TABLES)
    step = TablesInMemory(objects, args["indirectDeviceAddress"], sure=len(first))
    step.writes = overwritten(effects[:-1]) or Overwritten(())
    buffer.defer(step, objects.contents)
    return effects


@dataclass(slots=True, kw_only=True)
class TablesInMemory(Deferred):
    """The binding tables and the size of the grid of vkCmdTraceRaysIndirect2KHR."""

    objects: ObjectState = field(compare=False, repr=False, kw_only=False)
    address: int = field(kw_only=False)

    def outcome(self, memory: KnownMemory) -> Outcome:
        """The reads of the tables, and whether there are rays."""
        found = self.objects.addresses.find(self.address, RAYS2_BYTES)
        data = None if found is None else memory.read(found[0].space, found[0].span(found[1], RAYS2_BYTES))
        if data is None or len(data) != RAYS2_BYTES:
            return Outcome((replace(UNKNOWN_TABLES, open=False),), replaced=1)
        *tables, x, y, z = RAYS2.unpack(data)
        if not (x and y and z):
            return Outcome(runs=False)
        places = (tables[at : at + 2] for at in (0, 2, 5, 8))
        reads = (each for place in places if place[1] for each in addressed(self.objects, TABLE_READ, *place))
        return Outcome(tuple(reads), replaced=1)


def _traced(objects: ObjectState, buffer: CommandBuffer, args: dict[str, Any]) -> Iterator[Effect]:
    for name in TABLES:
        table = args[name]
        if table and table["size"]:
            yield from addressed(objects, TABLE_READ, table["deviceAddress"], table["size"])
    yield from shader_effects(objects, buffer, VkPipelineBindPoint.RAY_TRACING_KHR, UNKNOWN_INVOCATIONS)
