"""The presentation engine's side: fences of acquires, several swapchains, other queues, retired swapchains."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigImage
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.suite import Rig, race, scenario

PRESENT, BARRIER, CLEAR = "vkQueuePresentKHR", "vkCmdPipelineBarrier2", "vkCmdClearColorImage"
NOT_OURS = [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)]
NOT_DONE = [race("PRESENT_AFTER_WRITE", PRESENT, BARRIER)]


def _frame(rig: Rig, image: RigImage, value: int) -> Commands:
    """A recorded clear between the transitions that it needs."""
    with rig.commands() as commands:
        commands.transition(image, src="CLEAR", dst="CLEAR/TRANSFER_WRITE", new="TRANSFER_DST_OPTIMAL")
        commands.clear_color(image, value, at="TRANSFER_DST_OPTIMAL")
        commands.transition(image, src="CLEAR/TRANSFER_WRITE", dst="NONE", old="TRANSFER_DST_OPTIMAL", new=SHOWN)
    return commands


@scenario(
    without={"the wait": NOT_OURS},
    weakened={"the wait / another fence": NOT_OURS, "the wait / idle device": NOT_OURS, "the wait / status": []},
    needs=PRESENTS,
    rule="fences-and-idle-waits-say-nothing-of-the-engine",
)
def scenario_fence_of_an_acquire(rig: Rig) -> None:
    """The host may wait for an acquire by its fence; that the device is idle says nothing of the engine."""
    chain = rig.shown_swapchain()
    fence, other, done = rig.fence(), rig.fence(), rig.semaphore()
    rig.submit(fence=other)
    index = rig.acquire(chain, fence=fence)
    rig.host_wait(
        "the wait",
        "all",
        fence,
        weaker={"another fence": {"fences": (other,)}, "idle device": {"how": "device"}, "status": {"how": "status"}},
    )
    rig.submit(_frame(rig, chain.images[index], 0x70605040), signals=[SemaphoreUse(done)], sync2=True)
    rig.present((chain, index), waits=[done])
    rig.host_wait("", "all", fence)


@scenario(
    without={"the second present": NOT_DONE},
    weakened={"the second acquire / of the first": NOT_OURS},
    needs=PRESENTS,
    rule="an-acquired-image-waits-for-its-semaphore,a-present-waits-for-the-frame,an-acquire-stands-for-its-own-image",
)
def scenario_two_swapchains(rig: Rig) -> None:
    """An acquire stands for its own image: another swapchain's tells nothing, and one present waits for both frames."""
    one, other = rig.shown_swapchain(), rig.shown_swapchain()
    first, second = rig.semaphore(), rig.semaphore()
    first_done, second_done = rig.semaphore(), rig.semaphore()
    at_one, at_other = rig.acquire(one, first), rig.acquire(other, second)
    taken = rig.choose("the second acquire", False, {"of the first": True})
    frames = _frame(rig, one.images[at_one], 0x70605040), _frame(rig, other.images[at_other], 0x0F0E0D0C)
    if taken:  # the second frame comes before its own acquire's semaphore is waited for
        rig.submit(frames[1], waits=[SemaphoreUse(first, "CLEAR")], signals=[SemaphoreUse(second_done)], sync2=True)
        rig.submit(frames[0], waits=[SemaphoreUse(second, "CLEAR")], signals=[SemaphoreUse(first_done)], sync2=True)
    else:
        rig.submit(frames[0], waits=[SemaphoreUse(first, "CLEAR")], signals=[SemaphoreUse(first_done)], sync2=True)
        rig.submit(frames[1], waits=[SemaphoreUse(second, "CLEAR")], signals=[SemaphoreUse(second_done)], sync2=True)
    waits = [first_done, *(each.semaphore for each in rig.operation("the second present", second_done))]
    rig.present((one, at_one), (other, at_other), waits=waits)


@scenario(without={"the present": NOT_DONE}, needs=PRESENTS, queues=["GRAPHICS"], rule="a-present-waits-for-the-frame")
def scenario_present_on_another_queue(rig: Rig) -> None:
    """A present on another queue than the frame's waits for a semaphore all the same."""
    chain = rig.shown_swapchain()
    acquired, done = rig.semaphore(), rig.semaphore()
    _, other = rig.queues
    index = rig.acquire(chain, acquired)
    frame = _frame(rig, chain.images[index], 0x70605040)
    rig.submit(frame, waits=[SemaphoreUse(acquired, "CLEAR")], signals=[SemaphoreUse(done)], sync2=True)
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", done)], queue=other)


@scenario(
    without={"between the queues": [race("WRITE_RACING_WRITE", BARRIER, CLEAR)], "the present": NOT_DONE},
    needs=PRESENTS,
    queues=["GRAPHICS"],
    rule="an-acquired-image-waits-for-its-semaphore,a-present-waits-for-the-frame",
)
def scenario_frame_of_two_queues(rig: Rig) -> None:
    """A frame that two queues make: the acquire is waited for once, each step by a semaphore, then the present."""
    chain = rig.shown_swapchain()
    acquired, half, done = rig.semaphore(), rig.semaphore(), rig.semaphore()
    _, other = rig.queues
    index = rig.acquire(chain, acquired)
    image = chain.images[index]
    with rig.commands() as first:
        first.transition(image, src="CLEAR", dst="CLEAR/TRANSFER_WRITE", new="TRANSFER_DST_OPTIMAL")
        first.clear_color(image, 0x70605040, at="TRANSFER_DST_OPTIMAL")
    with rig.commands(queue=other) as second:
        second.transition(image, src="CLEAR", dst="NONE", old="TRANSFER_DST_OPTIMAL", new=SHOWN)
    rig.submit(first, waits=[SemaphoreUse(acquired, "CLEAR")], signals=[SemaphoreUse(half)], sync2=True)
    waits = rig.operation("between the queues", half, "CLEAR")
    rig.submit(second, waits=waits, signals=[SemaphoreUse(done)], sync2=True)
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", done)])


@scenario(without={"the present": NOT_DONE}, needs=PRESENTS, rule="a-presented-image-belongs-to-the-engine")
def scenario_image_of_a_retired_swapchain(rig: Rig) -> None:
    """An image that was acquired before its swapchain was retired is presented like any other."""
    chain = rig.shown_swapchain()
    acquired, done = rig.semaphore(), rig.semaphore()
    index = rig.acquire(chain, acquired)
    rig.swapchain(chain)
    frame = _frame(rig, chain.images[index], 0x70605040)
    rig.submit(frame, waits=[SemaphoreUse(acquired, "CLEAR")], signals=[SemaphoreUse(done)], sync2=True)
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", done)])


@scenario(needs=PRESENTS, rule="a-present-waits-for-the-frame")
def scenario_image_presented_again_untouched(rig: Rig) -> None:
    """An image may be acquired and presented again with nothing done to it: the present waits for the acquire."""
    chain = rig.shown_swapchain()
    acquired = rig.semaphore()
    index = rig.acquire(chain, acquired)
    rig.present((chain, index), waits=[acquired])


@scenario(
    weakened={"what / of another image": NOT_OURS}, needs=PRESENTS, rule="a-presented-image-belongs-to-the-engine"
)
def scenario_image_after_its_present(rig: Rig) -> None:
    """Only what was acquired may be touched: all other images, once presented, are the engine's."""
    chain = rig.shown_swapchain(at_once=2)
    frames = [(rig.semaphore(), rig.semaphore()) for _ in range(2)]
    presented = [rig.acquire(chain, acquired) for acquired, _ in frames]
    for index, (acquired, done) in zip(presented, frames, strict=True):
        frame = _frame(rig, chain.images[index], 0x70605040)
        rig.submit(frame, waits=[SemaphoreUse(acquired, "CLEAR")], signals=[SemaphoreUse(done)], sync2=True)
        rig.present((chain, index), waits=[done])
    again = rig.semaphore()
    following = rig.acquire(chain, again)
    elsewhere = next(index for index in presented if index != following)
    at = rig.choose("what", following, {"of another image": elsewhere})
    rig.submit(_frame(rig, chain.images[at], 0x0F0E0D0C), waits=[SemaphoreUse(again, "CLEAR")], sync2=True)
