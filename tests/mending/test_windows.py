"""Mends of long traces: tried in windows, proved in the whole trace."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream, struct
from vkharness.mending import mend as mending
from vkharness.mending.mend import mend
from vkharness.mending.pieces import pieces
from vkharness.mending.proof import JudgedTrace, is_clean, judge
from vkharness.reduction.windows import LONG
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.trace.barrier_calls import BarrierCommand, BarrierEntry, BufferPart, Masks, is_barrier
from vkharness.trace.calls import Call
from vkharness.trace.edits import EditedTrace

FRAMES = LONG + 6
NEEDED = Masks(VkPipelineStage2.CLEAR, VkAccess2.TRANSFER_WRITE, VkPipelineStage2.COPY, VkAccess2.TRANSFER_READ)


def frames() -> tuple[Stream, list[int]]:
    """Each frame fills a buffer of its own and copies it, with nothing between. The stream and the filled buffers."""
    stream = Stream()
    filled = []
    stream.make("vkCreateSwapchainKHR", "pSwapchain", struct("VkSwapchainCreateInfoKHR"))
    for _ in range(FRAMES):
        source, target = stream.buffer(64), stream.buffer(64)
        stream.begin()
        stream.fill(source, 1, size=64)
        stream.copy(source, target, 64)
        stream.submit(wait=False)
        stream.call("vkQueuePresentKHR", queue=stream.queue, pPresentInfo=struct("VkPresentInfoKHR"))
        filled.append(source)
    return stream, filled


def test_the_same_race_of_many_frames_is_mended_alike_with_no_more_than_is_needed() -> None:
    stream, filled = frames()
    found = mend(stream.blocks)
    assert found.complete and judge(found.trace).findings == [] and judge(found.applied).findings == []
    inserted = [edit.after for edit in found.trace.edits()]
    entries = [BarrierCommand.of(call).entries for call in inserted if is_barrier(call)]
    assert entries == [(BarrierEntry(NEEDED, BufferPart(source, 0, 64)),) for source in filled]
    ends = {found.trace.origins[edit.position] for edit in [*found.trace.edits()][:: FRAMES - 1]}
    tried = [piece for piece in pieces(found.trace) if piece.origin in ends]
    assert tried and not any(is_clean(piece.without(found.trace), (), found.by_model) for piece in tried)


def test_the_whole_trace_is_judged_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, _ = frames()
    judged: list[int] = []

    def counted(trace: EditedTrace, strict: bool) -> JudgedTrace:
        judged.append(sum(isinstance(block, Call) and block.name == "vkQueueSubmit" for block in trace.blocks))
        return judge(trace, strict)

    monkeypatch.setattr(mending, "judge", counted)
    assert mend(stream.blocks).complete
    assert judged.count(FRAMES) <= 3 < len(judged)


def test_groups_of_one_kind_are_mended_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same race of several pairs of calls in one submit is as many groups."""
    stream = Stream()
    count = 3 * mending.MANY
    buffers = [(stream.buffer(64), stream.buffer(64)) for _ in range(count)]
    stream.begin()
    for source, target in buffers:
        stream.fill(source, 1, size=64)
        stream.copy(source, target, 64)
    stream.submit()
    judged: list[int] = []

    def counted(trace: EditedTrace, strict: bool) -> JudgedTrace:
        judged.append(len(trace.blocks))
        return judge(trace, strict)

    monkeypatch.setattr(mending, "judge", counted)
    found = mend(stream.blocks)
    assert len(found.groups) == count and found.complete and judge(found.applied).findings == []
    assert len(judged) < count
    position = {origin: at for at, origin in enumerate(found.trace.origins)}
    for each in found.groups:
        [origin] = each.origins
        prior, late = each.findings[0].prior.call, each.findings[0].place.call
        assert position[prior] < position[origin] < position[late]
