"""Native replays use the queues of the trace where the driver has them, and one where it has one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.drivers_here import on_each_driver
from tests.support.several_queues import Asked, QueueStream, noted_calls, several_queues
from tests.support.streams import ALL_COMMANDS, DST, READ_WRITE, SRC, UNDEFINED, Stream, layers, struct, words
from vkharness.findings import UserError
from vkharness.replay.contents.observe import Outputs, compare
from vkharness.replay.native_strategies.background_load import run_with_late_queue
from vkharness.replay.objects import allocations
from vkharness.replay.objects.ownership_transfers import on_device
from vkharness.replay.objects.queue_mapping import QueueMapping
from vkharness.replay.outcomes.jobs import run_native, run_serial
from vkharness.spec.command_classes import is_submit
from vkharness.spec.enums import VK_QUEUE_FAMILY_EXTERNAL, VK_QUEUE_FAMILY_FOREIGN_EXT, VK_QUEUE_FAMILY_IGNORED
from vkharness.trace.calls import Call
from vkharness.trace.first_bytes import pattern_of

pytestmark = on_each_driver
IGNORED = (VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED)
H200 = ((0xF, 16), (0xC, 2), (0xE, 8))


@pytest.fixture
def asked(driver: str) -> Iterator[Asked]:
    with several_queues(driver) as asked:
        yield asked


def read_words(outputs: Outputs, buffer: int) -> list[int]:
    return [int(word) for word in outputs.surfaces[buffer, None].data.view("<u4")]


def operation(semaphore: int, value: int = 0) -> dict[str, Any]:
    return struct("VkSemaphoreSubmitInfo", semaphore=semaphore, value=value, stageMask=ALL_COMMANDS)


def send(stream: Stream, waits: list[dict[str, Any]], signals: list[dict[str, Any]]) -> None:
    """Ends the current commands and submits them, without a wait of the host."""
    stream.end()
    info = struct(
        "VkSubmitInfo",
        pNext=struct(
            "VkTimelineSemaphoreSubmitInfo",
            pWaitSemaphoreValues=[each["value"] for each in waits],
            pSignalSemaphoreValues=[each["value"] for each in signals],
        ),
        pWaitSemaphores=[each["semaphore"] for each in waits],
        pWaitDstStageMask=[ALL_COMMANDS] * len(waits),
        pCommandBuffers=[stream.commands],
        pSignalSemaphores=[each["semaphore"] for each in signals],
    )
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[info])


def pass_on(stream: Stream, families: tuple[int, int], buffer: int = 0, image: int = 0) -> None:
    """One half of an ownership transfer; an image goes from TRANSFER_DST to TRANSFER_SRC."""
    common = {"srcAccessMask": READ_WRITE, "dstAccessMask": READ_WRITE}
    common |= {"srcQueueFamilyIndex": families[0], "dstQueueFamilyIndex": families[1]}
    span = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
    of_image = struct("VkImageMemoryBarrier", oldLayout=DST, newLayout=SRC, subresourceRange=span, **common)
    of_buffer = struct("VkBufferMemoryBarrier", size=0xFFFFFFFFFFFFFFFF, **common)
    stream.cmd(
        "PipelineBarrier",
        srcStageMask=ALL_COMMANDS,
        dstStageMask=ALL_COMMANDS,
        pBufferMemoryBarriers=[{**of_buffer, "buffer": buffer}] if buffer else None,
        pImageMemoryBarriers=[{**of_image, "image": image}] if image else None,
    )


def handed_over() -> tuple[QueueStream, int, int]:
    """An image that one family clears and another one copies to a buffer; both are exclusive."""
    stream = QueueStream()
    semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    image, target = stream.image((4, 4, 1)), stream.buffer(64)
    stream.on(1)
    stream.begin()
    stream.transition(image, UNDEFINED, DST)
    stream.clear(image, (1, 0, 0, 1))
    pass_on(stream, (1, 2), image=image)
    send(stream, [], [operation(semaphore)])
    stream.on(2)
    stream.begin()
    pass_on(stream, (1, 2), image=image)
    stream.image_to_buffer(image, target, (4, 4, 1), layers())
    send(stream, [operation(semaphore)], [])
    stream.call("vkDeviceWaitIdle", device=stream.device)
    return stream, image, target


def test_ownership_goes_from_the_first_contents_to_the_last_user(driver: str, asked: Asked) -> None:
    stream, _, target = handed_over()
    native = run_native(stream.blocks, driver)
    assert read_words(native, target) == [0xFF0000FF] * 16
    # The first contents are acquired, the trace runs, and what it left is released.
    assert [place for place in asked.submits if place[0]] == [(1, 0), (1, 0), (2, 0), (2, 0)]
    assert asked.transfers == [(0, 1), (0, 1), (1, 2), (1, 2), (2, 0), (2, 0)]
    assert not compare(run_serial(stream.blocks, driver), native)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_one_queue_after_the_other_is_late(driver: str, asked: Asked, number: int) -> None:
    stream, _, target = handed_over()
    late = run_with_late_queue(stream.blocks, driver, number)
    assert read_words(late, target) == [0xFF0000FF] * 16
    apart = [place for place in asked.submits if place[0]]
    assert apart == ([(1, 0)] * 3 + [(2, 0)] * 2 if number % 2 == 0 else [(1, 0)] * 2 + [(2, 0)] * 3)


def test_one_queue_is_late_beside_no_other(driver: str) -> None:
    with pytest.raises(UserError, match="all its work is on one queue"):
        run_with_late_queue(handed_over()[0].blocks, driver, 0)


def test_a_submit_to_a_queue_that_was_never_obtained_is_refused(driver: str, asked: Asked) -> None:
    stream, *_ = handed_over()
    last = max(at for at, each in enumerate(stream.blocks) if isinstance(each, Call) and is_submit(each.name))
    submit = stream.blocks[last]
    assert isinstance(submit, Call)
    stream.blocks[last] = replace(submit, args={**submit.args, "queue": 12345})
    with pytest.raises(UserError, match=rf"^block {submit.index}: .* to a queue that the trace does not obtain$"):
        run_with_late_queue(stream.blocks, driver, 0)


def test_families_of_another_device(driver: str) -> None:
    stream, _, target = handed_over()
    with several_queues(driver, H200) as asked:
        assert read_words(run_native(stream.blocks, driver), target) == [0xFF0000FF] * 16
    assert [place for place in asked.submits if place[0]] == [(2, 0), (2, 0), (1, 0), (1, 0)]
    assert asked.transfers == [(0, 2), (0, 2), (2, 1), (2, 1), (1, 0), (1, 0)]


def test_a_transition_of_a_transfer_happens_once_where_one_family_stands_for_both(driver: str) -> None:
    stream, _, target = handed_over()
    with several_queues(driver, [(0x7, 2)]) as asked:
        assert read_words(run_native(stream.blocks, driver), target) == [0xFF0000FF] * 16
    assert not asked.transfers
    assert asked.layouts.count((DST, SRC)) == 1
    assert {(0, 0), (0, 1)} == set(asked.submits)


@pytest.mark.parametrize("mapped", [True, False])
def test_what_nobody_writes_keeps_its_first_contents_across_families(
    driver: str, asked: Asked, mapped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Buffers that the host cannot reach, as most are on a GPU, go to the family and come back."""
    if not mapped:
        monkeypatch.setattr(allocations, "DIRECT", 1 << 30)
    stream = QueueStream()
    source, target = stream.buffer(16), stream.buffer(16)
    stream.on(2, 1)
    stream.begin()
    stream.copy(source, target, 16)
    stream.submit()
    expected = [int.from_bytes(bytes([pattern_of(source)]) * 4, "little")] * 4
    assert read_words(run_native(stream.blocks, driver), target) == expected
    assert (2, 0) in asked.submits
    assert asked.transfers == ([] if mapped else [(0, 2)] * 4 + [(2, 0)] * 4)


def test_shared_resources_name_the_families_of_the_device_and_our_own(driver: str) -> None:
    stream = QueueStream()
    info = struct("VkBufferCreateInfo", size=16, usage=3, sharingMode=1, pQueueFamilyIndices=[1, 2])
    alone = {**info, "pQueueFamilyIndices": [1, 1]}
    buffers = [stream.make("vkCreateBuffer", "pBuffer", each) for each in (info, alone)]
    for buffer in buffers:
        stream.call("vkBindBufferMemory", device=stream.device, buffer=buffer, memory=stream.memory(), memoryOffset=0)
    for family in (1, 2):
        stream.on(family)
        stream.begin()
        stream.fill(buffers[0], family, offset=8 * (family - 1), size=8)
        stream.submit()
    with several_queues(driver, H200) as asked:
        native = run_native(stream.blocks, driver)
        assert asked.shared == [[0, 1, 2]]
        assert read_words(native, buffers[0]) == [1, 1, 2, 2]
        assert not compare(run_serial(stream.blocks, driver), native)
    with several_queues(driver, [(0x7, 16)]) as asked:
        assert not compare(native, run_native(stream.blocks, driver))
        assert asked.shared == []


def backwards() -> tuple[QueueStream, int]:
    """A copy on one queue that waits for the fill, which another queue runs and which is submitted after it."""
    stream = QueueStream()
    timeline, source, target = stream.timeline(), stream.buffer(16), stream.buffer(16)
    stream.on(0, 1)
    stream.begin()
    stream.copy(source, target, 16)
    send(stream, [operation(timeline, 1)], [operation(timeline, 2)])
    stream.on(0)
    stream.begin()
    stream.fill(source, 5)
    send(stream, [], [operation(timeline, 1)])
    stream.call("vkDeviceWaitIdle", device=stream.device)
    return stream, target


def test_a_wait_before_its_signal_is_submitted_first_on_two_queues_and_last_on_one(driver: str, asked: Asked) -> None:
    stream, target = backwards()
    assert read_words(run_native(stream.blocks, driver), target) == [5] * 4
    of_trace = asked.submits[-2:]
    assert of_trace == [(0, 1), (0, 0)]
    with several_queues(driver, [(0x7, 1)]) as one:
        assert read_words(run_native(stream.blocks, driver), target) == [5] * 4
    assert set(one.submits) == {(0, 0)}


def test_a_value_that_nothing_signals_holds_no_queue_for_ever(driver: str, asked: Asked) -> None:
    stream, _ = backwards()
    timeline, target = stream.timeline(), stream.buffer(16)
    stream.on(0, 2)
    stream.begin()
    stream.fill(target, 1)
    send(stream, [operation(timeline, 1)], [])
    untouched = int.from_bytes(bytes([pattern_of(target)]) * 4, "little")
    assert read_words(run_native(stream.blocks, driver), target) == [untouched] * 4
    assert (0, 2) not in asked.submits


def test_a_failure_behind_a_wait_before_its_signal_is_told(driver: str, asked: Asked) -> None:
    stream, _ = backwards()
    blocks = stream.blocks
    last = next(at for at, block in enumerate(blocks) if isinstance(block, Call) and block.name == "vkQueueSubmit")
    stream.blocks = blocks[: last + 1]
    stream.call("vkResetDescriptorPool", descriptorPool=99)
    with pytest.raises(UserError, match="vkResetDescriptorPool descriptorPool: object 99 does not exist"):
        run_native([*stream.blocks, *blocks[last + 1 :]], driver)
    assert "vkSignalSemaphore" in asked.calls


def test_one_queue_waits_for_what_the_host_signals_later(driver: str) -> None:
    """A submit stands before the signal of the host where the trace has it there, on one queue as on several."""
    stream = Stream()
    memory, line = stream.memory(16), stream.timeline()
    source, target = stream.buffer(16, memory), stream.buffer(16)
    stream.begin()
    stream.barrier()
    stream.copy(source, target, 16)
    send(stream, [operation(line, 1)], [])
    stream.host_write(memory, 0, words(1, 2, 3, 4))
    signal = struct("VkSemaphoreSignalInfo", semaphore=line, value=1)
    stream.call("vkSignalSemaphore", device=stream.device, pSignalInfo=signal)
    stream.call("vkDeviceWaitIdle", device=stream.device)
    with noted_calls(Asked()) as asked:
        native = run_native(stream.blocks, driver)
    assert read_words(native, target) == [1, 2, 3, 4]
    signal_at = asked.calls.index("vkSignalSemaphore")
    last_submit = max(at for at, name in enumerate(asked.calls[:signal_at]) if name == "vkQueueSubmit")
    assert "vkDeviceWaitIdle" not in asked.calls[last_submit:signal_at]
    assert compare(run_serial(stream.blocks, driver), native) == []


class TestAhead:
    """Objects that a trace makes between submits come before the first of them, unless an earlier one uses them."""

    def ran(self, stream: Stream, driver: str) -> tuple[list[str], Outputs]:
        """The calls from the trace's first submit to its last, and what they left."""
        with noted_calls(Asked()) as asked:
            native = run_native(stream.blocks, driver)
        assert not compare(run_serial(stream.blocks, driver), native)
        calls = [name for name in asked.calls if not name.startswith(("vkGet", "vkCmdPipelineBarrier"))]
        first, last = calls.index("vkQueueSubmit2"), len(calls) - calls[::-1].index("vkQueueSubmit2")
        return calls[first:last], native

    def send(self, stream: Stream) -> None:
        stream.end()
        batch = struct("VkSubmitInfo2", pCommandBufferInfos=[self.of(stream.commands)])
        stream.call("vkQueueSubmit2", queue=stream.queue, pSubmits=[batch])

    def of(self, commands: int) -> dict[str, Any]:
        return struct("VkCommandBufferSubmitInfo", commandBuffer=commands)

    def test_submits_follow_each_other(self, driver: str) -> None:
        stream = Stream()
        target = stream.buffer(16)
        for value in range(3):
            add = stream.compute("fill_words", [target], words(value))
            stream.begin()
            stream.barrier()
            add.run()
            stream.barrier()
            self.send(stream)
        calls, native = self.ran(stream, driver)
        assert calls == ["vkQueueSubmit2"] * 3
        assert read_words(native, target) == [2, 3, 4, 5]

    def test_waits_and_host_writes_keep_their_places(self, driver: str) -> None:
        stream = Stream()
        memory, target = stream.memory(256), stream.buffer(32)
        source = stream.buffer(16, memory)
        for step, value in enumerate((3, 5)):
            stream.host_write(memory, 0, words(*[value] * 4))
            stream.begin()
            stream.copy(source, target, 16, to=16 * step)
            self.send(stream)
            stream.call("vkQueueWaitIdle", queue=stream.queue)
        calls, native = self.ran(stream, driver)
        assert calls == ["vkQueueSubmit2", "vkQueueWaitIdle", "vkQueueSubmit2"]
        assert read_words(native, target) == [3] * 4 + [5] * 4

    def test_a_command_buffer_is_not_begun_again_before_it_was_submitted(self, driver: str) -> None:
        stream = Stream()
        target = stream.buffer(16)
        for again, value in enumerate((3, 5)):
            if again:
                stream.call("vkQueueWaitIdle", queue=stream.queue)
                begin = struct("VkCommandBufferBeginInfo")
                stream.call("vkBeginCommandBuffer", commandBuffer=stream.commands, pBeginInfo=begin)
            else:
                stream.begin()
            stream.fill(target, value, offset=8 * again, size=8)
            self.send(stream)
        calls, native = self.ran(stream, driver)
        assert calls[:3] == ["vkQueueSubmit2", "vkQueueWaitIdle", "vkBeginCommandBuffer"]
        assert read_words(native, target) == [3, 3, 5, 5]

    def test_a_set_that_a_submit_uses_is_not_updated_before_it(self, driver: str) -> None:
        stream = Stream()
        first, second = stream.buffer(16), stream.buffer(16)
        fill = stream.compute("fill_words", [first], words(7))
        stream.begin()
        fill.run()
        self.send(stream)
        stream.call("vkQueueWaitIdle", queue=stream.queue)
        write = struct("VkWriteDescriptorSet", dstSet=fill.set, descriptorCount=1, descriptorType=7)
        write["pBufferInfo"] = [struct("VkDescriptorBufferInfo", buffer=second, range=0xFFFFFFFFFFFFFFFF)]
        stream.call("vkUpdateDescriptorSets", device=stream.device, pDescriptorWrites=[write])
        stream.begin()
        fill.run()
        self.send(stream)
        calls, native = self.ran(stream, driver)
        assert calls[2] == "vkUpdateDescriptorSets"
        assert read_words(native, first) == read_words(native, second) == [7, 8, 9, 10]

    def test_what_frees_stays_behind_what_came_before(self, driver: str) -> None:
        stream = Stream()
        target = stream.buffer(16)
        for value in range(2):
            fill = stream.compute("fill_words", [target], words(value))
            stream.begin()
            fill.run()
            self.send(stream)
            stream.call("vkQueueWaitIdle", queue=stream.queue)
            stream.call("vkResetCommandPool", device=stream.device, commandPool=stream.pool)
        calls, native = self.ran(stream, driver)
        assert calls[:3] == ["vkQueueSubmit2", "vkQueueWaitIdle", "vkResetCommandPool"]
        assert read_words(native, target) == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("families", "here", "expected"),
    [
        ((0, 1), 0, ((0, 2), 1)),
        ((1, 2), 2, (IGNORED, 7)),
        ((1, 2), 1, (IGNORED, 1)),
        ((1, 1), 1, (IGNORED, 1)),
        (IGNORED, 1, (IGNORED, 1)),
        ((1, VK_QUEUE_FAMILY_EXTERNAL), 1, ((2, VK_QUEUE_FAMILY_EXTERNAL), 1)),
        ((VK_QUEUE_FAMILY_FOREIGN_EXT, 1), 1, (IGNORED, 1)),
    ],
)
def test_families_in_barriers(
    driver: str, families: tuple[int, int], here: int, expected: tuple[tuple[int, int], int]
) -> None:
    mapping = QueueMapping((0, 0), {0: 0, 1: 2, 2: 2})
    barrier = {"oldLayout": 1, "newLayout": 7, "srcQueueFamilyIndex": families[0], "dstQueueFamilyIndex": families[1]}
    changed = on_device({"pImageMemoryBarriers": [barrier]}, mapping, here, lacks_foreign=True)
    (got,) = changed["pImageMemoryBarriers"]
    assert ((got["srcQueueFamilyIndex"], got["dstQueueFamilyIndex"]), got["oldLayout"]) == expected


def test_a_device_with_more_queues_serves_runs_that_want_fewer(driver: str, asked: Asked) -> None:
    stream, _, _ = handed_over()
    run_native(stream.blocks, driver)
    run_serial(stream.blocks, driver)
    assert asked.calls.count("vkCreatePipelineCache") == 1  # each device of ours has one
