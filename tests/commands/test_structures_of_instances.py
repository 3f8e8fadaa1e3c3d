"""Structures that a top level acceleration structure refers to: its build reads them, and so does a traversal."""

from __future__ import annotations

import struct as packing
from typing import Any

import pytest

from tests.support.rays import AS_READ, AS_WRITE, BOTTOM, BUILD, COMPUTE_STAGE, TOP, Scene, ranges
from tests.support.streams import Dispatch, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.findings import Finding
from vkharness.spec.enums import VkDescriptorType

STRUCTURE = VkDescriptorType.ACCELERATION_STRUCTURE_KHR
COPY_INFO = "VkCopyAccelerationStructureInfoKHR"
BUILD_COMMAND = "vkCmdBuildAccelerationStructuresKHR"
RACE = ("READ_AFTER_WRITE", "exact")
MAYBE = ("READ_AFTER_WRITE", "declared")


def judged(scene: Scene, unmodelled: tuple[str, ...] = ()) -> list[Finding]:
    """The findings, of which the model has the same."""
    analysis = Analysis().follow(scene.blocks)
    assert tuple(analysis.unmodelled) == unmodelled
    assert agreement(scene.blocks).disagreements == ()
    return analysis.findings


def kinds(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(each.hazard, each.certainty) for each in findings]


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("update", [True, False])
def test_a_top_level_build_reads_the_structures_of_its_instances(scene: Scene, ordered: bool, update: bool) -> None:
    """And so does an update of it, in place or not."""
    scene.instance(0, scene.one)
    scene.bottom(scene.one)
    if ordered:
        scene.after_builds()
    more: dict[str, Any] = {"mode": 1, "srcAccelerationStructure": scene.top} if update else {}
    scene.build_top(1, **more)
    scene.submit()
    found = judged(scene)
    assert kinds(found) == ([] if ordered else [RACE])
    if found:
        (finding,) = found
        assert finding.place.command == finding.prior.command == BUILD_COMMAND
        assert (finding.resource, finding.ranges) == (scene.homes[scene.one], ((0, 1024),))
        assert finding.access == "SYNC_ACCELERATION_STRUCTURE_BUILD_ACCELERATION_STRUCTURE_READ"


@pytest.mark.parametrize("visible", [True, False])
@pytest.mark.parametrize("in_place", [True, False])
def test_an_update_needs_its_source_to_be_visible(scene: Scene, in_place: bool, visible: bool) -> None:
    """Specification: accesses of source and target are "ACCELERATION_STRUCTURE_READ or [...] WRITE, as appropriate"."""
    scene.bottom(scene.one)
    scene.after_builds(target=AS_READ | AS_WRITE if visible else AS_WRITE)
    scene.bottom(scene.one if in_place else scene.two, mode=1, srcAccelerationStructure=scene.one)
    scene.submit()
    assert kinds(judged(scene)) == ([] if visible else [RACE])


@pytest.mark.parametrize("named", [True, False])
def test_other_structures_are_not_read(scene: Scene, named: bool) -> None:
    scene.instance(0, scene.one)
    scene.instance(1, scene.two if named else 0)
    scene.bottom(scene.one)
    scene.after_builds()
    scene.bottom(scene.two)
    scene.build_top(2)
    scene.submit()
    assert kinds(judged(scene)) == ([RACE] if named else [])


def test_the_next_build_of_a_structure_waits_for_the_top_level_one(scene: Scene) -> None:
    scene.instance(0, scene.one)
    scene.bottom(scene.one)
    scene.after_builds()
    scene.build_top(1)
    scene.bottom(scene.one)
    scene.submit()
    assert kinds(judged(scene)) == [("WRITE_AFTER_READ", "exact")]


def test_unknown_instances_may_be_of_any_structure_that_is_built(scene: Scene) -> None:
    """Those that the device wrote. A structure that is built later is none of them."""
    scene.bottom(scene.one)
    scene.build_top(1)
    scene.bottom(scene.two)
    scene.submit()
    (finding,) = judged(scene)
    assert kinds([finding]) == [MAYBE] and finding.resource == scene.homes[scene.one]


def test_partly_known_instances(scene: Scene) -> None:
    """Of the other ones it is known that they name `one`."""
    scene.instance(0, scene.one)
    scene.bottom(scene.one, scene.two)
    scene.after_builds()
    scene.bottom(scene.two)
    scene.build_top(2)
    scene.submit()
    (finding,) = judged(scene)
    assert kinds([finding]) == [MAYBE] and finding.resource == scene.homes[scene.two]


def test_transforms_that_the_device_writes_leave_references_known(scene: Scene) -> None:
    scene.instance(0, scene.one)
    scene.bottom(scene.one, scene.two)
    scene.after_builds()
    scene.fill(scene.instances, 0, 0, 48)
    scene.barrier()
    scene.bottom(scene.two)
    scene.build_top(1)
    scene.submit()
    assert judged(scene) == []


def test_an_instance_of_no_known_structure_is_named(scene: Scene) -> None:
    scene.instance(0, None)
    scene.build_top(1)
    scene.submit()
    assert judged(scene, ("an instance of no known acceleration structure",)) == []


def test_instances_that_a_copy_brings_are_known(scene: Scene) -> None:
    staging, memory = scene._visible(4096)
    scene.host_write(memory, 0, bytes(56) + packing.pack("<Q", scene.named[scene.one]))
    scene.bottom(scene.one, scene.two)
    scene.copy(staging, scene.instances, 64)
    scene.barrier()
    scene.bottom(scene.two)
    scene.build_top(1)
    scene.submit()
    assert judged(scene) == []
    scene.begin()
    scene.bottom(scene.one)
    scene.build_top(1)
    scene.submit()
    assert RACE in kinds(judged(scene))


@pytest.mark.parametrize("known", [True, False])
def test_instances_behind_pointers(scene: Scene, known: bool) -> None:
    if known:
        scene.host_write(scene.instance_memory, 0, packing.pack("<Q", scene.instances_at + 4096))
    scene.instance(0, scene.one, offset=4096)
    scene.bottom(scene.one)
    scene.build_top(1, pointers=True)
    scene.submit()
    unmodelled = () if known else ("instances behind pointers in device memory",)
    assert kinds(judged(scene, unmodelled)) == [RACE if known else MAYBE]


def test_an_instance_behind_a_pointer_is_an_input(scene: Scene) -> None:
    scene.host_write(scene.instance_memory, 0, packing.pack("<Q", scene.instances_at + 4096))
    scene.instance(0, scene.one, offset=4096)
    scene.fill(scene.instances, 0, 4096 + 16, 4)
    scene.build_top(1, pointers=True)
    scene.submit()
    (finding,) = judged(scene)
    assert finding.ranges == ((4096 + 16, 4),)


@pytest.mark.parametrize("known", [True, False])
def test_indirect_builds(scene: Scene, known: bool) -> None:
    """The ranges come from memory. There is no primitive beyond the most."""
    scene.instance(1, scene.one)
    if known:
        scene.host_write(scene.instance_memory, 8192, packing.pack("<4I", 7, 64, 0, 0))
    scene.bottom(scene.one, scene.two)
    scene.after_builds()
    scene.bottom(scene.one)
    scene.cmd(
        "BuildAccelerationStructuresIndirectKHR",
        pInfos=[scene.top_info()],
        pIndirectDeviceAddresses=[scene.instances_at + 8192],
        pIndirectStrides=[16],
        ppMaxPrimitiveCounts=[[1]],
    )
    scene.submit()
    unmodelled = () if known else ("inputs of an indirect acceleration structure build",)
    assert kinds(judged(scene, unmodelled)) == [RACE if known else MAYBE]


def test_builds_of_one_call_are_in_no_order(scene: Scene) -> None:
    """Those of structures and scratch memory that are apart need none."""
    scene.instance(0, scene.one)
    bottom = scene.info(type=BOTTOM, dstAccelerationStructure=scene.one)
    scene.sizes(bottom, [], 0)
    scene.cmd("BuildAccelerationStructuresKHR", pInfos=[bottom, scene.top_info()], ppBuildRangeInfos=[[], ranges(1)])
    scene.submit()
    (finding,) = judged(scene)
    assert kinds([finding]) == [RACE] and finding.place.call == finding.prior.call


def test_builds_of_one_call_share_no_scratch_memory(scene: Scene) -> None:
    scene.sizes(scene.info(scene.array()), [1 << 20], 0)
    infos = [scene.info(scene.array(), dstAccelerationStructure=each) for each in (scene.one, scene.two)]
    for info in infos:
        info["flags"] = 4
        scene.sizes(info, [0], 256)
    scene.cmd("BuildAccelerationStructuresKHR", pInfos=infos, ppBuildRangeInfos=[ranges(0)] * 2)
    scene.submit()
    assert [each.resource for each in judged(scene)] == [scene.scratch]


def test_a_secondary_builds(scene: Scene) -> None:
    scene.instance(0, scene.one)
    primary = scene.commands
    secondary = scene.begin(level=1)
    scene.bottom(scene.one)
    scene.build_top(1)
    scene.end()
    scene.commands = primary
    scene.cmd("ExecuteCommands", pCommandBuffers=[secondary])
    scene.submit()
    assert kinds(judged(scene)) == [RACE]


def test_instances_count_as_they_are_when_the_build_is_executed(scene: Scene) -> None:
    scene.bottom(scene.one, scene.two)
    scene.after_builds()
    scene.bottom(scene.one)
    scene.build_top(1)
    scene.end()
    scene.instance(0, scene.two)
    scene.submit(scene.commands)
    assert judged(scene) == []
    scene.instance(0, scene.one)
    scene.submit(scene.commands)
    assert kinds(judged(scene)) == [RACE]


def test_a_structure_that_is_gone_is_named_no_more(scene: Scene) -> None:
    scene.bottom(scene.one)
    scene.submit()
    scene.call("vkDestroyAccelerationStructureKHR", device=scene.device, accelerationStructure=scene.one)
    scene.begin()
    scene.fill(scene.homes[scene.one], 0)
    scene.build_top(1)
    scene.submit()
    assert judged(scene) == []


def traversed(scene: Scene, structure: int = 0, late: bool = False) -> None:
    """A dispatch whose shader traces rays in a structure, by default the top level one. The descriptor may be written
    after the dispatch is recorded (`late`)."""
    written = scene.buffer(256)
    dispatch = Dispatch(scene, "trace_ray.comp", [written, written], b"", (1, 0) if late else ())
    held = struct(
        "VkWriteDescriptorSetAccelerationStructureKHR",
        accelerationStructureCount=1,
        pAccelerationStructures=[structure or scene.top],
    )
    write = struct("VkWriteDescriptorSet", pNext=held, dstSet=dispatch.set, descriptorCount=1, descriptorType=STRUCTURE)
    if late:
        dispatch.run()
    scene.call("vkUpdateDescriptorSets", device=scene.device, pDescriptorWrites=[write])
    if not late:
        dispatch.run()


@pytest.mark.parametrize("until", [BUILD, COMPUTE_STAGE])
def test_a_traversal_reads_what_its_structure_leads_to(scene: Scene, until: int) -> None:
    """Writes that the build of the top level structure could see are not visible to shaders by that."""
    scene.instance(0, scene.one)
    scene.bottom(scene.one, scene.two)
    scene.after_builds(until=BUILD | until)
    scene.build_top(1)
    home = scene.homes[scene.top]
    part = struct(
        "VkBufferMemoryBarrier", srcAccessMask=AS_WRITE, dstAccessMask=AS_READ, srcQueueFamilyIndex=0xFFFFFFFF,
        dstQueueFamilyIndex=0xFFFFFFFF, buffer=home, size=1024,
    )  # fmt: skip
    scene.cmd("PipelineBarrier", srcStageMask=BUILD, dstStageMask=COMPUTE_STAGE, pBufferMemoryBarriers=[part])
    traversed(scene)
    scene.submit()
    found = judged(scene)
    assert kinds(found) == ([MAYBE] if until == BUILD else [])
    assert [each.resource for each in found] == [scene.homes[scene.one]] * len(found)


@pytest.mark.parametrize("after", [BUILD, COMPUTE_STAGE])
@pytest.mark.parametrize(("known", "late"), [(True, False), (False, False), (True, True)])
def test_a_structure_is_rebuilt_after_the_traversal(scene: Scene, after: int, known: bool, late: bool) -> None:
    if known:
        scene.instance(0, scene.one)
    scene.bottom(scene.one)
    scene.after_builds()
    scene.build_top(1)
    scene.after_builds(until=BUILD | COMPUTE_STAGE)
    traversed(scene, late=late)
    scene.cmd("PipelineBarrier", srcStageMask=after, dstStageMask=BUILD)
    scene.bottom(scene.one)
    scene.submit()
    assert kinds(judged(scene)) == ([("WRITE_AFTER_READ", "declared")] if after == BUILD else [])


@pytest.mark.parametrize("mode", [0, 1])
def test_a_copy_leads_where_its_source_does(scene: Scene, mode: int) -> None:
    """It reads the source alone, and not what is behind it."""
    other = scene.add(TOP)
    scene.instance(0, scene.one)
    scene.bottom(scene.one, scene.two)
    scene.after_builds()
    scene.build_top(1)
    scene.after_builds(until=BUILD | COMPUTE_STAGE)
    scene.bottom(scene.two)
    scene.cmd("CopyAccelerationStructureKHR", pInfo=struct(COPY_INFO, src=scene.top, dst=other, mode=mode))
    scene.after_builds(until=COMPUTE_STAGE)
    traversed(scene, other)
    scene.bottom(scene.two)
    scene.cmd("PipelineBarrier", srcStageMask=BUILD, dstStageMask=BUILD)
    scene.bottom(scene.one)
    scene.submit()
    found = judged(scene)
    assert ("WRITE_AFTER_READ", scene.homes[scene.one]) in [(each.hazard, each.resource) for each in found]
    assert {each.resource for each in found if each.hazard == "WRITE_AFTER_READ"} == {scene.homes[scene.one]}


def test_a_deserialized_structure_may_lead_anywhere(scene: Scene) -> None:
    scene.bottom(scene.one)
    scene.after_builds()
    info = struct(
        "VkCopyMemoryToAccelerationStructureInfoKHR", src={"deviceAddress": scene.data_at}, dst=scene.top, mode=3
    )
    scene.cmd("CopyMemoryToAccelerationStructureKHR", pInfo=info)
    scene.after_builds(until=COMPUTE_STAGE)
    traversed(scene)
    scene.bottom(scene.one)
    scene.submit()
    named = ("serialized acceleration structures and micromaps, beyond the header",)
    assert ("WRITE_AFTER_READ", "declared") in kinds(judged(scene, named))


def test_a_traversal_in_a_later_submit(scene: Scene) -> None:
    scene.instance(0, scene.one)
    scene.bottom(scene.one)
    scene.after_builds()
    scene.build_top(1)
    scene.submit()
    scene.begin()
    traversed(scene)
    scene.end()
    traced = scene.commands
    scene.begin()
    scene.bottom(scene.one)
    scene.end()
    scene.submit(traced, wait=False)
    scene.submit(scene.commands)
    assert [each.hazard for each in judged(scene)] == ["WRITE_AFTER_READ"]


def test_access_masks_of_reads(scene: Scene) -> None:
    """Instances are read with SHADER_READ, structures with ACCELERATION_STRUCTURE_READ."""
    scene.instance(0, scene.one)
    scene.bottom(scene.one)
    scene.after_builds(AS_WRITE, 0x20)
    scene.build_top(1)
    scene.submit()
    assert kinds(judged(scene)) == [RACE]
