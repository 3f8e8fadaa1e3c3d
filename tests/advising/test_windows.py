"""Advice on long traces: asked in windows, proved in the whole trace."""

from __future__ import annotations

from dataclasses import replace

from tests.support.streams import Stream, two_buffers
from vkharness.advising.advise import Advising, advise
from vkharness.mending.proof import judge
from vkharness.reduction.windows import LONG
from vkharness.report.advice import AdviceKind
from vkharness.spec.enums import VkAccess2, VkPipelineStage2
from vkharness.trace.barrier_calls import SECOND, BarrierCommand, BarrierEntry, BufferPart, Masks

FRAMES = LONG + 6
READ = VkAccess2.MEMORY_READ | VkAccess2.UNIFORM_READ
FULL = Masks(
    VkPipelineStage2.ALL_COMMANDS, VkAccess2.MEMORY_WRITE, VkPipelineStage2.ALL_COMMANDS, VkAccess2.MEMORY_READ
)
EXACT = Masks(VkPipelineStage2.CLEAR, VkAccess2.TRANSFER_WRITE, VkPipelineStage2.COPY, VkAccess2.TRANSFER_READ)


def barrier(stream: Stream, masks: Masks, buffer: int) -> int:
    entry = BarrierEntry(masks, BufferPart(buffer, 0, 64))
    return stream.call(SECOND, **BarrierCommand(stream.commands, (entry,)).call(SECOND).args)


def frames(written: int = -1, read: int = -1, wide: bool = False) -> tuple[Stream, list[int], int]:
    """Frames that each fill and copy buffers of their own, with a full barrier between. One more buffer is filled in
    one frame and copied in a later one, behind another barrier. The stream, the barriers of all frames, that one."""
    stream, far, target = two_buffers(64)
    several, one = [], 0
    for frame in range(FRAMES):
        source = stream.buffer(64)
        copied = stream.buffer(64)
        stream.begin()
        if frame == written:
            stream.fill(far, 1, size=64)
        if frame == read:
            one = barrier(stream, replace(FULL, dst_accesses=READ) if wide else EXACT, far)
            stream.copy(far, target, 64)
        stream.fill(source, 1, size=64)
        several.append(barrier(stream, FULL, source))
        stream.copy(source, copied, 64)
        stream.submit(wait=False)
    return stream, several, one


def advised(stream: Stream) -> Advising:
    """Advice on a stream; the trace with all of it is as clean as the stream."""
    found = advise(stream.blocks, seconds=300)
    assert found.in_windows and found.trace is not None and found.done == found.dependencies
    whole = judge(found.trace.of(stream.blocks))
    assert judge(found.trace).pairs <= whole.pairs
    return found


def test_the_same_barrier_of_many_frames_is_asked_about_once() -> None:
    stream, several, _ = frames()
    [advice] = advised(stream).advice
    assert advice.kind is AdviceKind.WIDER and advice.origins == tuple(several)
    assert advice.narrow is not None
    [entry] = BarrierCommand.of(advice.narrow).entries
    assert entry.masks == EXACT


def test_what_an_earlier_frame_needs_is_not_advised_against() -> None:
    """The barrier of the reading frame orders nothing in the window around it: the writer is long before."""
    stream, several, one = frames(written=2, read=20)
    found = advised(stream)
    assert found.withdrawn == 1
    assert [each.origins for each in found.advice] == [tuple(several)]
    assert one not in found.advice[0].origins


def test_what_the_whole_trace_refutes_is_asked_about_in_a_window_that_shows_why() -> None:
    """The writer is some frames before: a window of all of them shows what of the barrier is needed."""
    stream, several, one = frames(written=14, read=20, wide=True)
    found = advised(stream)
    assert found.withdrawn == 0
    narrow = {each.origins: each.narrow for each in found.advice}
    assert narrow.keys() == {tuple(several), (one,)}
    held = narrow[one,]
    assert held is not None
    assert BarrierCommand.of(held).entries[0].masks == EXACT
