"""Copies whose regions lie in memory: followed where the bytes are known, and named where they are not."""

from __future__ import annotations

from struct import pack
from typing import Any

import pytest

from tests.support.addressed import Scene, barrier, executed
from tests.support.streams import GENERAL, extent, layers, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.spec.scopes import ACCESS_KINDS
from vkharness.trace.effects import Access, Unmodelled

STRIDE = 64
Shown = list[tuple[int, str, tuple[tuple[int, int], ...]]]


def between(scene: Scene, source: int, target: int, size: int) -> bytes:
    """A VkCopyMemoryIndirectCommandKHR: from buffer 1 to buffer 2."""
    return pack("<3Q", scene.addresses[scene.buffers[1]] + source, scene.addresses[scene.buffers[2]] + target, size)


def to_image(scene: Scene, source: int, x: int) -> bytes:
    """A VkCopyMemoryToImageIndirectCommandKHR of 2 by 2 texels from buffer 1."""
    place = scene.addresses[scene.buffers[1]] + source
    return pack("<Q2I4I3i3I", place, 4, 0, *layers().values(), x, 0, 0, *extent((2, 2, 1)).values())


def copy(scene: Scene, count: int = 1, image: bool = False, old: bool = False) -> None:
    """The command, whose parameters begin at buffer 0."""
    address = scene.addresses[scene.buffers[0]]
    more: dict[str, Any] = {}
    if image:
        more = {"dstImage": scene.held, "dstImageLayout": GENERAL, "pImageSubresources": [layers()] * count}
    name = "CopyMemoryToImageIndirect" if image else "CopyMemoryIndirect"
    if old:
        scene.cmd(f"{name}NV", copyBufferAddress=address, copyCount=count, stride=STRIDE, **more)
        return
    place = {"address": address, "size": 256, "stride": STRIDE}
    info = struct(f"Vk{name}InfoKHR", copyCount=count, copyAddressRange=place, **more)
    scene.cmd(f"{name}KHR", **{f"p{name}Info": info})


def recorded(*parameters: bytes, image: bool = False, known: bool = True, old: bool = False) -> Scene:
    """A submit of a copy, with parameters that an update wrote, or that nobody knows."""
    scene = Scene()
    scene.begin()
    scene.transition(scene.held, 0, GENERAL)
    for at, data in enumerate(parameters if known else ()):
        scene.cmd("UpdateBuffer", dstBuffer=scene.buffers[0], dstOffset=at * STRIDE, dataSize=len(data), pData=data)
    barrier(scene)
    copy(scene, len(parameters), image, old)
    return scene


def shown(scene: Scene) -> Shown:
    """(resource, access, spans) of the last command; -1 stands for the image."""
    return [
        (
            -1 if each.resource == scene.held else scene.buffers.index(each.resource),
            ACCESS_KINDS[each.access_kind].name.removeprefix("SYNC_"),
            each.spans,
        )
        for each in executed(scene)[-1]
        if isinstance(each, Access)
    ]


READ, COPIED, WRITTEN = "COPY_INDIRECT_INDIRECT_COMMAND_READ", "COPY_TRANSFER_READ", "COPY_TRANSFER_WRITE"


@pytest.mark.parametrize("old", [False, True])
def test_known_parameters_say_what_is_copied(old: bool) -> None:
    model = Scene()
    scene = recorded(between(model, 16, 32, 64), between(model, 0, 128, 0), old=old)
    scene.submit()
    reads = [(0, READ, ((0, 24),)), (0, READ, ((64, 88),))]
    assert shown(scene) == [*reads, (1, COPIED, ((16, 80),)), (2, WRITTEN, ((32, 96),))]
    assert Analysis().follow(scene.blocks).verdict == "clean"


@pytest.mark.parametrize("old", [False, True])
def test_known_parameters_say_which_box_of_an_image_is_written(old: bool) -> None:
    scene = recorded(to_image(Scene(), 8, 3), image=True, old=old)
    scene.submit()
    rows, box = ((8, 16), (24, 32)), ((3, 5), (11, 13))
    assert shown(scene) == [(0, READ, ((0, 56),)), (1, COPIED, rows), (-1, WRITTEN, box)]
    assert Analysis().follow(scene.blocks).verdict == "clean"


@pytest.mark.parametrize("image", [False, True])
def test_unknown_parameters_are_named(image: bool) -> None:
    """Of an image the subresource is known all the same."""
    scene = recorded(b"", image=image, known=False)
    scene.submit()
    assert any(isinstance(each, Unmodelled) for each in executed(scene)[-1])
    assert [each for each in shown(scene) if each[0] == -1] == [(-1, WRITTEN, ((0, 64),))] * image
    assert Analysis().follow(scene.blocks).verdict == "unknown"


def test_an_address_of_no_known_buffer_is_named() -> None:
    scene = recorded(pack("<3Q", 0x990000, 0x990000, 16))
    scene.submit()
    assert Analysis().follow(scene.blocks).verdict == "unknown"


@pytest.mark.parametrize("ordered", [False, True])
def test_what_is_copied_is_held_against_other_commands(ordered: bool) -> None:
    scene = recorded(between(Scene(), 0, 32, 64))
    if ordered:
        barrier(scene)
    scene.fill(scene.buffers[2], 1, 92, 4)
    scene.fill(scene.buffers[2], 1, 96, 4)
    scene.submit()
    assert agreement(scene.blocks).disagreements == ()
    found = [str(each.hazard) for each in Analysis().follow(scene.blocks).findings]
    assert found == ["WRITE_AFTER_WRITE"] * (not ordered)


@pytest.mark.parametrize("stage", [VkPipelineStage2.COPY_INDIRECT_KHR, VkPipelineStage2.DRAW_INDIRECT])
def test_parameters_are_read_in_a_stage_of_their_own(stage: int) -> None:
    scene = Scene()
    scene.begin()
    data = between(scene, 0, 0, 16)
    scene.cmd("UpdateBuffer", dstBuffer=scene.buffers[0], dataSize=len(data), pData=data)
    one = struct(
        "VkMemoryBarrier2", srcStageMask=VkPipelineStage2.ALL_TRANSFER, srcAccessMask=VkAccess2.TRANSFER_WRITE,
        dstStageMask=stage, dstAccessMask=VkAccess2.INDIRECT_COMMAND_READ,
    )  # fmt: skip
    scene.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pMemoryBarriers=[one]))
    copy(scene)
    scene.submit()
    assert agreement(scene.blocks).disagreements == ()
    found = [str(each.hazard) for each in Analysis().follow(scene.blocks).findings]
    assert found == ["READ_AFTER_WRITE"] * (stage == VkPipelineStage2.DRAW_INDIRECT)


def test_what_was_known_of_the_target_is_known_no_more() -> None:
    """Parameters of a second copy lie where the first one wrote."""
    scene = Scene()
    scene.begin()
    place = scene.addresses[scene.buffers[0]]
    first = pack("<3Q", scene.addresses[scene.buffers[1]], place + STRIDE, 24)
    scene.cmd("UpdateBuffer", dstBuffer=scene.buffers[0], dataSize=24, pData=first)
    scene.cmd("UpdateBuffer", dstBuffer=scene.buffers[0], dstOffset=STRIDE, dataSize=24, pData=between(scene, 0, 0, 16))
    barrier(scene)
    copy(scene, 1)
    barrier(scene)
    copy(scene, 2)
    scene.submit()
    assert Analysis().follow(scene.blocks).verdict == "unknown"
