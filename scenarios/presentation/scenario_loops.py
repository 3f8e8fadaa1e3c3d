"""Loops over frames: what several frames in flight share needs more than the swapchain's semaphores."""

from typing import Any

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigBuffer, RigImage
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.suite import Rig, race, scenario, write_after_read

PRESENT, BARRIER, UPLOAD = "vkQueuePresentKHR", "vkCmdPipelineBarrier2", "vkCmdCopyBufferToImage"
WRITTEN_TOO_EARLY = [write_after_read("host write", UPLOAD)]
SIZE = 16 * 16 * 4
"""Bytes of a swapchain image."""


def _upload(rig: Rig, texels: RigBuffer, image: RigImage) -> Commands:
    """A recorded upload of a whole swapchain image."""
    with rig.commands() as commands:
        commands.transition(image, src="COPY", dst="COPY/TRANSFER_WRITE", new="TRANSFER_DST_OPTIMAL")
        commands.buffer_to_image(texels, image, at="TRANSFER_DST_OPTIMAL")
        commands.transition(image, src="COPY/TRANSFER_WRITE", dst="NONE", old="TRANSFER_DST_OPTIMAL", new=SHOWN)
    return commands


@scenario(
    without={"the first frame": WRITTEN_TOO_EARLY},
    weakened={"the first frame / the acquire instead": WRITTEN_TOO_EARLY, "the first frame / idle queue": []},
    needs=PRESENTS,
    rule="an-acquire-stands-for-its-own-image,fences-and-idle-waits-say-nothing-of-the-engine",
)
def scenario_two_frames_in_flight(rig: Rig) -> None:
    """The host may write a staging buffer again when the fence of the frame that used it is signaled; that another
    image was acquired says nothing of it."""
    chain, staging, fence = rig.shown_swapchain(), rig.buffer(SIZE), rig.fence()
    frames = [(rig.semaphore(), rig.semaphore(), rig.fence()) for _ in range(2)]
    indices = [rig.acquire(chain, acquired, taken) for acquired, _, taken in frames]
    for number, (index, (acquired, done, taken)) in enumerate(zip(indices, frames, strict=True)):
        rig.host_wait("", "all", taken)
        if number:
            weaker: dict[str, dict[str, Any]] = {
                "the acquire instead": {"fences": (taken,)},
                "idle queue": {"how": "queue"},
            }
            rig.host_wait("the first frame", "all", fence, weaker=weaker)
        rig.host_write(staging, bytes([number + 1, number + 2]) * (SIZE // 2))
        frame = _upload(rig, staging, chain.images[index])
        waits, signals = [SemaphoreUse(acquired, "COPY")], [SemaphoreUse(done)]
        rig.submit(frame, waits=waits, signals=signals, fence=None if number else fence, sync2=True)
        rig.present((chain, index), waits=[done])


@scenario(
    without={"the acquire": WRITTEN_TOO_EARLY},
    needs=PRESENTS,
    rule="a-fence-covers-everything-before-it,fences-and-idle-waits-say-nothing-of-the-engine",
)
def scenario_image_that_comes_around(rig: Rig) -> None:
    """When the same image is acquired again, its fence tells that the frame which it showed is complete."""
    chain, staging = rig.shown_swapchain(), rig.buffer(SIZE)
    held, taken = rig.semaphore(), rig.fence()
    rig.acquire(chain, held)  # so that there is one image to come around
    for number in range(2):
        acquired, done = rig.semaphore(), rig.semaphore()
        index = rig.acquire(chain, acquired, taken if number else None)
        if number:
            rig.host_wait("the acquire", "all", taken)
        rig.host_write(staging, bytes([number + 1, number + 2]) * (SIZE // 2))
        frame = _upload(rig, staging, chain.images[index])
        rig.submit(frame, waits=[SemaphoreUse(acquired, "COPY")], signals=[SemaphoreUse(done)], sync2=True)
        rig.present((chain, index), waits=[done])
    rig.submit(waits=[SemaphoreUse(held)])
    rig.host_wait("", "all", taken)


@scenario(
    without={"the second acquire": [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)]},
    weakened={"the second acquire / at clears": [write_after_read(BARRIER, "vkAcquireNextImage2KHR")]},
    needs=PRESENTS,
    rule="an-acquired-image-waits-for-its-semaphore,a-presented-image-belongs-to-the-engine",
)
def scenario_second_time_around(rig: Rig) -> None:
    """Each time that an image comes around it must be acquired, and the acquire waited for, again."""
    chain = rig.shown_swapchain()
    texels = rig.buffer(SIZE, data=bytes(range(1, 129)))
    for name in ("", "the second acquire"):
        acquired, done = rig.semaphore(), rig.semaphore()
        index = rig.acquire(chain, acquired, v2=True)
        waits = rig.operation(name, acquired, "COPY", weaker={"at clears": {"stages": "CLEAR"}} if name else None)
        frame = _upload(rig, texels, chain.images[index])
        rig.submit(frame, waits=waits, signals=[SemaphoreUse(done)], sync2=True)
        if not waits:
            rig.submit(waits=[SemaphoreUse(acquired)])  # SwiftShader crashes when nothing ever waits for an acquire
        rig.present((chain, index), waits=[done])
