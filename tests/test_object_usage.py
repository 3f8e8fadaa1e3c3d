"""Uses of semaphores and fences, by whole calls: both judges, and the VUIDs of the findings.

docs/rules.md has the rules in its section on uses of semaphores and fences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.effects import ALL_COMMANDS
from tests.support.streams import R8G8B8A8, Stream, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.findings import Finding, Hazard
from vkharness.fuzz import filled_calls
from vkharness.report.rules import rule_of
from vkharness.trace.calls import Call
from vkharness.vuids import VUIDS

FIRST, SECOND = 0, 1


class Program(Stream):
    """A program with a swapchain of two images and two queues."""

    def __init__(self) -> None:
        super().__init__()
        self.other = self.id()
        self.call("vkGetDeviceQueue", device=self.device, queueFamilyIndex=0, queueIndex=1, pQueue=self.other)
        self.swapchain = self.swap(0)

    def swap(self, old: int, fetched: bool = True) -> int:
        """A swapchain with images of its own, which the program fetches at once or not."""
        size = {"width": 4, "height": 4}
        info = struct(
            "VkSwapchainCreateInfoKHR", imageFormat=R8G8B8A8, imageExtent=size, imageArrayLayers=1, oldSwapchain=old
        )
        made = self.make("vkCreateSwapchainKHR", "pSwapchain", info)
        if fetched:
            self.fetch(made)
        return made

    def fetch(self, swapchain: int) -> None:
        images = [self.id(), self.id()]
        self.call("vkGetSwapchainImagesKHR", device=self.device, swapchain=swapchain, pSwapchainImages=images)

    def semaphore(self) -> int:
        return self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))

    def fence(self, flags: int = 0) -> int:
        return self.make("vkCreateFence", "pFence", struct("VkFenceCreateInfo", flags=flags))

    def acquire(self, index: int, semaphore: int = 0, fence: int = 0) -> None:
        args = {"swapchain": self.swapchain, "semaphore": semaphore, "fence": fence, "pImageIndex": index}
        self._returned("vkAcquireNextImageKHR", device=self.device, timeout=0, **args)

    def give(self, wait: int = 0, signal: int = 0, fence: int = 0, queue: int = 0, second: bool = False) -> None:
        """A submit of nothing."""
        if second:
            waits, signals = ([struct("VkSemaphoreSubmitInfo", semaphore=each, value=0, stageMask=ALL_COMMANDS)] if each
                              else [] for each in (wait, signal))  # fmt: skip
            batch = struct("VkSubmitInfo2", pWaitSemaphoreInfos=waits, pSignalSemaphoreInfos=signals)
        else:
            batch = struct(
                "VkSubmitInfo",
                pWaitSemaphores=[wait] if wait else [],
                pWaitDstStageMask=[ALL_COMMANDS] if wait else [],
                pSignalSemaphores=[signal] if signal else [],
            )
        name = "vkQueueSubmit2" if second else "vkQueueSubmit"
        self._returned(name, queue=queue or self.queue, pSubmits=[batch], fence=fence)

    def present(self, index: int, wait: int = 0, fence: int = 0, queue: int = 0, swapchain: int = 0) -> None:
        chain = struct("VkSwapchainPresentFenceInfoKHR", pFences=[fence]) if fence else None
        info = struct(
            "VkPresentInfoKHR",
            pNext=chain,
            pWaitSemaphores=[wait] if wait else [],
            pSwapchains=[swapchain or self.swapchain],
            pImageIndices=[index],
        )
        self._returned("vkQueuePresentKHR", queue=queue or self.queue, pPresentInfo=info)

    def frame(self, index: int, done: int, **present: int) -> None:
        """A frame with a semaphore for its acquire that nobody else uses."""
        taken = self.semaphore()
        self.acquire(index, taken)
        self.give(taken, done)
        self.present(index, done, **present)

    def wait(self, fence: int = 0) -> None:
        """A wait of the host for a fence, or for the device to be idle."""
        if fence:
            self._returned("vkWaitForFences", device=self.device, pFences=[fence], waitAll=1, timeout=0)
        else:
            self._returned("vkDeviceWaitIdle", device=self.device)

    def reset(self, fence: int) -> None:
        self._returned("vkResetFences", device=self.device, pFences=[fence])

    def _returned(self, name: str, **args: Any) -> None:
        self.blocks.append(Call(len(self.blocks) + 1, name, args, 0))

    def found(self) -> list[Finding]:
        """The findings of both judges."""
        analysis = Analysis().follow(self.blocks)
        assert analysis.unmodelled == {}
        assert agreement(self.blocks).disagreements == ()
        return analysis.findings

    def vuids(self) -> list[str]:
        return [each.vuid for each in self.found()]


IN_USE = "VUID-vkQueueSubmit-pSignalSemaphores-00067"


# -- semaphores of presents --------------------------------------------------------------------------------------------


def test_a_semaphore_for_each_image_is_right() -> None:
    made = Program()
    done = [made.semaphore(), made.semaphore()]
    for index in (0, 1, 0, 1, 1, 0):
        made.frame(index, done[index])
    assert made.found() == []


def test_a_semaphore_that_comes_around_before_its_image_is_wrong() -> None:
    made = Program()
    done = made.semaphore()
    made.frame(FIRST, done)
    made.frame(SECOND, done)
    (found,) = made.found()
    assert (found.hazard, found.vuid) == (Hazard.SEMAPHORE_IN_USE, IN_USE)
    assert (found.place.command, found.prior.command) == ("vkQueueSubmit", "vkQueuePresentKHR")
    assert found.counts
    assert rule_of(found) == "a-semaphore-of-a-present-is-free-again"


def test_the_image_must_be_waited_for_and_not_only_acquired() -> None:
    made = Program()
    done, taken = made.semaphore(), made.semaphore()
    made.frame(FIRST, done)
    made.acquire(FIRST, taken)
    made.give(signal=done)
    assert made.vuids() == [IN_USE]


def test_the_second_form_has_a_rule_of_its_own() -> None:
    made = Program()
    done = made.semaphore()
    made.frame(FIRST, done)
    made.give(signal=done, second=True)
    assert made.vuids() == ["VUID-vkQueueSubmit2-semaphore-03868"]


@pytest.mark.parametrize(
    "free", ["present fence", "later fence", "idle", "frame fence", "new swapchain", "no swapchain"]
)
def test_what_tells_that_a_present_has_waited(free: str) -> None:
    made = Program()
    done, other, fence, drawn = made.semaphore(), made.semaphore(), made.fence(), made.fence()
    made.frame(FIRST, done, fence=fence if free == "present fence" else 0)
    match free:
        case "present fence":
            made.wait(fence)
        case "later fence":
            made.frame(SECOND, other, fence=fence)
            made.wait(fence)
        case "idle":
            made.wait()
        case "frame fence":
            made.give(fence=drawn)
            made.wait(drawn)
        case "new swapchain":
            made.swapchain = made.swap(made.swapchain)
            taken = made.semaphore()
            made.acquire(FIRST, taken)
            made.give(taken)
        case _:
            made.call("vkDestroySwapchainKHR", device=made.device, swapchain=made.swapchain)
    made.give(signal=done)
    assert made.vuids() == ([IN_USE] if free in ("frame fence", "new swapchain") else [])


@pytest.mark.parametrize("end", ["destroyed", "fetched"])
def test_presents_of_images_that_were_not_fetched_are_over_in_time(end: str) -> None:
    made = Program()
    made.swapchain = made.swap(made.swapchain, fetched=False)
    done = made.semaphore()
    made.frame(FIRST, done)
    if end == "destroyed":
        made.call("vkDestroySwapchainKHR", device=made.device, swapchain=made.swapchain)
        made.give(signal=done)
    else:
        made.fetch(made.swapchain)
        made.frame(FIRST, done)
    assert made.found() == []


def test_presents_of_two_queues_are_in_no_order() -> None:
    made = Program()
    first, second, taken = made.semaphore(), made.semaphore(), made.semaphore()
    made.frame(FIRST, first)
    made.frame(SECOND, second, queue=made.other)
    made.acquire(SECOND, taken)
    made.give(taken, first)
    assert made.vuids() == [IN_USE]


# -- other waits and signals -------------------------------------------------------------------------------------------


def _signaled_twice(made: Program) -> None:
    semaphore = made.semaphore()
    made.give(signal=semaphore)
    made.give(signal=semaphore)


def _waited_for_twice(made: Program) -> None:
    semaphore = made.semaphore()
    made.give(signal=semaphore)
    made.give(semaphore)
    made.give(semaphore, second=True)


def _never_signaled(made: Program) -> None:
    made.give(made.semaphore())


def _shown_too_early(made: Program) -> None:
    fence = made.fence()
    made.acquire(FIRST, fence=fence)
    made.wait(fence)
    made.present(FIRST, made.semaphore())


def _acquired_twice(made: Program) -> None:
    semaphore = made.semaphore()
    made.acquire(FIRST, semaphore)
    made.acquire(SECOND, semaphore)


def _acquired_too_early(made: Program) -> None:
    semaphore = made.semaphore()
    made.acquire(FIRST, semaphore)
    made.give(semaphore)
    made.acquire(SECOND, semaphore)


def _destroyed(made: Program) -> None:
    semaphore = made.semaphore()
    made.give(signal=semaphore)
    made.call("vkDestroySemaphore", device=made.device, semaphore=semaphore)


def _of_another_queue(made: Program) -> None:
    semaphore = made.semaphore()
    made.give(signal=semaphore)
    made.give(semaphore, queue=made.other)
    made.give(signal=semaphore)


def _given_twice(made: Program) -> None:
    fence = made.fence()
    made.give(fence=fence)
    made.give(fence=fence)


def _not_reset(made: Program) -> None:
    fence = made.fence()
    made.give(fence=fence)
    made.wait(fence)
    made.give(fence=fence, second=True)


def _made_signaled(made: Program) -> None:
    made.give(fence=made.fence(flags=1))


def _reset(made: Program) -> None:
    fence = made.fence()
    made.give(fence=fence)
    made.reset(fence)


def _destroyed_fence(made: Program) -> None:
    fence = made.fence()
    made.give(fence=fence)
    made.call("vkDestroyFence", device=made.device, fence=fence)


def _fence_of_an_acquire(made: Program) -> None:
    fence = made.fence()
    made.acquire(FIRST, fence=fence)
    made.acquire(SECOND, fence=fence)


def _fence_of_a_present(made: Program) -> None:
    fence = made.fence()
    made.frame(FIRST, made.semaphore(), fence=fence)
    made.wait(fence)
    made.frame(SECOND, made.semaphore(), fence=fence)


WRONG: dict[Callable[[Program], None], str] = {
    _signaled_twice: "VUID-vkQueueSubmit-pSignalSemaphores-00067",
    _waited_for_twice: "VUID-vkQueueSubmit2-semaphore-03873",
    _never_signaled: "VUID-vkQueueSubmit-pWaitSemaphores-03238",
    _shown_too_early: "VUID-vkQueuePresentKHR-pWaitSemaphores-03268",
    _acquired_twice: "VUID-vkAcquireNextImageKHR-semaphore-01286",
    _acquired_too_early: "VUID-vkAcquireNextImageKHR-semaphore-01779",
    _destroyed: "VUID-vkDestroySemaphore-semaphore-05149",
    _of_another_queue: "VUID-vkQueueSubmit-pSignalSemaphores-00067",
    _given_twice: "VUID-vkQueueSubmit-fence-00064",
    _not_reset: "VUID-vkQueueSubmit2-fence-04894",
    _made_signaled: "VUID-vkQueueSubmit-fence-00063",
    _reset: "VUID-vkResetFences-pFences-01123",
    _destroyed_fence: "VUID-vkDestroyFence-fence-01120",
    _fence_of_an_acquire: "VUID-vkAcquireNextImageKHR-fence-10066",
    _fence_of_a_present: "VUID-VkSwapchainPresentFenceInfoKHR-pFences-07758",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_each_wrong_use_has_its_vuid(wrong: Callable[[Program], None]) -> None:
    made = Program()
    wrong(made)
    (found,) = made.found()
    assert found.vuid == WRONG[wrong]
    assert found.vuid in found.message


def test_right_uses_are_clean() -> None:
    """The same objects, with what they need between."""
    made = Program()
    semaphore, fence, back = made.semaphore(), made.fence(), made.semaphore()
    for _ in range(2):
        made.give(signal=semaphore)
        made.give(semaphore, back, queue=made.other)
        made.give(back, fence=fence)
        made.wait(fence)
        made.reset(fence)
        made.acquire(FIRST, semaphore)
        made.give(semaphore, back)
        made.present(FIRST, back)
        made.wait()
    made.call("vkDestroySemaphore", device=made.device, semaphore=semaphore)
    made.call("vkDestroyFence", device=made.device, fence=fence)
    assert made.found() == []


LOST = -4
FINAL_WAITS: dict[str, dict[str, Any]] = {
    "vkWaitForFences": {"waitAll": 1},
    "vkGetFenceStatus": {},
    "vkQueueWaitIdle": {},
    "vkDeviceWaitIdle": {},
    "vkWaitSemaphores": {},
    "vkGetSemaphoreCounterValue": {},
    "vkQueueSubmit": {},
}


@pytest.mark.parametrize("name", FINAL_WAITS)
def test_a_lost_device_uses_nothing(name: str) -> None:
    """Objects may be destroyed once a call returned VK_ERROR_DEVICE_LOST, which is equivalent to VK_SUCCESS there."""
    made = Program()
    semaphore, fence = made.semaphore(), made.fence()
    made.give(signal=semaphore, fence=fence)
    made.blocks.append(Call(len(made.blocks) + 1, name, filled_calls.arguments(name, **FINAL_WAITS[name]), LOST))
    made.call("vkDestroySemaphore", device=made.device, semaphore=semaphore)
    made.call("vkDestroyFence", device=made.device, fence=fence)
    assert made.found() == []


def test_what_was_wrong_before_the_device_was_lost_is_said() -> None:
    made = Program()
    _given_twice(made)
    made.blocks.append(Call(len(made.blocks) + 1, "vkDeviceWaitIdle", {"device": made.device}, LOST))
    assert made.vuids() == ["VUID-vkQueueSubmit-fence-00064"]


def test_nothing_is_said_of_a_semaphore_whose_creation_was_not_seen() -> None:
    """It may be a timeline, or signaled."""
    made = Program()
    for unseen, second in ((900, False), (901, True)):
        made.give(signal=unseen, second=second)
        made.give(signal=unseen, second=second)
        made.give(unseen, second=second)
        made.give(unseen, second=second)
        made.present(FIRST, unseen)
        made.acquire(SECOND, unseen)
        made.call("vkDestroySemaphore", device=made.device, semaphore=unseen)
    assert made.found() == []


@pytest.mark.parametrize("end", ["reset", "destroyed", "given again"])
@pytest.mark.parametrize("waited", [False, True])
def test_a_fence_of_binds_may_be_signaled_unheard(end: str, waited: bool) -> None:
    """A wait for the work behind the binds tells of them, too. That it was signaled the host may know all the same."""
    made = Program()
    bound, fence, work = made.semaphore(), made.fence(), made.fence()
    info = struct("VkBindSparseInfo", pSignalSemaphores=[bound])
    made.call("vkQueueBindSparse", queue=made.queue, pBindInfo=[info], fence=fence)
    made.give(bound, fence=work)
    made.wait(work)
    if waited:
        made.wait(fence)
    if end == "reset":
        made.reset(fence)
    elif end == "destroyed":
        made.call("vkDestroyFence", device=made.device, fence=fence)
    else:
        made.give(fence=fence)
    assert made.vuids() == (["VUID-vkQueueSubmit-fence-00063"] if waited and end == "given again" else [])


def test_nothing_is_said_of_what_a_swapchain_signals_that_was_not_seen() -> None:
    made = Program()
    taken, done = made.semaphore(), made.semaphore()
    made.swapchain = 999
    made.acquire(FIRST, taken)
    made.give(taken, done)
    analysis = Analysis().follow(made.blocks)
    assert analysis.findings == []
    assert list(analysis.unmodelled) == ["vkAcquireNextImageKHR of a swapchain whose images were not seen"]


def test_every_vuid_is_of_a_use() -> None:
    assert {hazard for hazard, _ in VUIDS} == {each for each in Hazard if each.is_object_usage}
    assert all(not Hazard(each).is_advice for each, _ in VUIDS)
