"""Barriers of ranges that nobody named before are known natively, and judged as where each call is heard of."""

from __future__ import annotations

import pytest

from hunts.frame_programs import FrameStream
from tests.record.test_open_vertices_natively import counted_records, told
from vkharness import native
from vkharness.commands.synchronization.barrier import BARRIERS
from vkharness.fuzz.filled_calls import struct
from vkharness.spec.enums import VK_WHOLE_SIZE

pytestmark = [pytest.mark.driver, pytest.mark.skipif(native.core is None, reason=f"in use: {native.in_use}")]
TRANSFER, HOST, ALL = 0x1000, 0x4000, 0x10000


class Ranges(FrameStream):
    """A program whose barriers have other ranges each time: also none, more than the buffer has, and several."""

    changes = freshness = (0,)
    readers: tuple[tuple[int, int], ...] = ((TRANSFER, 0x1800), (ALL, 0x18000))
    """Stages and accesses behind barriers."""

    def _frames(self) -> None:
        for frame in range(8):
            self._first = 4 * frame
            self._record(self._primaries[0], [(self._ordered, 0)])
            if frame == 4:
                self._gone("vkDestroyBuffer", self._buffers[-1], buffer=self._buffers[-1])
                self._buffers[-1] = self._buffer()
            self._submit()

    def _ordered(self) -> None:
        for turn in range(16):
            buffer = self._buffers[-1] if turn % 8 == 7 else self._buffers[0]
            at = self._first + 20 * turn
            self._command("FillBuffer", dstBuffer=buffer, dstOffset=at, size=16, data=turn)
            self._ranged(turn, buffer, at + self._random.choice((0, 0, 0, 4)))
            self._command("FillBuffer", dstBuffer=buffer, dstOffset=at, size=self._random.choice((4, 16)), data=turn)

    def _ranged(self, turn: int, buffer: int, at: int) -> None:
        stages, accesses = self.readers[turn % len(self.readers)]
        size = self._random.choice((*(8, 12, 16, 16) * 4, 1 << 20, VK_WHOLE_SIZE))
        families = {"srcQueueFamilyIndex": 0xFFFFFFFF, "dstQueueFamilyIndex": 0xFFFFFFFF}
        part = {
            "buffer": buffer,
            "offset": at,
            "size": size,
            "srcAccessMask": 0x1000,
            "dstAccessMask": accesses,
            **families,
        }
        several = 2 if self._random.random() < 0.1 else 1
        everything = [{"srcAccessMask": 0, "dstAccessMask": 0}] if turn % 4 == 2 else None
        if turn % 2:
            own = {"srcStageMask": TRANSFER, "dstStageMask": stages}
            info = struct(
                "VkDependencyInfo",
                pBufferMemoryBarriers=[struct("VkBufferMemoryBarrier2", **part, **own)] * several,
                pMemoryBarriers=everything and [struct("VkMemoryBarrier2", **each, **own) for each in everything],
            )
            self._command("PipelineBarrier2", pDependencyInfo=info)
        else:
            lists = {
                "pBufferMemoryBarriers": [struct("VkBufferMemoryBarrier", **part)] * several,
                "pMemoryBarriers": everything and [struct("VkMemoryBarrier", **each) for each in everything],
            }
            self._command("PipelineBarrier", srcStageMask=TRANSFER, dstStageMask=stages, **lists)


class ToTheHost(Ranges):
    """Barriers that make something visible to the host are executed one by one."""

    readers = ((HOST | TRANSFER, 0x3800), (ALL, 0x18000))


@pytest.mark.parametrize("kind", [Ranges, ToTheHost])
@pytest.mark.parametrize("seed", (0, 1, 2))
def test_ranges_that_nobody_named_before_are_as_where_each_call_is_heard_of(
    kind: type[Ranges], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = counted_records(monkeypatch)
    stream = kind(seed)
    in_log = told(stream, False)
    assert sum(each["name"] in BARRIERS for each in stream.calls) == 128
    assert 0 < sum(counted[each] for each in BARRIERS) < 64, counted
    assert in_log == told(stream, True)
    assert any("vkCmdFillBuffer" in line for line in in_log), "some ranges end before what is written again"
