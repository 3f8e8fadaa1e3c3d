"""Possible writes of executing command buffers: at least the real ones, and none that the host alone can make."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream
from vkharness.check import Analysis
from vkharness.spans import ENDLESS
from vkharness.spec.enums import VkBufferUsage

TRANSFER = VkBufferUsage.TRANSFER_SRC | VkBufferUsage.TRANSFER_DST
SIZE = 1024


class Setting(Stream):
    """Two storage buffers and one that only copies use, one after another in one memory object."""

    def __init__(self) -> None:
        super().__init__()
        self.one = self.memory()
        self.first, self.second = self.buffer(SIZE, self.one), self.buffer(SIZE, self.one, 4096)
        self.staging = self.buffer(SIZE, self.one, 8192, TRANSFER)

    def written(self, *command_buffers: int) -> list[tuple[int, int]]:
        """Ranges of the one memory object; no other may be written."""
        found = Analysis().follow(self.blocks).may_write(command_buffers or (self.commands,))
        assert found.keys() <= {self.one}
        return found.get(self.one, [])


@pytest.fixture
def stream() -> Setting:
    made = Setting()
    made.begin()
    return made


def test_transfers_write_their_ranges(stream: Setting) -> None:
    stream.fill(stream.first, 0, 16)
    stream.copy(stream.first, stream.second, 4, 0, 8)
    assert stream.written() == [(16, SIZE), (4096 + 8, 4096 + 12)]
    stream.barrier()
    assert len(stream.written()) == 2


def test_shaders_write_what_they_store_to(stream: Setting) -> None:
    """`copy_words` reads its first buffer, although that is a storage buffer, too."""
    stream.compute("copy_words", [stream.first, stream.second]).run()
    (written,) = stream.written()
    assert 4096 <= written[0] < written[1] <= 4096 + SIZE


def test_images_reach_to_the_end_of_their_memory(stream: Setting) -> None:
    stream.clear(stream.image((4, 4, 1)), (0, 0, 0, 0))
    found = Analysis().follow(stream.blocks).may_write([stream.commands])
    assert list(found.values()) == [[(0, ENDLESS)]]


def test_secondaries_count_and_beginning_again_forgets(stream: Setting) -> None:
    inner = stream.begin(level=1)
    stream.fill(stream.first, 0)
    stream.end()
    outer = stream.begin()
    stream.cmd("ExecuteCommands", pCommandBuffers=[inner])
    assert stream.written(outer) == stream.written(inner) == [(0, SIZE)]
    stream.call("vkResetCommandBuffer", commandBuffer=outer)
    assert stream.written(outer) == []


def test_what_is_not_modelled_may_write_what_shaders_can(stream: Setting) -> None:
    stream.cmd("CudaLaunchKernelNV")
    assert stream.written() == [(0, SIZE), (4096, 4096 + SIZE)]


def test_a_program_that_is_not_modelled_whole_may_dispatch_to_anything(stream: Setting) -> None:
    stream.compute("copy_words", [stream.first, stream.second]).run()
    stream.call("vkBindOpticalFlowSessionImageNV", device=stream.device)
    assert [span for span in stream.written() if span[0] < 4096] == [(0, SIZE)]
    stream.begin()
    stream.fill(stream.staging, 0)
    assert stream.written() == [(8192, 8192 + SIZE)]


def test_the_same_commands_recorded_again_write_the_same(stream: Setting) -> None:
    analysis, commands, found = Analysis(), stream.commands, []
    for size in (16, 16, 32, 16):
        stream.call("vkResetCommandBuffer", commandBuffer=commands)
        stream.fill(stream.first, 0, size=size)
        analysis.follow(stream.blocks)
        stream.blocks.clear()
        found.append(analysis.may_write([commands]))
        stream.fill(stream.second, 0, size=4)
        analysis.follow(stream.blocks)
        stream.blocks.clear()
        found.append(analysis.may_write([commands]))
    memory = stream.one
    wanted = [[{memory: [(0, size)]}, {memory: [(0, size), (4096, 4100)]}] for size in (16, 16, 32, 16)]
    assert found == [each for pair in wanted for each in pair]
