"""Advice on images, events, semaphores and layouts: what of them nothing needs."""

from __future__ import annotations

from dataclasses import replace

from tests.support.advice import advised, only
from tests.support.streams import COLOR, DST, GENERAL, SRC, UNDEFINED, Stream, layers, struct, two_buffers
from vkharness.advising.ranges import ranges
from vkharness.advising.written import dependencies
from vkharness.report.advice import AdviceKind, advice_text
from vkharness.spec.enums import VK_REMAINING_ARRAY_LAYERS, VK_WHOLE_SIZE, VkAccess2, VkPipelineStage2
from vkharness.trace.barrier_calls import SECOND, BarrierCommand, BarrierEntry, BufferPart, ImagePart, Masks
from vkharness.trace.calls import Call

FILLED = Masks(VkPipelineStage2.CLEAR, VkAccess2.TRANSFER_WRITE, VkPipelineStage2.COPY, VkAccess2.TRANSFER_READ)
CLEARED = FILLED
START = Masks(0, 0, VkPipelineStage2.CLEAR, VkAccess2.TRANSFER_WRITE)
REST = (0, VK_REMAINING_ARRAY_LAYERS)


def barrier(stream: Stream, *entries: BarrierEntry) -> int:
    return stream.call(SECOND, **BarrierCommand(stream.commands, entries).call(SECOND).args)


def image_barrier(stream: Stream, image: int, masks: Masks, old: int, new: int) -> int:
    return barrier(stream, BarrierEntry(masks, ImagePart(image, COLOR, REST, REST, old, new)))


def copy_image(stream: Stream, image: int, buffer: int, layout: int, mip: int = 0, layer: int = 0) -> int:
    region = struct(
        "VkBufferImageCopy",
        imageSubresource=layers(mip=mip, layer=layer),
        imageExtent={"width": 4 >> mip, "height": 4 >> mip, "depth": 1},
    )
    return stream.cmd("CopyImageToBuffer", srcImage=image, srcImageLayout=layout, dstBuffer=buffer, pRegions=[region])


def test_levels_and_layers_that_nothing_meets_are_taken_from_an_image_barrier() -> None:
    stream = Stream()
    image, buffer = stream.image((4, 4, 1), mips=3, array=4), stream.buffer(64)
    stream.begin()
    image_barrier(stream, image, START, UNDEFINED, GENERAL)
    stream.clear(image, (0, 0, 0, 0), mip=1, layer=2, layout=GENERAL)
    image_barrier(stream, image, CLEARED, GENERAL, GENERAL)
    copy_image(stream, image, buffer, GENERAL, mip=1, layer=2)
    stream.submit()
    path = "pDependencyInfo.pImageMemoryBarriers[0].subresourceRange"
    assert only(advised(stream)).lines == (f"{path}: levels [0, 3) -> [1, 2)", f"{path}: layers [0, 4) -> [2, 3)")


def test_the_range_of_a_transition_stays() -> None:
    stream = Stream()
    image, buffer = stream.image((4, 4, 1), mips=3, array=4), stream.buffer(64)
    stream.begin()
    image_barrier(stream, image, START, UNDEFINED, DST)
    stream.clear(image, (0, 0, 0, 0), mip=1)
    image_barrier(stream, image, CLEARED, DST, SRC)
    copy_image(stream, image, buffer, SRC, mip=1)
    stream.submit()
    assert advised(stream).advice == []


def with_event(set_masks: Masks, wait_masks: Masks) -> tuple[Stream, int, int]:
    stream, a, b = two_buffers(64)
    event = stream.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))
    stream.begin()
    stream.fill(a, 1, size=64)

    def info(masks: Masks) -> dict[str, object]:
        call = BarrierCommand(stream.commands, (BarrierEntry(masks, BufferPart(a, 0, 64)),)).call(SECOND)
        held: dict[str, object] = call.args["pDependencyInfo"]
        return held

    set_ = stream.cmd("SetEvent2", event=event, pDependencyInfo=info(set_masks))
    wait = stream.cmd("WaitEvents2", eventCount=1, pEvents=[event], pDependencyInfos=[info(wait_masks)])
    stream.copy(a, b, 64)
    stream.submit()
    return stream, set_, wait


def test_the_masks_of_a_wait_for_events_change_together_with_the_set() -> None:
    wide = replace(FILLED, dst_stages=VkPipelineStage2.ALL_COMMANDS, dst_accesses=VkAccess2.MEMORY_READ)
    stream, set_, wait = with_event(wide, wide)
    found = advised(stream)
    assert only(found).lines == (
        "pDependencyInfos[0].pBufferMemoryBarriers[0].dstAccessMask: MEMORY_READ -> TRANSFER_READ",
        "pDependencyInfos[0].pBufferMemoryBarriers[0].dstStageMask: ALL_COMMANDS -> COPY",
    )
    assert found.trace is not None
    calls = dict(zip(found.trace.origins, found.trace.blocks, strict=True))
    early, late = calls[set_], calls[wait]
    assert isinstance(early, Call) and isinstance(late, Call)
    assert early.args["pDependencyInfo"] == late.args["pDependencyInfos"][0]
    assert f"    the set in call {set_} changes alike" in list(advice_text(1, only(found), ()))


def test_a_wait_that_does_not_match_its_set_is_left_alone() -> None:
    wide = replace(FILLED, dst_stages=VkPipelineStage2.ALL_COMMANDS, dst_accesses=VkAccess2.MEMORY_READ)
    stream, _, _ = with_event(FILLED, wide)
    assert all(each.kind is not AdviceKind.WIDER for each in advised(stream).advice)


def with_first_form_event(set_stages: int, second_stages: int) -> tuple[Stream, int, int]:
    """An event that is set after a fill and waited for before a copy."""
    stream, a, b = two_buffers(64)
    event = stream.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))
    stream.begin()
    stream.fill(a, 1, size=64)
    set_ = stream.cmd("SetEvent", event=event, stageMask=set_stages)
    memory = struct("VkMemoryBarrier", srcAccessMask=VkAccess2.TRANSFER_WRITE, dstAccessMask=VkAccess2.TRANSFER_READ)
    wait = stream.cmd(
        "WaitEvents", pEvents=[event], srcStageMask=set_stages, dstStageMask=second_stages, pMemoryBarriers=[memory]
    )
    stream.copy(a, b, 64)
    stream.submit()
    return stream, set_, wait


def test_the_first_stages_of_a_wait_for_events_change_together_with_the_set() -> None:
    stream, set_, wait = with_first_form_event(VkPipelineStage2.ALL_COMMANDS, VkPipelineStage2.ALL_TRANSFER)
    found = advised(stream)
    assert only(found).lines == ("srcStageMask: ALL_COMMANDS -> TRANSFER",)
    assert found.trace is not None
    calls = dict(zip(found.trace.origins, found.trace.blocks, strict=True))
    early, late = calls[set_], calls[wait]
    assert isinstance(early, Call) and isinstance(late, Call)
    assert early.args["stageMask"] == late.args["srcStageMask"] == VkPipelineStage2.ALL_TRANSFER
    assert f"    the set in call {set_} changes alike" in list(advice_text(1, only(found), ()))


def test_second_stages_change_alone() -> None:
    stream, _, _ = with_first_form_event(VkPipelineStage2.ALL_TRANSFER, VkPipelineStage2.ALL_COMMANDS)
    found = only(advised(stream))
    assert found.lines == ("dstStageMask: ALL_COMMANDS -> TRANSFER",)
    assert not found.sets


def test_a_whole_buffer_becomes_the_bytes_that_are_needed() -> None:
    stream, a, b = two_buffers(256)
    stream.begin()
    stream.fill(a, 1)
    barrier(stream, BarrierEntry(FILLED, BufferPart(a, 16, VK_WHOLE_SIZE)))
    stream.copy(a, b, 32, from_=64)
    stream.submit()
    path = "pDependencyInfo.pBufferMemoryBarriers[0]"
    assert only(advised(stream)).lines == (f"{path}: bytes [16, 256) -> [64, 96)",)


def two_submits(needed: bool, queues: int = 1, fence: int = 0) -> tuple[Stream, int, int]:
    """Two submits with a semaphore between them; the second one reads what the first one wrote if it is `needed`."""
    stream, a, b = two_buffers(64)
    other = stream.buffer(64)
    queue = stream.queue if queues == 1 else stream.id()
    if queues > 1:
        stream.call("vkGetDeviceQueue", device=stream.device, queueIndex=1, pQueue=queue)
    semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    submits = []
    for number in range(2):
        stream.begin()
        if number == 0:
            stream.fill(a, 1, size=64)
        else:
            stream.copy(a if needed else other, b, 64)
        stream.end()
        batch = struct("VkSubmitInfo", pCommandBuffers=[stream.commands])
        if number == 0:
            batch |= {"signalSemaphoreCount": 1, "pSignalSemaphores": [semaphore]}
        else:
            stages = [VkPipelineStage2.ALL_TRANSFER]
            batch |= {"waitSemaphoreCount": 1, "pWaitSemaphores": [semaphore], "pWaitDstStageMask": stages}
        made = stream.call(
            "vkQueueSubmit", queue=queue if number else stream.queue, pSubmits=[batch], fence=0 if number else fence
        )
        submits.append(made)
    return stream, submits[0], submits[1]


def test_a_wait_for_a_semaphore_that_orders_nothing_goes_with_its_signal() -> None:
    stream, first, second = two_submits(needed=False)
    found = advised(stream)
    advice = only(found)
    assert advice.origins == (second,)
    assert advice.lines == (f"pSubmits[0].pWaitSemaphores[0] orders nothing; the signal in call {first} can go, too",)
    assert found.trace is not None
    batches = [block.args["pSubmits"][0] for block in found.trace.blocks if block.index in (first, second)]  # type: ignore[union-attr]
    assert [(each["waitSemaphoreCount"], each["signalSemaphoreCount"]) for each in batches] == [(0, 0), (0, 0)]
    assert not batches[1]["pWaitDstStageMask"]


def test_a_wait_for_a_semaphore_that_is_needed_stays() -> None:
    stream, _, _ = two_submits(needed=True)
    assert advised(stream).advice == []


def test_a_wait_of_another_queue_stays_where_the_host_may_learn_from_it() -> None:
    """A fence of the second submit says that the first one is complete, too: its command buffer may be freed then."""
    stream, _, _ = two_submits(needed=False, queues=2)
    assert advised(stream).advice == []
    stream, _, second = two_submits(needed=False, queues=2, fence=77)
    assert only(advised(stream)).origins == (second,)


def round_trip(meet: bool, back: int = GENERAL) -> tuple[Stream, int, int]:
    """An image goes from GENERAL to TRANSFER_SRC and on; something reads it there if asked."""
    stream = Stream()
    image, buffer = stream.image((4, 4, 1)), stream.buffer(64)
    stream.begin()
    image_barrier(stream, image, START, UNDEFINED, GENERAL)
    stream.clear(image, (0, 0, 0, 0), layout=GENERAL)
    first = image_barrier(stream, image, CLEARED, GENERAL, SRC)
    if meet:
        copy_image(stream, image, buffer, SRC)
    second = image_barrier(
        stream, image, Masks(VkPipelineStage2.COPY, 0, VkPipelineStage2.COPY, VkAccess2.TRANSFER_READ), SRC, back
    )
    copy_image(stream, image, stream.buffer(64), back)
    stream.submit()
    return stream, first, second


def test_a_transition_there_and_back_is_a_barrier() -> None:
    stream, first, second = round_trip(meet=False)
    found = advised(stream)
    advice = next(each for each in found.advice if each.kind is AdviceKind.THROUGH_A_LAYOUT)
    assert advice.origins == (second,) and str(first) in advice.lines[0]
    assert advice.narrow is not None and found.trace is not None
    [entry] = BarrierCommand.of(advice.narrow).entries
    assert isinstance(entry.part, ImagePart) and entry.part.old_layout == entry.part.new_layout == GENERAL
    assert first not in found.trace.origins and second in found.trace.origins


def test_a_transition_by_way_of_a_layout_is_one() -> None:
    stream, first, _ = round_trip(meet=False, back=DST)
    found = advised(stream)
    advice = next(each for each in found.advice if each.kind is AdviceKind.THROUGH_A_LAYOUT)
    assert advice.narrow is not None and found.trace is not None and first not in found.trace.origins
    [entry] = BarrierCommand.of(advice.narrow).entries
    assert isinstance(entry.part, ImagePart) and (entry.part.old_layout, entry.part.new_layout) == (GENERAL, DST)


def test_a_layout_that_a_command_needs_stays() -> None:
    stream, first, _ = round_trip(meet=True)
    found = advised(stream)
    assert found.trace is not None and first in found.trace.origins
    assert all(each.kind is not AdviceKind.THROUGH_A_LAYOUT for each in found.advice)


def test_only_barriers_of_images_have_a_range_that_can_be_less() -> None:
    part = {"baseMipLevel": 0, "levelCount": 2, "baseArrayLayer": 0, "layerCount": VK_REMAINING_ARRAY_LAYERS}
    other = {"image": 5, "subresourceRange": part}
    assert list(ranges({"pInfo": other}, {5: (2, 3)})) == []
    owner = {"srcQueueFamilyIndex": 0, "dstQueueFamilyIndex": 0}
    found = list(ranges({"pInfo": {**other, **owner, "oldLayout": GENERAL, "newLayout": GENERAL}}, {5: (2, 3)}))
    assert [(each.what, each.begin, each.end) for each in found] == [("levels", 0, 2), ("layers", 0, 3)]


def test_a_barrier_behind_the_end_of_a_recording_has_no_commands_around_it() -> None:
    """The recording that began first never ends, and the one that began last has the barrier and does not hold it."""
    stream, one, _ = two_buffers()
    stream.begin()
    stream.blocks.append(replace(stream.blocks[-1], index=len(stream.blocks) + 1))
    stream.fill(one, 1)
    stream.call("vkEndCommandBuffer", commandBuffer=stream.commands)
    barrier(stream, BarrierEntry(FILLED, BufferPart(one, 0, VK_WHOLE_SIZE)))
    submit = struct("VkSubmitInfo", pCommandBuffers=[stream.commands])
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[submit])
    assert dependencies(stream.blocks) == []
