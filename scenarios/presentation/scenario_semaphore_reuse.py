"""The usual frame loops, right and wrong: when a semaphore or a fence of presentation may be used again.

A headless surface hands out the free image with the lowest number. So that images come around as they do in a window,
all of them are acquired ahead, and each again behind its present. Today's Khronos layer, with core validation, takes a
present for over from that acquire on; by the specification the wait for the acquire counts.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from vkharness.device.headless import DeviceQueue
from vkharness.rig.command_buffers import Commands
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.requirements import PRESENT_FENCES, PRESENTS
from vkharness.rig.swapchains import SHOWN, RigSwapchain
from vkharness.suite import Rig, race, scenario

ACQUIRE, PRESENT, SUBMIT = "vkAcquireNextImageKHR", "vkQueuePresentKHR", "vkQueueSubmit2"
CLEAR, CLEARED = "CLEAR", "CLEAR/TRANSFER_WRITE"
STILL_WAITED_FOR = [race("semaphore-in-use", SUBMIT, PRESENT)]
NOT_OURS = [race("WRITE_AFTER_PRESENT", "vkCmdPipelineBarrier2", PRESENT)]
DESTROYED_TOO_EARLY = [race("semaphore-in-use", "vkDestroySemaphore", PRESENT)]
ACQUIRE_PENDING = [race("semaphore-in-use", ACQUIRE, SUBMIT)]
FRAMES = 2
"""Frames in flight."""


def _semaphores(rig: Rig, count: int) -> list[Any]:
    return [rig.semaphore() for _ in range(count)]


class _Loop:
    """Frames over three images that are acquired ahead, each with a semaphore of its own for its acquire; or over as
    few images as there are, which the scenario acquires."""

    def __init__(self, rig: Rig, chain: RigSwapchain | None = None, *, ahead: bool = True) -> None:
        at_once = 3 if ahead else 1
        self.rig, self.again = rig, ahead
        self.chain = chain or rig.shown_swapchain(images=at_once, at_once=at_once)
        self.held: deque[tuple[int, Any]] = deque()
        for _ in range(self.chain.at_once if ahead else 0):
            self.acquire(rig.semaphore())

    def acquire(self, semaphore: Any = None, fence: Any = None) -> None:
        """Acquires one more image."""
        self.held.append((self.rig.acquire(self.chain, semaphore, fence), semaphore))

    def draw(self, index: int, value: int = 0x70605040) -> Commands:
        """A recorded frame: a clear between the transitions that it needs."""
        image = self.chain.images[index]
        with self.rig.commands() as commands:
            commands.transition(image, src=CLEAR, dst=CLEARED, new="TRANSFER_DST_OPTIMAL")
            commands.clear_color(image, value, at="TRANSFER_DST_OPTIMAL")
            commands.transition(image, src=CLEARED, dst="NONE", old="TRANSFER_DST_OPTIMAL", new=SHOWN)
        return commands

    def frame(
        self,
        done: Any,
        *,
        pick: int = 0,
        queue: DeviceQueue | None = None,
        fences: tuple[Any, ...] = (),
        fence: Any = None,
        signals: Sequence[SemaphoreUse] = (),
    ) -> None:
        """One frame to the image at `pick` of those that are held. The present waits for `done`."""
        index, acquired = self.held[pick]
        del self.held[pick]
        waits = [] if acquired is None else [SemaphoreUse(acquired, CLEAR)]
        made = [SemaphoreUse(done), *signals]
        self.rig.submit(self.draw(index), waits=waits, signals=made, fence=fence, sync2=True)
        self.rig.present((self.chain, index), waits=[done], queue=queue, fences=fences)
        if self.again:
            self.acquire(self.rig.semaphore())

    def drop(self) -> None:
        """Waits for the acquires of images that no frame has drawn to."""
        if self.held:
            self.rig.submit(waits=[SemaphoreUse(acquired) for _, acquired in self.held], sync2=True)
            self.held.clear()


@scenario(
    weakened={"the semaphore / of the frame in flight": STILL_WAITED_FOR},
    needs=PRESENTS,
    rule="a-semaphore-of-a-present-is-free-again",
)
def scenario_semaphore_for_each_image(rig: Rig) -> None:
    """The semaphore that a present waits for belongs to the image: the acquire that gives the image again says that the
    present is over. One for each frame in flight comes around before that."""
    loop = _Loop(rig)
    of_images, of_frames = _semaphores(rig, len(loop.chain.images)), _semaphores(rig, FRAMES)
    for number in range(5):
        own = of_images[loop.held[0][0]]
        loop.frame(rig.choose("the semaphore", own, {"of the frame in flight": of_frames[number % FRAMES]}))
    loop.drop()


@scenario(
    weakened={"the semaphore / of the frame in flight": STILL_WAITED_FOR},
    needs=PRESENTS,
    rule="a-semaphore-of-a-present-is-free-again",
)
def scenario_images_in_another_order(rig: Rig) -> None:
    """Images may be acquired in another order than they were presented: the semaphore goes with the image."""
    loop = _Loop(rig)
    loop.again = False  # the frames are shown in another order than that in which their images come around
    of_images, of_frames = _semaphores(rig, len(loop.chain.images)), _semaphores(rig, FRAMES)
    for number, pick in enumerate((1, 1, 0, 0)):
        if not loop.held:
            loop.acquire(rig.semaphore())
        own = of_images[loop.held[pick][0]]
        loop.frame(rig.choose("the semaphore", own, {"of the frame in flight": of_frames[number % FRAMES]}), pick=pick)
    loop.drop()


@scenario(
    without={"the wait for the present": STILL_WAITED_FOR},
    needs=PRESENT_FENCES,
    rule="a-semaphore-of-a-present-is-free-again",
)
def scenario_fence_of_each_present(rig: Rig) -> None:
    """With a fence of each present, its semaphore can belong to a frame in flight: the host waits for the fence."""
    loop = _Loop(rig)
    slots = [(rig.semaphore(), rig.fence()) for _ in range(FRAMES)]
    for number in range(4):
        done, presented = slots[number % FRAMES]
        if number >= FRAMES:
            if rig.host_wait("the wait for the present", "all", presented):
                rig.reset_fence(presented)
            else:
                presented = rig.fence()
        slots[number % FRAMES] = done, presented
        loop.frame(done, fences=(presented,))
    loop.drop()


@scenario(
    without={"the idle queue": STILL_WAITED_FOR},
    weakened={"the idle queue / the fence of the frame": STILL_WAITED_FOR},
    needs=PRESENTS,
    rule="a-semaphore-of-a-present-is-free-again",
)
def scenario_one_semaphore_and_an_idle_queue(rig: Rig) -> None:
    """A queue that is idle has waited for the semaphores of its presents, so that one semaphore is enough. A fence of
    the frame does not say that."""
    loop, done = _Loop(rig), rig.semaphore()
    for number in range(3):
        drawn = rig.fence()
        loop.frame(done, fence=drawn)
        weaker = {"the fence of the frame": {"how": "all", "fences": (drawn,)}}
        rig.host_wait("the idle queue" if number == 1 else "", "queue", weaker=weaker)
    loop.drop()


@scenario(
    weakened={"the present / on the other queue": STILL_WAITED_FOR},
    needs=PRESENTS,
    queues=["GRAPHICS"],
    rule="a-semaphore-of-a-present-is-free-again",
)
def scenario_idle_queue_of_the_present(rig: Rig) -> None:
    """The queue that has to be idle is the one that presents."""
    loop, done = _Loop(rig), rig.semaphore()
    first, other = rig.queues
    loop.frame(done, queue=rig.choose("the present", first, {"on the other queue": other}))
    rig.host_wait("", "queue")
    loop.frame(done, queue=first)
    loop.drop()


@scenario(
    without={"the wait for the frame": ACQUIRE_PENDING},
    weakened={"the wait for the frame / of the frame before": ACQUIRE_PENDING, "the wait for the frame / idle": []},
    needs=PRESENTS,
    rule="a-signal-finds-its-semaphore-unsignaled",
)
def scenario_acquire_with_a_semaphore_of_the_frame(rig: Rig) -> None:
    """The semaphore of an acquire may be given to another one when the host knows that the frame is complete which
    waited for it."""
    loop = _Loop(rig, ahead=False)
    acquired, of_images = _semaphores(rig, FRAMES), _semaphores(rig, len(loop.chain.images))
    drawn: list[Any] = []
    for number in range(4):
        if number >= FRAMES:
            before = drawn[max(number - 3, 0)]
            weaker: dict[str, dict[str, Any]] = {
                "of the frame before": {"fences": (before,)},
                "idle": {"how": "device"},
            }
            name = "the wait for the frame" if number == 3 else ""
            rig.host_wait(name, "all", drawn[number - FRAMES], weaker=weaker)
        drawn.append(rig.fence())
        loop.acquire(acquired[number % FRAMES])
        loop.frame(of_images[loop.held[0][0]], fence=drawn[number])


@scenario(
    without={"the wait for the frame": ACQUIRE_PENDING},
    weakened={"the wait for the frame / of the frame before": ACQUIRE_PENDING},
    needs=PRESENTS,
    rule="a-signal-finds-its-semaphore-unsignaled,a-host-wait-for-a-value-is-a-fence",
)
def scenario_timeline_for_frames_in_flight(rig: Rig) -> None:
    """A timeline counts the frames: a value that the host waits for says that the semaphore of that frame's acquire is
    free again."""
    loop, frames = _Loop(rig, ahead=False), rig.timeline()
    acquired, of_images = _semaphores(rig, FRAMES), _semaphores(rig, len(loop.chain.images))
    for number in range(4):
        value = number - FRAMES + 1
        if value > 0:
            weaker = {"of the frame before": {"values": ((frames, value - 1),)}}
            rig.host_wait_timeline("the wait for the frame" if number == 3 else "", (frames, value), weaker=weaker)
        loop.acquire(acquired[number % FRAMES])
        loop.frame(of_images[loop.held[0][0]], signals=[SemaphoreUse(frames, value=number + 1)])


@scenario(
    without={"the wait for the acquire": [*STILL_WAITED_FOR, *NOT_OURS]},
    needs=PRESENTS,
    rule="a-semaphore-of-a-present-is-free-again,a-fence-is-reset-between-its-uses",
)
def scenario_acquire_with_a_fence(rig: Rig) -> None:
    """The fence of an acquire stands for its semaphore: the host waits for it, and resets it before the next one."""
    loop, taken = _Loop(rig, ahead=False), rig.fence()
    of_images = _semaphores(rig, len(loop.chain.images))
    for number in range(3):
        loop.acquire(fence=taken)
        if rig.host_wait("the wait for the acquire" if number == 1 else "", "all", taken):
            rig.reset_fence(taken)
        else:
            taken = rig.fence()
        loop.frame(of_images[loop.held[0][0]])


@scenario(without={"the idle queue": STILL_WAITED_FOR}, needs=PRESENTS, rule="a-semaphore-of-a-present-is-free-again")
def scenario_semaphores_outlive_a_swapchain(rig: Rig) -> None:
    """A window is resized: no image of the old swapchain is acquired again, so that nothing but an idle queue says that
    its presents are over."""
    loop = _Loop(rig, ahead=False)
    of_images = _semaphores(rig, len(loop.chain.images))
    loop.acquire(rig.semaphore())
    loop.frame(of_images[loop.held[0][0]])
    rig.host_wait("the idle queue", "queue")
    resized = _Loop(rig, rig.swapchain(loop.chain, extent=(24, 8)), ahead=False)
    for _ in range(2):
        resized.acquire(rig.semaphore())
        resized.frame(of_images[resized.held[0][0]])


@scenario(
    without={"the idle device": DESTROYED_TOO_EARLY},
    weakened={"the idle device / the fence of the frame": DESTROYED_TOO_EARLY},
    needs=PRESENTS,
    rule="a-semaphore-is-destroyed-after-its-uses",
)
def scenario_semaphore_is_destroyed(rig: Rig) -> None:
    """A semaphore for which a present waits may be destroyed when the device is idle; that the frame is complete does
    not say that the present has waited."""
    loop, done, drawn = _Loop(rig, ahead=False), rig.semaphore(), rig.fence()
    loop.acquire(rig.semaphore())
    loop.frame(done, fence=drawn)
    rig.host_wait("the idle device", "device", weaker={"the fence of the frame": {"how": "all", "fences": (drawn,)}})
    rig.destroy(done)


@scenario(
    without={
        "another wait": [
            race("semaphore-already-signaled", SUBMIT, SUBMIT),
            race("PRESENT_AFTER_WRITE", PRESENT, "vkCmdPipelineBarrier2"),  # it waits for the first of the two signals
        ]
    },
    needs=PRESENTS,
    rule="a-signal-finds-its-semaphore-unsignaled",
)
def scenario_frame_that_is_not_presented(rig: Rig) -> None:
    """A frame is drawn and not presented with its own semaphore: something else has to wait for that before it is
    signaled again."""
    loop, done = _Loop(rig, ahead=False), rig.semaphore()
    for number in range(2):
        loop.acquire(rig.semaphore())
        if number:
            loop.frame(done)
            break
        index, acquired = loop.held.popleft()
        frame = loop.draw(index)
        rig.submit(frame, waits=[SemaphoreUse(acquired, CLEAR)], signals=[SemaphoreUse(done)], sync2=True)
        waits = rig.operation("another wait", done)
        other = rig.semaphore()
        rig.submit(waits=waits, signals=[SemaphoreUse(other)], sync2=True)
        rig.present((loop.chain, index), waits=[other])


@scenario(
    without={"the wait for the frame": [race("fence-in-use", "vkResetFences", SUBMIT)]},
    needs=PRESENTS,
    rule="a-fence-is-reset-between-its-uses",
)
def scenario_fence_of_the_frame(rig: Rig) -> None:
    """The fence of a frame is waited for, then reset, then given to the next frame."""
    loop, drawn = _Loop(rig, ahead=False), rig.fence()
    of_images = _semaphores(rig, len(loop.chain.images))
    for number in range(2):
        loop.acquire(rig.semaphore())
        loop.frame(of_images[loop.held[0][0]], fence=drawn)
        rig.host_wait("" if number else "the wait for the frame", "all", drawn)
        rig.reset_fence(drawn)


@scenario(
    without={"the wait for the reader": [race("semaphore-in-use", SUBMIT, SUBMIT)]},
    queues=["GRAPHICS"],
    rule="a-signal-finds-its-semaphore-unsignaled,a-wait-finds-its-signal-submitted",
)
def scenario_semaphore_between_two_queues(rig: Rig) -> None:
    """A semaphore goes to another queue again and again: its next signal comes after the wait there."""
    first, other = rig.queues
    there, back = rig.semaphore(), rig.semaphore()
    rig.submit(signals=[SemaphoreUse(there)], queue=first, sync2=True)
    rig.submit(waits=[SemaphoreUse(there)], signals=[SemaphoreUse(back)], queue=other, sync2=True)
    waits = rig.operation("the wait for the reader", back)
    rig.submit(waits=waits, signals=[SemaphoreUse(there)], queue=first, sync2=True)
    rig.submit(waits=[SemaphoreUse(there)], queue=other, sync2=True)


@scenario(
    weakened={"the semaphore / of the frame in flight": STILL_WAITED_FOR},
    needs=PRESENTS,
    rule="a-semaphore-of-a-present-is-free-again",
)
def scenario_two_windows(rig: Rig) -> None:
    """One present shows two windows, and waits once: the image of one of them that is acquired again tells of both."""
    one, two = _Loop(rig), _Loop(rig)
    of_images, of_frames = _semaphores(rig, len(one.chain.images)), _semaphores(rig, FRAMES)
    for number in range(4):
        (first, acquired), (second, acquired_too) = one.held.popleft(), two.held.popleft()
        done = rig.choose("the semaphore", of_images[first], {"of the frame in flight": of_frames[number % FRAMES]})
        waits = [SemaphoreUse(each, CLEAR) for each in (acquired, acquired_too)]
        rig.submit(one.draw(first), two.draw(second), waits=waits, signals=[SemaphoreUse(done)], sync2=True)
        rig.present((one.chain, first), (two.chain, second), waits=[done])
        one.acquire(rig.semaphore())
        two.acquire(rig.semaphore())
    one.drop()
    two.drop()
