"""Exports and imports of payloads: which objects are one, and who is outside."""

from __future__ import annotations

import pytest

from tests.support.payloads import SYNC_FILE, Programs
from tests.support.streams import ALL_COMMANDS, SRC, struct
from vkharness.check import Analysis
from vkharness.spec.enums import (
    VK_QUEUE_FAMILY_EXTERNAL,
    VK_WHOLE_SIZE,
    VkExternalFenceHandleType,
    VkFenceImport,
    VkSemaphoreImport,
)
from vkharness.trace.calls import Call


def fill_and_copy(made: Programs, signaled: int, waited: int) -> list[str]:
    """One queue fills what the other one copies."""
    a, b = made.buffer(16), made.buffer(16)
    made.begin()
    made.fill(a, 7)
    made.run(made.queue, signals=[signaled])
    made.begin()
    made.copy(a, b, 16)
    made.run(made.other, waits=[waited])
    return made.hazards()


def test_an_import_makes_two_semaphores_one() -> None:
    made = Programs()
    ours, theirs = made.semaphore(), made.semaphore()
    made.bring(theirs, made.export(ours))
    assert fill_and_copy(made, ours, theirs) == []


def test_semaphores_that_nobody_imports_are_two() -> None:
    made = Programs()
    found = fill_and_copy(made, made.semaphore(), made.semaphore())
    assert found == ["semaphore-not-signaled", "READ_RACING_WRITE"]


def test_another_descriptor_of_the_same_file_is_the_same_payload() -> None:
    made = Programs()
    ours, theirs = made.semaphore(), made.semaphore()
    made.export(ours, file="1:2")
    made.bring(theirs, 99, file="1:2")
    assert fill_and_copy(made, theirs, ours) == []


def test_a_descriptor_that_stands_for_another_file_now_is_another_payload() -> None:
    made = Programs()
    ours, theirs, given = made.semaphore(), made.semaphore(), made.semaphore()
    made.bring(theirs, made.export(ours, file="1:2"), file="1:3")
    assert fill_and_copy(made, given, theirs) == ["READ_RACING_WRITE"]


def test_a_wait_ends_a_temporary_import() -> None:
    made = Programs()
    ours, theirs = made.semaphore(), made.semaphore()
    made.bring(theirs, made.export(ours), flags=VkSemaphoreImport.TEMPORARY)
    assert fill_and_copy(made, ours, theirs) == []
    assert fill_and_copy(made, ours, theirs) == ["semaphore-not-signaled", "READ_RACING_WRITE"]


def test_a_permanent_import_ends_the_payload_before() -> None:
    made = Programs()
    ours, theirs = made.semaphore(), made.semaphore()
    a, b = made.buffer(16), made.buffer(16)
    made.begin()
    made.fill(a, 7)
    made.run(made.queue, signals=[theirs])
    made.bring(theirs, made.export(ours))
    made.begin()
    made.copy(a, b, 16)
    made.run(made.other, waits=[theirs])
    assert made.hazards() == ["READ_RACING_WRITE"]


@pytest.mark.parametrize("imported", [True, False])
def test_a_sync_file_takes_the_signal_along(imported: bool) -> None:
    made = Programs()
    ours, theirs = made.semaphore(), made.semaphore()
    a, b = made.buffer(16), made.buffer(16)
    made.begin()
    made.fill(a, 7)
    made.run(made.queue, signals=[ours])
    fd = made.export(ours, handle=SYNC_FILE)
    made.bring(theirs, fd, handle=SYNC_FILE, flags=VkSemaphoreImport.TEMPORARY)
    made.begin()
    made.copy(a, b, 16)
    made.run(made.other, waits=[theirs if imported else ours])
    assert made.hazards() == ([] if imported else ["semaphore-not-signaled", "READ_RACING_WRITE"])


def test_a_sync_file_that_has_signaled_is_waited_for_in_no_time() -> None:
    made = Programs()
    ours, theirs = made.semaphore(), made.semaphore()
    made.bring(theirs, -1, handle=SYNC_FILE, flags=VkSemaphoreImport.TEMPORARY)
    assert fill_and_copy(made, ours, theirs) == ["READ_RACING_WRITE"]


def test_what_is_exported_and_not_imported_is_signaled_outside() -> None:
    made = Programs()
    given, taken = made.semaphore(), made.semaphore()
    made.export(given)
    made.bring(taken, 99)
    assert fill_and_copy(made, given, taken) == []


def test_the_outside_knows_nothing_of_other_signals() -> None:
    made = Programs()
    taken = made.semaphore()
    made.bring(taken, 99)
    assert fill_and_copy(made, made.semaphore(), taken) == ["READ_RACING_WRITE"]


def test_a_timeline_from_outside_holds_nothing_back() -> None:
    made = Programs()
    given, taken = made.semaphore(), made.semaphore(timeline=True)
    made.export(given)
    made.bring(taken, 99)
    a, b = made.buffer(16), made.buffer(16)
    made.begin()
    made.fill(a, 7)
    made.run(made.queue, signals=[given])
    info = struct("VkSemaphoreWaitInfo", pSemaphores=[taken], pValues=[4])
    made.call("vkWaitSemaphores", device=made.device, pWaitInfo=info, timeout=1)
    call = made.blocks[-1]
    assert isinstance(call, Call)
    call.result = 0
    made.begin()
    made.copy(a, b, 16)
    made.run(made.other)
    assert made.hazards() == []


@pytest.mark.parametrize("reset", [True, False])
def test_a_reset_ends_a_temporary_import_of_a_fence(reset: bool) -> None:
    made = Programs()
    ours, theirs = (made.make("vkCreateFence", "pFence", struct("VkFenceCreateInfo")) for _ in range(2))
    fd = made.export(ours, "Fence", VkExternalFenceHandleType.OPAQUE_FD)
    made.bring(theirs, fd, "Fence", VkExternalFenceHandleType.OPAQUE_FD, VkFenceImport.TEMPORARY)
    a, b = made.buffer(16), made.buffer(16)
    made.begin()
    made.fill(a, 7)
    made.run(made.queue, fence=ours)
    if reset:
        made.call("vkResetFences", device=made.device, fenceCount=1, pFences=[theirs])
    made.call("vkWaitForFences", device=made.device, fenceCount=1, pFences=[theirs], waitAll=1)
    for call in made.blocks[-2:]:
        assert isinstance(call, Call)
        call.result = 0
    made.begin()
    made.copy(a, b, 16)
    made.run(made.other)
    assert made.hazards() == (["READ_RACING_WRITE"] if reset else [])


class TestMemory:
    """Images on one memory, through two memory objects."""

    def images(self, made: Programs) -> tuple[int, int]:
        memory = made.memory()
        one = self.image(made, memory)
        return one, self.image(made, made.bring_memory(made.export(memory, "Memory", 1)))

    def image(self, made: Programs, memory: int) -> int:
        image = made.image((4, 4, 1))
        bind = made.blocks[-1]
        assert isinstance(bind, Call)
        bind.args["memory"] = memory
        return image

    def test_images_alike_are_one(self) -> None:
        made = Programs()
        one, other = self.images(made)
        made.begin()
        made.clear(one, (0, 0, 0, 0))
        made.clear(other, (1, 1, 1, 1))
        made.run(made.queue)
        found = Analysis().follow(made.blocks).findings
        assert [(each.hazard, each.resource) for each in found] == [("WRITE_AFTER_WRITE", one)]

    def test_one_of_two_objects_leaves_the_image_to_the_other(self) -> None:
        made = Programs()
        one, other = self.images(made)
        made.call("vkDestroyImage", device=made.device, image=one)
        made.begin()
        made.clear(other, (0, 0, 0, 0))
        made.clear(other, (1, 1, 1, 1))
        made.run(made.queue)
        assert made.hazards() == ["WRITE_AFTER_WRITE"]

    def test_a_transfer_has_both_halves_in_the_trace(self) -> None:
        assert self.moved(released=True) == []
        assert self.moved(released=False) == ["ownership-not-released"]

    def moved(self, released: bool) -> list[str]:
        made = Programs()
        one, other = self.images(made)
        given = made.semaphore()
        made.begin()
        made.clear(one, (0, 0, 0, 0))
        made.barrier()
        if released:
            self.transfer(made, one, 0, VK_QUEUE_FAMILY_EXTERNAL)
        made.run(made.queue, signals=[given])
        made.begin()
        self.transfer(made, other, VK_QUEUE_FAMILY_EXTERNAL, 0)
        made.run(made.other, waits=[given])
        return made.hazards()

    def transfer(self, made: Programs, image: int, source: int, target: int) -> None:
        made.transition(image, SRC, SRC)
        call = made.blocks[-1]
        assert isinstance(call, Call)
        (barrier,) = call.args["pImageMemoryBarriers"]
        barrier |= {"srcQueueFamilyIndex": source, "dstQueueFamilyIndex": target}

    def test_memory_from_outside_that_is_imported_twice_is_one(self) -> None:
        made = Programs()
        one = made.buffer(16, made.bring_memory(99, file="5:6"))
        other = made.buffer(16, made.bring_memory(98, file="5:6"))
        made.begin()
        made.fill(one, 1)
        made.fill(other, 2)
        made.run(made.queue)
        assert made.hazards() == ["WRITE_AFTER_WRITE"]

    @pytest.mark.parametrize("released", [True, False])
    def test_a_buffer_is_transferred_to_the_one_that_is_alike(self, released: bool) -> None:
        made = Programs()
        memory = made.memory()
        one = made.buffer(16, memory)
        other = made.buffer(16, made.bring_memory(made.export(memory, "Memory", 1)))
        given = made.semaphore()
        made.begin()
        made.fill(one, 1)
        made.barrier()
        if released:
            self.hand_over(made, one, 0, VK_QUEUE_FAMILY_EXTERNAL)
        made.run(made.queue, signals=[given])
        made.begin()
        self.hand_over(made, other, VK_QUEUE_FAMILY_EXTERNAL, 0)
        made.run(made.other, waits=[given])
        found = Analysis().follow(made.blocks)
        expected = [] if released else ["ownership-not-released"]
        assert [each.hazard for each in found.findings] == expected
        assert {each.resource for each in found.findings} <= {one}

    def hand_over(self, made: Programs, buffer: int, source: int, target: int) -> None:
        families = {"srcQueueFamilyIndex": source, "dstQueueFamilyIndex": target}
        half = struct("VkBufferMemoryBarrier", buffer=buffer, offset=0, size=VK_WHOLE_SIZE, **families)
        stages = {"srcStageMask": ALL_COMMANDS, "dstStageMask": ALL_COMMANDS}
        made.cmd("PipelineBarrier", **stages, pBufferMemoryBarriers=[half])

    def test_buffers_of_other_sizes_are_two(self) -> None:
        made = Programs()
        memory = made.memory()
        made.buffer(16, memory)
        other = made.buffer(32, made.bring_memory(made.export(memory, "Memory", 1)))
        made.begin()
        made.fill(other, 1)
        made.fill(other, 2)
        made.run(made.queue)
        assert [each.resource for each in Analysis().follow(made.blocks).findings] == [other]
