"""Writes of the device to mapped memory that no dependency shows to the host: named with their size, and no hazards."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream, struct
from vkharness.check import Analysis
from vkharness.findings import Place, Unjudged, UnseenWrite
from vkharness.report.text import MOST_UNSEEN, size_text, unjudged_lines
from vkharness.trace.calls import HostRead

WHOLE = 0xFFFFFFFFFFFFFFFF
SIZE = 4096


class Mapped(Stream):
    """A buffer on memory that the program maps before the device fills the buffer."""

    def __init__(self, offset: int = 0, size: int = WHOLE) -> None:
        super().__init__()
        self.memory_id = self.memory(2 * SIZE)
        self.target = self.buffer(SIZE, self.memory_id, 256)
        self.call("vkMapMemory", device=self.device, memory=self.memory_id, offset=offset, size=size)

    def fills(self, to_host: bool = False) -> int:
        """Fills the buffer, perhaps with a dependency to the host, and waits; the fill's index."""
        self.begin()
        fill = self.fill(self.target, 0)
        if to_host:
            memory = struct("VkMemoryBarrier", srcAccessMask=0x1000, dstAccessMask=0x2000)
            self.cmd("PipelineBarrier", srcStageMask=0x1000, dstStageMask=0x4000, pMemoryBarriers=[memory])
        self.submit()
        return fill

    def unseen(self) -> list[tuple[int, str, int, int]]:
        """(resource, its type, bytes, call of the write) of what the host can never see."""
        analysis = Analysis().follow(self.blocks)
        assert (analysis.verdict, analysis.findings) == ("clean", [])
        return [
            (each.resource, each.resource_type, each.size, each.place.call) for each in analysis.unjudged.never_visible
        ]


@pytest.mark.parametrize("end", ["stays mapped", "unmap", "destroy", "free"])
def test_a_write_without_a_dependency_to_the_host_is_named(end: str) -> None:
    stream = Mapped()
    fill = stream.fills()
    if end == "unmap":
        stream.call("vkUnmapMemory", device=stream.device, memory=stream.memory_id)
    elif end in ("destroy", "free"):
        stream.call("vkDestroyBuffer", device=stream.device, buffer=stream.target)
    if end == "free":
        stream.call("vkFreeMemory", device=stream.device, memory=stream.memory_id)
    assert stream.unseen() == [(stream.target, "VkBuffer", SIZE, fill)]


def test_a_dependency_to_the_host_shows_the_write() -> None:
    stream = Mapped()
    stream.fills(to_host=True)
    assert stream.unseen() == []


def test_a_dependency_that_comes_before_the_write_does_not() -> None:
    stream = Mapped()
    stream.fills(to_host=True)
    fill = stream.fills()
    assert stream.unseen() == [(stream.target, "VkBuffer", SIZE, fill)]


def test_only_what_is_mapped_counts() -> None:
    stream = Mapped(size=512)
    fill = stream.fills()
    assert stream.unseen() == [(stream.target, "VkBuffer", 256, fill)]
    stream = Mapped()
    stream.call("vkUnmapMemory", device=stream.device, memory=stream.memory_id)
    stream.fills()
    assert stream.unseen() == []


def test_what_the_host_overwrites_or_was_found_to_read_is_not_named() -> None:
    stream = Mapped()
    stream.fills()
    stream.host_write(stream.memory_id, 256, bytes(SIZE))
    assert list(Analysis().follow(stream.blocks).unjudged.never_visible) == []
    stream = Mapped()
    stream.fills()
    stream.blocks.append(HostRead(len(stream.blocks) + 1, stream.memory_id, 256, SIZE))
    analysis = Analysis().follow(stream.blocks)
    assert [each.hazard for each in analysis.findings] == ["READ_AFTER_WRITE"]
    assert list(analysis.unjudged.never_visible) == []


def test_the_same_write_in_every_frame_is_named_once_with_its_size() -> None:
    stream = Mapped()
    stream.begin()
    fill = stream.fill(stream.target, 0)
    stream.end()
    for _ in range(3):
        stream.submit(stream.commands)
        stream.call("vkUnmapMemory", device=stream.device, memory=stream.memory_id)
        stream.call("vkMapMemory", device=stream.device, memory=stream.memory_id, size=WHOLE)
    assert stream.unseen() == [(stream.target, "VkBuffer", SIZE, fill)]


def test_in_words_there_is_one_line_for_each_memory_object() -> None:
    stream = Mapped()
    stream.begin()
    fills = [stream.fill(stream.target, at, 64 * at, 12) for at in range(3)]
    stream.submit()
    (line,) = unjudged_lines(Analysis().follow(stream.blocks).unjudged)
    target = f"VkBuffer {stream.target}"
    assert line == (
        f"mapped and never made visible to the host, as a read of it would need: {target}, written by 3 commands, "
        f"first vkCmdFillBuffer at call {fills[0]}, last vkCmdFillBuffer at call {fills[-1]}"
    )
    stream = Mapped()
    fill = stream.fills()
    (line,) = unjudged_lines(Analysis().follow(stream.blocks).unjudged)
    assert line.endswith(f": 4 KiB of VkBuffer {stream.target}, written by vkCmdFillBuffer at call {fill}")
    assert [size_text(each) for each in (12, 1536, 4 << 20, 3 << 30)] == ["12 bytes", "1.5 KiB", "4 MiB", "3 GiB"]


def test_many_memory_objects_are_counted() -> None:
    place = Place(7, "vkCmdFillBuffer", None)
    writes = [UnseenWrite(20 + at, "VkBuffer", 12, place, memory=at // 2) for at in range(2 * MOST_UNSEEN + 4)]
    lines = unjudged_lines(Unjudged({}, writes))
    assert lines[0].endswith(
        ": VkBuffer 20 and 1 more in VkDeviceMemory 0, written by 2 commands, "
        "first vkCmdFillBuffer at call 7, last vkCmdFillBuffer at call 7"
    )
    assert (len(lines), lines[-1]) == (MOST_UNSEEN + 1, "and 2 more memory objects")
