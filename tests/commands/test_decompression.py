"""Decompression of memory reads and writes by addresses, in a stage of its own."""

from __future__ import annotations

import pytest

from tests.support.addressed import Scene, executed
from tests.support.streams import struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access

STAGE = VkPipelineStage2.MEMORY_DECOMPRESSION_EXT


def decompress(scene: Scene, old: bool) -> None:
    """16 bytes of buffer 0 to 64 of buffer 1."""
    places = {"srcAddress": scene.addresses[scene.buffers[0]] + 8, "dstAddress": scene.addresses[scene.buffers[1]]}
    sizes = {"compressedSize": 16, "decompressedSize": 64}
    if old:
        region = struct("VkDecompressMemoryRegionNV", **places, **sizes, decompressionMethod=1)
        scene.cmd("DecompressMemoryNV", decompressRegionCount=1, pDecompressMemoryRegions=[region])
    else:
        region = struct("VkDecompressMemoryRegionEXT", **places, **sizes)
        info = struct("VkDecompressMemoryInfoEXT", decompressionMethod=1, pRegions=[region])
        scene.cmd("DecompressMemoryEXT", pDecompressMemoryInfoEXT=info)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(("stage", "found"), [(STAGE, 0), (VkPipelineStage2.ALL_TRANSFER, 1)])
def test_it_reads_and_writes_in_its_own_stage(old: bool, stage: int, found: int) -> None:
    scene = Scene()
    accesses = VkAccess2.MEMORY_DECOMPRESSION_READ_EXT if stage == STAGE else VkAccess2.TRANSFER_READ
    scene.begin()
    scene.fill(scene.buffers[0], 1, 20, 4)
    one = struct(
        "VkMemoryBarrier2", srcStageMask=VkPipelineStage2.ALL_TRANSFER, srcAccessMask=VkAccess2.TRANSFER_WRITE,
        dstStageMask=stage, dstAccessMask=accesses,
    )  # fmt: skip
    scene.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[one]))
    decompress(scene, old)
    scene.submit()
    touched = [each for each in executed(scene)[-1] if isinstance(each, Access)]
    assert [(ACCESS_KINDS[each.access_kind].name[-8:], each.spans) for each in touched] == [
        ("READ_EXT", ((8, 24),)), ("RITE_EXT", ((0, 64),)),
    ]  # fmt: skip
    assert agreement(scene.blocks).disagreements == ()
    assert [str(each.hazard) for each in Analysis().follow(scene.blocks).findings] == ["READ_AFTER_WRITE"] * found
