"""Acceleration structures, device addresses and ray tracing: exact accesses, and names for what cannot be known."""

from __future__ import annotations

import random
import struct as packing
from dataclasses import replace
from typing import Any

import pytest

from tests.support.addressed import barrier
from tests.support.interpreted import short
from tests.support.rays import AABBS, INSTANCES, TRIANGLES, Rays, at, geometry, ranges, triangles
from tests.support.streams import struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.commands.interpret import Interpreter
from vkharness.commands.resources.acceleration import UNKNOWN_TABLES
from vkharness.commands.resources.addresses import PRUNE_AT, Addresses
from vkharness.spec.enums import VkQueryType
from vkharness.trace.effects import Access, Submitted, Unmodelled, UnmodelledCall
from vkharness.trace.host_effects import HostAccess
from vkharness.trace.resources import Buffer

BUILD, COPY = "ACCELERATION_STRUCTURE_BUILD_", "ACCELERATION_STRUCTURE_COPY_"
AS_READ, AS_WRITE = "ACCELERATION_STRUCTURE_READ", "ACCELERATION_STRUCTURE_WRITE"


@pytest.fixture
def rays() -> Rays:
    return Rays()


def built(rays: Rays, shape: dict[str, Any], build: list[dict[str, int]]) -> list[tuple[str, int, Any]]:
    """The accesses of a build beside those of the structure and of the scratch memory."""
    info = rays.info(shape)
    rays.sizes(info, [1000], 512)
    effects = rays.effects("BuildAccelerationStructuresKHR", infoCount=1, pInfos=[info], ppBuildRangeInfos=[build])
    first, second, *rest = short(effects)
    assert first == (BUILD + AS_WRITE, rays.storage, ((256, 1280),))
    assert second == (BUILD + AS_WRITE, rays.scratch, ((0, 512),))
    assert all(access == BUILD + "SHADER_READ" and buffer == rays.data for access, buffer, _ in rest)
    return rest


def spans(found: list[tuple[str, int, Any]]) -> list[tuple[int, int]]:
    return [span for _, _, each in found for span in each]


def test_triangles_without_indices(rays: Rays) -> None:
    """Three vertices a triangle, from the first vertex on; the stride after the last one is not read."""
    found = built(rays, triangles(rays.data_at + 64, stride=16), ranges(2, offset=32, first=1))
    assert spans(found) == [(64 + 32 + 16, 64 + 32 + 16 + 5 * 16 + 12)]


def test_triangles_with_indices_and_a_transform(rays: Rays) -> None:
    """The vertices that indices can reach end with maxVertex; the offset is the indices'."""
    shape = triangles(rays.data_at, indices=rays.data_at + 2048, last=9, transform=rays.data_at + 3000)
    found = built(rays, shape, ranges(4, offset=6, first=2, transform=48))
    assert spans(found) == [(2054, 2054 + 24), (24, 24 + 7 * 12 + 12), (3048, 3096)]


def test_boxes(rays: Rays) -> None:
    data = struct("VkAccelerationStructureGeometryAabbsDataKHR", data=at(rays.data_at), stride=32)
    assert spans(built(rays, geometry(AABBS, aabbs=data), ranges(3, offset=8))) == [(8, 8 + 2 * 32 + 24)]


def test_instances(rays: Rays) -> None:
    data = struct("VkAccelerationStructureGeometryInstancesDataKHR", data=at(rays.data_at + 16))
    assert spans(built(rays, geometry(INSTANCES, instances=data), ranges(2))) == [(16, 144)]


def test_no_primitives_read_nothing(rays: Rays) -> None:
    assert built(rays, triangles(0), ranges(0)) == []


def test_geometry_that_a_trace_lacks_is_named(rays: Rays) -> None:
    info = rays.info(geometry(TRIANGLES))
    rays.sizes(info, [1], 0)
    effects = rays.effects("BuildAccelerationStructuresKHR", pInfos=[info], ppBuildRangeInfos=[ranges(1)])
    assert effects[1:] == (Unmodelled("the geometry of an acceleration structure build"),)


def test_geometries_may_come_as_an_array_of_pointers(rays: Rays) -> None:
    info = rays.info(triangles(rays.data_at))
    info["pGeometries"], info["ppGeometries"] = None, info["pGeometries"]
    rays.sizes(info, [1], 0)
    effects = rays.effects("BuildAccelerationStructuresKHR", pInfos=[info], ppBuildRangeInfos=[ranges(1)])
    assert short(effects)[1] == (BUILD + "SHADER_READ", rays.data, ((0, 36),))


@pytest.mark.parametrize(("count", "size"), [(5, 100), (10, 100), (11, 200)])
def test_scratch_memory_is_as_large_as_the_driver_said(rays: Rays, count: int, size: int) -> None:
    """For the fewest primitives asked for that suffice; addresses do not matter, and neither do other shapes."""
    rays.sizes(rays.info(triangles(0)), [20], 200)
    rays.sizes(rays.info(triangles(0)), [10], 100)
    rays.sizes(rays.info(triangles(0, last=5)), [10], 50)
    info = rays.info(triangles(rays.data_at))
    effects = rays.effects("BuildAccelerationStructuresKHR", pInfos=[info], ppBuildRangeInfos=[ranges(count)])
    assert short(effects)[1] == (BUILD + AS_WRITE, rays.scratch, ((0, size),))


def test_scratch_memory_of_unknown_size_is_named(rays: Rays) -> None:
    info = rays.info(triangles(rays.data_at))
    rays.sizes(info, [1], 100)
    effects = rays.effects("BuildAccelerationStructuresKHR", pInfos=[info], ppBuildRangeInfos=[ranges(2)])
    assert effects[1] == Unmodelled("scratch memory whose size was not asked for")


@pytest.mark.parametrize("in_place", [True, False])
def test_an_update_reads_its_source(rays: Rays, in_place: bool) -> None:
    source = rays.structure if in_place else rays.made(2048)
    info = rays.info(triangles(rays.data_at), mode=1, srcAccelerationStructure=source)
    rays.sizes(info, [1], 100, 40)
    effects = short(rays.effects("BuildAccelerationStructuresKHR", pInfos=[info], ppBuildRangeInfos=[ranges(1)]))
    read = (BUILD + AS_READ, rays.storage, ((256, 1280),) if in_place else ((2048, 3072),))
    written = (BUILD + AS_WRITE, rays.storage, ((256, 1280),))
    assert effects[:-1] == [read, written, (BUILD + AS_WRITE, rays.scratch, ((0, 40),))]


def test_an_indirect_build_reads_its_ranges(rays: Rays) -> None:
    info = rays.info(triangles(rays.data_at), triangles(rays.data_at))
    rays.sizes(info, [4, 4], 100)
    effects = rays.effects(
        "BuildAccelerationStructuresIndirectKHR",
        pInfos=[info],
        pIndirectDeviceAddresses=[rays.data_at + 8],
        pIndirectStrides=[32],
        ppMaxPrimitiveCounts=[[4, 4]],
    )
    read = BUILD + "INDIRECT_COMMAND_READ"
    assert short(effects[2:4]) == [(read, rays.data, ((8, 24),)), (read, rays.data, ((40, 56),))]
    assert effects[4:] == (Unmodelled("inputs of an indirect acceleration structure build", open=True),)


def test_copies_of_structures(rays: Rays) -> None:
    other = rays.made(2048)
    info = struct("VkCopyAccelerationStructureInfoKHR", src=rays.structure, dst=other)
    assert short(rays.effects("CopyAccelerationStructureKHR", pInfo=info)) == [
        (COPY + AS_READ, rays.storage, ((256, 1280),)),
        (COPY + AS_WRITE, rays.storage, ((2048, 3072),)),
    ]
    effects = rays.effects("WriteAccelerationStructuresPropertiesKHR", pAccelerationStructures=[other])
    assert short(effects) == [(COPY + AS_READ, rays.storage, ((2048, 3072),))]


@pytest.mark.parametrize("ordered", [False, True])
def test_properties_are_written_to_queries(rays: Rays, ordered: bool) -> None:
    """Queries are reset before, as those of other types, and written once for each structure."""
    kind = VkQueryType.ACCELERATION_STRUCTURE_COMPACTED_SIZE_KHR
    pool = rays.make("vkCreateQueryPool", "pQueryPool", struct("VkQueryPoolCreateInfo", queryType=kind, queryCount=2))
    if ordered:
        rays.cmd("ResetQueryPool", queryPool=pool, queryCount=2)
    several = [rays.structure, rays.made(2048)]
    rays.cmd("WriteAccelerationStructuresPropertiesKHR", pAccelerationStructures=several, queryPool=pool)
    rays.submit()
    assert agreement(rays.blocks).disagreements == ()
    found = [str(each.hazard) for each in Analysis().follow(rays.blocks).findings]
    assert found == ["query-not-reset"] * (not ordered)


def test_serialized_structures(rays: Rays) -> None:
    """The header is certain; the rest depends on what stands in it."""
    rest = Unmodelled("serialized acceleration structures and micromaps, beyond the header")
    info = struct("VkCopyAccelerationStructureToMemoryInfoKHR", src=rays.structure, dst=at(rays.data_at + 256))
    effects = rays.effects("CopyAccelerationStructureToMemoryKHR", pInfo=info)
    own = (COPY + AS_READ, rays.storage, ((256, 1280),))
    assert short(effects[:2]) == [own, (COPY + "TRANSFER_WRITE", rays.data, ((256, 312),))] and effects[2:] == (rest,)
    info = struct("VkCopyMemoryToAccelerationStructureInfoKHR", src=at(rays.data_at), dst=rays.structure)
    effects = rays.effects("CopyMemoryToAccelerationStructureKHR", pInfo=info)
    assert short(effects[:1]) == [(COPY + "TRANSFER_READ", rays.data, ((0, 56),))] and effects[1] == rest
    assert short(effects[2:]) == [(COPY + AS_WRITE, rays.storage, ((256, 1280),))]


NO_SHADERS = Unmodelled("a pipeline whose shaders were not seen")


def test_binding_tables(rays: Rays) -> None:
    tables = {
        name: struct("VkStridedDeviceAddressRegionKHR", deviceAddress=rays.data_at + start, stride=32, size=size)
        for name, start, size in (("pRaygen", 0, 32), ("pMiss", 64, 64), ("pHit", 128, 96), ("pCallable", 0, 0))
    }
    regions = {f"{name}ShaderBindingTable": table for name, table in tables.items()}
    read = "RAY_TRACING_SHADER_SHADER_BINDING_TABLE_READ"
    expected = [(read, rays.data, (span,)) for span in ((0, 32), (64, 128), (128, 224))]
    effects = rays.effects("TraceRaysKHR", **regions, width=1, height=1, depth=1)
    assert short(effects[:-1]) == expected and effects[-1] == NO_SHADERS
    assert rays.effects("TraceRaysKHR", **regions, width=1, height=0, depth=1) == ()
    effects = rays.effects("TraceRaysIndirectKHR", **regions, indirectDeviceAddress=rays.scratch_at + 4)
    indirect = ("DRAW_INDIRECT_INDIRECT_COMMAND_READ", rays.scratch, ((4, 16),))
    assert short(effects[:-1]) == [indirect, *expected] and effects[-1] == NO_SHADERS


def test_tables_in_device_memory_are_named(rays: Rays) -> None:
    effects = rays.effects("TraceRaysIndirect2KHR", indirectDeviceAddress=rays.scratch_at)
    assert short(effects[:1]) == [("DRAW_INDIRECT_INDIRECT_COMMAND_READ", rays.scratch, ((0, 104),))]
    assert effects[1:] == (NO_SHADERS, Unmodelled("shader binding tables named in device memory", open=True))


@pytest.mark.parametrize(("grid", "ordered", "found"), [(1, False, 1), (1, True, 0), (0, False, 0)])
def test_tables_in_known_memory_are_read(rays: Rays, grid: int, ordered: bool, found: int) -> None:
    """Four tables in the input buffer, of which one has no bytes. A grid without rays reads none."""
    tables = [rays.data_at, 32, rays.data_at + 64, 32, 32, 0, 0, 0, rays.data_at + 256, 64, 64]
    data = packing.pack("<11Q3I4x", *tables, grid, 1, 1)
    rays.cmd("UpdateBuffer", dstBuffer=rays.scratch, dataSize=len(data), pData=data)
    barrier(rays)
    rays.fill(rays.data, 1, 64, 4)
    if ordered:
        barrier(rays)
    at = rays.cmd("TraceRaysIndirect2KHR", indirectDeviceAddress=rays.scratch_at)
    rays.submit()
    interpreter = Interpreter()
    events = [event for block in rays.blocks for event in interpreter.step(block)]
    batches = [batch for event in events if isinstance(event, Submitted) for batch in event.batches]
    (effects,) = [each.effects for batch in batches for _, held in batch.buffers for each in held if each.call == at]
    spans = [each.spans for each in effects if isinstance(each, Access) and each.resource == rays.data]
    assert spans == [((0, 32),), ((64, 96),), ((256, 320),)] * grid
    assert UNKNOWN_TABLES not in effects and replace(UNKNOWN_TABLES, open=False) not in effects
    assert agreement(rays.blocks).disagreements == ()
    assert [str(each.hazard) for each in Analysis().follow(rays.blocks).findings] == ["READ_AFTER_WRITE"] * found


def test_tables_in_unknown_memory_leave_the_verdict_unknown(rays: Rays) -> None:
    rays.cmd("TraceRaysIndirect2KHR", indirectDeviceAddress=rays.scratch_at)
    rays.submit()
    analysis = Analysis().follow(rays.blocks)
    assert analysis.verdict == "unknown" and UNKNOWN_TABLES.what in analysis.unmodelled


def test_what_was_not_seen_is_named(rays: Rays) -> None:
    info = struct("VkCopyAccelerationStructureToMemoryInfoKHR", src=999, dst=at(5))
    assert rays.effects("CopyAccelerationStructureToMemoryKHR", pInfo=info)[:2] == (
        Unmodelled("an acceleration structure whose creation was not seen"),
        Unmodelled("a device address of no known buffer"),
    )


def test_the_host_copies_and_builds_structures(rays: Rays) -> None:
    other = rays.made(2048)
    rays.did()

    def host(name: str, span: tuple[int, int], write: bool) -> HostAccess:
        return HostAccess(len(rays.blocks), name, None, rays.storage + 1, (span,), rays.storage, write=write)

    one, two = (256, 1280), (2048, 3072)
    info = struct("VkCopyAccelerationStructureInfoKHR", src=rays.structure, dst=other)
    name = "vkCopyAccelerationStructureKHR"
    rays.call(name, device=rays.device, pInfo=info)
    assert rays.did(0) == [host(name, one, False), host(name, two, True)]
    rays.call(name, device=rays.device, deferredOperation=70, pInfo=info)
    assert rays.did(1000268003)[0] == UnmodelledCall(f"{name}, deferred")
    name = "vkBuildAccelerationStructuresKHR"
    rays.call(name, pInfos=[rays.info(mode=1, srcAccelerationStructure=other)], ppBuildRangeInfos=[[]])
    assert rays.did(0) == [host(name, two, False), host(name, one, True)]
    name = "vkWriteAccelerationStructuresPropertiesKHR"
    rays.call(name, pAccelerationStructures=[999, other])
    unseen = UnmodelledCall(f"{name} of an acceleration structure whose creation was not seen")
    assert rays.did(0) == [unseen, host(name, two, False)]


def test_addresses_against_a_list() -> None:
    """The model: all live buffers in the order in which they were told of; the last one that holds an address wins."""
    rng = random.Random(11)
    alive: dict[int, Buffer] = {}
    addresses = Addresses(alive.get)
    stream: list[tuple[int, Buffer]] = []
    for id in range(1, 4 * PRUNE_AT):
        if stream and rng.random() < 0.4:
            _, gone = stream.pop(rng.randrange(len(stream)))
            del alive[gone.id]
        start, buffer = rng.randrange(1000) * 16, Buffer(id, rng.choice([16, 40, 200]))
        if any(start < at + other.size and at < start + buffer.size for at, other in stream):
            continue
        alive[id] = buffer
        stream.append((start, buffer))
        addresses.add(start, buffer)
        address = rng.randrange(16_300)
        holding = [(each, address - at) for at, each in stream if at <= address < at + each.size]
        assert addresses.find(address) == (holding[-1] if holding else None)


def test_addresses_of_destroyed_buffers_do_not_pile_up() -> None:
    alive: dict[int, Buffer] = {}
    addresses = Addresses(alive.get)
    for id in range(1, 20 * PRUNE_AT):
        alive = {id: Buffer(id, 64)}
        addresses._live = alive.get
        addresses.add(id * 64, alive[id])
    assert len(addresses._buffers) <= PRUNE_AT
