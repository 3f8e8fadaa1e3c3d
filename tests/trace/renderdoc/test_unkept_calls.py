"""What a capture does not keep is made up so that nothing follows from it that the program did not do."""

from __future__ import annotations

from typing import Any

from vkharness.spec.enums import VkResult
from vkharness.trace.calls import Block, Call
from vkharness.trace.renderdoc.unkept_calls import UnkeptCalls

DEVICE, QUEUE, SWAPCHAIN, FENCE, TIMELINE = 1, 2, 3, 4, 5
ACQUIRED, RENDERED, OTHER = 10, 11, 12
MADE: list[Block] = [
    Call(1, "vkCreateDevice", {"pDevice": DEVICE}, 0),
    Call(2, "vkCreateFence", {"pCreateInfo": {"flags": 1}, "pFence": FENCE}, 0),
    Call(
        3,
        "vkCreateSemaphore",
        {
            "pCreateInfo": {"pNext": {"sType": 1000207002, "pNext": None, "semaphoreType": 1, "initialValue": 2}},
            "pSemaphore": TIMELINE,
        },
        0,
    ),
    *(
        Call(4 + number, "vkCreateSemaphore", {"pCreateInfo": {"pNext": None}, "pSemaphore": semaphore}, 0)
        for number, semaphore in enumerate((ACQUIRED, RENDERED, OTHER))
    ),
]


def submit(waits: list[int], signals: list[int], fence: int = 0, value: int = 0) -> Call:
    def uses(several: list[int]) -> list[dict[str, Any]]:
        return [{"semaphore": each, "stageMask": 1, "value": value} for each in several]

    info = {"pWaitSemaphoreInfos": uses(waits), "pSignalSemaphoreInfos": uses(signals), "pCommandBufferInfos": None}
    return Call(0, "vkQueueSubmit2", {"queue": QUEUE, "pSubmits": [info], "fence": fence}, 0)


def present(image: int = 0) -> Call:
    info = {"pWaitSemaphores": [RENDERED], "pSwapchains": [SWAPCHAIN], "pImageIndices": [image]}
    return Call(0, "vkQueuePresentKHR", {"queue": QUEUE, "pPresentInfo": info}, 0)


def of_fences(name: str) -> Call:
    return Call(0, name, {"device": DEVICE, "pFences": [FENCE]}, 0)


def whole(*frame: Call) -> list[Call]:
    """The calls of a frame with what is made up, and those before it."""
    blocks = UnkeptCalls([*MADE, *frame], len(MADE)).whole()
    return [each for each in blocks if isinstance(each, Call)]


def told(calls: list[Call]) -> list[str]:
    """The calls of the frame: what is acquired and signaled is told, too."""
    found = []
    for call in calls[len(MADE) :]:
        if call.name == "vkAcquireNextImageKHR":
            found.append(f"acquire {call.args['pImageIndex']} {call.args['semaphore']}")
        elif call.name == "vkQueueSubmit":
            found.append(f"signal {call.args['pSubmits'][0]['pSignalSemaphores'][0]}")
        else:
            found.append(call.name.removeprefix("vk"))
    return found


def test_the_one_semaphore_that_nothing_signals_is_that_of_the_acquire() -> None:
    frame = (submit([], []), submit([ACQUIRED], [RENDERED]), present(2), submit([ACQUIRED], [RENDERED]), present(1))
    submitted, shown = "QueueSubmit2", "QueuePresentKHR"
    assert told(whole(*frame)) == [
        submitted,
        f"acquire 2 {ACQUIRED}",
        submitted,
        shown,
        f"acquire 1 {ACQUIRED}",
        submitted,
        shown,
    ]


def test_where_two_semaphores_may_be_it_the_acquire_orders_everything() -> None:
    frame = (submit([], []), submit([ACQUIRED, OTHER], [RENDERED]), present())
    acquired = ["CreateFence", "acquire 0 0", "WaitForFences"]
    signals = sorted([f"signal {ACQUIRED}", f"signal {OTHER}"])
    begun, rest = told(whole(*frame))[:5], told(whole(*frame))[5:]
    assert sorted(begun[:2]) == signals and begun[2:] == acquired
    assert rest == ["QueueSubmit2", "QueueSubmit2", "QueuePresentKHR"]


def test_a_semaphore_that_the_frame_signals_is_none_of_an_acquire() -> None:
    frame = (submit([OTHER], [OTHER, RENDERED]), present())
    assert told(whole(*frame))[:2] == [f"signal {OTHER}", "CreateFence"]


def test_a_wait_for_a_signal_of_the_frame_needs_none() -> None:
    assert told(whole(submit([], [OTHER]), submit([OTHER], []))) == ["QueueSubmit2", "QueueSubmit2"]


def test_a_fence_is_signaled_unless_the_frame_submits_with_it_first() -> None:
    for frame, flags in (
        ((submit([], [], FENCE), of_fences("vkWaitForFences")), 0),
        ((of_fences("vkWaitForFences"), of_fences("vkResetFences"), submit([], [], FENCE)), 1),
        ((of_fences("vkResetFences"), submit([], [], FENCE)), 1),
    ):
        assert whole(*frame)[1].args["pCreateInfo"]["flags"] == flags


def test_a_timeline_begins_below_what_the_frame_signals() -> None:
    for frame, value in (
        ((submit([TIMELINE], [], value=7),), 7),
        ((submit([], [TIMELINE], value=7), submit([TIMELINE], [], value=7)), 6),
        ((submit([], [TIMELINE], value=1),), 2),
    ):
        assert whole(*frame)[2].args["pCreateInfo"]["pNext"]["initialValue"] == value
        assert told(whole(*frame)) == ["QueueSubmit2"] * len(frame)


def test_a_poll_saw_a_signal_that_was_to_come_and_no_other() -> None:
    status = Call(0, "vkGetFenceStatus", {"device": DEVICE, "fence": FENCE}, 0)
    event = Call(0, "vkGetEventStatus", {"device": DEVICE, "event": 9}, 0)
    assert whole(status, event)[-2:] == [
        Call(0, "vkGetFenceStatus", status.args, VkResult.NOT_READY),
        Call(0, "vkGetEventStatus", event.args, VkResult.EVENT_SET),
    ]
    polled = Call(0, "vkGetFenceStatus", {"device": DEVICE, "fence": FENCE}, 0)
    assert whole(submit([], [], FENCE), polled)[-1].result == 0
