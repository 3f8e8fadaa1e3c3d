"""Steps: command buffers laid out at each submit, with what cannot be cut marked."""

from __future__ import annotations

import pytest

from tests.support.streams import Stream, struct
from vkharness.findings import Place, UserError
from vkharness.replay.schedule.replayable import replayable
from vkharness.replay.schedule.steps import StepKind, flatten, locate
from vkharness.trace.calls import Call


def names(stream: Stream) -> list[str]:
    return [step.name for step in flatten(stream.blocks) if step.kind is not StepKind.HOST]


def test_commands_stand_at_their_submit_not_where_they_were_recorded() -> None:
    stream = Stream()
    a = stream.buffer(16)
    first = stream.begin()
    stream.fill(a, 1)
    stream.end()
    stream.begin()
    stream.copy(a, a, 4, to=8)
    stream.submit()
    stream.submit(first)
    assert names(stream) == ["vkQueueSubmit", "vkCmdCopyBuffer", "vkQueueSubmit", "vkCmdFillBuffer"]


def test_both_forms_of_submit() -> None:
    stream = Stream()
    a = stream.buffer(16)
    stream.begin()
    fill = stream.fill(a, 1)
    stream.end()
    info = struct("VkCommandBufferSubmitInfo", commandBuffer=stream.commands)
    batch = struct("VkSubmitInfo2", pCommandBufferInfos=[info, info])
    index = stream.call("vkQueueSubmit2KHR", queue=stream.queue, pSubmits=[batch, batch])
    found = [str(step.identity) for step in flatten(stream.blocks) if step.name == "vkCmdFillBuffer"]
    assert found == [f"{index}/{batch}.{place}/{fill}" for batch in (0, 1) for place in (0, 1)]


def test_re_recording_replaces_what_a_command_buffer_holds() -> None:
    stream = Stream()
    a = stream.buffer(16)
    commands = stream.begin()
    stream.fill(a, 1)
    stream.submit()
    stream.call("vkBeginCommandBuffer", commandBuffer=commands, pBeginInfo=struct("VkCommandBufferBeginInfo"))
    stream.barrier()
    stream.submit()
    assert names(stream) == ["vkQueueSubmit", "vkCmdFillBuffer", "vkQueueSubmit", "vkCmdPipelineBarrier"]


def test_kinds() -> None:
    stream = Stream()
    a = stream.buffer(16)
    stream.begin()
    stream.cmd("BindPipeline")
    stream.fill(a, 1)
    stream.barrier()
    stream.submit()
    kinds = [step.kind for step in flatten(stream.blocks) if step.kind is not StepKind.HOST]
    assert kinds == [StepKind.BEGIN, StepKind.STATE, StepKind.ACTION, StepKind.SYNC]


def test_nothing_is_cut_inside_a_query_or_a_render_pass() -> None:
    stream = Stream()
    stream.begin()
    stream.cmd("BeginQuery")
    stream.cmd("Dispatch")
    stream.cmd("BeginRendering", pRenderingInfo=struct("VkRenderingInfo"))
    stream.cmd("Draw")
    stream.cmd("EndRendering")
    stream.cmd("EndQuery")
    stream.cmd("Dispatch")
    stream.submit()
    steps = [step for step in flatten(stream.blocks) if step.name.startswith("vkCmd")]
    assert [step.inside for step in steps] == [False, True, True, True, True, True, False]
    assert [step.in_pass for step in steps] == [False, False, False, True, True, False, False]


def test_suspended_rendering_is_one_unit_over_command_buffers() -> None:
    stream = Stream()
    first = stream.begin()
    stream.cmd("Dispatch")
    stream.cmd("BeginRendering", pRenderingInfo=struct("VkRenderingInfo", flags=2))
    stream.cmd("EndRendering")
    stream.end()
    second = stream.begin()
    stream.cmd("BeginRendering", pRenderingInfo=struct("VkRenderingInfo", flags=4))
    stream.cmd("Draw")
    stream.cmd("EndRendering")
    stream.cmd("Dispatch")
    stream.end()
    stream.submit(first, second)
    steps = [step for step in flatten(stream.blocks) if step.kind is not StepKind.HOST]
    assert [step.inside for step in steps] == [False, False, False, True, True, True, True, True, False]
    assert [step.in_pass for step in steps] == [False, False, False, True, True, True, True, True, False]


def test_secondaries_stand_inline_and_the_pass_takes_them() -> None:
    stream = Stream()
    secondary = stream.begin(level=1)
    stream.cmd("Draw")
    stream.end()
    stream.begin()
    begin = stream.cmd("BeginRenderPass", pRenderPassBegin=struct("VkRenderPassBeginInfo"), contents=1)
    stream.cmd("ExecuteCommands", pCommandBuffers=[secondary])
    stream.cmd("EndRenderPass")
    stream.submit()
    steps = [step for step in flatten(stream.blocks) if step.name.startswith("vkCmd")]
    assert [step.name for step in steps] == ["vkCmdBeginRenderPass", "vkCmdDraw", "vkCmdEndRenderPass"]
    assert isinstance(steps[0].block, Call) and steps[0].block.args["contents"] == 0
    original = stream.blocks[begin - 1]
    assert isinstance(original, Call) and original.args["contents"] == 1


def test_executions_of_one_secondary_are_told_apart() -> None:
    stream = Stream()
    a = stream.buffer(16)
    secondary = stream.begin(level=1)
    fill = stream.fill(a, 1)
    stream.end()
    stream.begin()
    execute = stream.cmd("ExecuteCommands", pCommandBuffers=[secondary, secondary])
    stream.submit()
    steps = flatten(stream.blocks)
    found = [step.identity.executed_by for step in steps if step.name == "vkCmdFillBuffer"]
    assert found == [(execute, 0), (execute, 1)]
    places = [Place(fill, "vkCmdFillBuffer", None, executed_by=(execute, at)) for at in (0, 1)]
    first, second = (locate(steps, place) for place in places)
    assert second == first + 1
    assert str(steps[second].identity).endswith(f"/{fill}@{execute}.1")


def test_a_place_without_a_submit_is_its_first_execution() -> None:
    stream = Stream()
    a = stream.buffer(16)
    commands = stream.begin()
    fill = stream.fill(a, 1)
    stream.end()
    submits = [stream.submit(commands), stream.submit(commands)]
    steps = flatten(stream.blocks)
    assert steps[locate(steps, Place(fill, "vkCmdFillBuffer", None))].identity.submit == submits[0]
    second = Place(fill, "vkCmdFillBuffer", None, submit=submits[1])
    at = locate(steps, second)
    assert steps[at].identity.submit == submits[1]
    assert steps[locate(steps, Place(fill, "vkCmdFillBuffer", None), before=at)].identity.submit == submits[0]
    with pytest.raises(UserError, match="never executes call 999"):
        locate(steps, Place(999, "vkCmdFillBuffer", None))


def test_what_begins_or_ends_something_is_no_mere_state() -> None:
    """The registry calls transform feedback state; set again after a cut it would write its counters again."""
    stream = Stream()
    stream.begin()
    stream.cmd("BeginTransformFeedbackEXT")
    stream.cmd("EndTransformFeedbackEXT")
    stream.submit()
    kinds = [step.kind for step in flatten(stream.blocks) if step.name.startswith("vkCmd")]
    assert kinds == [StepKind.ACTION, StepKind.ACTION]


def test_what_waits_for_the_host_comes_after_it_has_set_the_event() -> None:
    stream = Stream()
    a, b, event = stream.buffer(16), stream.buffer(16), stream.id()
    memory = stream.blocks[-1].index
    stream.begin()
    stream.fill(b, 1)
    wait = {"pEvents": [event], "eventCount": 1, "srcStageMask": 0x4000, "dstStageMask": 0x1000}
    stream.call("vkCmdWaitEvents", commandBuffer=stream.commands, **wait)
    stream.copy(a, b, 16)
    stream.submit(wait=False)
    stream.begin()
    stream.fill(b, 2)
    stream.submit(wait=False)
    stream.host_write(memory, 0, bytes(16))
    stream.call("vkSetEvent", device=stream.device, event=event)
    watched = ("vkCmd", "vkSetEvent", "host write")
    found = [step.name for step in flatten(stream.blocks) if step.name.startswith(watched)]
    assert found == [
        "vkCmdFillBuffer",
        "host write",
        "vkSetEvent",
        "vkCmdWaitEvents",
        "vkCmdCopyBuffer",
        "vkCmdFillBuffer",
    ]


def test_a_wait_that_nothing_ends_holds_nothing() -> None:
    stream = Stream()
    a, b, event = stream.buffer(16), stream.buffer(16), stream.id()
    stream.call("vkSetEvent", device=stream.device, event=event)
    stream.begin()
    stream.call("vkCmdWaitEvents", commandBuffer=stream.commands, pEvents=[event, event + 1], eventCount=2)
    stream.copy(a, b, 16)
    stream.submit()
    assert names(stream) == ["vkQueueSubmit", "vkCmdWaitEvents", "vkCmdCopyBuffer"]


def test_a_sleep_that_says_nothing_ends_in_no_error() -> None:
    stream = Stream()
    stream.call("vkLatencySleepNV", device=stream.device, swapchain=0, pSleepInfo=None)
    woken = [block for block in replayable(stream.blocks) if isinstance(block, Call) and "Semaphore" in block.name]
    assert [each.args["pSignalInfo"]["semaphore"] for each in woken[:1]] == [0]


def test_a_swapchain_that_was_not_read_is_named() -> None:
    unread = Call(7, "vkCreateSwapchainKHR", {"device": 1, "pSwapchain": 2}, unread="pCreateInfo: no object")
    with pytest.raises(UserError, match="block 7: vkCreateSwapchainKHR is malformed"):
        replayable([unread])
