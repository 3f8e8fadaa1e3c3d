"""What today's layer does beside the rules: the evidence for differences.toml, provoked on lavapipe.

Written for 1.4.364, as test_layer_quirks.py is for 1.3.239. The ids in brackets are entries of differences.toml.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.layer.manifest import find_layer
from harness.layer.parse import LayerMessage
from harness.spec.enums import VkAccess2, VkPipelineStage2
from tests.support.layer_rig import (
    ALL_COMMANDS,
    GENERAL,
    TRANSFER,
    TRANSFER_DST,
    TRANSFER_READ,
    TRANSFER_WRITE,
    UNDEFINED,
    Rig,
    compile_compute,
    rig,
)

LAYER = find_layer("1.4.364")
pytestmark = pytest.mark.skipif(LAYER is None, reason="evidence about the layer 1.4.364, which is not installed")

RAW, WAR, WAW = "READ_AFTER_WRITE", "WRITE_AFTER_READ", "WRITE_AFTER_WRITE"
ALL_GRAPHICS, MEMORY_READ, MEMORY_WRITE = VkPipelineStage2.ALL_GRAPHICS, VkAccess2.MEMORY_READ, VkAccess2.MEMORY_WRITE
HEAD = "#version 450\nlayout(local_size_x=1) in; layout(binding=0) buffer A{uint a[];};"
ATOMIC = HEAD + "void main(){ atomicAdd(a[0],1); }"


@pytest.fixture
def device() -> Iterator[Rig]:
    with rig(LAYER) as made:
        yield made


def hazards(messages: list[LayerMessage]) -> list[tuple[str, str, str]]:
    return [(message.hazard, message.command, message.prior_command) for message in messages]


def test_all_graphics_is_taken_for_every_stage_of_a_graphics_queue(device: Rig) -> None:
    """Vulkan lists the stages of the graphics pipeline alone; to the layer it covers transfers too."""
    a, b = device.buffer(), device.buffer()
    with device.recording() as buffer:
        device.fill(buffer, a)
        device.barrier(buffer, (ALL_GRAPHICS, ALL_GRAPHICS), (MEMORY_WRITE, MEMORY_READ))
        device.copy(buffer, a, b)
    assert device.said() == []


@pytest.mark.parametrize(("accesses", "expected"), [(0, [RAW]), (TRANSFER_WRITE, [RAW]), (MEMORY_WRITE, [])])
def test_all_commands_waits_for_a_transition_with_memory_write_only(
    device: Rig, accesses: int, expected: list[str]
) -> None:
    """[all-commands-needs-the-write-of-a-transition]"""
    image, b = device.image(), device.buffer()
    vk = device.vk
    into_no_scope = vk.VkImageMemoryBarrier2(
        oldLayout=UNDEFINED, newLayout=GENERAL, srcQueueFamilyIndex=0xFFFFFFFF, dstQueueFamilyIndex=0xFFFFFFFF,
        image=image, subresourceRange=vk.VkImageSubresourceRange(1, 0, 1, 0, 1),
    )  # fmt: skip
    with device.recording() as buffer:
        vk.vkCmdPipelineBarrier2(buffer, vk.VkDependencyInfo(pImageMemoryBarriers=[into_no_scope]))
        device.barrier(buffer, (ALL_COMMANDS, TRANSFER), (accesses, TRANSFER_READ))
        assert device.said() == []
        device.image_to_buffer(buffer, image, b)
    assert [message.hazard for message in device.said()] == expected


def test_the_only_memory_barrier_beside_an_image_barrier_acts_on_its_transition(device: Rig) -> None:
    """[barriers-beside-a-transition] Two memory barriers do not."""
    for count, expected in ((1, []), (2, [WAW])):
        image = device.image()
        vk = device.vk
        everything = vk.VkMemoryBarrier(srcAccessMask=TRANSFER_WRITE, dstAccessMask=MEMORY_READ | MEMORY_WRITE)
        transition = device.image_barrier(image, UNDEFINED, GENERAL, TRANSFER_WRITE, MEMORY_READ)
        with device.recording() as buffer:
            vk.vkCmdPipelineBarrier(
                buffer, TRANSFER, ALL_COMMANDS, 0, count, [everything] * count, 0, [], 1, [transition]
            )
            device.clear(buffer, image)
        assert [message.hazard for message in device.said()] == expected


def test_a_barrier_that_met_the_replaced_write_acts_on_the_transition(device: Rig) -> None:
    """[barriers-beside-a-transition] Without that write it does not."""
    for written, expected in ((True, []), (False, [WAW])):
        image = device.image()
        vk = device.vk
        everything = vk.VkMemoryBarrier(srcAccessMask=TRANSFER_WRITE, dstAccessMask=TRANSFER_WRITE)
        transition = device.image_barrier(image, UNDEFINED, GENERAL, TRANSFER_WRITE, TRANSFER_READ)
        with device.recording() as buffer:
            if written:
                device.clear(buffer, image, TRANSFER_DST)
            vk.vkCmdPipelineBarrier(buffer, TRANSFER, TRANSFER, 0, 2, [everything] * 2, 0, [], 1, [transition])
            assert device.said() == []
            device.clear(buffer, image)
        assert [message.hazard for message in device.said()] == expected


def test_atomics_are_reads(device: Rig, tmp_path: Path) -> None:
    """[atomics-are-reads]"""
    a, b = device.buffer(), device.buffer()
    kernel = device.compute(compile_compute(ATOMIC, tmp_path), (7, a))
    with device.recording() as buffer:
        device.dispatch(buffer, kernel)
        device.copy(buffer, a, b)
    assert device.said() == []
    with device.recording() as buffer:
        device.fill(buffer, a)
        device.dispatch(buffer, kernel)
    assert [(m.hazard, m.access) for m in device.said()] == [(RAW, "SYNC_COMPUTE_SHADER_SHADER_STORAGE_READ")]


@pytest.mark.parametrize(("offset", "while_recording", "at_submit"), [(0, 1, 1), (64, 0, 2)])
def test_lowest_address_of_a_region_at_submit_too(
    device: Rig, offset: int, while_recording: int, at_submit: int
) -> None:
    """[one-hazard-a-region-at-submit] When the lowest hazard of a command is inside its command buffer, and was said
    while recording, nothing is said at submit of the higher one against an earlier command buffer."""
    a = device.buffer()
    with device.recording() as first:
        device.fill(first, a)
    with device.recording() as second:
        device.fill(second, a, 0, 64)
        device.fill(second, a, offset, 128 - offset)
    assert len(device.said()) == while_recording
    device.submit(first, second, wait=True)
    assert [(m.hazard, m.entry) for m in device.said()] == [(WAW, 1)] * at_submit


def test_hazards_inside_a_command_buffer_are_said_while_recording_only(device: Rig) -> None:
    a, b = device.buffer(), device.buffer()
    with device.recording() as buffer:
        device.fill(buffer, a)
        device.copy(buffer, a, b)
    assert hazards(device.said()) == [(RAW, "vkCmdCopyBuffer", "vkCmdFillBuffer")]
    device.submit(buffer)
    assert device.said() == []
    device.submit(buffer, wait=True)
    assert hazards(device.said()) == [
        (WAR, "vkCmdFillBuffer", "vkCmdCopyBuffer"),
        (WAW, "vkCmdCopyBuffer", "vkCmdCopyBuffer"),
    ]


def test_a_host_wait_for_a_value_reached_before_is_taken_for_the_next(device: Rig) -> None:
    """[host-wait-for-an-older-value] The fill of the second submit is not known to be complete."""
    vk, a = device.vk, device.buffer()
    kind = vk.VkSemaphoreTypeCreateInfo(semaphoreType=1, initialValue=0)
    timeline = vk.vkCreateSemaphore(device.device, vk.VkSemaphoreCreateInfo(pNext=kind), None)
    with device.recording() as buffer:
        device.fill(buffer, a)

    def submit(value: int) -> None:
        values = vk.VkTimelineSemaphoreSubmitInfo(pSignalSemaphoreValues=[value])
        info = vk.VkSubmitInfo(pNext=values, pCommandBuffers=[buffer], pSignalSemaphores=[timeline])
        vk.vkQueueSubmit(device.queue, 1, [info], vk.VK_NULL_HANDLE)

    submit(1)
    vk.vkQueueWaitIdle(device.queue)
    submit(2)
    vk.vkWaitSemaphores(device.device, vk.VkSemaphoreWaitInfo(pSemaphores=[timeline], pValues=[1]), 10**10)
    submit(3)
    assert device.said() == []
    vk.vkQueueWaitIdle(device.queue)
    vk.vkDestroySemaphore(device.device, timeline, None)
