"""Programs on a driver that does nothing: what the mirror makes of arguments that no call can take."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import vkharness
from hunts.frame_hunt import frames_of, told_of_frames
from hunts.front_programs import calls_of, deaf_driver, told_of_calls
from tests.support.recording import Keeper

pytestmark = pytest.mark.driver
MORE = ("vkUpdateDescriptorSetWithTemplate", "vkDestroyImageView", "vkCmdCopyImage", "vkCmdDispatch writes VkImage")


def refused(vk: Any, *arguments: Any) -> str:
    """Returns the text of the exception of vkCmdCopyBuffer."""
    commands, buffer = vk.ffi.cast("VkCommandBuffer", 16), vk.ffi.cast("VkBuffer", 32)
    with pytest.raises((TypeError, OverflowError)) as caught:
        vk.vkCmdCopyBuffer(commands, buffer, buffer, *arguments)
    return str(caught.value)


@pytest.mark.parametrize("other", ["VkOffset3D *", "VkRect2D[2]", "char[3]", "VkBufferCopy **", "float *"])
def test_a_pointer_to_something_else_is_refused_as_without_a_mirror(other: str) -> None:
    """It was read as what it should have pointed at, and the process died."""
    keeper = Keeper()
    with deaf_driver() as vk:
        value = vk.ffi.new(other)
        bare = refused(vk, 1, value)
        with vkharness.attach(mirror=keeper):
            assert refused(vk, 1, value) == bare
            vk.vkCmdCopyBuffer(vk.ffi.cast("VkCommandBuffer", 16), None, None, 1, vk.ffi.new("VkBufferCopy[1]"))
    assert keeper.names == ["vkCmdCopyBuffer"]


@pytest.mark.parametrize("count", [-1, 1 << 32, 1 << 200, 1.5, "1"])
def test_a_count_that_is_none_is_refused_as_without_a_mirror(count: Any) -> None:
    """So many regions were read, and the process died."""
    keeper = Keeper()
    with deaf_driver() as vk:
        regions = vk.ffi.new("VkBufferCopy[1]")
        bare = refused(vk, count, regions)
        with vkharness.attach(mirror=keeper):
            assert refused(vk, count, regions) == bare
    assert keeper.names == []


@pytest.mark.parametrize(
    ("calls_of_seed", "told", "seed"),
    [(calls_of, told_of_calls, 4), (frames_of, told_of_frames, 4), (frames_of, told_of_frames, 5)],
)
def test_a_program_says_the_same_each_time(calls_of_seed: Any, told: Any, seed: int) -> None:
    calls = calls_of_seed(seed)
    assert list(told(calls)) == list(told(calls))
    assert len(list(told(calls[:20]))) > 0


def test_programs_of_frames_use_images_and_templates() -> None:
    lines = [line for seed in range(1, 40, 2) for line in told_of_frames(frames_of(seed))]
    said = Counter(name for line in lines for name in MORE if name in line)
    assert said.keys() == set(MORE)


def test_frames_mostly_say_what_frames_before_them_said() -> None:
    """Programs that nobody would write are few."""
    said, raised = Counter[str](), 0
    for seed in range(10):
        calls = frames_of(seed)
        assert len(calls) > 50
        lines = list(told_of_frames(calls))
        raised += sum(": vk" in line for line in lines if line[0].isdigit())
        said.update("hazards" if line.startswith("hazards") else "" for line in lines[-1:])
    assert said["hazards"] > 7 and raised < 20
