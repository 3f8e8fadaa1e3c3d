"""Witnesses of hazards with the presentation engine: what is on the screen, beside what should be."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.drivers_here import on_each_driver
from tests.support.streams import COLOR, GENERAL, R8G8B8A8, UNDEFINED, Stream, struct
from vkharness.check import Analysis
from vkharness.findings import Finding, Hazard, UserError
from vkharness.replay.contents.regions import POISON
from vkharness.replay.outcomes.jobs import WitnessResult, first_with_outcome, run_serial, run_witness
from vkharness.replay.outcomes.witness import find_ends
from vkharness.replay.schedule.screens import FIRST_SCREEN, without_presentation
from vkharness.replay.schedule.steps import flatten
from vkharness.report.pictures import surface_name
from vkharness.spec.enums import VkImageLayout, VkImageUsage, VkPipelineStage2
from vkharness.trace.calls import Call

TRANSFER, TOP, BOTTOM = VkPipelineStage2.ALL_TRANSFER, VkPipelineStage2.TOP_OF_PIPE, VkPipelineStage2.BOTTOM_OF_PIPE
PRESENTED, WRITE = VkImageLayout.PRESENT_SRC_KHR, 0x1000
SIDE = 8
RED, GREEN, BLUE = (1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0)
TEXELS = {RED: [255, 0, 0, 255], GREEN: [0, 255, 0, 255], BLUE: [0, 0, 255, 255]}
NOTHING, UNKNOWN = [0] * 4, [POISON] * 4
Colour = tuple[float, float, float, float]


class Presenter(Stream):
    """A stream that presents the images of a swapchain, each frame one colour."""

    def __init__(self, count: int = 1) -> None:
        super().__init__()
        self.swapchain = 0
        self.replace(count)

    def replace(self, count: int = 1) -> None:
        """Makes a swapchain, in place of the one that is there."""
        extent = {"width": SIDE, "height": SIDE}
        usage = VkImageUsage.TRANSFER_DST
        info = struct(
            "VkSwapchainCreateInfoKHR", imageFormat=R8G8B8A8, imageExtent=extent, imageArrayLayers=1, imageUsage=usage,
            oldSwapchain=self.swapchain,
        )  # fmt: skip
        self.swapchain = self.make("vkCreateSwapchainKHR", "pSwapchain", info)
        self.images = [self.id() for _ in range(count)]
        images = {"pSwapchainImageCount": count, "pSwapchainImages": self.images}
        self.call("vkGetSwapchainImagesKHR", device=self.device, swapchain=self.swapchain, **images)

    def semaphore(self) -> int:
        return self.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))

    def acquire(self, index: int, semaphore: int) -> int:
        args = {"swapchain": self.swapchain, "timeout": 1, "semaphore": semaphore, "fence": 0, "pImageIndex": index}
        self.blocks.append(Call(len(self.blocks) + 1, "vkAcquireNextImageKHR", {"device": self.device, **args}, 0))
        return len(self.blocks)

    def move(self, image: int, layouts: tuple[int, int], before: tuple[int, int], after: tuple[int, int]) -> int:
        """A transition; `before` and `after` are (stage, accesses)."""
        barrier = struct(
            "VkImageMemoryBarrier",
            srcAccessMask=before[1],
            dstAccessMask=after[1],
            oldLayout=layouts[0],
            newLayout=layouts[1],
            srcQueueFamilyIndex=0xFFFFFFFF,
            dstQueueFamilyIndex=0xFFFFFFFF,
            image=image,
            subresourceRange=struct("VkImageSubresourceRange", aspectMask=COLOR, levelCount=1, layerCount=1),
        )
        return self.cmd(
            "PipelineBarrier", srcStageMask=before[0], dstStageMask=after[0], pImageMemoryBarriers=[barrier]
        )

    def present(self, index: int, *waits: int) -> int:
        info = struct(
            "VkPresentInfoKHR", pWaitSemaphores=list(waits), pSwapchains=[self.swapchain], pImageIndices=[index]
        )
        return self.call("vkQueuePresentKHR", queue=self.queue, pPresentInfo=info)

    def frame(self, colour: Colour, index: int = 0, starts: int = TRANSFER, shown_when_done: bool = True) -> None:
        """Acquires, clears and presents; the first transition begins after the stage `starts`."""
        acquired, done, image = self.semaphore(), self.semaphore(), self.images[index]
        self.acquire(index, acquired)
        self.begin()
        self.move(image, (UNDEFINED, GENERAL), (starts, 0), (TRANSFER, WRITE))
        self.clear(image, colour, layout=GENERAL)
        self.move(image, (GENERAL, PRESENTED), (TRANSFER, WRITE), (BOTTOM, 0))
        self.send(acquired, done)
        self.present(index, *([done] if shown_when_done else []))

    def send(self, acquired: int, *signals: int) -> None:
        """Submits the current commands; transfers wait for the acquire."""
        self.end()
        info = struct(
            "VkSubmitInfo",
            pWaitSemaphores=[acquired],
            pWaitDstStageMask=[TRANSFER],
            pCommandBuffers=[self.commands],
            pSignalSemaphores=list(signals),
        )
        self.call("vkQueueSubmit", queue=self.queue, pSubmits=[info])

    @property
    def findings(self) -> list[Finding]:
        analysis = Analysis().follow(self.blocks)
        assert not analysis.unmodelled
        return list(analysis.findings)


def screens(result: WitnessResult, image: int) -> tuple[list[int], list[int]]:
    """The texel that the screen of an image should show and the one that it shows; each fills the screen."""
    assert result.observed is not None
    found = []
    for outputs in (result.expected, result.observed):
        data = outputs.surfaces[FIRST_SCREEN + image, (COLOR, 0, 0)].data.reshape(-1, 4)
        assert len(data) == SIDE * SIDE and (data == data[0]).all()
        found.append([int(byte) for byte in data[0]])
    return found[0], found[1]


@on_each_driver
class TestTheScreen:
    def test_shows_each_frame_as_it_was_presented(self, driver: str) -> None:
        stream = Presenter(3)
        stream.frame(RED, 0)
        stream.frame(GREEN, 1)
        assert stream.findings == []
        seen = run_serial(stream.blocks, driver)
        shown = [seen.surfaces[FIRST_SCREEN + image, (COLOR, 0, 0)] for image in stream.images]
        assert [surface.data[0, 0, 0].tolist() for surface in shown] == [TEXELS[RED], TEXELS[GREEN], NOTHING]
        assert [surface_name(surface) for surface in shown[:1]] == [f"screen-of-image-{stream.images[0]}"]

    def test_loses_the_frame_before_to_a_transition_that_comes_too_early(self, driver: str) -> None:
        stream = Presenter()
        stream.frame(RED)
        stream.frame(GREEN, starts=TOP)
        (finding,) = stream.findings
        assert (finding.hazard, finding.prior.command) == (Hazard.WRITE_AFTER_READ, "vkAcquireNextImageKHR")
        result = run_witness(stream.blocks, finding, driver)
        assert result.shown and result.moment == f"after block {finding.prior.call}"
        assert screens(result, stream.images[0]) == (TEXELS[RED], UNKNOWN)
        (difference,) = result.differences
        told = difference.to_dict()
        assert (told["kind"], told["resource"]) == ("screen of image", stream.images[0])

    def test_shows_what_a_clear_without_transition_writes(self, driver: str) -> None:
        """In VK_IMAGE_LAYOUT_GENERAL from the start the clear itself writes what the engine still reads."""
        stream = Presenter()
        stream.frame(RED)
        acquired = stream.semaphore()
        stream.acquire(0, acquired)
        clears = stream.begin()
        clear = stream.clear(stream.images[0], BLUE, layout=GENERAL)
        stream.end()
        stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[struct("VkSubmitInfo", pCommandBuffers=[clears])])
        (finding,) = stream.findings
        assert (finding.hazard, finding.place.call) == (Hazard.WRITE_AFTER_PRESENT, clear)
        result = run_witness(stream.blocks, finding, driver)
        assert result.shown and result.moment == f"after block {finding.prior.call}"
        assert screens(result, stream.images[0]) == (TEXELS[RED], TEXELS[BLUE])

    def test_shows_an_unfinished_frame_when_the_present_does_not_wait(self, driver: str) -> None:
        stream = Presenter()
        stream.frame(RED)
        stream.frame(GREEN, shown_when_done=False)
        (finding,) = stream.findings
        assert finding.hazard is Hazard.PRESENT_AFTER_WRITE
        result = run_witness(stream.blocks, finding, driver)
        assert result.shown and result.moment == "at the end"
        assert screens(result, stream.images[0]) == (TEXELS[GREEN], UNKNOWN)

    def test_tells_nothing_of_an_image_that_was_never_presented(self, driver: str) -> None:
        stream = Presenter()
        stream.frame(RED, starts=TOP)
        (finding,) = stream.findings
        result = run_witness(stream.blocks, finding, driver)
        assert not result.shown and result.tried == []
        assert f"the image was not presented before call {finding.prior.call} (vkAcquireNextImageKHR)" in result.reason


def test_of_many_frames_the_first_that_can_be_shown_is_taken() -> None:
    """A program with three images that does it wrong in each frame: the fourth frame is the first to be seen."""
    stream = Presenter(3)
    for number in range(5):
        stream.frame(RED if number % 2 else GREEN, number % 3, TOP)
    findings = stream.findings
    assert len(findings) == 5
    assert first_with_outcome(stream.blocks, findings) == 3
    assert first_with_outcome(stream.blocks, findings[:3]) == 0
    assert first_with_outcome(stream.blocks, findings[4:]) == 0


@pytest.mark.parametrize("hazard", [Hazard.READ_AFTER_PRESENT, Hazard.PRESENT_AFTER_READ])
def test_a_read_beside_a_read_of_the_engine_changes_nothing(hazard: Hazard) -> None:
    stream = Presenter()
    stream.frame(RED)
    stream.frame(GREEN, starts=TOP)
    steps = flatten(without_presentation(stream.blocks))
    (finding,) = stream.findings
    find_ends(steps, finding)
    with pytest.raises(UserError, match="both accesses only read"):
        find_ends(steps, replace(finding, hazard=hazard))


def test_a_screen_is_no_buffer_and_holds_what_was_copied() -> None:
    """Everything that the rewrite adds has ids that no trace has, and no two are the same."""
    stream = Presenter(2)
    stream.frame(RED, 0)
    made = [block for block in without_presentation(stream.blocks) if isinstance(block, Call)]
    images = [call.args["pImage"] for call in made if call.name == "vkCreateImage"]
    memories = [call.args["memory"] for call in made if call.name == "vkBindImageMemory"]
    assert images == [each for image in stream.images for each in (image, FIRST_SCREEN + image)]
    assert len({*images, *memories}) == len(images) + len(memories) == 8
    (copy,) = [call for call in made if call.name == "vkCmdCopyImage"]
    assert (copy.args["srcImage"], copy.args["dstImage"]) == tuple(images[:2])


@pytest.mark.parametrize("name", ["VkSwapchainPresentFenceInfoEXT", "VkSwapchainPresentFenceInfoKHR"])
def test_the_fence_of_a_present_is_signaled_behind_what_was_shown(name: str) -> None:
    stream = Presenter()
    fence = stream.make("vkCreateFence", "pFence", struct("VkFenceCreateInfo"))
    stream.frame(RED)
    call = stream.blocks[-1]
    assert isinstance(call, Call)
    call.args["pPresentInfo"]["pNext"] = struct(name, pFences=[fence])
    *_, copy, signal = without_presentation(stream.blocks)
    assert isinstance(copy, Call) and isinstance(signal, Call)
    assert (copy.name, signal.name, signal.args["fence"]) == ("vkCmdCopyImage", "vkQueueSubmit", fence)
    call.args["pPresentInfo"]["pNext"] = struct(name, pFences=[0])
    last = without_presentation(stream.blocks)[-1]
    assert isinstance(last, Call) and last.name == "vkCmdCopyImage"


def test_each_fence_of_a_present_is_signaled() -> None:
    stream = Presenter(2)
    several = [stream.make("vkCreateFence", "pFence", struct("VkFenceCreateInfo")) for _ in range(2)]
    stream.frame(RED)
    call = stream.blocks[-1]
    assert isinstance(call, Call)
    info = call.args["pPresentInfo"]
    info["pNext"] = struct("VkSwapchainPresentFenceInfoKHR", pFences=several)
    info["pSwapchains"], info["pImageIndices"] = [stream.swapchain] * 2, [0, 1]
    made = [each for each in without_presentation(stream.blocks)[-4:] if isinstance(each, Call)]
    assert [each.args.get("fence", 0) for each in made] == [0, 0, *several]


@pytest.mark.parametrize("legacy", [False, True])
def test_a_sleep_signals_its_semaphore(legacy: bool) -> None:
    stream = Stream()
    timeline = stream.timeline()
    given: dict[str, Any] = {"signalSemaphore": timeline, "value": 3}
    if legacy:
        stream.call("vkLatencySleepLegacyNV", device=stream.device, **given)
    else:
        info = struct("VkLatencySleepInfoNV", **given)
        stream.call("vkLatencySleepNV", device=stream.device, swapchain=7, pSleepInfo=info)
    signal = without_presentation(stream.blocks)[-1]
    assert isinstance(signal, Call)
    info = signal.args["pSignalInfo"]
    assert (signal.name, info["semaphore"], info["value"]) == ("vkSignalSemaphore", timeline, 3)
