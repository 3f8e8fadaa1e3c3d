"""One swapchain: what a frame must wait for before it touches an image, and before the image is presented.

Every image has been on the screen once when the claims begin, so that the presentation engine has something to read.
"""

from harness.device.rig import Image
from harness.device.rig_commands import Commands
from harness.device.rig_presentation import PRESENTS, Swapchain
from harness.device.rig_queues import Operation
from harness.scenario import Rig, race, scenario, write_after_read

ACQUIRE, PRESENT = "vkAcquireNextImageKHR", "vkQueuePresentKHR"
BARRIER, CLEAR = "vkCmdPipelineBarrier2", "vkCmdClearColorImage"
SHOWN = "PRESENT_SRC_KHR"
STILL_READ = [write_after_read(BARRIER, ACQUIRE)]
NOT_OURS = [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)]
NOT_DONE = [race("PRESENT_AFTER_WRITE", PRESENT, BARRIER)]


def _frame(rig: Rig, image: Image, value: int, *, old: str = "UNDEFINED", src: str = "CLEAR") -> Commands:
    """A recorded clear between the transitions that it needs; the first one is a named dependency."""
    with rig.commands() as commands:
        commands.barrier(
            "the transition",
            src,
            "CLEAR/TRANSFER_WRITE",
            image=image,
            old=old,
            new="TRANSFER_DST_OPTIMAL",
            weaker={"after nothing": {"src": "NONE"}, "after the bottom": {"src": "BOTTOM_OF_PIPE"}},
        )
        commands.clear_color(image, value, at="TRANSFER_DST_OPTIMAL")
        commands.transition(image, "CLEAR/TRANSFER_WRITE", "NONE", old="TRANSFER_DST_OPTIMAL", new=SHOWN)
    return commands


def _swapchain(rig: Rig) -> Swapchain:
    """A swapchain that has shown each of its images, and been waited for."""
    made = rig.swapchain()
    for number in range(len(made.images)):
        acquired, done = rig.semaphore(), rig.semaphore()
        index = rig.acquire(made, acquired)
        with rig.commands() as commands:
            commands.transition(made.images[index], "CLEAR", "CLEAR/TRANSFER_WRITE", new="TRANSFER_DST_OPTIMAL")
            commands.clear_color(made.images[index], 0x11111111 * (number + 1), at="TRANSFER_DST_OPTIMAL")
            commands.transition(
                made.images[index], "CLEAR/TRANSFER_WRITE", "NONE", old="TRANSFER_DST_OPTIMAL", new=SHOWN
            )
        rig.submit(commands, waits=[Operation(acquired, "CLEAR")], signals=[Operation(done)], form=2)
        rig.present((made, index), waits=[done])
    rig.host_wait("", "queue")
    return made


@scenario(
    without={"the acquire": NOT_OURS, "the present": NOT_DONE},
    weakened={
        "the acquire / at copies": STILL_READ,
        "the acquire / at everything": [],
        "the transition / after nothing": STILL_READ,
        "the transition / after the bottom": [],
    },
    needs=PRESENTS,
    rule="SYNC_RULES 2.11, 2.14 [LayoutTransitionDoesNotWaitForAcquire, PresentDoesNotWaitForSubmit]",
)
def scenario_frame(rig: Rig) -> None:
    """A frame waits for the acquire where its first transition begins, and the present waits for the frame."""
    chain = _swapchain(rig)
    acquired, done = rig.semaphore(), rig.semaphore()
    index = rig.acquire(chain, acquired)
    weaker = {"at copies": {"stages": "COPY"}, "at everything": {"stages": "ALL_COMMANDS"}}
    waits = rig.operation("the acquire", acquired, "CLEAR", weaker=weaker)
    rig.submit(_frame(rig, chain.images[index], 0x70605040), waits=waits, signals=[Operation(done)], form=2)
    if not waits:
        rig.submit(waits=[Operation(acquired)])  # SwiftShader crashes when nothing ever waits for an acquire
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", done)])
