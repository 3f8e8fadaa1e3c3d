"""Devices of several physical devices, judged by both judges from the text of the specification.

Sections "Device-Local Dependencies", "Synchronization and Multiple Physical Devices", "Command Buffer Device Mask",
"Device Group Memory Allocations", "VkBindBufferMemoryDeviceGroupInfo", "VkDeviceGroupSubmitInfo".
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.device_groups import (
    BOTH,
    CLEAR,
    COPY,
    FILL_TO_COPY,
    READ,
    SEVERAL,
    SINGLE,
    WRITE,
    GroupStream,
    judged,
    of_buffer,
)
from tests.support.streams import struct
from vkharness.check import Analysis
from vkharness.report.text import finding_text

RAW = "READ_AFTER_WRITE"
RACE = "READ_RACING_WRITE"


def filled_and_copied(masks: tuple[int, int], kind: int, barrier: dict[str, Any] | None, **given: Any) -> GroupStream:
    """One physical device fills a buffer, and one copies it, with a barrier between them if there is one."""
    stream = GroupStream()
    memory, other = stream.allocate(kind), stream.allocate(SEVERAL)
    a, b = stream.bound(memory), stream.bound(other)
    stream.begin()
    stream.mask(masks[0])
    stream.fill(a, 7)
    if barrier is not None:
        stream.mask(given.pop("among", BOTH))
        stream.order(barrier, **given)
    stream.mask(masks[1])
    stream.copy(a, b, 16)
    stream.execute()
    return stream


@pytest.mark.parametrize(
    ("masks", "kind", "hazard"),
    [
        ((1, 1), SEVERAL, True), ((2, 2), SEVERAL, True), ((3, 3), SEVERAL, True), ((3, 2), SEVERAL, True),
        ((1, 2), SEVERAL, False), ((2, 1), SEVERAL, False), ((1, 2), SINGLE, True), ((2, 1), SINGLE, True),
    ],
)  # fmt: skip
def test_a_command_is_executed_by_the_devices_of_its_mask(masks: tuple[int, int], kind: int, hazard: bool) -> None:
    found, verdict = judged(filled_and_copied(masks, kind, None))
    assert bool(found) == hazard
    assert verdict == ("hazards" if hazard else "clean")


@pytest.mark.parametrize(("masks", "kind", "among", "across", "hazard"), [
    ((3, 3), SEVERAL, 3, False, False), ((3, 3), SEVERAL, 1, False, True), ((1, 1), SEVERAL, 2, False, True),
    ((1, 2), SINGLE, 3, False, True), ((1, 2), SINGLE, 3, True, False), ((2, 1), SINGLE, 3, True, False),
    ((1, 2), SINGLE, 1, True, True), ((1, 2), SINGLE, 2, True, True), ((2, 2), SINGLE, 3, True, False),
])  # fmt: skip
def test_a_barrier_is_local_unless_its_flag_says_otherwise(
    masks: tuple[int, int], kind: int, among: int, across: bool, hazard: bool
) -> None:
    found, verdict = judged(filled_and_copied(masks, kind, FILL_TO_COPY, among=among, across=across))
    assert bool(found) == hazard
    assert verdict == ("hazards" if hazard else "clean")


@pytest.mark.parametrize("changed", [
    {"srcStageMask": COPY}, {"dstStageMask": CLEAR}, {"srcAccessMask": 0}, {"dstAccessMask": 0},
    {"dstAccessMask": WRITE},
])  # fmt: skip
def test_a_barrier_between_devices_has_its_scopes(changed: dict[str, int]) -> None:
    found, _ = judged(filled_and_copied((1, 2), SINGLE, {**FILL_TO_COPY, **changed}, across=True))
    assert len(found) == 1


@pytest.mark.parametrize(("named", "hazard"), [(0, False), (1, True)])
def test_a_barrier_between_devices_covers_its_range(named: int, hazard: bool) -> None:
    stream = GroupStream()
    several = [stream.bound(stream.allocate(SINGLE)), stream.bound(stream.allocate(SINGLE))]
    target = stream.bound(stream.allocate(SEVERAL))
    stream.begin()
    stream.mask(1)
    stream.fill(several[0], 7)
    stream.mask(BOTH)
    stream.order({}, across=True, pBufferMemoryBarriers=[of_buffer(several[named])])
    stream.mask(2)
    stream.copy(several[0], target, 16)
    stream.execute()
    found, verdict = judged(stream)
    assert bool(found) == hazard and verdict == ("hazards" if hazard else "clean")


@pytest.mark.parametrize(("signal", "wait", "hazard"), [(0, 1, False), (1, 1, True), (0, 0, True), (1, 0, True)])
def test_a_semaphore_is_of_the_devices_of_its_indices(signal: int, wait: int, hazard: bool) -> None:
    stream = GroupStream()
    a, b = stream.bound(stream.allocate(SINGLE)), stream.bound(stream.allocate(SEVERAL))
    done = stream.semaphore()
    stream.begin()
    stream.fill(a, 7)
    stream.execute(1, signal=(done, signal))
    stream.begin()
    stream.copy(a, b, 16)
    stream.execute(2, wait=(done, wait))
    found, verdict = judged(stream)
    assert bool(found) == hazard and verdict == ("hazards" if hazard else "clean")


@pytest.mark.parametrize(("reset", "hazard"), [(False, False), (True, True)])
def test_a_fence_covers_all_devices(reset: bool, hazard: bool) -> None:
    """The second device's work is complete when the fence is signaled, too."""
    stream = GroupStream()
    a, b = stream.bound(stream.allocate(SINGLE)), stream.bound(stream.allocate(SEVERAL))
    fence = stream.make("vkCreateFence", "pFence", struct("VkFenceCreateInfo"))
    stream.begin()
    stream.fill(a, 7)
    stream.execute(2, fence=fence)
    if reset:
        stream.call("vkResetFences", device=stream.device, pFences=[fence])
    stream.call("vkWaitForFences", device=stream.device, pFences=[fence], waitAll=1)
    stream.blocks[-1].result = 0  # type: ignore[union-attr]
    stream.begin()
    stream.copy(a, b, 16)
    stream.execute(1)
    assert bool(judged(stream)[0]) == hazard


@pytest.mark.parametrize(("indices", "filled", "copied", "hazard"), [
    ([1, 0], 1, 2, True), ([1, 0], 1, 1, False), ([0, 1], 1, 1, True), ([1, 1], 3, 1, False), ([1, 1], 1, 2, True),
])  # fmt: skip
def test_a_resource_reaches_the_instances_that_are_bound(
    indices: list[int], filled: int, copied: int, hazard: bool
) -> None:
    """The copy reads from a buffer of the same memory with an instance of its own on each physical device."""
    stream = GroupStream()
    memory = stream.allocate(SEVERAL)
    peer, own = stream.bound(memory, indices), stream.bound(memory)
    target = stream.bound(stream.allocate(SEVERAL))
    stream.begin()
    stream.mask(filled & 1 or filled)
    stream.fill(peer, 7)
    stream.mask(copied)
    stream.copy(own, target, 16)
    stream.execute()
    assert bool(judged(stream)[0]) == hazard


@pytest.mark.parametrize(("mask", "kind", "hazard"), [(0, SEVERAL, False), (0, SINGLE, True), (2, SEVERAL, True)])
def test_memory_has_the_instances_of_its_mask_and_heap(mask: int, kind: int, hazard: bool) -> None:
    """Where both physical devices are bound to one instance, what they write is the same memory."""
    stream = GroupStream()
    memory = stream.allocate(kind, mask)
    a = stream.bound(memory, [1, 1] if mask else None)
    stream.begin()
    stream.fill(a, 7)
    stream.execute()
    assert bool(judged(stream)[0]) == hazard


def test_the_host_meets_the_only_instance_of_memory() -> None:
    """The first instance of this memory is that of the second physical device, and the host writes it."""
    stream = GroupStream()
    memory = stream.allocate(SEVERAL, 0b10)
    a, b = stream.bound(memory, [1, 1]), stream.bound(stream.allocate(SEVERAL))
    stream.begin()
    stream.copy(a, b, 16)
    stream.execute(2)
    stream.host_write(memory, 0, bytes(16))
    assert judged(stream)[0] == ["WRITE_AFTER_READ"] or judged(stream)[0] == ["WRITE_RACING_READ"]


@pytest.mark.parametrize(("begun", "submitted", "hazard"), [
    (None, 0, True), (1, 0, False), (None, 1, False), (2, 3, False), (3, 3, True), (1, 2, False),
])  # fmt: skip
def test_commands_execute_where_both_masks_have_the_device(begun: int | None, submitted: int, hazard: bool) -> None:
    """Each physical device of both masks writes the memory, whose only instance is that of the first one. A mask of 0
    in VkCommandBufferSubmitInfo stands for all."""
    stream = GroupStream()
    a = stream.bound(stream.allocate(SINGLE))
    stream.begin()
    if begun is not None:
        link = struct("VkDeviceGroupCommandBufferBeginInfo", deviceMask=begun)
        info = struct("VkCommandBufferBeginInfo", pNext=link)
        stream.call("vkBeginCommandBuffer", commandBuffer=stream.commands, pBeginInfo=info)
    stream.fill(a, 7)
    stream.execute(submitted)
    assert bool(judged(stream)[0]) == hazard


@pytest.mark.parametrize(("masks", "hazard"), [(None, False), ([1], False), ([2], True), ([3], True)])
def test_the_first_form_of_a_submit_executes_on_device_zero(masks: list[int] | None, hazard: bool) -> None:
    """Without VkDeviceGroupSubmitInfo command buffers execute on device index zero. The copy does so elsewhere."""
    stream = GroupStream()
    a, b = stream.bound(stream.allocate(SINGLE)), stream.bound(stream.allocate(SEVERAL))
    done = stream.semaphore()
    stream.begin()
    stream.fill(a, 7)
    stream.end()
    link = None
    if masks is not None:
        link = struct("VkDeviceGroupSubmitInfo", pCommandBufferDeviceMasks=masks, pSignalSemaphoreDeviceIndices=[0])
    batch = struct("VkSubmitInfo", pCommandBuffers=[stream.commands], pSignalSemaphores=[done], pNext=link)
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[batch])
    stream.begin()
    stream.copy(a, b, 16)
    stream.execute(2, wait=(done, 1))
    assert bool(judged(stream)[0]) == hazard


@pytest.mark.parametrize(("across", "hazard"), [(True, False), (False, True)])
def test_dependencies_chain_through_another_device(across: bool, hazard: bool) -> None:
    """The second physical device fills, the first one signals, and the second one waits and copies on another queue."""
    stream = GroupStream()
    other = stream.id()
    stream.call("vkGetDeviceQueue", device=stream.device, pQueue=other)
    a, b = stream.bound(stream.allocate(SEVERAL)), stream.bound(stream.allocate(SEVERAL))
    done = stream.semaphore()
    stream.begin()
    stream.mask(2)
    stream.fill(a, 7)
    stream.mask(BOTH)
    stream.order({**FILL_TO_COPY, "dstStageMask": 1 << 16}, across=across)
    stream.execute(signal=(done, 0))
    stream.begin()
    stream.copy(a, b, 16)
    stream.execute(2, wait=(done, 1), queue=other)
    assert bool(judged(stream)[0]) == hazard


def test_devices_take_turns() -> None:
    """Barriers between two physical devices, again and again, and a last copy that none of them orders."""
    stream = GroupStream()
    a, b = stream.bound(stream.allocate(SINGLE)), stream.bound(stream.allocate(SINGLE))
    both = {"srcStageMask": CLEAR | COPY, "dstStageMask": CLEAR | COPY}
    stream.begin()
    for turn in range(6):
        stream.mask(1 << turn % 2)
        stream.fill(a, turn)
        stream.copy(a, b, 16) if turn == 5 else None
        stream.mask(BOTH)
        stream.order({**both, "srcAccessMask": WRITE | READ, "dstAccessMask": WRITE | READ}, across=True)
    stream.execute()
    found, _ = judged(stream)
    assert found == [RAW]


@pytest.mark.parametrize(("masks", "inner", "hazard"), [((1, 1), 3, True), ((1, 2), 3, False), ((3, 3), 2, True)])
def test_a_secondary_is_executed_by_the_devices_of_the_primary(
    masks: tuple[int, int], inner: int, hazard: bool
) -> None:
    stream = GroupStream()
    a, b = stream.bound(stream.allocate(SEVERAL)), stream.bound(stream.allocate(SEVERAL))
    secondary = stream.begin(level=1)
    stream.mask(inner)
    stream.fill(a, 7)
    stream.end()
    stream.begin()
    stream.mask(masks[0])
    stream.cmd("ExecuteCommands", pCommandBuffers=[secondary])
    stream.mask(masks[1])
    stream.copy(a, b, 16)
    stream.execute()
    assert bool(judged(stream)[0]) == hazard


@pytest.mark.parametrize(("across", "verdict"), [(False, "clean"), (True, "unknown")])
def test_a_barrier_between_devices_in_a_secondary_is_named(across: bool, verdict: str) -> None:
    stream = GroupStream()
    a, b = stream.bound(stream.allocate(SEVERAL)), stream.bound(stream.allocate(SEVERAL))
    secondary = stream.begin(level=1)
    stream.fill(a, 7)
    stream.order(FILL_TO_COPY, across=across)
    stream.copy(a, b, 16)
    stream.end()
    stream.begin()
    stream.cmd("ExecuteCommands", pCommandBuffers=[secondary])
    stream.execute()
    assert judged(stream) == ([], verdict)


def test_the_report_names_the_device_index() -> None:
    (finding,) = Analysis().follow(filled_and_copied((1, 2), SINGLE, None).blocks).findings
    said = finding_text(finding).plain
    assert "queue 2, device index 1)" in said and "queue 2)" in said and "VK_DEPENDENCY_DEVICE_GROUP_BIT" in said
    assert finding.to_dict()["queue"] == 2


@pytest.mark.parametrize(("held", "hazard"), [(True, False), (False, True)])
def test_a_wait_that_is_submitted_before_its_signal(held: bool, hazard: bool) -> None:
    """A batch waits on one physical device for a value that the host signals later. Barriers in it are in order."""
    stream = GroupStream()
    a, b = stream.bound(stream.allocate(SINGLE)), stream.bound(stream.allocate(SEVERAL))
    timeline = stream.timeline()
    stream.begin()
    stream.mask(1)
    stream.fill(a, 7)
    stream.mask(BOTH)
    stream.order(FILL_TO_COPY, across=held)
    stream.mask(2)
    stream.copy(a, b, 16)
    stream.end()
    commands = [struct("VkCommandBufferSubmitInfo", commandBuffer=stream.commands)]
    waits = [struct("VkSemaphoreSubmitInfo", semaphore=timeline, value=1, stageMask=1 << 16)]
    batch = struct("VkSubmitInfo2", pWaitSemaphoreInfos=waits, pCommandBufferInfos=commands)
    stream.call("vkQueueSubmit2", queue=stream.queue, pSubmits=[batch])
    info = struct("VkSemaphoreSignalInfo", semaphore=timeline, value=1)
    stream.call("vkSignalSemaphore", device=stream.device, pSignalInfo=info)
    assert bool(judged(stream)[0]) == hazard


@pytest.mark.parametrize("told", [True, False])
def test_a_heap_of_which_nothing_is_known_is_named(told: bool) -> None:
    stream = GroupStream(told=told)
    a, b = stream.bound(stream.allocate(SEVERAL)), stream.bound(stream.allocate(SEVERAL))
    stream.begin()
    stream.copy(a, b, 16)
    stream.execute()
    assert judged(stream) == ([], "clean" if told else "unknown")


def test_a_group_of_one_is_judged_as_any_device() -> None:
    stream = GroupStream(1)
    a, b = stream.bound(stream.allocate(SEVERAL)), stream.bound(stream.allocate(SEVERAL))
    stream.begin()
    stream.mask(1)
    stream.fill(a, 7)
    stream.order(FILL_TO_COPY, across=True)
    stream.copy(a, b, 16)
    stream.execute(1)
    stream.begin()
    stream.fill(b, 1)
    stream.execute(0)
    found, _ = judged(stream)
    assert found == ["WRITE_AFTER_WRITE"]
