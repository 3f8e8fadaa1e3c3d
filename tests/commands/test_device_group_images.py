"""Images and render pass instances of devices of several physical devices, from the text of the specification.

Sections "VkDeviceGroupRenderPassBeginInfo", "VkBindImageMemoryDeviceGroupInfo", "Device-Local Dependencies".
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import passes
from tests.support.device_groups import BOTH, CLEAR, COPY, READ, SEVERAL, SINGLE, WRITE, GroupStream, judged
from tests.support.passes import depends, described, refer, subpass
from tests.support.streams import DST, GENERAL, UNDEFINED, struct
from vkharness.check import Analysis
from vkharness.spec.enums import VK_QUEUE_FAMILY_IGNORED, VkAccess2, VkDependency, VkPipelineStage2

OUTPUT, ATTACHMENT = VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT, VkAccess2.COLOR_ATTACHMENT_WRITE
TO_COPY = depends(0, -1 & 0xFFFFFFFF, (OUTPUT, ATTACHMENT, COPY, READ))


def moved(image: int, old: int, new: int, src: tuple[int, int], dst: tuple[int, int]) -> dict[str, Any]:
    """A VkImageMemoryBarrier2 of all of an image."""
    part = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
    families = dict.fromkeys(("srcQueueFamilyIndex", "dstQueueFamilyIndex"), VK_QUEUE_FAMILY_IGNORED)
    return struct(
        "VkImageMemoryBarrier2", image=image, oldLayout=old, newLayout=new, subresourceRange=part,
        srcStageMask=src[0], srcAccessMask=src[1], dstStageMask=dst[0], dstAccessMask=dst[1], **families,
    )  # fmt: skip


class Scene:
    """A pass that clears an image on some physical devices, with memory of its own on each."""

    def __init__(self, dependencies: list[dict[str, Any]], kind: int = SEVERAL) -> None:
        self.stream = stream = GroupStream()
        self.image = stream.bound_image(stream.allocate(kind))
        view = passes.view(stream, self.image, 37)
        self.passed = passes.render_pass(stream, [described(final=GENERAL)], [subpass([refer(0)])], dependencies)
        self.frame = passes.framebuffer(stream, self.passed, [view], (8, 8))
        self.target = stream.bound(stream.allocate(SEVERAL), size=256)

    def render(self, mask: int | None, areas: list[dict[str, Any]] | None = None) -> None:
        link = None
        if mask is not None or areas:
            link = struct("VkDeviceGroupRenderPassBeginInfo", deviceMask=mask or BOTH, pDeviceRenderAreas=areas or [])
        passes.begin_pass(self.stream, self.passed, self.frame, passes.rect((8, 8)), following=link)

    def read(self) -> None:
        self.stream.image_to_buffer(self.image, self.target, (8, 8, 1), layout=GENERAL)


@pytest.mark.parametrize(("mask", "reader", "hazard"), [
    (1, 1, True), (1, 2, False), (2, 2, True), (2, 1, False), (None, 1, True), (None, 2, True),
])  # fmt: skip
def test_a_render_pass_instance_is_executed_by_the_devices_of_its_mask(
    mask: int | None, reader: int, hazard: bool
) -> None:
    """Without VkDeviceGroupRenderPassBeginInfo it has the mask that the command buffer was begun with, whatever the
    current one. Its end is executed by the same physical devices."""
    scene = Scene([])
    stream = scene.stream
    stream.begin()
    stream.mask(2)
    scene.render(mask)
    stream.mask(mask or 1)
    passes.end_pass(stream)
    stream.mask(reader)
    scene.read()
    stream.execute()
    assert bool(judged(stream)[0]) == hazard


def test_a_command_behind_the_begin_is_executed_by_the_devices_of_the_instance() -> None:
    """The mask is "the initial device mask when the render pass instance begins"."""
    scene = Scene([TO_COPY])
    stream = scene.stream
    a = stream.bound(stream.allocate(SEVERAL))
    stream.begin()
    stream.mask(2)
    stream.fill(a, 7)
    scene.render(1)
    passes.end_pass(stream)
    stream.fill(a, 7)
    stream.execute()
    assert judged(stream) == ([], "clean")


@pytest.mark.parametrize(("flag", "mask", "verdict"), [
    (0, BOTH, "clean"), (VkDependency.DEVICE_GROUP, BOTH, "unknown"), (VkDependency.DEVICE_GROUP, 1, "clean"),
])  # fmt: skip
def test_a_subpass_dependency_between_devices_is_named(flag: int, mask: int, verdict: str) -> None:
    scene = Scene([{**TO_COPY, "dependencyFlags": flag}])
    scene.stream.begin()
    scene.render(mask)
    passes.end_pass(scene.stream)
    scene.read()
    scene.stream.execute()
    assert judged(scene.stream) == ([], verdict)


@pytest.mark.parametrize(("offset", "hazards", "verdict"), [(0, 1, "hazards"), (4, 0, "unknown")])
def test_render_areas_that_differ_are_named(offset: int, hazards: int, verdict: str) -> None:
    """Each physical device writes the common part of the areas; the memory has one instance."""
    scene = Scene([], SINGLE)
    stream = scene.stream
    stream.begin()
    scene.render(BOTH, [passes.rect((4, 8)), passes.rect((4, 8), (offset, 0))])
    passes.end_pass(stream)
    stream.execute()
    found, said = judged(stream)
    assert (bool(found), said) == (bool(hazards), verdict)


@pytest.mark.parametrize(("regions", "verdict"), [(None, "clean"), ([passes.rect((8, 4))] * 4, "unknown")])
def test_regions_of_several_instances_are_named(regions: list[Any] | None, verdict: str) -> None:
    stream = GroupStream()
    image = stream.bound_image(stream.allocate(SEVERAL), regions=regions)
    stream.begin()
    stream.clear(image, (0, 0, 0, 0), layout=GENERAL)
    stream.execute()
    assert judged(stream) == ([], verdict)


@pytest.mark.parametrize(
    ("across", "stage", "hazard"), [(True, CLEAR, False), (True, COPY, True), (False, CLEAR, True)]
)
def test_a_transition_waits_for_the_other_devices(across: bool, stage: int, hazard: bool) -> None:
    """The second physical device clears its instance. A barrier of both transitions the same memory by the name of an
    image that has the instances the other way round, and the first one copies from there."""
    stream = GroupStream()
    memory, target = stream.allocate(SEVERAL), stream.bound(stream.allocate(SEVERAL), size=256)
    own, peer = stream.bound_image(memory), stream.bound_image(memory, [1, 0])
    flags = VkDependency.DEVICE_GROUP if across else 0
    barrier = moved(peer, DST, GENERAL, (stage, WRITE), (COPY, READ))
    stream.begin()
    stream.mask(2)
    stream.clear(own, (0, 0, 0, 0))
    stream.mask(BOTH)
    given = struct("VkDependencyInfo", dependencyFlags=flags, pImageMemoryBarriers=[barrier])
    stream.cmd("PipelineBarrier2", pDependencyInfo=given)
    stream.mask(1)
    stream.image_to_buffer(peer, target, (8, 8, 1), layout=GENERAL)
    stream.execute()
    assert bool(judged(stream)[0]) == hazard


def test_a_transition_of_one_instance_by_several_devices_is_named() -> None:
    stream = GroupStream()
    image = stream.bound_image(stream.allocate(SINGLE))
    barrier = moved(image, UNDEFINED, GENERAL, (0, 0), (COPY, READ))
    stream.begin()
    stream.cmd("PipelineBarrier2", pDependencyInfo=struct("VkDependencyInfo", pImageMemoryBarriers=[barrier]))
    stream.execute()
    assert judged(stream) == ([], "unknown")


def test_what_is_not_followed_is_said_once() -> None:
    stream = GroupStream()
    a, b = stream.bound(stream.allocate(SEVERAL)), stream.bound(stream.allocate(SEVERAL))
    stream.begin()
    for _ in range(3):
        stream.cmd("BeginVideoCodingKHR")
        stream.copy(a, b, 8)
        stream.barrier()
    stream.execute()
    analysis = Analysis().follow(stream.blocks)
    assert (analysis.verdict, analysis.unmodelled) == ("unknown", {"vkCmdBeginVideoCodingKHR": 1})
