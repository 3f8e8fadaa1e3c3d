"""Replays on real software drivers: serial and native runs end in the bytes that the commands say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.support.drivers_here import on_each_driver
from tests.support.streams import COLOR, DST, GENERAL, SRC, UNDEFINED, Stream, layers, struct, two_buffers, words
from vkharness.findings import UserError
from vkharness.replay.contents.observe import Outputs, compare
from vkharness.replay.outcomes.jobs import run_native, run_serial
from vkharness.trace.calls import Block, Call
from vkharness.trace.first_bytes import pattern_of

Run = Callable[[list[Block], str], Outputs]
RUNS = [run_serial, run_native]
pytestmark = on_each_driver


def read_words(outputs: Outputs, buffer: int) -> list[int]:
    return [int(word) for word in outputs.surfaces[buffer, None].data.view(np.uint32)]


@pytest.mark.parametrize("run", RUNS)
class TestCommands:
    def test_fill_and_copy_leave_the_rest_at_its_pattern(self, driver: str, run: Run) -> None:
        stream, a, b = two_buffers()
        stream.begin()
        stream.fill(a, 7)
        stream.barrier()
        stream.copy(a, b, 8)
        stream.submit()
        outputs = run(stream.blocks, driver)
        untouched = int.from_bytes(bytes([pattern_of(b)]) * 4, "little")
        assert read_words(outputs, a) == [7] * 4
        assert read_words(outputs, b) == [7, 7, untouched, untouched]

    def test_dispatches_with_push_constants(self, driver: str, run: Run) -> None:
        stream, a, b = two_buffers()
        fill, copy = stream.compute("fill_words", [a], words(100)), stream.compute("copy_words", [a, b])
        stream.begin()
        fill.run()
        stream.barrier()
        copy.run()
        stream.submit()
        outputs = run(stream.blocks, driver)
        assert read_words(outputs, b) == [100, 101, 102, 103]

    def test_host_writes_stand_where_they_were_between_submits(self, driver: str, run: Run) -> None:
        stream = Stream()
        memory = stream.memory(256)
        a, b = stream.buffer(16, memory, offset=64), stream.buffer(32)
        for step, value in enumerate((3, 5)):
            stream.host_write(memory, 64, words(*[value] * 4))
            stream.begin()
            stream.copy(a, b, 16, to=16 * step)
            stream.submit()
        assert read_words(run(stream.blocks, driver), b) == [3] * 4 + [5] * 4

    def test_a_command_buffer_submitted_twice_runs_twice(self, driver: str, run: Run) -> None:
        stream = Stream()
        a = stream.buffer(16)
        stream.begin()
        stream.fill(a, 3)
        stream.submit()
        double = stream.compute("scale_words", [a], words(2))
        again = stream.begin()
        double.run()
        stream.end()
        stream.submit(again)
        stream.submit(again)
        assert read_words(run(stream.blocks, driver), a) == [12] * 4

    def test_secondary_command_buffers(self, driver: str, run: Run) -> None:
        stream, a, b = two_buffers()
        secondary = stream.begin(level=1)
        stream.fill(a, 9)
        stream.end()
        stream.begin()
        stream.cmd("ExecuteCommands", pCommandBuffers=[secondary])
        stream.barrier()
        stream.copy(a, b, 16)
        stream.submit()
        assert read_words(run(stream.blocks, driver), b) == [9] * 4

    def test_image_round_trip_with_layouts(self, driver: str, run: Run) -> None:
        stream = Stream()
        image, target = stream.image((4, 4, 1), mips=2, array=2), stream.buffer(64)
        stream.begin()
        stream.transition(image, UNDEFINED, DST)
        for mip in range(2):
            for layer in range(2):
                stream.clear(image, (mip, layer, 1, 1), mip, layer)
        stream.transition(image, DST, SRC)
        stream.image_to_buffer(image, target, (2, 2, 1), layers(mip=1, layer=1))
        stream.submit()
        outputs = run(stream.blocks, driver)
        assert read_words(outputs, target)[:4] == [0xFFFFFFFF] * 4
        texel = outputs.surfaces[image, (COLOR, 0, 1)].data[0, 3, 3]
        assert texel.tolist() == [0, 255, 255, 255]
        assert outputs.surfaces[image, (COLOR, 1, 0)].data.shape == (1, 2, 2, 4)
        assert not outputs.unobserved

    def test_resources_destroyed_before_the_end_are_observed(self, driver: str, run: Run) -> None:
        stream = Stream()
        a = stream.buffer(16)
        stream.begin()
        stream.fill(a, 1)
        stream.submit()
        stream.call("vkDestroyBuffer", device=stream.device, buffer=a)
        assert read_words(run(stream.blocks, driver), a) == [1] * 4

    def test_indirect_dispatch_reads_its_arguments(self, driver: str, run: Run) -> None:
        stream = Stream()
        arguments, a = stream.buffer(16, usage=0x1 | 0x2 | 0x100), stream.buffer(64 * 4 * 2)
        fill = stream.compute("fill_words", [a], words(0))
        stream.begin()
        stream.fill(arguments, 1)
        stream.barrier()
        fill.run(groups=0)
        stream.cmd("DispatchIndirect", buffer=arguments, offset=0)
        stream.submit()
        assert read_words(run(stream.blocks, driver), a)[:64] == list(range(64))

    def test_events_order_nothing_but_are_replayed(self, driver: str, run: Run) -> None:
        stream, a, b = two_buffers()
        event = stream.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))
        full = struct("VkMemoryBarrier", srcAccessMask=0x18000, dstAccessMask=0x18000)
        stream.begin()
        stream.fill(a, 7)
        stream.cmd("SetEvent", event=event, stageMask=0x1000)
        stream.cmd("WaitEvents", pEvents=[event], srcStageMask=0x1000, dstStageMask=0x1000, pMemoryBarriers=[full])
        stream.copy(a, b, 16)
        stream.submit()
        assert read_words(run(stream.blocks, driver), b) == [7] * 4


def test_aliased_buffers_stay_aliased(driver: str) -> None:
    stream = Stream()
    memory = stream.memory(4096)
    a, b = stream.buffer(256, memory), stream.buffer(256, memory)
    stream.begin()
    stream.fill(a, 5)
    stream.submit()
    assert read_words(run_serial(stream.blocks, driver), b) == [5] * 64


def test_an_unaligned_offset_is_moved_to_one_that_fits(driver: str) -> None:
    """Offset 4 suits no driver's buffers; the trace may come from one that it suited."""
    stream = Stream()
    memory = stream.memory(4096)
    a, b = stream.buffer(64, memory, offset=4), stream.buffer(64, memory, offset=1000)
    stream.host_write(memory, 4, words(*range(16)))
    stream.begin()
    stream.copy(a, b, 64)
    stream.submit()
    assert read_words(run_serial(stream.blocks, driver), b) == list(range(16))


def test_a_run_repeats_byte_for_byte(driver: str) -> None:
    stream = Stream()
    stream.buffer(100)
    image = stream.image((5, 3, 1), mips=2)
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    stream.submit()
    first, second = run_serial(stream.blocks, driver), run_serial(stream.blocks, driver)
    assert len(first.surfaces) == 3
    assert compare(first, second) == []


def test_a_submit_of_what_was_never_recorded_is_one_line(driver: str) -> None:
    stream = Stream()
    stream.submit(stream.id())
    with pytest.raises(UserError, match=r"block 4: vkQueueSubmit of command buffer 4, not recorded"):
        run_serial(stream.blocks, driver)


def test_a_call_that_the_target_lacks_is_named(driver: str) -> None:
    stream = Stream()
    stream.begin()
    index = stream.cmd("DrawMeshTasksEXT", groupCountX=1)
    stream.submit()
    with pytest.raises(UserError, match=f"block {index}: {driver} has no vkCmdDrawMeshTasksEXT"):
        run_serial(stream.blocks, driver)


def test_an_unsupported_image_is_named_with_its_block(driver: str) -> None:
    stream = Stream()
    image = stream.image((1 << 20, 1, 1))
    with pytest.raises(UserError, match=rf"block \d+: vkCreateImage of object {image}"):
        run_serial(stream.blocks, driver)


def test_failed_calls_are_left_out(driver: str) -> None:
    stream = Stream()
    a = stream.buffer(16)
    stream.blocks.append(Call(99, "vkCreateBuffer", {"pCreateInfo": None, "pBuffer": None}, -1))
    stream.begin()
    stream.fill(a, 2)
    stream.submit()
    assert read_words(run_serial(stream.blocks, driver), a) == [2] * 4


def test_malformed_arguments_are_one_line(driver: str) -> None:
    stream = Stream()
    stream.blocks.append(Call(len(stream.blocks) + 1, "vkCreateBuffer", {"pCreateInfo": 5, "pBuffer": 9}, 0))
    with pytest.raises(UserError, match="block 4: vkCreateBuffer"):
        run_serial(stream.blocks, driver)
