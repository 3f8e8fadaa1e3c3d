"""One swapchain: what a frame must wait for before it touches an image, and before the image is presented.

Every image has been on the screen once when the claims begin, so that the presentation engine has something to read.
"""

from vkharness.rig.command_buffers import Commands
from vkharness.rig.core import RigImage
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.requirements import PRESENTS
from vkharness.rig.swapchains import SHOWN
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.spec.formats import format_of
from vkharness.suite import Rig, race, scenario, write_after_read

ACQUIRE, PRESENT = "vkAcquireNextImageKHR", "vkQueuePresentKHR"
BARRIER, UPLOAD = "vkCmdPipelineBarrier2", "vkCmdCopyBufferToImage"
BEGIN = "vkCmdBeginRenderPass"
STILL_READ = [write_after_read(BARRIER, ACQUIRE)]
NOT_OURS = [race("WRITE_AFTER_PRESENT", BARRIER, PRESENT)]
NOT_DONE = [race("PRESENT_AFTER_WRITE", PRESENT, BARRIER)]


def _frame(rig: Rig, image: RigImage, value: int, *, old: str = "UNDEFINED", src: str = "CLEAR") -> Commands:
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
        commands.transition(image, src="CLEAR/TRANSFER_WRITE", dst="NONE", old="TRANSFER_DST_OPTIMAL", new=SHOWN)
    return commands


@scenario(
    without={"the acquire": NOT_OURS, "the present": NOT_DONE},
    weakened={
        "the acquire / at copies": STILL_READ,
        "the acquire / at everything": [],
        "the transition / after nothing": STILL_READ,
        "the transition / after the bottom": [],
    },
    needs=PRESENTS,
    rule="an-acquired-image-waits-for-its-semaphore,a-present-waits-for-the-frame",
)
def scenario_frame(rig: Rig) -> None:
    """A frame waits for the acquire where its first transition begins, and the present waits for the frame."""
    chain = rig.shown_swapchain()
    acquired, done = rig.semaphore(), rig.semaphore()
    index = rig.acquire(chain, acquired)
    weaker = {"at copies": {"stages": "COPY"}, "at everything": {"stages": "ALL_COMMANDS"}}
    waits = rig.operation("the acquire", acquired, "CLEAR", weaker=weaker)
    rig.submit(_frame(rig, chain.images[index], 0x70605040), waits=waits, signals=[SemaphoreUse(done)], sync2=True)
    if not waits:
        rig.submit(waits=[SemaphoreUse(acquired)])  # SwiftShader crashes when nothing ever waits for an acquire
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", done)])


@scenario(
    without={"the present": NOT_DONE},
    weakened={"the present / for an earlier submit": NOT_DONE},
    needs=PRESENTS,
    rule="a-present-waits-for-the-frame",
)
def scenario_present_waits_for_the_last_submit(rig: Rig) -> None:
    """A present must wait for the last submit that writes its image, not just for one before."""
    chain = rig.shown_swapchain()
    acquired, early, done = rig.semaphore(), rig.semaphore(), rig.semaphore()
    index = rig.acquire(chain, acquired)
    image = chain.images[index]
    first, second = _frame(rig, image, 0x70605040), _frame(rig, image, 0x0F0E0D0C, old=SHOWN)
    rig.submit(first, waits=[SemaphoreUse(acquired, "CLEAR")], signals=[SemaphoreUse(early)], sync2=True)
    rig.submit(second, signals=[SemaphoreUse(done)], sync2=True)
    waits = rig.operation("the present", done, weaker={"for an earlier submit": {"semaphore": early}})
    rig.present((chain, index), waits=[each.semaphore for each in waits])


@scenario(
    without={"the acquire": NOT_OURS, "the present": NOT_DONE},
    weakened={"the acquire / at clears": STILL_READ, "the transition / after clears": STILL_READ},
    needs=PRESENTS,
    rule="an-acquired-image-waits-for-its-semaphore,a-present-waits-for-the-frame",
)
def scenario_rendered_frame(rig: Rig) -> None:
    """A frame that is rendered waits at the colour attachment output, and its transition begins there."""
    chain = rig.shown_swapchain()
    acquired, done = rig.semaphore(), rig.semaphore()
    index = rig.acquire(chain, acquired)
    image = chain.images[index]
    output = "COLOR_ATTACHMENT_OUTPUT"
    with rig.commands() as commands:
        commands.barrier(
            "the transition",
            output,
            f"{output}/COLOR_ATTACHMENT_WRITE",
            image=image,
            old="UNDEFINED",
            new="COLOR_ATTACHMENT_OPTIMAL",
            weaker={"after clears": {"src": "CLEAR"}},
        )
        commands.begin_rendering(
            RenderingAttachment(rig.view(image), layout="COLOR_ATTACHMENT_OPTIMAL", clear=0x70605040)
        )
        commands.end_rendering()
        commands.transition(
            image, src=f"{output}/COLOR_ATTACHMENT_WRITE", dst="NONE", old="COLOR_ATTACHMENT_OPTIMAL", new=SHOWN
        )
    waits = rig.operation("the acquire", acquired, output, weaker={"at clears": {"stages": "CLEAR"}})
    rig.submit(commands, waits=waits, signals=[SemaphoreUse(done)], sync2=True)
    if not waits:
        rig.submit(waits=[SemaphoreUse(acquired)])  # SwiftShader crashes when nothing ever waits for an acquire
    rig.present((chain, index), waits=[each.semaphore for each in rig.operation("the present", done)])


@scenario(
    without={
        "the acquire": [race("WRITE_AFTER_PRESENT", BEGIN, PRESENT)],
        "the dependency from outside": [write_after_read(BEGIN, ACQUIRE)],
    },
    weakened={
        "the dependency from outside / from the top": [write_after_read(BEGIN, ACQUIRE)],
        "the dependency from outside / from fragment tests": [write_after_read(BEGIN, ACQUIRE)],
    },
    needs=PRESENTS,
    rule="an-acquired-image-waits-for-its-semaphore",
)
def scenario_render_pass_of_a_frame(rig: Rig) -> None:
    """The initial transition of a render pass waits for the acquire by a subpass dependency from outside.

    Without one, the transition comes after no stage in which the submit waits.
    """
    chain = rig.shown_swapchain()
    acquired, done = rig.semaphore(), rig.semaphore()
    index = rig.acquire(chain, acquired)
    image, output = chain.images[index], "COLOR_ATTACHMENT_OUTPUT"
    outside = RigSubpassDependency(
        "the dependency from outside",
        VK_SUBPASS_EXTERNAL,
        0,
        output,
        f"{output}/COLOR_ATTACHMENT_WRITE",
        weaker={"from the top": {"before": "TOP_OF_PIPE"}, "from fragment tests": {"before": "LATE_FRAGMENT_TESTS"}},
    )
    attachment = RigAttachment(format_of(image.format).name, final=SHOWN)
    made = rig.render_pass([attachment], [RigSubpass([0])], [outside])
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.commands() as commands:
        commands.begin_pass(made, frame, clear=[0x70605040])
        commands.end_pass()
    waits = rig.operation("the acquire", acquired, output)
    rig.submit(commands, waits=waits, signals=[SemaphoreUse(done)], sync2=True)
    if not waits:
        rig.submit(waits=[SemaphoreUse(acquired)])  # SwiftShader crashes when nothing ever waits for an acquire
    rig.present((chain, index), waits=[done])


@scenario(
    without={"between frames": [write_after_read("vkCmdFillBuffer", UPLOAD)]},
    needs=PRESENTS,
    rule="submission-order-is-no-dependency,an-acquire-stands-for-its-own-image",
)
def scenario_frames_that_share_a_buffer(rig: Rig) -> None:
    """Acquires and presents order nothing else: a buffer that every frame fills needs a barrier of its own."""
    chain = rig.shown_swapchain()
    texels = rig.buffer(16 * 16 * 4)
    for number in range(2):
        acquired, done = rig.semaphore(), rig.semaphore()
        index = rig.acquire(chain, acquired)
        image = chain.images[index]
        with rig.commands() as commands:
            if number:
                commands.barrier("between frames", "COPY", "CLEAR")
            commands.fill(texels, 0x01020304 * (number + 1))
            commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ", buffer=texels)
            commands.transition(image, src="BLIT", dst="COPY/TRANSFER_WRITE", new="TRANSFER_DST_OPTIMAL")
            commands.buffer_to_image(texels, image, at="TRANSFER_DST_OPTIMAL")
            commands.transition(image, src="COPY/TRANSFER_WRITE", dst="NONE", old="TRANSFER_DST_OPTIMAL", new=SHOWN)
        rig.submit(commands, waits=[SemaphoreUse(acquired, "BLIT")], signals=[SemaphoreUse(done)], sync2=True)
        rig.present((chain, index), waits=[done])
