"""Reduction: what is left of streams with much that does not matter, and that the rest can be executed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.passes import attached, begin_rendering, rect, view
from tests.support.streams import DST, GENERAL, SRC, UNDEFINED, Stream, struct
from vkharness.agreement import ask_model
from vkharness.check import Analysis
from vkharness.device.drivers import find_driver
from vkharness.device.process import Worker
from vkharness.findings import Hazard
from vkharness.fuzz import reduce_fuzz
from vkharness.reduction.oracle import brings_others, identity
from vkharness.reduction.parting import with_narrow_barriers
from vkharness.reduction.reduce import Reduction, reduce
from vkharness.reduction.shader_state import ShaderStates
from vkharness.reduction.structure import Structure
from vkharness.reduction.visible_state import unseen
from vkharness.spec.enums import VkAccess2, VkRendering
from vkharness.trace.calls import Call, HostWrite


def reduced(stream: Stream, hazard: Hazard, command: str, prior: str) -> Reduction:
    """The stream reduced to its first finding of that kind; whether it is still found alone is tested here."""
    findings = Analysis().follow(stream.blocks).findings
    wanted = next(
        each
        for each in findings
        if (each.hazard, each.place.command, each.prior.command) == (hazard, f"vkCmd{command}", f"vkCmd{prior}")
    )
    small = reduce(stream.blocks, wanted)
    left = [identity(each) for each in Analysis().follow(small.blocks).findings if each.counts]
    assert left == [identity(wanted)]
    return small


def commands(small: Reduction) -> list[str]:
    return [block.name for block in small.blocks if isinstance(block, Call) and block.name.startswith("vkCmd")]


def call(small: Reduction, name: str) -> dict[str, Any]:
    [found] = [block for block in small.blocks if isinstance(block, Call) and block.name == name]
    return found.args


def test_another_hazard_at_a_command_is_not_taken_for_the_one_that_was_there() -> None:
    """A frame that loses its wait for an acquired image has another hazard, which the wanted mend does not mend."""
    before = frozenset({(Hazard.WRITE_AFTER_READ, "a", "b", 43, 40, 10)})
    assert not brings_others(frozenset(), before) and not brings_others(before, before)
    assert not brings_others(frozenset({(Hazard.WRITE_AFTER_READ, "a", "c", 43, 39, 10)}), before)
    assert brings_others(frozenset({(Hazard.WRITE_AFTER_PRESENT, "a", "b", 43, 40, 10)}), before)
    assert brings_others(frozenset({(Hazard.WRITE_AFTER_READ, "a", "b", 44, 40, 10)}), before)


def names(small: Reduction) -> list[str]:
    return [block.name for block in small.blocks if isinstance(block, Call)]


def test_two_commands_are_left_of_a_hundred() -> None:
    stream = Stream()
    a, b, *others = (stream.buffer(4096) for _ in range(6))
    for at in range(40):
        stream.begin()
        stream.fill(others[at % 4], at)
        if not 20 <= at <= 30:
            stream.barrier()
        if at == 20:
            stream.fill(a, 7)
        if at == 30:
            stream.copy(a, b, 64)
        stream.submit(wait=at in (10, 39))
    small = reduced(stream, Hazard.READ_AFTER_WRITE, "CopyBuffer", "FillBuffer")
    assert commands(small) == ["vkCmdFillBuffer", "vkCmdCopyBuffer"]
    assert names(small).count("vkQueueSubmit") == 2
    assert names(small).count("vkCreateBuffer") == 2
    assert call(small, "vkCmdCopyBuffer")["pRegions"][0]["size"] == 16


def test_calls_and_objects_keep_their_numbers() -> None:
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.fill(b, 1)
    stream.barrier()
    fill = stream.fill(a, 7)
    copy = stream.copy(a, b, 16)
    stream.submit()
    small = reduced(stream, Hazard.READ_AFTER_WRITE, "CopyBuffer", "FillBuffer")
    assert [block.index for block in small.blocks if isinstance(block, Call) and "Cmd" in block.name] == [fill, copy]
    assert small.finding.resource == a


def test_numbers_in_no_order_come_back() -> None:
    """Judges order calls by number, so a stream whose numbers do not rise is judged with others."""
    stream = Stream()
    for number, fence in ((38, 0), (0, None), (32, 11)):
        if fence is None:
            stream.call("vkDeviceWaitIdle", device=0)
        else:
            batch = struct("VkSubmitInfo", commandBufferCount=1, pCommandBuffers=[0])
            stream.call("vkQueueSubmit", queue=4, submitCount=1, pSubmits=[batch], fence=fence)
        stream.blocks[-1] = replace(stream.blocks[-1], index=number)
    stream.call("vkDestroyFence", device=0, fence=11)
    stream.blocks[-1] = replace(stream.blocks[-1], index=41)
    blocks = stream.blocks[-4:]
    analysis = Analysis(keep_events=True).follow(blocks)
    ask_model(analysis)
    small = reduce(blocks, next(each for each in analysis.findings if each.hazard == Hazard.FENCE_IN_USE))
    assert (small.finding.place.call, small.finding.prior.call) == (41, 32)
    assert {block.index for block in small.blocks} <= {38, 0, 32, 41}


def test_only_the_regions_that_meet_are_left() -> None:
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.fill(a, 7, 32, 4)
    regions = [struct("VkBufferCopy", srcOffset=at, dstOffset=at, size=4) for at in (0, 16, 32, 48)]
    stream.cmd("CopyBuffer", srcBuffer=a, dstBuffer=b, pRegions=regions)
    stream.submit()
    small = reduced(stream, Hazard.READ_AFTER_WRITE, "CopyBuffer", "FillBuffer")
    assert call(small, "vkCmdCopyBuffer")["pRegions"] == [regions[2]]
    assert call(small, "vkCmdCopyBuffer")["regionCount"] == 1


def test_an_image_keeps_the_transitions_that_it_needs_and_loses_the_others() -> None:
    stream = Stream()
    image, other, target = stream.image((8, 8, 1)), stream.image((8, 8, 1)), stream.buffer(256)
    stream.begin()
    for each in (image, other):
        stream.transition(each, UNDEFINED, GENERAL)
        stream.transition(each, GENERAL, SRC)
        stream.transition(each, SRC, DST)
    stream.submit()
    stream.begin()
    stream.clear(image, (1, 0, 0, 1))
    stream.clear(image, (0, 1, 0, 1))
    stream.image_to_buffer(other, target, (8, 8, 1))
    stream.submit()
    small = reduced(stream, Hazard.WRITE_AFTER_WRITE, "ClearColorImage", "ClearColorImage")
    barriers = [
        (barrier["image"], barrier["oldLayout"], barrier["newLayout"])
        for block in small.blocks
        if isinstance(block, Call)
        for barrier in block.args.get("pImageMemoryBarriers") or ()
    ]
    assert barriers == [(image, UNDEFINED, GENERAL), (image, GENERAL, SRC), (image, SRC, DST)]


def test_state_goes_with_the_actions_that_see_it_and_stays_with_those_that_stay() -> None:
    stream = Stream()
    a, b, c = stream.buffer(64), stream.buffer(64), stream.buffer(64)
    dispatch, unused = stream.compute("copy_words", [a, b]), stream.compute("copy_words", [b, c])
    stream.begin()
    stream.fill(a, 7)
    unused.run()
    dispatch.run(4)
    stream.submit()
    small = reduced(stream, Hazard.READ_AFTER_WRITE, "Dispatch", "FillBuffer")
    assert commands(small) == ["vkCmdFillBuffer", "vkCmdBindPipeline", "vkCmdBindDescriptorSets", "vkCmdDispatch"]
    assert names(small).count("vkCreateComputePipelines") == 1
    assert call(small, "vkCmdDispatch")["groupCountX"] == 1


def semaphore_submit(stream: Stream, commands: int, waits: list[int], signals: list[int]) -> None:
    info = struct(
        "VkSubmitInfo",
        pCommandBuffers=[commands],
        pWaitSemaphores=waits,
        pWaitDstStageMask=[0x10000] * len(waits),
        pSignalSemaphores=signals,
    )
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[info])


def test_sets_and_push_constants_that_no_shader_uses_are_left_out() -> None:
    """A set that is bound and never written is valid beside shaders that do not use it; drivers die of it."""
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    dispatch = stream.compute("copy_words", [a, b], push=bytes(4))
    stream.begin()
    stream.fill(a, 7)
    bind = {"pipelineBindPoint": 1, "layout": dispatch.layout, "pDescriptorSets": [dispatch.set]}
    stream.cmd("BindDescriptorSets", firstSet=1, **bind)
    dispatch.run()
    stream.submit()
    finding = Analysis().follow(stream.blocks).findings[0]
    left = commands(reduce(stream.blocks, finding))
    assert left == ["vkCmdFillBuffer", "vkCmdBindPipeline", "vkCmdBindDescriptorSets", "vkCmdDispatch"]


def test_a_bound_set_is_unseen_where_descriptors_are_pushed_or_a_set_is_bound_over_it() -> None:
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    dispatch = stream.compute("copy_words", [a, b])
    point = {"pipelineBindPoint": 1, "layout": dispatch.layout}
    stream.begin()
    stream.cmd("BindPipeline", pipelineBindPoint=1, pipeline=dispatch.pipeline)
    under = stream.cmd("BindDescriptorSets", **point, pDescriptorSets=[dispatch.set])
    stream.cmd("BindDescriptorSets", **point, pDescriptorSets=[dispatch.set, dispatch.set])
    stream.cmd("Dispatch", groupCountX=1)
    pushed_over = stream.cmd("BindDescriptorSets", **point, pDescriptorSets=[dispatch.set])
    stream.cmd("PushDescriptorSetKHR", **point, set=0, pDescriptorWrites=[])
    stream.cmd("Dispatch", groupCountX=1)
    recorded = [block for block in stream.blocks if isinstance(block, Call) and block.name.startswith("vkCmd")]
    assert unseen(recorded, ShaderStates(Structure(stream.blocks))) == {under, pushed_over}


def test_a_wait_goes_with_its_signal() -> None:
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    first, second = (stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo")) for _ in range(2))
    buffers = []
    for at in range(3):
        buffers.append(stream.begin())
        stream.fill(a if at == 0 else b, at)
        if at == 2:
            stream.fill(a, 9)
            stream.copy(a, b, 16)
        stream.end()
    semaphore_submit(stream, buffers[0], [], [first])
    semaphore_submit(stream, buffers[1], [first], [second])
    semaphore_submit(stream, buffers[2], [second], [])
    small = reduced(stream, Hazard.READ_AFTER_WRITE, "CopyBuffer", "FillBuffer")
    assert commands(small) == ["vkCmdFillBuffer", "vkCmdCopyBuffer"]
    assert "vkCreateSemaphore" not in names(small)


def test_a_finding_across_a_semaphore_keeps_signal_and_wait() -> None:
    stream = Stream()
    other = stream.id()
    stream.call("vkGetDeviceQueue", device=stream.device, queueIndex=1, pQueue=other)
    a, b = stream.buffer(64), stream.buffer(64)
    semaphore = stream.make("vkCreateSemaphore", "pSemaphore", struct("VkSemaphoreCreateInfo"))
    one = stream.begin()
    stream.fill(a, 1)
    stream.end()
    two = stream.begin()
    stream.copy(a, b, 16)
    stream.end()
    signal = struct("VkSubmitInfo", pCommandBuffers=[one], pSignalSemaphores=[semaphore])
    # COMPUTE_SHADER: the copy itself does not wait.
    wait = struct("VkSubmitInfo", pCommandBuffers=[two], pWaitSemaphores=[semaphore], pWaitDstStageMask=[0x800])
    stream.call("vkQueueSubmit", queue=stream.queue, pSubmits=[signal])
    stream.call("vkQueueSubmit", queue=other, pSubmits=[wait])
    [finding] = Analysis().follow(stream.blocks).findings
    small = reduce(stream.blocks, finding)
    submits = [b.args["pSubmits"][0] for b in small.blocks if isinstance(b, Call) and b.name == "vkQueueSubmit"]
    assert [each["pSignalSemaphores"] for each in submits] == [[semaphore], None]
    assert [each["pWaitSemaphores"] for each in submits] == [None, [semaphore]]


def test_a_barrier_parts_the_finding_from_another_of_the_same_commands() -> None:
    """Submitted twice, each of the two commands meets itself and the other one again."""
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    commands_ = stream.begin()
    stream.copy(a, b, 16)
    stream.fill(b, 3)
    stream.end()
    stream.submit(commands_, wait=False)
    stream.submit(commands_, wait=False)
    small = reduced(stream, Hazard.WRITE_AFTER_WRITE, "CopyBuffer", "FillBuffer")
    assert commands(small) == ["vkCmdCopyBuffer", "vkCmdPipelineBarrier", "vkCmdFillBuffer"]


def test_the_same_two_commands_may_meet_in_the_other_order_again() -> None:
    """No barrier orders the copy before the transition: it is in the wait's dependency, which begins at the set."""
    stream = Stream()
    image, target = stream.image((8, 8, 1)), stream.buffer(256)
    event = stream.make("vkCreateEvent", "pEvent", struct("VkEventCreateInfo"))
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    stream.submit()
    part = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
    barrier = struct("VkImageMemoryBarrier2", newLayout=GENERAL, image=image, subresourceRange=part,
                     srcStageMask=0x80, dstStageMask=0x800, dstAccessMask=0x20,
                     srcQueueFamilyIndex=0xFFFFFFFF, dstQueueFamilyIndex=0xFFFFFFFF)  # fmt: skip
    info = struct("VkDependencyInfo", pImageMemoryBarriers=[barrier])
    commands_ = stream.begin()
    stream.cmd("SetEvent2", event=event, pDependencyInfo=info)
    copy = stream.image_to_buffer(image, target, (8, 8, 1), layout=GENERAL)
    wait = stream.cmd("WaitEvents2", pEvents=[event], pDependencyInfos=[info])
    stream.end()
    stream.submit(commands_, wait=False)
    stream.submit(commands_, wait=False)
    findings = Analysis().follow(stream.blocks).findings
    wanted = next(each for each in findings if each.counts and (each.place.call, each.prior.call) == (copy, wait))
    small = reduce(stream.blocks, wanted)
    assert {(call, prior) for _, _, _, call, prior, _ in small.alike} == {(wait, copy)}
    assert small.others == small.alike


def test_a_barrier_for_one_access_parts_what_a_full_barrier_does_not() -> None:
    """A full barrier before the transition, which does not wait for the copy's read, would mend the copy's write."""
    stream = Stream()
    image, target = stream.image((8, 8, 1)), stream.buffer(256)
    part = struct("VkImageSubresourceRange", aspectMask=1, levelCount=1, layerCount=1)
    barrier = struct("VkImageMemoryBarrier", newLayout=SRC, image=image, subresourceRange=part, dstAccessMask=0x800,
                     srcQueueFamilyIndex=0xFFFFFFFF, dstQueueFamilyIndex=0xFFFFFFFF)  # fmt: skip
    commands_ = stream.begin()
    stream.cmd("PipelineBarrier", srcStageMask=1, dstStageMask=0x1000, pImageMemoryBarriers=[barrier])
    copy = stream.image_to_buffer(image, target, (8, 8, 1))
    stream.end()
    stream.submit(commands_, wait=False)
    stream.submit(commands_, wait=False)
    findings = Analysis().follow(stream.blocks).findings
    assert len(findings) == 2
    wanted = next(each for each in findings if each.place.call == each.prior.call == copy)
    small = reduce(stream.blocks, wanted)
    assert not small.others
    [added] = [each for each in small.blocks if isinstance(each, Call) and each.args.get("pMemoryBarriers")]
    assert added.args["pMemoryBarriers"][0]["srcAccessMask"] == VkAccess2.TRANSFER_READ


def test_a_barrier_is_only_made_for_stages_of_commands() -> None:
    stream = Stream()
    a = stream.buffer(64)
    stream.begin()
    fill = stream.fill(a, 7)
    stream.end()
    for access, made in (
        ("CLEAR_TRANSFER_WRITE", 1),
        ("IMAGE_LAYOUT_TRANSITION", 0),
        ("PRESENT_ENGINE_SYNCVAL_PRESENT_ACQUIRE_READ_SYNCVAL", 0),
    ):
        other = ("WRITE_AFTER_WRITE", "SYNC_CLEAR_TRANSFER_WRITE", f"SYNC_{access}", fill, fill, a)
        assert len(list(with_narrow_barriers(stream.blocks, [other]))) == made


def test_a_suspended_instance_stays_with_what_resumes_it() -> None:
    stream = Stream()
    image = stream.image((8, 8, 1))
    seen = view(stream, image)
    stream.begin()
    stream.transition(image, UNDEFINED, GENERAL)
    stream.submit()
    for flags in ((), (VkRendering.SUSPENDING, VkRendering.RESUMING)):
        stream.begin()
        for each in flags or (0,):
            begin_rendering(stream, rect((8, 8)), [attached(seen)], flags=each)
            stream.cmd("EndRendering")
        stream.submit(wait=False)
    findings = Analysis().follow(stream.blocks).findings
    assert findings
    for wanted in findings:
        small = reduce(stream.blocks, wanted)
        begun = [each.args for each in small.blocks if isinstance(each, Call) and each.name == "vkCmdBeginRendering"]
        flags_left = [each["pRenderingInfo"]["flags"] for each in begun]
        assert flags_left == [0, VkRendering.SUSPENDING, VkRendering.RESUMING]
        assert small.others == small.alike


def test_the_limit_of_steps_leaves_the_best_so_far() -> None:
    stream = Stream()
    a, b = stream.buffer(64), stream.buffer(64)
    stream.begin()
    stream.fill(a, 7)
    stream.copy(a, b, 16)
    stream.submit()
    finding = Analysis().follow(stream.blocks).findings[0]
    kept: list[int] = []
    small = reduce(stream.blocks, finding, steps=1, keep=lambda blocks: kept.append(len(blocks)))
    assert not small.complete and kept and len(small.blocks) < len(stream.blocks)
    assert reduce(small.blocks, small.finding).complete


@pytest.mark.slow
def test_random_streams_are_left_with_their_finding_alone(given_seed: int) -> None:
    count, first = 12, given_seed % 1_000_000
    print(f"seeds {first} to {first + count - 1}")
    with Worker(find_driver("lavapipe")) as worker:
        tally = reduce_fuzz.run(range(first, first + count), worker, "lavapipe")
    assert not tally.bad, str(tally)
    assert len(tally.after) > count // 2, "hardly a stream has a hazard: nothing is shown"
    assert tally.mean <= 12, str(tally)


def test_blocks_that_share_a_number_are_told_apart() -> None:
    """A capture gives all pieces of one write of the host the same number."""
    stream = Stream()
    memory = stream.memory(64)
    a, b = stream.buffer(64, memory), stream.buffer(64)
    first = stream.host_write(memory, 32, bytes(4))
    stream.host_write(memory, 40, bytes(4))
    stream.begin()
    stream.copy(a, b, 16)
    stream.submit(wait=False)
    at = stream.host_write(memory, 0, bytes(4))
    stream.host_write(memory, 48, bytes(4))
    blocks = [
        replace(block, index={first + 1: first, at + 1: at}.get(block.index, block.index)) for block in stream.blocks
    ]
    [finding] = Analysis().follow(blocks).findings
    small = reduce(blocks, finding)
    writes = [(block.index, block.offset) for block in small.blocks if isinstance(block, HostWrite)]
    assert writes == [(at, 0)]
    assert (small.finding.place.call, small.finding.prior.command) == (at, "vkCmdCopyBuffer")
