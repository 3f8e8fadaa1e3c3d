"""Logical queues: one queue does what several would, the mirror sees several, and every replay ends the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.drivers_here import FOUND, NAMES
from vkharness.device.drivers import find_driver
from vkharness.device.headless import place_queues
from vkharness.device.process import Worker
from vkharness.replay.schedule.screens import FIRST_SCREEN, without_presentation
from vkharness.report.rows import layers_in_short
from vkharness.suite.expectations import KnownDisagreement
from vkharness.suite.row import Row, settle
from vkharness.trace.calls import Block, Call
from vkharness.verdicts import LayerVerdict


@pytest.fixture(scope="module", params=NAMES)
def worker(request: pytest.FixtureRequest) -> Iterator[tuple[Worker, str]]:
    if request.param not in FOUND:
        pytest.skip(f"{request.param} is not installed; ci/setup installs it")
    with Worker(find_driver(request.param), packages=["tests"]) as running:
        yield running, request.param


def ask(worker: tuple[Worker, str], job: str, **arguments: Any) -> dict[str, Any]:
    found = worker[0].call(f"tests.support.queue_jobs:{job}", arguments)
    assert isinstance(found, dict), found
    return found


def test_what_is_submitted_backwards_runs_forwards(worker: tuple[Worker, str]) -> None:
    found = ask(worker, "backwards", device=worker[1])
    assert found == {
        "logical": True,
        "held": 2,
        "families": [7, 4, 6],
        "handles": 3,
        "verdict": "clean",
        "words": ["22222222"] * 3,
    }


def test_a_trace_alone_tells_the_same_races(worker: tuple[Worker, str]) -> None:
    found = ask(worker, "racing")
    assert [hazard for hazard, _, _ in found["live"]] == ["WRITE_RACING_WRITE"] * 2
    assert len({queue for _, *queues in found["live"] for queue in queues}) == 3
    assert found["again"] == found["live"]


def test_a_batch_that_nothing_lets_go_is_an_error(worker: tuple[Worker, str]) -> None:
    assert ask(worker, "never_signaled") == {"error": "1 batches wait for timeline values that nothing signals"}


def test_a_device_with_the_queues_is_left_alone(worker: tuple[Worker, str]) -> None:
    assert ask(worker, "one_queue") == {"logical": False, "families": 0, "restored": True}


def test_an_image_that_changes_hands_keeps_its_texels(worker: tuple[Worker, str]) -> None:
    assert ask(worker, "transferred", device=worker[1]) == {"verdict": "clean", "words": ["10203040"] * 3}


def test_what_is_presented_is_shown_in_replays(worker: tuple[Worker, str]) -> None:
    if worker[1] != "swiftshader":
        pytest.skip("only SwiftShader has VK_EXT_headless_surface here")
    found = ask(worker, "presented", device=worker[1])
    assert found == {"verdict": "clean", "shown": [["11111111", "22222222"]] * 2}


@pytest.mark.parametrize(
    ("wanted", "places"),
    [
        ([3], [(0, 0, 7)]),
        ([3, 4, 2], [(0, 0, 7), (2, 0, 4), (1, 0, 6)]),
        ([3, 3], [(0, 0, 7), (0, 1, 7)]),
        ([4, 4], [(2, 0, 4), (1, 0, 6)]),
        ([3, 3, 3], None),
        ([8], None),
    ],
)
def test_queues_are_placed_in_the_plainest_family(wanted: list[int], places: list[tuple[int, int, int]] | None) -> None:
    assert place_queues([(7, 2), (6, 2), (4, 1)], wanted) == places


def test_a_trace_that_presents_nothing_is_left_alone() -> None:
    blocks: list[Block] = [Call(1, "vkDeviceWaitIdle", {"device": 3}, 0)]
    assert without_presentation(blocks) is blocks


def test_what_is_left_of_a_trace_names_no_surface_and_no_swapchain() -> None:
    """Whatever the platform of the capture: a program that presents nothing may make a surface, too."""
    blocks: list[Block] = [
        Call(1, "vkCreateWin32SurfaceKHR", {"instance": 1, "pCreateInfo": {}, "pSurface": 2}, 0),
        Call(2, "vkDeviceWaitIdle", {"device": 3}, 0),
        Call(3, "vkSetHdrMetadataEXT", {"device": 3, "swapchainCount": 1, "pSwapchains": [5], "pMetadata": [{}]}),
        Call(4, "vkWaitForPresentKHR", {"device": 3, "swapchain": 5, "presentId": 1, "timeout": 0}, 0),
        Call(5, "vkReleaseSwapchainImagesEXT", {"device": 3, "pReleaseInfo": {"swapchain": 5}}, 0),
        Call(6, "vkDestroySurfaceKHR", {"instance": 1, "surface": 2, "pAllocator": None}),
    ]
    assert without_presentation(blocks) == blocks[1:2]


def test_an_image_that_the_next_swapchain_has_too_is_made_once() -> None:
    """The image that a retired swapchain showed stays on the screen until something else is presented."""
    create = {"imageFormat": 37, "imageExtent": {"width": 4, "height": 2}, "imageArrayLayers": 1, "imageUsage": 16}
    blocks: list[Block] = [
        Call(1, "vkCreateSwapchainKHR", {"pSwapchain": 5, "pCreateInfo": create}, 0),
        Call(2, "vkGetSwapchainImagesKHR", {"swapchain": 5, "pSwapchainImages": [7]}, 0),
        Call(3, "vkCreateSwapchainKHR", {"pSwapchain": 6, "pCreateInfo": {**create, "oldSwapchain": 5}}, 0),
        Call(4, "vkGetSwapchainImagesKHR", {"swapchain": 6, "pSwapchainImages": [7, 8]}, 0),
    ]
    made = [block for block in without_presentation(blocks) if isinstance(block, Call)]
    images = [call.args["pImage"] for call in made if call.name == "vkCreateImage"]
    assert images == [7, FIRST_SCREEN + 7, 8, FIRST_SCREEN + 8]


def test_presents_become_copies_to_a_screen() -> None:
    create = {"imageFormat": 37, "imageExtent": {"width": 4, "height": 2}, "imageArrayLayers": 1, "imageUsage": 16}
    acquire = {"swapchain": 5, "pImageIndex": 0, "semaphore": 8, "fence": 9}
    present = {"pPresentInfo": {"pWaitSemaphores": [8], "pSwapchains": [5], "pImageIndices": [0]}}
    barrier = {"commandBuffer": 4, "pImageMemoryBarriers": [{"oldLayout": 0, "newLayout": 1000001002}]}
    blocks: list[Block] = [
        Call(1, "vkGetDeviceQueue", {"device": 3, "pQueue": 6}),
        Call(2, "vkCreateSwapchainKHR", {"pSwapchain": 5, "pCreateInfo": create}, 0),
        Call(3, "vkGetSwapchainImagesKHR", {"swapchain": 5, "pSwapchainImages": [7]}, 0),
        Call(4, "vkAcquireNextImageKHR", acquire, 0),
        Call(5, "vkCmdPipelineBarrier", barrier),
        Call(6, "vkQueuePresentKHR", present, 0),
        Call(7, "vkAcquireNextImageKHR", {**acquire, "pImageIndex": 1}, 2),
        Call(8, "vkAcquireNextImageKHR", acquire, 0),
    ]
    made = [block for block in without_presentation(blocks) if isinstance(block, Call)]
    assert [(block.index, block.name) for block in made] == [
        (1, "vkGetDeviceQueue"),
        (3, "vkCreateImage"),
        (3, "vkBindImageMemory"),
        (3, "vkCreateImage"),
        (3, "vkBindImageMemory"),
        (3, "vkCmdPipelineBarrier"),
        (3, "vkCmdClearColorImage"),
        (4, "vkQueueSubmit"),
        (5, "vkCmdPipelineBarrier"),
        (6, "vkQueueSubmit"),
        (6, "vkCmdCopyImage"),
        (8, "vkCmdCopyImage"),
        (8, "vkQueueSubmit"),
    ]
    assert made[3].args["pCreateInfo"]["extent"] == {"width": 4, "height": 2, "depth": 1}
    assert made[8].args["pImageMemoryBarriers"] == [{"oldLayout": 0, "newLayout": 1}]
    assert made[10].args["dstImage"] == made[11].args["dstImage"] == made[3].args["pImage"]


def test_a_layer_that_was_not_asked_says_so_and_needs_no_expectation() -> None:
    row = Row("queue/x", "whole", "lavapipe", [], layers={"1.4.364": LayerVerdict(asked=False)})
    settle(row, [KnownDisagreement("queue/x", "whole", "layer", "it would disagree")])
    assert (layers_in_short(row.layers), row.status, row.reasons) == ("not asked", "passed", [])
    row.layers["1.4.364"] = LayerVerdict(by_version=2)
    settle(row, [KnownDisagreement("queue/x", "whole", "layer", "it would disagree")])
    assert (layers_in_short(row.layers), row.status) == ("agrees*", "failed")
