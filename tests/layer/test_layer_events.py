"""What the layers say of operations on events: the evidence for differences.toml, provoked on lavapipe.

The ids in brackets are entries of differences.toml.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.layer.manifest import find_layer
from harness.spec.enums import VkPipelineStage2
from tests.support.layer_rig import (
    COMPUTE,
    GENERAL,
    TRANSFER,
    TRANSFER_READ,
    TRANSFER_SRC,
    TRANSFER_WRITE,
    UNDEFINED,
    Rig,
    rig,
)

OLD, TODAY = "1.3.239", "1.4.364"
CLEAR_STAGE, COMPUTE_STAGE = VkPipelineStage2.CLEAR, VkPipelineStage2.COMPUTE_SHADER


@pytest.fixture(params=[OLD, TODAY])
def device(request: pytest.FixtureRequest) -> Iterator[tuple[Rig, str]]:
    layer = find_layer(request.param)
    if layer is None:
        pytest.skip(f"evidence about the layer {request.param}, which is not installed")
    with rig(layer) as made:
        yield made, request.param


def event(device: Rig) -> Any:
    vk = device.vk
    made = vk.vkCreateEvent(device.device, vk.VkEventCreateInfo(), None)
    device._undo.append(lambda: vk.vkDestroyEvent(device.device, made, None))
    return made


def wait(device: Rig, buffer: Any, event: Any, src: int, dst: int) -> None:
    device.vk.vkCmdWaitEvents(buffer, 1, [event], src, dst, 0, [], 0, [], 0, [])


def rules(device: Rig) -> list[str]:
    return [message.hazard for message in device.said()]


def test_a_reset_after_a_wait(device: tuple[Rig, str]) -> None:
    """[reset-after-wait]"""
    rig, version = device
    vk, made = rig.vk, event(rig)
    with rig.recording() as buffer:
        vk.vkCmdSetEvent(buffer, made, TRANSFER)
        wait(rig, buffer, made, TRANSFER, TRANSFER)
        vk.vkCmdResetEvent(buffer, made, COMPUTE)
    assert rules(rig) == (["vkCmdResetEvent-wait-race"] if version == OLD else [])


def test_a_wait_for_an_unordered_set(device: tuple[Rig, str]) -> None:
    """[wait-for-an-unordered-set]"""
    rig, version = device
    vk, made = rig.vk, event(rig)
    with rig.recording() as buffer:
        vk.vkCmdSetEvent(buffer, made, TRANSFER)
        vk.vkCmdSetEvent(buffer, made, TRANSFER)
        assert rules(rig) == ["vkCmdSetEvent-set-race"]
        wait(rig, buffer, made, TRANSFER, TRANSFER)
    assert rules(rig) == (["vkCmdWaitEvents-unsynchronized-setops"] if version == OLD else [])


def test_the_old_layer_repeats_what_it_says_of_resets(device: tuple[Rig, str]) -> None:
    """[event-rules-at-every-submit] Of sets it does not."""
    rig, version = device
    vk, first, second = rig.vk, event(rig), event(rig)
    with rig.recording() as buffer:
        vk.vkCmdSetEvent(buffer, first, TRANSFER)
        vk.vkCmdResetEvent(buffer, first, TRANSFER)
        vk.vkCmdResetEvent(buffer, second, TRANSFER)
        vk.vkCmdSetEvent(buffer, second, TRANSFER)
    assert rules(rig) == ["vkCmdResetEvent-set-race", "vkCmdSetEvent-reset-race"]
    rig.submit(buffer, wait=True)
    assert rules(rig) == (["vkCmdResetEvent-set-race"] if version == OLD else [])


def test_operations_on_events_are_in_no_stage(device: tuple[Rig, str]) -> None:
    """A barrier from the stages of a set does not order a reset after it; one from ALL_COMMANDS does."""
    rig, _ = device
    for source, expected in ((TRANSFER, ["vkCmdResetEvent-set-race"]), (0x10000, [])):
        made = event(rig)
        with rig.recording() as buffer:
            rig.vk.vkCmdSetEvent(buffer, made, TRANSFER)
            rig.barrier(buffer, (source, TRANSFER))
            rig.vk.vkCmdResetEvent(buffer, made, TRANSFER)
        assert rules(rig) == expected


def test_a_barrier_after_the_set_reaches_the_event(device: tuple[Rig, str]) -> None:
    """[barrier-reaches-a-set-event]"""
    rig, _ = device
    vk, made, a = rig.vk, event(rig), rig.buffer()
    chained = vk.VkMemoryBarrier2(
        srcStageMask=COMPUTE_STAGE, dstStageMask=CLEAR_STAGE | 1 << 32, dstAccessMask=TRANSFER_WRITE
    )
    info = vk.VkDependencyInfo(pMemoryBarriers=[chained])
    with rig.recording() as buffer:
        rig.fill(buffer, a)
        vk.vkCmdSetEvent2(buffer, made, info)
        rig.barrier(buffer, (TRANSFER, COMPUTE), (TRANSFER_WRITE, 0))
        vk.vkCmdWaitEvents2(buffer, 1, [made], [info])
        rig.fill(buffer, a)
    assert rules(rig) == []


def upload(device: Rig, buffer: Any, source: Any, image: Any) -> None:
    vk = device.vk
    region = vk.VkBufferImageCopy(
        imageSubresource=vk.VkImageSubresourceLayers(1, 0, 0, 1), imageExtent=vk.VkExtent3D(8, 8, 1)
    )
    vk.vkCmdCopyBufferToImage(buffer, source, image, GENERAL, 1, [region])


def test_a_wait_that_moves_an_untouched_image(device: tuple[Rig, str]) -> None:
    """[nothing-before-the-set]"""
    rig, version = device
    vk, made, image, a = rig.vk, event(rig), rig.image(), rig.buffer()
    move = rig.image_barrier(image, UNDEFINED, GENERAL)
    with rig.recording() as buffer:
        vk.vkCmdSetEvent(buffer, made, TRANSFER)
        vk.vkCmdWaitEvents(buffer, 1, [made], TRANSFER, COMPUTE, 0, [], 0, [], 1, [move])
        upload(rig, buffer, a, image)
    assert rules(rig) == ([] if version == OLD else ["WRITE_AFTER_WRITE"])


def test_a_hazardous_wait_is_left_out(device: tuple[Rig, str]) -> None:
    """[hazardous-wait-is-left-out] The access after it meets what the transition replaced."""
    rig, version = device
    vk, made, image, a = rig.vk, event(rig), rig.image(), rig.buffer()
    move = rig.image_barrier(image, GENERAL, TRANSFER_SRC, 0, TRANSFER_READ)
    with rig.recording() as first:
        rig.clear(first, image)
        vk.vkCmdSetEvent(first, made, TRANSFER)
    with rig.recording() as second:
        vk.vkCmdWaitEvents(second, 1, [made], TRANSFER, TRANSFER, 0, [], 0, [], 1, [move])
        rig.image_to_buffer(second, image, a, TRANSFER_SRC)
    rig.submit(first, second, wait=True)
    found = [(message.hazard, message.command) for message in rig.said()]
    followed = [("READ_AFTER_WRITE", "vkCmdCopyImageToBuffer")] if version == OLD else []
    assert found == [("WRITE_AFTER_WRITE", "vkCmdWaitEvents"), *followed]


def test_a_wait_after_a_reset_by_the_host(device: tuple[Rig, str]) -> None:
    """[event-reset-by-the-host]"""
    rig, version = device
    vk, made, a, b = rig.vk, event(rig), rig.buffer(), rig.buffer()
    filled = vk.VkMemoryBarrier(srcAccessMask=TRANSFER_WRITE, dstAccessMask=TRANSFER_READ)
    with rig.recording() as first:
        vk.vkCmdSetEvent(first, made, TRANSFER)
    rig.submit(first, wait=True)
    vk.vkResetEvent(rig.device, made)
    with rig.recording() as second:
        rig.fill(second, a)
        vk.vkCmdSetEvent(second, made, TRANSFER)
        vk.vkCmdWaitEvents(second, 1, [made], TRANSFER, TRANSFER, 1, [filled], 0, [], 0, [])
        rig.copy(second, a, b)
    rig.submit(second, wait=True)
    assert rules(rig) == ([] if version == OLD else ["READ_AFTER_WRITE"])


def test_a_wait_for_an_unordered_set_orders_nothing(device: tuple[Rig, str]) -> None:
    """[unordered-set-orders-nothing]"""
    rig, _ = device
    vk, made, a, b = rig.vk, event(rig), rig.buffer(), rig.buffer()
    filled = vk.VkMemoryBarrier(srcAccessMask=TRANSFER_WRITE, dstAccessMask=TRANSFER_READ)
    with rig.recording() as buffer:
        rig.fill(buffer, a)
        vk.vkCmdSetEvent(buffer, made, TRANSFER)
        vk.vkCmdSetEvent(buffer, made, TRANSFER)
        vk.vkCmdWaitEvents(buffer, 1, [made], TRANSFER, TRANSFER, 1, [filled], 0, [], 0, [])
        rig.said()
        rig.copy(buffer, a, b)
    assert rules(rig) == ["READ_AFTER_WRITE"]
