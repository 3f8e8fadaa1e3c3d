"""Commands that give ranges by device addresses do what their first forms do, and both judges find the same of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support import drawing
from tests.support.addressed import Scene, barrier, executed
from tests.support.streams import GENERAL, Stream, extent, layers, struct, words
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.spec.enums import VkPipelineStage2
from vkharness.trace.calls import Call
from vkharness.trace.effects import Unmodelled

SIZE = 256
WHOLE = 0xFFFFFFFFFFFFFFFF
TRANSFER, WRITE, READ = VkPipelineStage2.ALL_TRANSFER, 0x1000, 0x800


# Each gives a command in both forms: `new` says which.

Case = Callable[[Scene, bool], None]


def fill(scene: Scene, new: bool) -> None:
    if new:
        scene.cmd("FillMemoryKHR", pDstRange=scene.range(0, 16, 32), data=7)
    else:
        scene.fill(scene.buffers[0], 7, 16, 32)


def update(scene: Scene, new: bool) -> None:
    data = words(1, 2, 3, 4)
    if new:
        scene.cmd("UpdateMemoryKHR", pDstRange=scene.range(0, 16, 16), dataSize=16, pData=data)
    else:
        scene.cmd("UpdateBuffer", dstBuffer=scene.buffers[0], dstOffset=16, dataSize=16, pData=data)


def copy(scene: Scene, new: bool) -> None:
    if new:
        region = struct("VkDeviceMemoryCopyKHR", srcRange=scene.range(0, 16, 32), dstRange=scene.range(1, 64, 32))
        scene.cmd("CopyMemoryKHR", pCopyMemoryInfo=struct("VkCopyDeviceMemoryInfoKHR", pRegions=[region]))
    else:
        scene.copy(scene.buffers[0], scene.buffers[1], 32, 16, 64)


def _image_copy(scene: Scene, new: bool, back: bool) -> None:
    extents = {"imageSubresource": layers(), "imageExtent": extent((4, 4, 1))}
    if new:
        region = struct(
            "VkDeviceMemoryImageCopyKHR", addressRange=scene.range(0, 16, 112), addressRowLength=6,
            imageLayout=GENERAL, **extents,
        )  # fmt: skip
        info = struct("VkCopyDeviceMemoryImageInfoKHR", image=scene.held, pRegions=[region])
        scene.cmd("CopyImageToMemoryKHR" if back else "CopyMemoryToImageKHR", pCopyMemoryInfo=info)
        return
    region = struct("VkBufferImageCopy", bufferOffset=16, bufferRowLength=6, **extents)
    if back:
        scene.cmd("CopyImageToBuffer", srcImage=scene.held, dstBuffer=scene.buffers[0], pRegions=[region])
    else:
        scene.cmd("CopyBufferToImage", dstImage=scene.held, srcBuffer=scene.buffers[0], pRegions=[region])


def to_image(scene: Scene, new: bool) -> None:
    _image_copy(scene, new, back=False)


def from_image(scene: Scene, new: bool) -> None:
    _image_copy(scene, new, back=True)


def query_results(scene: Scene, new: bool) -> None:
    asked = {"queryPool": scene.queries, "firstQuery": 0, "queryCount": 2}
    if new:
        scene.cmd("CopyQueryPoolResultsToMemoryKHR", **asked, pDstRange=scene.range(0, 16, 32, 16), queryResultFlags=1)
    else:
        scene.cmd("CopyQueryPoolResults", **asked, dstBuffer=scene.buffers[0], dstOffset=16, stride=16, flags=1)


def marker(scene: Scene, new: bool) -> None:
    if new:
        info = struct("VkMemoryMarkerInfoAMD", stage=TRANSFER, dstRange=scene.range(0, 16, 4), marker=1)
        scene.cmd("WriteMarkerToMemoryAMD", pInfo=info)
    else:
        scene.cmd("WriteBufferMarker2AMD", stage=TRANSFER, dstBuffer=scene.buffers[0], dstOffset=16, marker=1)


def dispatch(scene: Scene, new: bool) -> None:
    scene.compute("fill_words_writeonly.comp", [scene.buffers[1]], words(1)).run(0)
    if new:
        scene.cmd("DispatchIndirect2KHR", pInfo=scene.indirect(kind="VkDispatchIndirect2InfoKHR"))
    else:
        scene.cmd("DispatchIndirect", buffer=scene.buffers[0], offset=16)


def _rendering(scene: Scene, then: Callable[[], None]) -> None:
    _, view = drawing.color_target(scene)
    made = drawing.pipeline(
        scene, input=drawing.vertex_input([drawing.binding()], [drawing.attribute()]), dynamic=(1000267005,)
    )
    drawing.render(scene, view)
    drawing.bind(scene, made)
    then()
    scene.cmd("EndRendering")


def _vertices(scene: Scene, new: bool) -> None:
    place = {"firstBinding": 0, "bindingCount": 1}
    if new:
        info = struct("VkBindVertexBuffer3InfoKHR", setStride=1, addressRange=scene.range(1, 32, 128, 16))
        scene.cmd("BindVertexBuffers3KHR", **place, pBindingInfos=[info])
    else:
        bound = {"pBuffers": [scene.buffers[1]], "pOffsets": [32], "pSizes": [128], "pStrides": [16]}
        scene.cmd("BindVertexBuffers2", **place, **bound)


def _draw(scene: Scene, new: bool, command: str, counted: bool = False) -> None:
    indexed = "Indexed" in command

    def then() -> None:
        _vertices(scene, new)
        if indexed and new:
            info = struct("VkBindIndexBuffer3InfoKHR", addressRange=scene.range(2, 64, 64), indexType=0)
            scene.cmd("BindIndexBuffer3KHR", pInfo=info)
        elif indexed:
            scene.cmd("BindIndexBuffer2KHR", buffer=scene.buffers[2], offset=64, size=64, indexType=0)
        ending = "EXT" if "Mesh" in command else "KHR"
        if new and counted:
            count = scene.range(3, 4, 4)
            info = scene.indirect(kind="VkDrawIndirectCount2InfoKHR", countAddressRange=count, maxDrawCount=2)
            scene.cmd(f"{command}Count2{ending}", pInfo=info)
        elif new:
            scene.cmd(f"{command}2{ending}", pInfo=scene.indirect(kind="VkDrawIndirect2InfoKHR", drawCount=2))
        else:
            place = {"buffer": scene.buffers[0], "offset": 16, "stride": 20}
            count = {"countBuffer": scene.buffers[3], "countBufferOffset": 4, "maxDrawCount": 2}
            named = f"{command}{'Count' * counted}{'EXT' * (ending == 'EXT')}"
            scene.cmd(named, **place, **(count if counted else {"drawCount": 2}))

    _rendering(scene, then)


def draw(scene: Scene, new: bool) -> None:
    _draw(scene, new, "DrawIndirect")


def draw_indexed(scene: Scene, new: bool) -> None:
    _draw(scene, new, "DrawIndexedIndirect")


def draw_counted(scene: Scene, new: bool) -> None:
    _draw(scene, new, "DrawIndirect", counted=True)


def draw_indexed_counted(scene: Scene, new: bool) -> None:
    _draw(scene, new, "DrawIndexedIndirect", counted=True)


def draw_meshes(scene: Scene, new: bool) -> None:
    _draw(scene, new, "DrawMeshTasksIndirect")


def draw_meshes_counted(scene: Scene, new: bool) -> None:
    _draw(scene, new, "DrawMeshTasksIndirect", counted=True)


def draw_byte_count(scene: Scene, new: bool) -> None:
    def then() -> None:
        _vertices(scene, new)
        said = {"instanceCount": 1, "counterOffset": 0, "vertexStride": 16}
        if new:
            info = struct("VkBindTransformFeedbackBuffer2InfoEXT", addressRange=scene.range(0, 16, 4))
            scene.cmd("DrawIndirectByteCount2EXT", **said, pCounterInfo=info)
        else:
            scene.cmd("DrawIndirectByteCountEXT", **said, counterBuffer=scene.buffers[0], counterBufferOffset=16)

    _rendering(scene, then)


def feedback(scene: Scene, new: bool) -> None:
    def bound(which: int, offset: int, size: int) -> list[dict[str, Any]]:
        return [struct("VkBindTransformFeedbackBuffer2InfoEXT", addressRange=scene.range(which, offset, size))]

    def then() -> None:
        _vertices(scene, new)
        if new:
            scene.cmd("BindTransformFeedbackBuffers2EXT", pBindingInfos=bound(3, 64, 128))
            scene.cmd("BeginTransformFeedback2EXT")
            drawing.draw(scene)
            scene.cmd("EndTransformFeedback2EXT", pCounterInfos=bound(0, 16, 4))
        else:
            where = {"pBuffers": [scene.buffers[3]], "pOffsets": [64], "pSizes": [128]}
            scene.cmd("BindTransformFeedbackBuffersEXT", **where)
            scene.cmd("BeginTransformFeedbackEXT")
            drawing.draw(scene)
            scene.cmd("EndTransformFeedbackEXT", pCounterBuffers=[scene.buffers[0]], pCounterBufferOffsets=[16])

    _rendering(scene, then)


def condition(scene: Scene, new: bool) -> None:
    if new:
        info = struct("VkConditionalRenderingBeginInfo2EXT", addressRange=scene.range(0, 16, 4))
        scene.cmd("BeginConditionalRendering2EXT", pConditionalRenderingBegin=info)
    else:
        info = struct("VkConditionalRenderingBeginInfoEXT", buffer=scene.buffers[0], offset=16)
        scene.cmd("BeginConditionalRenderingEXT", pConditionalRenderingBegin=info)
    scene.cmd("EndConditionalRenderingEXT")


CASES: list[Case] = [
    fill, update, copy, to_image, from_image, query_results, marker, dispatch, draw, draw_indexed, draw_counted,
    draw_indexed_counted, draw_meshes, draw_meshes_counted, draw_byte_count, feedback, condition,
]  # fmt: skip


COUNTED = (draw_counted, draw_indexed_counted, draw_meshes_counted)
"""Those that read a number for sure, and parameters by it."""


def recorded(case: Case, new: bool, between: Callable[[Stream], None] = lambda _: None) -> Scene:
    """A fill of the bytes that the command reads or writes, what lies between, and the command."""
    scene = Scene()
    scene.begin()
    scene.transition(scene.held, 0, GENERAL)
    barrier(scene)
    scene.fill(scene.buffers[3] if case in COUNTED else scene.buffers[0], 1, 4 if case in COUNTED else 16, 4)
    between(scene)
    case(scene, new)
    scene.submit()
    return scene


@pytest.mark.parametrize("case", CASES)
def test_both_forms_mean_the_same(case: Case) -> None:
    first, new = recorded(case, new=False, between=barrier), recorded(case, new=True, between=barrier)
    assert executed(new) == executed(first)
    assert not any(isinstance(each, Unmodelled) for made in executed(new) for each in made)


@pytest.mark.parametrize("case", CASES)
def test_both_judges_hold_a_range_against_the_fill_before(case: Case) -> None:
    racing = recorded(case, new=True)
    assert agreement(racing.blocks).disagreements == ()
    assert [each.prior.command for each in Analysis().follow(racing.blocks).findings if each.ranges] == [
        "vkCmdFillBuffer"
    ]
    ordered = recorded(case, new=True, between=barrier)
    assert agreement(ordered.blocks).disagreements == ()
    assert not any(each.ranges for each in Analysis().follow(ordered.blocks).findings)  # queries have no ranges


@pytest.mark.parametrize(("groups", "runs"), [(0, False), (2, True)])
def test_regions_of_one_copy_may_lie_in_several_buffers(groups: int, runs: bool) -> None:
    """Known contents of the sources are known of the targets: the second region has the parameters of a dispatch."""
    scene = Scene()
    pairs = [((0, 0), (1, 0)), ((2, 32), (3, 64))]
    regions = [
        struct("VkDeviceMemoryCopyKHR", srcRange=scene.range(*source, 16), dstRange=scene.range(*target, 16))
        for source, target in pairs
    ]
    shader = scene.compute("fill_words_writeonly.comp", [scene.buffers[0]], words(1))
    scene.begin()
    scene.fill(scene.buffers[0], 3)
    scene.fill(scene.buffers[2], groups, 32, 16)
    barrier(scene)
    scene.cmd("CopyMemoryKHR", pCopyMemoryInfo=struct("VkCopyDeviceMemoryInfoKHR", pRegions=regions))
    barrier(scene)
    shader.run(0)
    scene.cmd("DispatchIndirect", buffer=scene.buffers[3], offset=64)
    scene.submit()
    assert len(executed(scene)[-1]) == 1 + runs
    assert Analysis().follow(scene.blocks).verdict == "clean"


def test_addresses_of_no_known_buffer_are_named() -> None:
    """Each command but those that only bind, which name it, too."""
    for case in CASES:
        scene = Scene()
        scene.addresses = dict.fromkeys(scene.buffers, 0x990000)
        scene.begin()
        case(scene, True)
        scene.submit()
        assert Analysis().follow(scene.blocks).verdict == "unknown", case


def test_a_buffer_with_all_of_a_range_comes_before_the_one_that_was_noted_last() -> None:
    """Two buffers begin at one address: a small one, of which the program asked last, and a large one."""
    scene = Scene()
    small = scene.buffer(16, scene.memories[0])
    at = scene.call("vkGetBufferDeviceAddress", pInfo=struct("VkBufferDeviceAddressInfo", buffer=small))
    block = scene.blocks[at - 1]
    assert isinstance(block, Call)
    block.result = scene.addresses[scene.buffers[0]]
    scene.begin()
    scene.cmd("FillMemoryKHR", pDstRange=scene.range(0, 0, 128), data=1)
    scene.fill(scene.buffers[0], 2, 64, 4)
    scene.submit()
    assert [each.hazard for each in Analysis().follow(scene.blocks).findings] == ["WRITE_AFTER_WRITE"]


def range_barrier(scene: Scene, which: int, offset: int, size: int, **families: int) -> dict[str, Any]:
    """A VkDependencyInfo with one barrier of device addresses, from transfers to transfers."""
    one = struct(
        "VkMemoryRangeBarrierKHR", srcStageMask=TRANSFER, srcAccessMask=WRITE, dstStageMask=TRANSFER,
        dstAccessMask=WRITE, addressRange=scene.range(which, offset, size), **families,
    )  # fmt: skip
    return struct("VkDependencyInfo", pNext=struct("VkMemoryRangeBarriersInfoKHR", pMemoryRangeBarriers=[one]))


class TestBarriersOfAddresses:
    @pytest.mark.parametrize(("offset", "size", "hazards"), [(16, 16, 0), (0, 256, 0), (16, 15, 1), (17, 16, 1)])
    def test_a_barrier_covers_its_addresses(self, offset: int, size: int, hazards: int) -> None:
        scene = Scene()
        scene.begin()
        scene.fill(scene.buffers[0], 1, 16, 16)
        scene.cmd("PipelineBarrier2", pDependencyInfo=range_barrier(scene, 0, offset, size))
        scene.fill(scene.buffers[0], 2, 16, 16)
        scene.submit()
        assert agreement(scene.blocks).disagreements == ()
        assert [each.hazard for each in Analysis().follow(scene.blocks).findings] == ["WRITE_AFTER_WRITE"] * hazards

    @pytest.mark.parametrize("covers", [True, False])
    def test_events_take_it_too(self, covers: bool) -> None:
        scene = Scene()
        event = scene.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))
        info = range_barrier(scene, 0 if covers else 1, 0, 256)
        scene.begin()
        scene.fill(scene.buffers[0], 1, 16, 16)
        scene.cmd("SetEvent2", event=event, pDependencyInfo=info)
        scene.cmd("WaitEvents2", pEvents=[event], pDependencyInfos=[info])
        scene.fill(scene.buffers[0], 2, 16, 16)
        scene.submit()
        assert agreement(scene.blocks).disagreements == ()
        assert len(Analysis().follow(scene.blocks).findings) == (0 if covers else 1)

    def test_addresses_of_no_known_buffer(self) -> None:
        scene = Scene()
        scene.addresses[scene.buffers[0]] = 0x990000
        scene.begin()
        scene.cmd("PipelineBarrier2", pDependencyInfo=range_barrier(scene, 0, 0, 256))
        scene.submit()
        assert Analysis().follow(scene.blocks).verdict == "unknown"


def test_a_structure_lies_in_the_buffer_that_has_its_addresses() -> None:
    scene = Scene()
    several = []
    for which in (0, 1):
        info = struct("VkAccelerationStructureCreateInfo2KHR", addressRange=scene.range(which, 0, 128))
        several.append(scene.make("vkCreateAccelerationStructure2KHR", "pAccelerationStructure", info))
    copied = struct("VkCopyAccelerationStructureInfoKHR", src=several[0], dst=several[1])
    scene.begin()
    scene.fill(scene.buffers[0], 1, 0, 4)
    scene.cmd("CopyAccelerationStructureKHR", pInfo=copied)
    scene.submit()
    assert agreement(scene.blocks).disagreements == ()
    assert [each.hazard for each in Analysis().follow(scene.blocks).findings] == ["READ_AFTER_WRITE"]
