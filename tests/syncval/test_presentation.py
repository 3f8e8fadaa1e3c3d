"""The presentation engine over plain stream events (rules.md#presentation)."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from tests.support.effects import ALL_COMMANDS, barrier, dependency
from tests.support.judged import Device, operation, read, write
from tests.support.streams import R8G8B8A8, Stream, struct
from vkharness.check import Analysis
from vkharness.spec.enums import VkResult
from vkharness.trace.calls import Call
from vkharness.trace.effects import Barrier, Destroyed, FenceReset, RangeBarrier

IMAGE, OTHER, SHARED = 102, 103, 104
G, C = 1, 2
ACQUIRED, RENDERED = 7, 2000
"""Semaphores: of an acquire, and of the presents of an image, counted from here."""
FRESH = count(5000)
"""Semaphores that nobody has used."""


def move(src: str, dst: str) -> Barrier:
    """A transition of the image from UNDEFINED."""
    return Barrier(
        (),
        ranges=(
            RangeBarrier(dependency(src, dst), IMAGE, ((0, 64),), IMAGE, transition=True, old_layout=0, new_layout=7),
        ),
    )


def frame(device: Device, image: int = IMAGE) -> list[str]:
    """Acquire, write, present, all in order."""
    taken, rendered = next(FRESH), RENDERED + image
    found = device.acquire(image, taken)
    found += device.submit(G, write(image), waits=[operation(taken, "COPY")], signals=[operation(rendered)])
    return found + device.present(G, image, waits=(rendered,))


def acquired() -> Device:
    """A device that has called for the image; the semaphore says when it is there."""
    device = Device()
    device.acquire(IMAGE, ACQUIRED)
    return device


# -- acquire -----------------------------------------------------------------------------------------------------------


def test_frames_in_order_are_clean() -> None:
    device = Device()
    assert [frame(device) for _ in range(3)] == [[], [], []]


def test_an_image_is_not_used_before_its_acquire_is_waited_for() -> None:
    device = acquired()
    assert device.submit(G, write(IMAGE)) == ["WRITE_AFTER_PRESENT"]
    device = Device()
    frame(device)
    device.acquire(IMAGE, ACQUIRED)
    assert device.submit(G, read(IMAGE)) == ["READ_AFTER_PRESENT"]


def test_an_image_is_not_used_after_it_was_presented() -> None:
    device = Device()
    frame(device)
    assert device.submit(G, read(IMAGE)) == ["READ_AFTER_PRESENT"]


def test_the_stage_of_the_wait_counts() -> None:
    device = acquired()
    assert device.submit(G, move("NONE", "COPY/TRANSFER_WRITE"), waits=[operation(ACQUIRED, "COPY")]) == [
        "WRITE_AFTER_READ"
    ]
    assert device.found[0].prior.command == "vkAcquireNextImageKHR"
    device = acquired()
    assert device.submit(G, move("COPY", "COPY/TRANSFER_WRITE"), waits=[operation(ACQUIRED, "COPY")]) == []


def test_each_acquire_is_about_its_own_image() -> None:
    """The wait for a later acquire, even of another swapchain, says nothing of an earlier one."""
    for swapchain in (1, 2):
        device = acquired()
        device.acquire(OTHER, 9, swapchain=swapchain)
        assert device.submit(G, write(IMAGE), write(OTHER), waits=[operation(9)]) == ["WRITE_AFTER_PRESENT"]
        assert device.found[0].resource == IMAGE


@pytest.mark.parametrize(("image", "found"), [(IMAGE, []), (OTHER, ["WRITE_AFTER_WRITE"])])
def test_an_acquires_fence_covers_the_frame_that_the_image_showed(image: int, found: list[str]) -> None:
    """The engine has read the image, and waited for the frame before it did."""
    device = acquired()
    used = write(IMAGE), write(SHARED)
    device.submit(G, *used, waits=[operation(ACQUIRED, "COPY")], signals=[operation(RENDERED)])
    device.present(G, IMAGE, waits=(RENDERED,))
    device.acquire(image, fence=5)
    device.wait(5)
    assert device.submit(G, write(SHARED)) == found


def test_a_narrow_signal_for_a_present_covers_no_more() -> None:
    device = acquired()
    used = write(IMAGE), write(SHARED)
    device.submit(G, *used, waits=[operation(ACQUIRED, "COPY")], signals=[operation(RENDERED, "BLIT")])
    device.present(G, IMAGE, waits=(RENDERED,))
    device.acquire(IMAGE, fence=5)
    device.wait(5)
    assert device.submit(G, write(SHARED)) == ["WRITE_AFTER_WRITE"]


def test_an_acquires_fence_gives_its_image_back() -> None:
    device = Device()
    frame(device)
    frame(device, OTHER)
    device.acquire(IMAGE, fence=5)
    device.acquire(OTHER, fence=6)
    device.wait(5)
    assert device.submit(G, write(IMAGE)) == []
    assert device.submit(G, write(OTHER)) == ["WRITE_AFTER_PRESENT"]


def test_an_acquires_fence_gives_back_what_was_read_too_early() -> None:
    device = Device()
    frame(device)
    device.acquire(IMAGE, fence=5)
    assert device.submit(G, read(IMAGE)) == ["READ_AFTER_PRESENT"]
    device.wait(5)
    assert device.submit(G, barrier("COPY", "COPY"), write(IMAGE)) == []
    device.validator._context._check()


def test_a_fence_that_was_reset_is_about_nothing() -> None:
    device = Device()
    device.acquire(IMAGE, fence=5)
    device.take(FenceReset((5,)))
    device.wait(5)
    assert device.submit(G, write(IMAGE)) == ["WRITE_AFTER_PRESENT"]


@pytest.mark.parametrize("queue", [0, G])
def test_idle_waits_say_nothing_of_the_engine(queue: int) -> None:
    device = Device()
    frame(device)
    device.wait(queue=queue)
    assert device.submit(G, write(IMAGE)) == ["WRITE_AFTER_PRESENT"]


def test_a_fence_of_a_submit_that_waited_for_an_acquire_says_nothing_of_later_presents() -> None:
    device = acquired()
    work = {"waits": [operation(ACQUIRED)], "signals": [operation(RENDERED)]}
    device.submit(G, write(IMAGE), fence=5, **work)
    device.present(G, IMAGE, waits=(RENDERED,))
    device.wait(5)
    assert device.submit(G, write(IMAGE)) == ["WRITE_AFTER_PRESENT"]


def test_images_go_with_their_swapchain() -> None:
    device = Device()
    frame(device)
    device.take(Destroyed(IMAGE))
    assert device.submit(G, write(IMAGE)) == []


# -- present -----------------------------------------------------------------------------------------------------------


def test_a_present_waits_for_what_was_done_to_its_image() -> None:
    for used, hazard in ((write(IMAGE), "PRESENT_AFTER_WRITE"), (read(IMAGE), "PRESENT_AFTER_READ")):
        device = acquired()
        device.submit(G, used, waits=[operation(ACQUIRED)], signals=[operation(RENDERED)])
        assert device.present(G, IMAGE) == [hazard]
        assert device.found[0].place.command == "vkQueuePresentKHR"


def test_what_is_available_is_visible_to_the_engine() -> None:
    """A transition to nothing, and the semaphore: no second scope is needed."""
    device = acquired()
    steps = write(IMAGE), move("COPY/TRANSFER_WRITE", "NONE")
    assert device.submit(G, *steps, waits=[operation(ACQUIRED, "COPY")], signals=[operation(RENDERED)]) == []
    assert device.present(G, IMAGE, waits=(RENDERED,)) == []


def test_what_came_after_the_signal_is_not_covered() -> None:
    device = acquired()
    device.submit(G, waits=[operation(ACQUIRED)], signals=[operation(RENDERED)])
    device.submit(G, write(IMAGE))
    assert device.present(G, IMAGE, waits=(RENDERED,)) == ["PRESENT_AFTER_WRITE"]


@pytest.mark.parametrize(("stage", "met"), [("COPY", []), ("COMPUTE_SHADER", ["PRESENT_AFTER_WRITE"])])
def test_the_stage_of_the_signal_counts(stage: str, met: list[str]) -> None:
    device = acquired()
    device.submit(G, write(IMAGE), waits=[operation(ACQUIRED)], signals=[operation(RENDERED, stage)])
    device.submit(G, barrier("COPY/TRANSFER_WRITE", "COMPUTE_SHADER/SHADER_READ"))
    assert device.present(G, IMAGE, waits=(RENDERED,)) == met


def test_an_earlier_present_says_nothing_of_a_later_one() -> None:
    device = acquired()
    device.acquire(OTHER, 9)
    waits = [operation(ACQUIRED), operation(9)]
    device.submit(G, write(IMAGE), write(OTHER), waits=waits, signals=[operation(RENDERED)])
    assert device.present(G, IMAGE, waits=(RENDERED,)) == []
    assert device.present(G, OTHER) == ["PRESENT_AFTER_WRITE"]


def test_one_present_of_several_images_waits_for_all() -> None:
    device = acquired()
    device.acquire(OTHER, 9)
    waits = [operation(ACQUIRED), operation(9)]
    device.submit(G, write(IMAGE), waits=waits, signals=[operation(RENDERED)])
    device.submit(G, write(OTHER), signals=[operation(10)])
    assert device.present(G, IMAGE, OTHER, waits=(RENDERED,)) == ["PRESENT_AFTER_WRITE"]
    assert device.found[0].resource == OTHER


def test_semaphores_carry_other_queues_to_the_engine() -> None:
    device = acquired()
    device.submit(C, write(IMAGE), waits=[operation(ACQUIRED)], signals=[operation(9)])
    device.submit(G, waits=[operation(9)], signals=[operation(RENDERED)])
    assert device.present(G, IMAGE, waits=(RENDERED,)) == []


def test_what_the_host_waited_for_needs_no_semaphore() -> None:
    device = acquired()
    device.finish(G, write(IMAGE), waits=[operation(ACQUIRED)], fence=5)
    assert device.present(G, IMAGE) == []


def test_frames_leave_nothing_behind() -> None:
    device = Device()
    for number in range(200):
        assert frame(device, IMAGE + number % 3) == []
    context = device.validator._context
    context._check()
    assert context.ranges == 3
    assert len(device.validator._queues._clocks) <= 2


# -- the calls ---------------------------------------------------------------------------------------------------------

OUT_OF_DATE = VkResult.ERROR_OUT_OF_DATE_KHR
SUBOPTIMAL = VkResult.SUBOPTIMAL_KHR
OUT_OF_MEMORY = VkResult.ERROR_OUT_OF_DEVICE_MEMORY


class Window(Stream):
    """A stream with a swapchain of two images."""

    def __init__(self) -> None:
        super().__init__()
        self.swapchain, self.images = self.swap(0)
        self.ready = self.done = 0

    def semaphore(self) -> int:
        return self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))

    def swap(self, old: int) -> tuple[int, list[int]]:
        """A swapchain in the place of an old one, and its images."""
        size = {"width": 4, "height": 4}
        info = struct(
            "VkSwapchainCreateInfoKHR", imageFormat=R8G8B8A8, imageExtent=size, imageArrayLayers=1, oldSwapchain=old
        )
        made, images = self.make("vkCreateSwapchainKHR", "pSwapchain", info), [self.id(), self.id()]
        self.call("vkGetSwapchainImagesKHR", device=self.device, swapchain=made, pSwapchainImages=images)
        return made, images

    def acquire(self, index: int, result: int = 0, semaphore: int = 0) -> None:
        self.ready = semaphore or self.semaphore()
        args = {"swapchain": self.swapchain, "semaphore": self.ready, "fence": 0, "pImageIndex": index}
        self.add("vkAcquireNextImageKHR", result, {"device": self.device, "timeout": 0, **args})

    def render(self, index: int) -> None:
        """Writes the image after the acquire, and signals."""
        self.done = self.semaphore()
        self.begin()
        self.clear(self.images[index], (1, 1, 1, 1))
        self.end()
        info = struct(
            "VkSubmitInfo",
            pWaitSemaphores=[self.ready],
            pWaitDstStageMask=[ALL_COMMANDS],
            pCommandBuffers=[self.commands],
            pSignalSemaphores=[self.done],
        )
        self.call("vkQueueSubmit", queue=self.queue, pSubmits=[info])

    def present(self, index: int, result: int = 0, waits: tuple[int, ...] | None = None, swapchain: int = 0) -> None:
        info = struct(
            "VkPresentInfoKHR",
            pWaitSemaphores=list((self.done,) if waits is None else waits),
            pSwapchains=[swapchain or self.swapchain],
            pImageIndices=[index],
        )
        self.add("vkQueuePresentKHR", result, {"queue": self.queue, "pPresentInfo": info})

    def add(self, name: str, result: int, args: dict[str, Any]) -> None:
        self.blocks.append(Call(len(self.blocks) + 1, name, args, result))

    def found(self) -> list[str]:
        mirror = Analysis().follow(self.blocks)
        assert mirror.unmodelled == {}
        return [finding.hazard for finding in mirror.findings]


def rendered() -> Window:
    """A window whose first image was acquired and written."""
    window = Window()
    window.acquire(0)
    window.render(0)
    return window


@pytest.mark.parametrize("result", [0, SUBOPTIMAL, OUT_OF_DATE])
def test_a_present_that_is_rejected_still_takes_the_image_and_the_semaphore(result: int) -> None:
    window = rendered()
    window.present(0, result)
    window.acquire(0)
    window.render(0)
    window.present(0)
    assert window.found() == []
    window.render(0)
    assert window.found() == ["semaphore-not-signaled", "WRITE_AFTER_PRESENT"]


def test_a_present_that_failed_did_nothing() -> None:
    window = rendered()
    window.present(0, OUT_OF_MEMORY, waits=())
    assert window.found() == []


def test_an_acquire_that_gave_no_image_did_nothing() -> None:
    window = rendered()
    window.acquire(0, OUT_OF_DATE, semaphore=window.semaphore())
    window.present(0)
    assert window.found() == []


def test_images_of_a_retired_swapchain_can_still_be_presented() -> None:
    window = Window()
    old = window.swapchain
    window.acquire(0)
    window.render(0)
    window.swapchain, window.images = window.swap(old)
    window.present(0, swapchain=old)
    window.acquire(1)
    window.render(1)
    window.present(1)
    window.call("vkDestroySwapchainKHR", device=window.device, swapchain=old)
    assert window.found() == []


def test_and_need_their_semaphores() -> None:
    window = Window()
    old = window.swapchain
    window.acquire(0)
    window.render(0)
    window.swapchain, window.images = window.swap(old)
    window.present(0, waits=(), swapchain=old)
    assert window.found() == ["PRESENT_AFTER_WRITE"]
