"""Mends beyond one queue: waits of batches, new semaphores, and what the host lacks."""

from __future__ import annotations

import pytest

from tests.replay.test_witness_presentation import Presenter
from tests.support.passes import WHITE, begin_pass, described, framebuffer, rect, refer, render_pass, subpass, view
from tests.support.streams import Stream, struct
from vkharness.findings import Finding, Hazard, Place
from vkharness.mending.mend import mend
from vkharness.mending.needed_masks import joined_stages
from vkharness.mending.pieces import pieces
from vkharness.mending.proof import is_clean, judge
from vkharness.mending.semaphores import with_acquire_wait, with_another_wait, with_semaphore
from vkharness.report.mends import changes_in_words
from vkharness.spec.enums import VkImageLayout, VkPipelineStage2
from vkharness.spec.masks import scope
from vkharness.trace.barrier_calls import BarrierCommand, is_barrier
from vkharness.trace.calls import Call, HostRead
from vkharness.trace.edits import Edit, EditedTrace

TRANSFER = VkPipelineStage2.ALL_TRANSFER


def mended(stream: Stream) -> list[Edit]:
    """The changes that mend a stream: clean for both judges, and no piece of them can be left out."""
    found = mend(stream.blocks)
    assert found.complete, [each.reason for each in found.groups]
    for trace in (found.trace, found.applied):
        assert judge(trace).findings == []
        for piece in pieces(trace):
            assert not is_clean(piece.without(trace), (), by_model=True), piece.what
    return list(found.applied.edits())


def two_queues() -> tuple[Stream, int, int, int]:
    stream = Stream()
    other = stream.id()
    stream.call("vkGetDeviceQueue", device=stream.device, queueIndex=1, pQueue=other)
    return stream, other, stream.buffer(16), stream.buffer(16)


def filled_and_copied(stream: Stream, a: int, b: int) -> tuple[int, int]:
    """Two command buffers: one fills a buffer, and the other copies from it."""
    fill = stream.begin()
    stream.fill(a, 1)
    stream.end()
    copy = stream.begin()
    stream.copy(a, b, 16)
    stream.end()
    return fill, copy


def submit(stream: Stream, queue: int, commands: int, **semaphores: list[int]) -> int:
    info = struct("VkSubmitInfo", pCommandBuffers=[commands], **semaphores)
    return stream.call("vkQueueSubmit", queue=queue, pSubmits=[info])


def test_a_trace_that_makes_no_device_gets_a_semaphore_of_none() -> None:
    stream, other, a, b = two_queues()
    fill, copy = filled_and_copied(stream, a, b)
    submit(stream, stream.queue, fill)
    submit(stream, other, copy)
    stream.blocks[:] = [block for block in stream.blocks if getattr(block, "name", "") != "vkCreateDevice"]
    found = mend(stream.blocks)
    assert found.complete
    (made,) = [edit.after for edit in found.applied.edits() if edit.after.name == "vkCreateSemaphore"]
    assert made.args["device"] == 0


def test_two_queues_get_a_semaphore() -> None:
    stream, other, a, b = two_queues()
    fill, copy = filled_and_copied(stream, a, b)
    submit(stream, stream.queue, fill)
    submit(stream, other, copy)
    create, first, second = mended(stream)
    semaphore = create.after.args["pSemaphore"]
    assert create.after.name == "vkCreateSemaphore"
    assert first.after.args["pSubmits"][0]["pSignalSemaphores"] == [semaphore]
    assert second.after.args["pSubmits"][0]["pWaitSemaphores"] == [semaphore]
    assert second.after.args["pSubmits"][0]["pWaitDstStageMask"] == [TRANSFER]


def test_what_a_semaphore_adds_to_a_batch_is_said_in_words() -> None:
    stream, other, a, b = two_queues()
    fill, copy = filled_and_copied(stream, a, b)
    submit(stream, stream.queue, fill)
    submit(stream, other, copy)
    found = mend(stream.blocks)
    lines = [
        line.strip() for _, lines in changes_in_words(found.trace, found.applied, ("Python", "C")) for line in lines
    ]
    assert "pSubmits[0].pWaitSemaphores: 1 more" in lines
    assert "pSubmits[0].pWaitDstStageMask: 1 more" in lines


def test_a_present_operation_takes_no_new_semaphore() -> None:
    stream, other, a, b = two_queues()
    fill, _ = filled_and_copied(stream, a, b)
    present = stream.call("vkQueuePresentKHR", queue=other, pPresentInfo={"pWaitSemaphores": []})
    late = submit(stream, stream.queue, fill)
    place, prior = (
        Place(at, name, None, submit=at, queue=queue)
        for at, name, queue in ((late, "vkCmdFillBuffer", stream.queue), (present, "vkQueuePresentKHR", other))
    )
    access = "SYNC_CLEAR_TRANSFER_WRITE"
    found = Finding(Hazard.WRITE_AFTER_PRESENT, access, access, place, prior, a, "VkBuffer", ((0, 16),), ())
    assert with_semaphore(EditedTrace.of(stream.blocks), [found]) is None


def test_a_wait_at_another_stage_is_edited() -> None:
    stream, other, a, b = two_queues()
    fill, copy = filled_and_copied(stream, a, b)
    semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    submit(stream, stream.queue, fill, pSignalSemaphores=[semaphore])
    stages = [VkPipelineStage2.VERTEX_SHADER]
    wait = submit(stream, other, copy, pWaitSemaphores=[semaphore], pWaitDstStageMask=stages)
    [edit] = mended(stream)
    assert edit.before is not None and edit.before.index == wait
    assert edit.after.args["pSubmits"][0]["pWaitDstStageMask"] == [stages[0] | TRANSFER]


@pytest.mark.parametrize(
    ("mask", "more", "joined"),
    [
        ("COMPUTE_SHADER", "ALL_COMMANDS", "ALL_COMMANDS"),
        ("ALL_COMMANDS", "COPY", "ALL_COMMANDS"),
        ("HOST|COPY", "ALL_COMMANDS", "HOST|ALL_COMMANDS"),
        ("TOP_OF_PIPE", "COPY", "COPY"),
        ("TOP_OF_PIPE", "NONE", "TOP_OF_PIPE"),
    ],
)
def test_stages_are_joined_to_the_smallest_mask(mask: str, more: str, joined: str) -> None:
    assert joined_stages(scope(mask)[0], scope(more)[0]) == scope(joined)[0]


def test_a_signal_for_which_nobody_waits_is_waited_for() -> None:
    stream, other, a, b = two_queues()
    fill, copy = filled_and_copied(stream, a, b)
    semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    submit(stream, stream.queue, fill, pSignalSemaphores=[semaphore])
    submit(stream, other, copy)
    [edit] = mended(stream)
    assert edit.after.args["pSubmits"][0]["pWaitSemaphores"] == [semaphore]


def test_the_host_waits_for_a_fence_and_a_barrier_makes_the_write_visible() -> None:
    stream = Stream()
    memory = stream.memory(16)
    a = stream.buffer(16, memory)
    stream.begin()
    stream.fill(a, 1)
    stream.submit(wait=False)
    stream.blocks.append(HostRead(len(stream.blocks) + 1, memory, 0, 16))
    calls = [edit.after for edit in mended(stream)]
    names = [call.name for call in calls]
    assert names == ["vkCmdPipelineBarrier", "vkCreateFence", "vkQueueSubmit", "vkWaitForFences"]
    [entry] = BarrierCommand.of(next(call for call in calls if is_barrier(call))).entries
    assert (entry.masks.dst_stages, entry.masks.dst_accesses) == scope("HOST/HOST_READ")
    assert calls[3].args["pFences"] == [calls[1].args["pFence"]] == [calls[2].args["fence"]]


def test_no_wait_of_the_host_stands_where_a_barrier_does() -> None:
    stream = Stream()
    a, b = stream.buffer(16), stream.buffer(16)
    fill, copy = filled_and_copied(stream, a, b)
    submit(stream, stream.queue, fill)
    submit(stream, stream.queue, copy)
    edits = mended(stream)
    assert all(is_barrier(each.after) for each in edits)
    assert all(isinstance(each.after, Call) for each in edits)


def frames(count: int) -> Presenter:
    """Frames whose render pass has no dependency from VK_SUBPASS_EXTERNAL: its transition waits for no acquire, since
    the submit waits in the stage of colour output alone."""
    presenter = Presenter()
    image = presenter.images[0]
    shown = [described(final=VkImageLayout.PRESENT_SRC_KHR)]
    made = render_pass(presenter, shown, [subpass([refer(0)])], form=1)
    frame = framebuffer(presenter, made, [view(presenter, image)], (8, 8))
    for _ in range(count):
        acquired, done = presenter.semaphore(), presenter.semaphore()
        presenter.acquire(0, acquired)
        presenter.begin()
        begin_pass(presenter, made, frame, rect((8, 8)), [WHITE], 1)
        presenter.cmd("EndRenderPass")
        presenter.end()
        waits = {"pWaitSemaphores": [acquired], "pWaitDstStageMask": [VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT]}
        submit(presenter, presenter.queue, presenter.commands, **waits, pSignalSemaphores=[done])
        presenter.present(0, done)
    return presenter


def test_one_frame_waits_in_all_stages() -> None:
    [edit] = mended(frames(1))
    assert edit.after.name == "vkQueueSubmit"


def test_many_frames_get_one_subpass_dependency() -> None:
    [edit] = mended(frames(4))
    assert edit.after.name == "vkCreateRenderPass"
    [added] = edit.after.args["pCreateInfo"]["pDependencies"]
    assert (added["srcSubpass"], added["dstSubpass"]) == (0xFFFFFFFF, 0)
    assert added["srcStageMask"] == VkPipelineStage2.COLOR_ATTACHMENT_OUTPUT


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("first", ["BOTTOM_OF_PIPE", "TOP_OF_PIPE", "ALL_TRANSFER"])
def test_an_acquire_that_is_waited_for_at_the_end_is_in_each_submit(first: str, count: int) -> None:
    """Such a wait holds nothing back. `vulkansink` of GStreamer has it, before a transition from the last stage."""
    presenter = Presenter(count)
    (stages, _), writes = scope(first), scope("ALL_TRANSFER/TRANSFER_WRITE")
    for number, image in enumerate(presenter.images):
        acquired, done = presenter.semaphore(), presenter.semaphore()
        presenter.acquire(number, acquired)
        presenter.begin()
        presenter.move(image, (0, VkImageLayout.TRANSFER_DST_OPTIMAL), (stages, 0), writes)
        presenter.clear(image, (1, 1, 1, 1))
        last = VkPipelineStage2.BOTTOM_OF_PIPE
        shown = VkImageLayout.TRANSFER_DST_OPTIMAL, VkImageLayout.PRESENT_SRC_KHR
        presenter.move(image, shown, writes, (last, 0))
        presenter.end()
        waits = {"pWaitSemaphores": [acquired], "pWaitDstStageMask": [last]}
        submit(presenter, presenter.queue, presenter.commands, **waits, pSignalSemaphores=[done])
        presenter.present(number, done)
    edits = mended(presenter)
    assert [each.after.name for each in edits] == ["vkQueueSubmit"] * count
    masks = {each.after.args["pSubmits"][0]["pWaitDstStageMask"][0] for each in edits}
    assert masks == {VkPipelineStage2.ALL_TRANSFER if first == "ALL_TRANSFER" else VkPipelineStage2.ALL_COMMANDS}


def test_what_is_in_no_batch_of_a_submit_gets_no_semaphore() -> None:
    """A present has waits of its own, and a sparse binding other structs."""
    stream, _, a, b = two_queues()
    fill, _ = filled_and_copied(stream, a, b)
    semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    early = submit(stream, stream.queue, fill, pSignalSemaphores=[semaphore])
    bind = stream.call("vkQueueBindSparse", queue=stream.queue, pBindInfo=[struct("VkBindSparseInfo")])
    places = Place(bind, "vkQueueBindSparse", None, submit=bind), Place(4, "vkCmdFillBuffer", None, submit=early)
    found = Finding(Hazard.WRITE_AFTER_WRITE, "", "", *places, a, "VkBuffer")
    trace = EditedTrace.of(stream.blocks)
    assert (with_another_wait(trace, [found], 0), with_acquire_wait(trace, [found])) == (None, None)
