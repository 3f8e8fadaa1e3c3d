"""Micromaps: builds, copies, serialized bytes and what the host does, and builds of structures that read them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.addressed import Scene, barrier, executed
from tests.support.streams import struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.spec.enums import VkAccess2, VkPipelineStage2, VkQueryType
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access

BUILD = VkPipelineStage2.MICROMAP_BUILD_EXT
READ, WRITE, INPUT = "MICROMAP_READ_EXT", "MICROMAP_WRITE_EXT", "SHADER_READ"
SIZE = 64
SCRATCH = 48


class Maps(Scene):
    """Two micromaps, at 0 and at 128 of buffer 0. Buffer 1 is scratch memory, 2 has inputs, 3 has serialized bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.maps = [self.micromap(0), self.micromap(128)]

    def micromap(self, offset: int) -> int:
        """vkCreateMicromapEXT."""
        info = struct("VkMicromapCreateInfoEXT", buffer=self.buffers[0], offset=offset, size=SIZE)
        return self.make("vkCreateMicromapEXT", "pMicromap", info)

    def at(self, which: int, offset: int = 0) -> dict[str, int]:
        """The address of a byte."""
        return {"deviceAddress": self.addresses[self.buffers[which]] + offset}

    def info(self, which: int = 0, scratch: int = 0, asks: bool = True) -> dict[str, Any]:
        """The build of a micromap of four triangles of level 2 with four states."""
        usage = struct("VkMicromapUsageEXT", count=4, subdivisionLevel=2, format=2)
        info = struct(
            "VkMicromapBuildInfoEXT", dstMicromap=self.maps[which], usageCountsCount=1, pUsageCounts=[usage],
            data=self.at(2, 16), scratchData=self.at(1, scratch), triangleArray=self.at(2, 64), triangleArrayStride=16,
        )  # fmt: skip
        if asks:
            said = struct("VkMicromapBuildSizesInfoEXT", buildScratchSize=SCRATCH)
            self.call("vkGetMicromapBuildSizesEXT", pBuildInfo=info, pSizeInfo=said)
        return info

    def dependency(self, access: int = VkAccess2.MICROMAP_WRITE_EXT | VkAccess2.MICROMAP_READ_EXT) -> None:
        """A barrier between builds."""
        one = struct(
            "VkMemoryBarrier2", srcStageMask=BUILD, srcAccessMask=VkAccess2.MICROMAP_WRITE_EXT, dstStageMask=BUILD,
            dstAccessMask=access,
        )  # fmt: skip
        self.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[one]))


def accesses(scene: Scene) -> list[tuple[int, str, tuple[tuple[int, int], ...]]]:
    """Returns the accesses of the last command, as (buffer, access, spans)."""
    return [
        (
            scene.buffers.index(each.resource),
            ACCESS_KINDS[each.access_kind].name.removeprefix("SYNC_MICROMAP_BUILD_EXT_"),
            each.spans,
        )
        for each in executed(scene)[-1]
        if isinstance(each, Access)
    ]


def hazards(scene: Scene) -> list[str]:
    """Returns the hazards that both judges find."""
    assert agreement(scene.blocks).disagreements == ()
    return [str(each.hazard) for each in Analysis().follow(scene.blocks).findings]


def test_a_build_accesses_its_micromap_scratch_memory_and_inputs() -> None:
    scene = Maps()
    scene.begin()
    scene.cmd("BuildMicromapsEXT", pInfos=[scene.info()])
    scene.submit()
    # A triangle of level 2 has 16 parts of two bits each.
    data = (2, INPUT, ((16, 16 + 4 * 4),))
    assert accesses(scene) == [(0, WRITE, ((0, 64),)), (1, WRITE, ((0, 48),)), (2, INPUT, ((64, 120),)), data]
    assert Analysis().follow(scene.blocks).verdict == "clean"


def test_scratch_memory_whose_size_was_not_asked_for_is_named() -> None:
    scene = Maps()
    scene.begin()
    scene.cmd("BuildMicromapsEXT", pInfos=[scene.info(asks=False)])
    scene.submit()
    assert Analysis().follow(scene.blocks).verdict == "unknown"


@pytest.mark.parametrize(("scratch", "found"), [(SCRATCH, 0), (SCRATCH - 1, 1)])
def test_micromaps_of_one_call_are_built_in_no_order(scratch: int, found: int) -> None:
    scene = Maps()
    scene.begin()
    scene.cmd("BuildMicromapsEXT", pInfos=[scene.info(0), scene.info(1, scratch)])
    scene.submit()
    assert hazards(scene) == ["WRITE_AFTER_WRITE"] * found


@pytest.mark.parametrize("ordered", [False, True])
def test_scratch_memory_of_two_builds(ordered: bool) -> None:
    scene = Maps()
    scene.begin()
    scene.cmd("BuildMicromapsEXT", pInfos=[scene.info(0)])
    if ordered:
        scene.dependency()
    scene.cmd("BuildMicromapsEXT", pInfos=[scene.info(1)])
    scene.submit()
    assert hazards(scene) == ["WRITE_AFTER_WRITE"] * (not ordered)


@pytest.mark.parametrize("ordered", [False, True])
def test_inputs_are_read_as_shaders_read(ordered: bool) -> None:
    scene = Maps()
    scene.begin()
    scene.fill(scene.buffers[2], 0, 64, 4)
    if ordered:
        one = struct(
            "VkMemoryBarrier2", srcStageMask=VkPipelineStage2.ALL_TRANSFER, srcAccessMask=VkAccess2.TRANSFER_WRITE,
            dstStageMask=BUILD, dstAccessMask=VkAccess2.SHADER_READ,
        )  # fmt: skip
        scene.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[one]))
    scene.cmd("BuildMicromapsEXT", pInfos=[scene.info()])
    scene.submit()
    assert hazards(scene) == ["READ_AFTER_WRITE"] * (not ordered)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_copy_reads_one_and_writes_the_other(ordered: bool) -> None:
    scene = Maps()
    scene.begin()
    scene.cmd("BuildMicromapsEXT", pInfos=[scene.info(0)])
    if ordered:
        scene.dependency(VkAccess2.MICROMAP_READ_EXT)
    copied = struct("VkCopyMicromapInfoEXT", src=scene.maps[0], dst=scene.maps[1])
    scene.cmd("CopyMicromapEXT", pInfo=copied)
    scene.submit()
    assert accesses(scene) == [(0, READ, ((0, 64),)), (0, WRITE, ((128, 192),))]
    assert hazards(scene) == ["READ_AFTER_WRITE"] * (not ordered)


def test_serialized_bytes_are_certain_up_to_the_header() -> None:
    """With bounds they reach to the end of the buffer at most."""
    for command, made, kinds in (
        ("CopyMicromapToMemoryEXT", {"src": 0, "dst": 3}, (READ, "TRANSFER_WRITE")),
        ("CopyMemoryToMicromapEXT", {"src": 3, "dst": 0}, ("TRANSFER_READ", WRITE)),
    ):
        scene = Maps()
        places = {name: scene.maps[0] if which == 0 else scene.at(3, 16) for name, which in made.items()}
        scene.begin()
        scene.cmd(command, pInfo=struct(f"Vk{command.removesuffix('EXT')}InfoEXT", **places))
        scene.submit()
        assert set(accesses(scene)) == {
            (0, kinds[made["dst"] == 0], ((0, 64),)), (3, kinds[made["dst"] == 3], ((16, 48),))
        }  # fmt: skip
        assert Analysis().follow(scene.blocks).verdict == "unknown"
        assert Analysis(bounds=True).follow(scene.blocks).verdict == "clean"


@pytest.mark.parametrize("ordered", [False, True])
def test_properties_are_read_and_queries_written(ordered: bool) -> None:
    scene = Maps()
    kind = VkQueryType.MICROMAP_COMPACTED_SIZE_EXT
    info = struct("VkQueryPoolCreateInfo", queryType=kind, queryCount=2)
    pool = scene.make("vkCreateQueryPool", "pQueryPool", info)
    scene.begin()
    if ordered:
        scene.cmd("ResetQueryPool", queryPool=pool, queryCount=2)
    scene.cmd("BuildMicromapsEXT", pInfos=[scene.info(0)])
    if ordered:
        scene.dependency(VkAccess2.MICROMAP_READ_EXT)
    scene.cmd("WriteMicromapsPropertiesEXT", pMicromaps=[scene.maps[0]], queryType=kind, queryPool=pool)
    scene.cmd("CopyQueryPoolResults", queryPool=pool, queryCount=1, dstBuffer=scene.buffers[3], flags=3)
    scene.submit()
    assert hazards(scene) == ([] if ordered else ["READ_AFTER_WRITE", "query-not-reset"])


def test_the_host_accesses_micromaps() -> None:
    scene = Maps()
    copied = struct("VkCopyMicromapInfoEXT", src=scene.maps[0], dst=scene.maps[1])
    scene.begin()
    scene.fill(scene.buffers[0], 0, 0, 4)
    scene.submit(wait=False)
    scene.call("vkCopyMicromapEXT", pInfo=copied)
    assert hazards(scene) == ["READ_AFTER_WRITE"]
    scene = Maps()
    scene.call("vkBuildMicromapsEXT", pInfos=[scene.info()])
    scene.begin()
    scene.cmd("CopyMicromapEXT", pInfo=copied)
    scene.submit()
    assert hazards(scene) == []


@pytest.mark.parametrize("ordered", [False, True])
def test_a_build_of_a_structure_reads_the_micromap_of_its_triangles(ordered: bool) -> None:
    scene = Maps()
    link = struct(
        "VkAccelerationStructureTrianglesOpacityMicromapEXT", indexType=1, indexBuffer=scene.at(2, 128), indexStride=4,
        micromap=scene.maps[0],
    )  # fmt: skip
    data = struct(
        "VkAccelerationStructureGeometryTrianglesDataKHR", pNext=link, vertexFormat=106, vertexData=scene.at(2),
        vertexStride=12, maxVertex=2, indexType=1000165000,
    )  # fmt: skip
    geometry = struct("VkAccelerationStructureGeometryKHR", geometry={"triangles": data})
    info = struct("VkAccelerationStructureCreateInfoKHR", buffer=scene.buffers[3], size=128)
    made = scene.make("vkCreateAccelerationStructureKHR", "pAccelerationStructure", info)
    build = struct(
        "VkAccelerationStructureBuildGeometryInfoKHR", type=1, geometryCount=1, pGeometries=[geometry],
        dstAccelerationStructure=made, scratchData=scene.at(1, 128),
    )  # fmt: skip
    said = struct("VkAccelerationStructureBuildSizesInfoKHR", buildScratchSize=64)
    scene.call("vkGetAccelerationStructureBuildSizesKHR", pBuildInfo=build, pMaxPrimitiveCounts=[1], pSizeInfo=said)
    scene.begin()
    scene.cmd("BuildMicromapsEXT", pInfos=[scene.info(0)])
    if ordered:
        barrier(scene)
    ranges = [struct("VkAccelerationStructureBuildRangeInfoKHR", primitiveCount=1)]
    scene.cmd("BuildAccelerationStructuresKHR", infoCount=1, pInfos=[build], ppBuildRangeInfos=[ranges])
    scene.submit()
    names = [ACCESS_KINDS[each.access_kind].name for each in executed(scene)[-1] if isinstance(each, Access)]
    assert "SYNC_ACCELERATION_STRUCTURE_BUILD_MICROMAP_READ_EXT" in names
    assert hazards(scene) == ["READ_AFTER_WRITE"] * (not ordered)
    assert Analysis().follow(scene.blocks).unmodelled == {}
