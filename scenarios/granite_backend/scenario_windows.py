"""Windows and their like: a frame begins with an acquire, and ends with what the owner of the images waits for."""

from vkharness.rig.automatic_passes import AutomaticPasses, SubpassUses
from vkharness.rig.frame_contexts import FrameContexts
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.render_passes import RigSubpassDependency
from vkharness.rig.requirements import PRESENTS
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read

ACQUIRE, PRESENT = "vkAcquireNextImageKHR", "vkQueuePresentKHR"
BEGIN, END, DRAW, DOWNLOAD = "vkCmdBeginRenderPass", "vkCmdEndRenderPass", "vkCmdDraw", "vkCmdCopyImageToBuffer"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
WRITTEN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
FROM_OUTSIDE = RigSubpassDependency("from outside", VK_SUBPASS_EXTERNAL, 0, OUTPUT, WRITTEN)


@scenario(
    without={
        "the acquire": [race("WRITE_AFTER_PRESENT", BEGIN, PRESENT)],
        "from outside": [write_after_read(BEGIN, ACQUIRE)],
        "the present": [race("PRESENT_AFTER_WRITE", PRESENT, END)],
        "the fence of the frame": [write_after_read("host write", DRAW)],
    },
    needs=PRESENTS,
    rule="an-acquired-image-waits-for-its-semaphore,a-present-waits-for-the-frame,a-host-write-waits-for-the-device",
)
def scenario_main_loop(rig: Rig) -> None:
    """The main loop of a window: acquire, render to the image in a render pass of its own, present.

    The contents of before are not cared for, and the last transition makes the image ready for the engine. The wait for
    the acquire is at the colour attachment output, and the render pass begins there, too."""
    chain, frames, passes = rig.shown_swapchain(), FrameContexts(rig, 1), AutomaticPasses(rig)
    for last in (False, True):
        acquired, done = rig.semaphore(), rig.semaphore()
        index = rig.acquire(chain, acquired)
        frames.begin("the fence of the frame")
        image = chain.images[index]
        dependencies = [FROM_OUTSIDE if last else RigSubpassDependency("", *_ends(FROM_OUTSIDE))]
        made, framebuffer = passes.get([image], [SubpassUses((0,))], dependencies, clear=(0,), store=(0,))
        shade = rig.graphics("uniform_color", render_pass=made)
        color = frames.scratch(b"\0\0\x80\x3f" * (3 + last) + bytes(4 * (1 - last)))
        with rig.commands() as commands:
            commands.begin_pass(made, framebuffer)
            commands.bind(shade, rig.descriptors(shade, b0=color))
            commands.draw()
            commands.end_pass()
        waits = rig.operation("the acquire" if last else "", acquired, OUTPUT)
        frames.submit(commands, waits=waits, signals=[SemaphoreUse(done)], sync2=True)
        if not waits:
            rig.submit(waits=[SemaphoreUse(acquired)])  # SwiftShader crashes when nothing ever waits for an acquire
        rig.present(
            (chain, index), waits=[each.semaphore for each in rig.operation("the present" if last else "", done)]
        )


def _ends(each: RigSubpassDependency) -> tuple[int, int, str, str]:
    return each.src, each.dst, each.before, each.after


@scenario(
    without={
        "the semaphore of the owner": [write_after_read(BEGIN, DOWNLOAD)],
        "the wait of the owner": [read_after_write(DOWNLOAD, END)],
    },
    weakened={
        "the semaphore of the owner / at vertex shaders": [],
        "the wait of the owner / at fragment shaders": [read_after_write(DOWNLOAD, END)],
        "the signal / of colour output": [read_after_write(DOWNLOAD, END)],
    },
    rule="a-semaphore-is-a-memory-dependency,final-transitions-wait-for-the-store",
)
def scenario_images_of_another_owner(rig: Rig) -> None:
    """Images in place of a swapchain's come with a semaphore of their owner and leave with one for it.

    The render pass leaves them in the layout in which the owner reads them. That transition is in no stage, so that the
    signal has to be one of all commands."""
    image, out, passes = rig.target(), rig.buffer(2048), AutomaticPasses(rig)
    free, ready, pending = rig.semaphore(), rig.semaphore(), rig.semaphore()
    with rig.commands() as shown:
        shown.transition(image, dst="CLEAR/TRANSFER_WRITE")
        shown.clear_color(image, 0x11111111)
        shown.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        shown.image_to_buffer(image, out)
    rig.submit(shown, signals=[SemaphoreUse(free)], sync2=True)
    dependencies = [RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, OUTPUT, WRITTEN)]
    made, framebuffer = passes.get(
        [image], [SubpassUses((0,))], dependencies, clear=(0,), store=(0,), owned={0: "TRANSFER_SRC_OPTIMAL"}
    )
    with rig.commands() as frame:
        frame.begin_pass(made, framebuffer, clear=[0x44332211])
        frame.end_pass()
    waits = rig.operation(
        "the semaphore of the owner", free, OUTPUT, weaker={"at vertex shaders": {"stages": "VERTEX_SHADER"}}
    )
    signals = rig.operation("the signal", ready, weaker={"of colour output": {"stages": OUTPUT}})
    rig.submit(frame, waits=waits, signals=signals, sync2=True)
    with rig.commands() as consumed:
        consumed.image_to_buffer(image, out, {"buffer_offset": 1024}, at="TRANSFER_SRC_OPTIMAL")
    taken = rig.operation(
        "the wait of the owner", ready, "COPY", weaker={"at fragment shaders": {"stages": "FRAGMENT_SHADER"}}
    )
    rig.submit(consumed, waits=taken, signals=[SemaphoreUse(pending)], sync2=True)
