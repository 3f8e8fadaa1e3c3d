"""Fences of presents, and images that go back to their swapchain unpresented (VK_KHR_swapchain_maintenance1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.interpreted import InterpretedStream
from tests.support.streams import GENERAL, R8G8B8A8, UNDEFINED, Stream, struct
from vkharness.agreement import agreement
from vkharness.check import Analysis
from vkharness.trace.effects import Presented, UnmodelledCall


class Swapping(InterpretedStream):
    """A stream with a swapchain of two images."""

    def __init__(self, mode: int = 2) -> None:
        super().__init__()
        size = {"width": 8, "height": 8}
        info = struct(
            "VkSwapchainCreateInfoKHR",
            imageFormat=R8G8B8A8,
            imageExtent=size,
            imageArrayLayers=1,
            imageUsage=3,
            presentMode=mode,
        )
        self.swapchain = self.make("vkCreateSwapchainKHR", "pSwapchain", info)
        self.images = [self.id(), self.id()]
        self.call("vkGetSwapchainImagesKHR", device=self.device, swapchain=self.swapchain, pSwapchainImages=self.images)

    def acquire(self) -> int:
        """The first image; the semaphore that says that it is there."""
        semaphore = self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
        given = {"swapchain": self.swapchain, "semaphore": semaphore, "pImageIndex": 0}
        self.call("vkAcquireNextImageKHR", device=self.device, **given)
        self.blocks[-1].result = 0  # type: ignore[union-attr]
        return semaphore

    def present(self, name: str, fences: list[int], waits: list[int]) -> None:
        """vkQueuePresentKHR of the first image."""
        link = struct(name, pFences=fences)
        given = {"pWaitSemaphores": waits, "pSwapchains": [self.swapchain], "pImageIndices": [0]}
        self.call("vkQueuePresentKHR", queue=self.queue, pPresentInfo=struct("VkPresentInfoKHR", pNext=link, **given))

    def release(self, name: str) -> None:
        """Gives the first image back."""
        info = struct("VkReleaseSwapchainImagesInfoEXT", swapchain=self.swapchain, pImageIndices=[0])
        self.call(name, device=self.device, pReleaseInfo=info)
        self.blocks[-1].result = 0  # type: ignore[union-attr]

    def write(self, wait: int, signal: int = 0) -> None:
        """Clears the first image and leaves it as it is presented."""
        self.begin()
        self.transition(self.images[0], UNDEFINED, GENERAL)
        self.clear(self.images[0], (1, 0, 0, 1), layout=GENERAL)
        self.transition(self.images[0], GENERAL, 1000001002)
        self.end()
        batch = struct(
            "VkSubmitInfo",
            pWaitSemaphores=[wait],
            pWaitDstStageMask=[0x10000],
            pCommandBuffers=[self.commands],
            pSignalSemaphores=[signal] if signal else None,
        )
        self.call("vkQueueSubmit", queue=self.queue, pSubmits=[batch])


@pytest.mark.parametrize("name", ["VkSwapchainPresentFenceInfoEXT", "VkSwapchainPresentFenceInfoKHR"])
def test_each_fence_belongs_to_its_swapchain(name: str) -> None:
    stream = Swapping()
    stream.acquire()
    stream.did()
    stream.present(name, [77], [5])
    (event,) = stream.did()
    assert isinstance(event, Presented)
    assert (event.waits, event.images, event.fences) == (
        (5,),
        ((stream.swapchain, stream.images[0]),),
        ((stream.swapchain, 77),),
    )


def test_a_null_fence_is_none() -> None:
    stream = Swapping()
    stream.did()
    stream.present("VkSwapchainPresentFenceInfoKHR", [0], [])
    (event,) = stream.did()
    assert isinstance(event, Presented) and event.fences == ()


@pytest.mark.parametrize("name", ["vkReleaseSwapchainImagesEXT", "vkReleaseSwapchainImagesKHR"])
def test_a_release_waits_for_nothing(name: str) -> None:
    stream = Swapping()
    stream.did()
    stream.release(name)
    (event,) = stream.did()
    assert isinstance(event, Presented)
    assert (event.queue, event.waits, event.images) == (0, (), ((stream.swapchain, stream.images[0]),))


def test_a_release_of_images_that_were_not_seen_is_named(stream: InterpretedStream) -> None:
    info = struct("VkReleaseSwapchainImagesInfoEXT", swapchain=99, pImageIndices=[0])
    stream.did()
    stream.call("vkReleaseSwapchainImagesKHR", device=stream.device, pReleaseInfo=info)
    named = [type(each) for each in stream.did(0)]
    assert named == [UnmodelledCall, Presented]


def judged(stream: Stream) -> list[str]:
    """Returns the hazards that both judges find."""
    assert agreement(stream.blocks).disagreements == ()
    analysis = Analysis().follow(stream.blocks)
    assert analysis.unmodelled == {}
    return [finding.hazard for finding in analysis.findings]


@pytest.mark.parametrize(("waited", "found"), [(True, []), (False, ["PRESENT_AFTER_WRITE"])])
def test_an_image_is_released_when_its_uses_are_complete(waited: bool, found: list[str]) -> None:
    stream = Swapping()
    stream.write(stream.acquire())
    if waited:
        stream.call("vkQueueWaitIdle", queue=stream.queue)
    stream.release("vkReleaseSwapchainImagesKHR")
    assert judged(stream) == found


@pytest.mark.parametrize(("waited", "found"), [(True, []), (False, ["host-write-race"])])
def test_the_fence_of_a_present_tells_the_host_that_the_frame_is_complete(waited: bool, found: list[str]) -> None:
    stream = Swapping()
    memory = stream.memory(64)
    buffer = stream.buffer(64, memory)
    acquired = stream.acquire()
    rendered, fence = stream.id(), stream.id()
    stream.call(
        "vkCreateSemaphore", device=stream.device, pCreateInfo=struct("VkSemaphoreCreateInfo"), pSemaphore=rendered
    )
    other = stream.buffer(64)
    stream.begin()
    stream.copy(buffer, other, 64)
    stream.end()
    copying = stream.commands
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[struct("VkSubmitInfo", pCommandBuffers=[copying])])
    stream.write(acquired, rendered)
    stream.present("VkSwapchainPresentFenceInfoKHR", [fence], [rendered])
    if waited:
        given: dict[str, Any] = {"pFences": [fence], "waitAll": 1, "timeout": 1 << 60}
        stream.call("vkWaitForFences", device=stream.device, **given)
        stream.blocks[-1].result = 0  # type: ignore[union-attr]
    stream.host_write(memory, 0, bytes(4))
    assert [each.replace("WRITE_AFTER_READ", "host-write-race") for each in judged(stream)] == found


@pytest.mark.parametrize(("mode", "found"), [(2, 1), (1000111000, 0), (1000111001, 0)])
def test_a_shared_image_is_used_after_its_present(mode: int, found: int) -> None:
    """The program and the engine access it at the same time. Of other images the engine takes possession."""
    stream = Swapping(mode)
    rendered = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    stream.write(stream.acquire(), rendered)
    stream.present("VkSwapchainPresentFenceInfoKHR", [0], [rendered])
    stream.begin()
    stream.barrier()
    stream.clear(stream.images[0], (0, 1, 0, 1), layout=GENERAL)
    stream.submit()
    assert len(judged(stream)) == found


@pytest.mark.parametrize("ordered", [False, True])
def test_what_the_program_does_to_a_shared_image_is_judged(ordered: bool) -> None:
    stream = Swapping(1000111000)
    rendered = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    stream.write(stream.acquire(), rendered)
    stream.present("VkSwapchainPresentFenceInfoKHR", [0], [rendered])
    stream.begin()
    stream.barrier()
    stream.clear(stream.images[0], (0, 1, 0, 1), layout=GENERAL)
    if ordered:
        stream.barrier()
    stream.clear(stream.images[0], (0, 0, 1, 1), layout=GENERAL)
    stream.submit()
    assert judged(stream) == ["WRITE_AFTER_WRITE"] * (not ordered)
