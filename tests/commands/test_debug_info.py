"""Names, labels and frames: what a finding says of them, in the order in which a program names and labels."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.streams import Stream, struct, two_buffers
from vkharness.check import Analysis
from vkharness.commands import debug_info
from vkharness.commands.debug_info import DebugInfo
from vkharness.findings import Finding
from vkharness.groups import groups_of
from vkharness.trace.calls import Call
from vkharness.trace.codec import read_trace, save

IMAGE, BUFFER = 10, 9
"""VK_OBJECT_TYPE_*."""


def name(stream: Stream, id: int, text: str | None, kind: int = BUFFER) -> None:
    info = struct("VkDebugUtilsObjectNameInfoEXT", objectType=kind, objectHandle=id, pObjectName=text)
    stream.call("vkSetDebugUtilsObjectNameEXT", device=stream.device, pNameInfo=info)
    made = stream.blocks[-1]
    assert isinstance(made, Call)
    made.result = 0


@contextmanager
def region(stream: Stream, text: str, on: int = 0) -> Iterator[None]:
    """A region of the current command buffer, or of a queue."""
    label = struct("VkDebugUtilsLabelEXT", pLabelName=text)
    if on:
        stream.call("vkQueueBeginDebugUtilsLabelEXT", queue=on, pLabelInfo=label)
    else:
        stream.cmd("BeginDebugUtilsLabelEXT", pLabelInfo=label)
    yield
    if on:
        stream.call("vkQueueEndDebugUtilsLabelEXT", queue=on)
    else:
        stream.cmd("EndDebugUtilsLabelEXT")


def insert(stream: Stream, text: str) -> None:
    stream.cmd("InsertDebugUtilsLabelEXT", pLabelInfo=struct("VkDebugUtilsLabelEXT", pLabelName=text))


def findings(stream: Stream) -> list[Finding]:
    return Analysis().follow(stream.blocks).findings


def present(stream: Stream, **more: object) -> None:
    info = struct("VkPresentInfoKHR", **more)
    stream.call("vkQueuePresentKHR", queue=stream.queue, pPresentInfo=info)


def make_swapchain(stream: Stream) -> None:
    info = struct("VkSwapchainCreateInfoKHR", imageExtent={"width": 4, "height": 4}, imageArrayLayers=1)
    stream.make("vkCreateSwapchainKHR", "pSwapchain", info)


def race(stream: Stream, a: int, b: int) -> int:
    """A copy that does not wait for a fill, in a command buffer of its own; the copy's call."""
    stream.begin()
    stream.fill(a, 7)
    return stream.copy(a, b, 256)


def test_a_finding_names_its_objects() -> None:
    stream, a, b = two_buffers(256)
    name(stream, a, "particles")
    name(stream, b, "not in this")
    race(stream, a, b)
    name(stream, stream.commands, "simulation", 6)
    stream.submit()
    (found,) = findings(stream)
    assert found.resource_name == "particles"
    assert found.to_dict()["resource_name"] == "particles"
    assert found.names == {a: "particles"}, "the command buffer was named later than the finding was made"


def test_a_name_can_be_taken_away() -> None:
    stream, a, b = two_buffers(256)
    name(stream, a, "particles")
    name(stream, a, None)
    race(stream, a, b)
    (found,) = findings(stream)
    assert (found.resource_name, found.names) == ("", {})


def test_debug_marker_names_and_labels_too() -> None:
    stream, a, b = two_buffers(256)
    info = struct("VkDebugMarkerObjectNameInfoEXT", objectType=9, object=a, pObjectName="particles")
    stream.call("vkDebugMarkerSetObjectNameEXT", device=stream.device, pNameInfo=info)
    stream.begin()
    stream.cmd("DebugMarkerBeginEXT", pMarkerInfo=struct("VkDebugMarkerMarkerInfoEXT", pMarkerName="upload"))
    stream.fill(a, 7)
    stream.cmd("DebugMarkerInsertEXT", pMarkerInfo=struct("VkDebugMarkerMarkerInfoEXT", pMarkerName="now"))
    stream.copy(a, b, 256)
    stream.cmd("DebugMarkerEndEXT")
    (found,) = findings(stream)
    assert (found.resource_name, found.prior_labels, found.labels) == ("particles", ("upload",), ("upload", "now"))


def test_regions_nest_and_end() -> None:
    stream, a, b = two_buffers(256)
    stream.begin()
    with region(stream, "frame"):
        with region(stream, "clear"):
            stream.fill(a, 7)
        insert(stream, "in between")
        with region(stream, "copy"):
            insert(stream, "first")
            stream.copy(a, b, 256)
    stream.fill(b, 7)
    first, second = findings(stream)
    assert first.prior_labels == ("frame", "clear")
    assert first.labels == ("frame", "copy", "first")
    assert (second.prior_labels, second.labels) == (("frame", "copy", "first"), ())


def test_a_command_buffer_that_is_begun_anew_has_no_labels() -> None:
    stream, a, b = two_buffers(256)
    commands = stream.begin()
    with region(stream, "old"):
        stream.fill(a, 7)
        stream.call("vkBeginCommandBuffer", commandBuffer=commands, pBeginInfo=struct("VkCommandBufferBeginInfo"))
        stream.fill(a, 7)
        stream.copy(a, b, 256)
    (found,) = findings(stream)
    assert (found.prior_labels, found.labels) == ((), ())


def test_labels_of_a_queue_are_around_those_of_its_command_buffers() -> None:
    stream, a, b = two_buffers(256)
    stream.begin()
    with region(stream, "fill"):
        stream.fill(a, 7)
    with region(stream, "frame", stream.queue):
        stream.submit(stream.commands, wait=False)
        stream.begin()
        stream.copy(a, b, 256)
        stream.submit(stream.commands, wait=False)
    (found,) = findings(stream)
    assert (found.prior_labels, found.labels) == (("frame", "fill"), ("frame",))


def test_a_region_goes_on_in_the_next_command_buffer() -> None:
    stream, a, b = two_buffers(256)
    first = stream.begin()
    label = struct("VkDebugUtilsLabelEXT", pLabelName="pass")
    stream.cmd("BeginDebugUtilsLabelEXT", pLabelInfo=label)
    stream.fill(a, 7)
    second = stream.begin()
    stream.copy(a, b, 256)
    stream.cmd("EndDebugUtilsLabelEXT")
    stream.fill(b, 7)
    stream.submit(first, second)
    inside, across = sorted(findings(stream), key=lambda each: -each.place.call)
    assert (across.prior_labels, across.labels) == (("pass",), ("pass",))
    assert inside.labels == (), "while it is recorded, nothing is known of the region"


def test_a_secondary_is_inside_the_regions_of_its_primary() -> None:
    stream, a, b = two_buffers(256)
    secondary = stream.begin(level=1)
    with region(stream, "inner"):
        stream.copy(a, b, 256)
    stream.begin()
    with region(stream, "outer"):
        stream.fill(a, 7)
        stream.cmd("ExecuteCommands", pCommandBuffers=[secondary])
    (found,) = findings(stream)
    assert (found.prior_labels, found.labels) == (("outer",), ("outer", "inner"))


def test_a_present_ends_a_frame() -> None:
    stream, a, b = two_buffers(256)
    race(stream, a, b)
    make_swapchain(stream)
    for _ in range(3):
        race(stream, a, b)
        present(stream)
    assert [each.frame for each in findings(stream)] == [None, 1, 2, 3]


def test_without_presents_there_are_no_frames() -> None:
    stream, a, b = two_buffers(256)
    race(stream, a, b)
    (found,) = findings(stream)
    assert (found.frame, found.prior_frame) == (None, None)


def test_an_access_belongs_to_the_frame_that_executes_it() -> None:
    stream, a, b = two_buffers(256)
    make_swapchain(stream)
    stream.begin()
    stream.fill(a, 7)
    fill = stream.commands
    stream.begin()
    stream.copy(a, b, 256)
    copy = stream.commands
    stream.submit(fill, wait=False)
    present(stream)
    present(stream)
    stream.submit(copy, wait=False)
    (found,) = findings(stream)
    assert (found.prior_frame, found.frame) == (1, 3)


@pytest.mark.parametrize("presents", [False, True], ids=["submits alone", "presents as well"])
def test_a_submit_with_a_boundary_ends_a_frame(presents: bool) -> None:
    stream, a, b = two_buffers(256)
    info = struct("VkDeviceCreateInfo", ppEnabledExtensionNames=["VK_EXT_frame_boundary"])
    stream.call("vkCreateDevice", physicalDevice=0, pCreateInfo=info, pDevice=stream.id())
    for _ in range(3):
        race(stream, a, b)
        stream.submit(stream.commands)
        boundary = struct("VkFrameBoundaryEXT", flags=1)
        stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[struct("VkSubmitInfo", pNext=boundary)])
        if presents:
            present(stream)
    assert [each.frame for each in findings(stream)] == [1, 2, 3]


def test_a_present_with_a_boundary_ends_a_frame() -> None:
    stream, a, b = two_buffers(256)
    info = struct("VkDeviceCreateInfo", ppEnabledExtensionNames=["VK_EXT_frame_boundary"])
    stream.call("vkCreateDevice", physicalDevice=0, pCreateInfo=info, pDevice=stream.id())
    for _ in range(2):
        race(stream, a, b)
        present(stream, pNext=struct("VkFrameBoundaryEXT", flags=1))
    assert [each.frame for each in findings(stream)] == [1, 2]


def test_one_race_in_many_frames_is_one_group() -> None:
    stream, a, b = two_buffers(256)
    make_swapchain(stream)
    name(stream, a, "particles")
    for frame in range(1, 31):
        stream.begin()
        with region(stream, f"frame {frame}"):
            stream.fill(a, 7)
            stream.copy(a, b, 256)
        present(stream)
    (group,) = groups_of(findings(stream))
    assert (group.count, group.first_frame, group.last_frame, len(group.recurring)) == (30, 1, 30, 1)


def test_a_trace_keeps_them(tmp_path_factory: pytest.TempPathFactory) -> None:
    stream, a, b = two_buffers(256)
    name(stream, a, "particles\x1b")
    stream.begin()
    with region(stream, "main pass"):
        stream.fill(a, 7)
        insert(stream, "now")
        stream.copy(a, b, 256)
    path = tmp_path_factory.mktemp("trace") / "t.jsonl"
    save(path, stream.blocks)
    (found,) = Analysis().follow(read_trace(path)).findings
    assert (found.resource_name, found.labels) == ("particles\x1b", ("main pass", "now"))


def test_a_hostile_stream_takes_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("MOST_CHANGES", "MOST_NAMES", "MOST_STACKS"):
        monkeypatch.setattr(debug_info, limit, 64)
    debug = DebugInfo()
    for number in range(1000):
        debug.name(number + 1, "x" * 5000)
        for owner in (1, 2, number):
            history = debug.labels_of(owner)
            history.begin(f"{number}" * 5000)
            debug.changed(history, (number, 0, 0))
    assert len(debug.names) == 64
    assert max(map(len, debug.names.values())) == debug_info.LONGEST
    kept = list(debug._labels.values())
    assert sum(len(each.moments) for each in kept) <= 64 + 2
    assert max(len(each.stack) for each in kept) == debug_info.DEEPEST
