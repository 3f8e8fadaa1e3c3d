"""A swapchain image from its acquire to its present, by barriers ("A practical BOTTOM_OF_PIPE example", "Execution
dependency chain with semaphore")."""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigImage
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.suite import Rig, race, scenario, write_after_read, write_after_write

ACQUIRE, PRESENT, BARRIER, END = (
    "vkAcquireNextImageKHR",
    "vkQueuePresentKHR",
    "vkCmdPipelineBarrier",
    "vkCmdEndRendering",
)
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
WRITTEN, DRAWN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE", f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
STILL_READ = [write_after_read(BARRIER, ACQUIRE)]
NOT_DONE = [race("PRESENT_AFTER_WRITE", PRESENT, BARRIER)]


def _record(commands: Commands, image: RigImage) -> None:
    """A frame that clears the image, between its two transitions."""
    commands.barrier(
        "to attachment",
        OUTPUT,
        DRAWN,
        image=image,
        old="UNDEFINED",
        new="COLOR_ATTACHMENT_OPTIMAL",
        sync2=False,
        weaker={"from the top": {"src": "TOP_OF_PIPE"}, "from the bottom": {"src": "BOTTOM_OF_PIPE"}},
    )
    view = commands.rig.view(image)
    commands.begin_rendering(RenderingAttachment(view, layout="COLOR_ATTACHMENT_OPTIMAL", clear=0x70605040))
    commands.end_rendering()
    commands.barrier(
        "to present",
        WRITTEN,
        "BOTTOM_OF_PIPE",
        image=image,
        old="COLOR_ATTACHMENT_OPTIMAL",
        new=SHOWN,
        sync2=False,
        weaker={"from the top": {"src": "TOP_OF_PIPE"}, "no first access": {"src": OUTPUT}},
    )


@scenario(
    without={"the acquire": [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)], "the present": NOT_DONE},
    weakened={
        "the acquire / at fragment shaders": [],
        "the acquire / at the bottom": STILL_READ,
        "to attachment / from the top": STILL_READ,
        "to attachment / from the bottom": [],
        "to present / from the top": [write_after_write(BARRIER, END)],
        "to present / no first access": [write_after_write(BARRIER, END)],
    },
    needs=PRESENTS,
    rule="an-acquired-image-waits-for-its-semaphore,a-present-waits-for-the-frame,ends-of-the-pipe-order-execution",
)
def scenario_frame_of_barriers(rig: Rig) -> None:
    """The first transition begins in the stage in which the submit waits, the last one ends at BOTTOM_OF_PIPE with no
    access: the signal of vkQueueSubmit covers it."""
    chain = rig.shown_swapchain()
    acquired, done = rig.semaphore(), rig.semaphore()
    index = rig.acquire(chain, acquired)
    with rig.commands() as commands:
        _record(commands, chain.images[index])
    weaker = {"at fragment shaders": {"stages": "FRAGMENT_SHADER"}, "at the bottom": {"stages": "BOTTOM_OF_PIPE"}}
    waits = rig.operation("the acquire", acquired, OUTPUT, weaker=weaker)
    rig.submit(commands, waits=waits, signals=[SemaphoreUse(done)])
    if not waits:
        rig.submit(waits=[SemaphoreUse(acquired)])  # SwiftShader crashes when nothing ever waits for an acquire
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", done)])


@scenario(
    weakened={"the signal / of colour output": NOT_DONE, "the signal / of the bottom": []},
    needs=PRESENTS,
    rule="a-signal-covers-its-stages,a-present-waits-for-the-frame",
)
def scenario_signal_after_a_transition_to_the_bottom(rig: Rig) -> None:
    """A signal of vkQueueSubmit2 in the stage of the rendering leaves out the transition to BOTTOM_OF_PIPE, which is
    in no stage: the signal has to be of ALL_COMMANDS."""
    chain = rig.shown_swapchain()
    acquired, done = rig.semaphore(), rig.semaphore()
    index = rig.acquire(chain, acquired)
    with rig.commands() as commands:
        _record(commands, chain.images[index])
    weaker = {"of colour output": {"stages": OUTPUT}, "of the bottom": {"stages": "BOTTOM_OF_PIPE"}}
    signals = rig.operation("the signal", done, "ALL_COMMANDS", weaker=weaker)
    rig.submit(commands, waits=[SemaphoreUse(acquired, OUTPUT)], signals=signals, sync2=True)
    rig.present((chain, index), waits=[done])
