"""A swapchain whose images two programs share: a client renders to them, and a server copies from them.

Each program has objects of its own, with common payloads: the image, and two semaphores. A scenario is one program, so
that it plays both, each on a queue of its own.
"""

from vkharness.device.headless import DeviceQueue
from vkharness.rig.core import RigImage
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.shared_objects import SHARES
from vkharness.spec.enums import VK_QUEUE_FAMILY_EXTERNAL
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_write

BARRIER, COPY = "vkCmdPipelineBarrier2", "vkCmdCopyImage"
BEGIN, END = "vkCmdBeginRendering", "vkCmdEndRendering"
COLOR = "COLOR_ATTACHMENT_OPTIMAL"
SOURCE, TARGET = "TRANSFER_SRC_OPTIMAL", "TRANSFER_DST_OPTIMAL"
RENDERED = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
FRAMES = 2


@scenario(
    without={
        "rendering done": [race("WRITE_RACING_WRITE", BARRIER, BARRIER)],
        "copying done": [race("WRITE_RACING_WRITE", BARRIER, BARRIER)],
        "release": [race("ownership-not-released", BARRIER, END)],
        "acquire": [race("ownership-not-acquired", COPY, BARRIER)],
    },
    weakened={
        "layout for rendering / before nothing": [write_after_write(BEGIN, BARRIER)],
        "release / no layout change": [race("ownership-mismatch", BARRIER, BARRIER)],
        "release / with the access of the document": [write_after_write(BARRIER, END)],
        "acquire / with the access of the document": [read_after_write(COPY, BARRIER)],
        "acquire / with the layouts of the document": [race("ownership-mismatch", BARRIER, BARRIER)],
        "destination before the copy / with the access of the document": [write_after_write(COPY, BARRIER)],
        "destination after the copy / with the access of the document": [write_after_write(BARRIER, COPY)],
    },
    needs=SHARES,
    queues=["GRAPHICS"],
    rule="objects-with-one-payload-are-one,a-transfer-between-two-programs-has-both-halves",
)
def scenario_frames_of_two_programs(rig: Rig) -> None:
    """The client renders when the image was copied, and the server copies when it was rendered, frame by frame. The
    image changes its owner with a release and an acquire."""
    client, server = rig.queues
    shared, drawn = rig.shared_image()
    shown = rig.target()
    rendering_done, copying_done = rig.shared_semaphore(), rig.shared_semaphore()
    for frame in range(FRAMES):
        waits = rig.operation("copying done", copying_done[1]) if frame else []
        _render(rig, client, drawn, frame, waits, SemaphoreUse(rendering_done[1]))
        waits = rig.operation("rendering done", rendering_done[0])
        _copy(rig, server, shared, shown, frame, waits, SemaphoreUse(copying_done[0]))


def _render(
    rig: Rig, queue: DeviceQueue, image: RigImage, frame: int, waits: list[SemaphoreUse], done: SemaphoreUse
) -> None:
    """The client: the image gets its layout, is rendered to, and is given away."""
    with rig.commands(queue=queue) as commands:
        commands.barrier(
            "layout for rendering",
            "ALL_COMMANDS",
            RENDERED,
            image=image,
            old="UNDEFINED",
            new=COLOR,
            weaker={"before nothing": {"dst": "NONE"}},
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="CLEAR", clear=frame + 1, layout=COLOR))
        commands.end_rendering()
        commands.barrier(
            "release",
            RENDERED,
            "NONE",
            image=image,
            old=COLOR,
            new=SOURCE,
            families=(queue.family, VK_QUEUE_FAMILY_EXTERNAL),
            weaker={"no layout change": {"new": COLOR}, "with the access of the document": {"src": "ALL_COMMANDS"}},
        )
    rig.submit(commands, waits=waits, signals=[done], sync2=True)


def _copy(
    rig: Rig,
    queue: DeviceQueue,
    image: RigImage,
    target: RigImage,
    frame: int,
    waits: list[SemaphoreUse],
    done: SemaphoreUse,
) -> None:
    """The server: takes the image over, and copies it to one of its own."""
    with rig.commands(queue=queue) as commands:
        commands.barrier(
            "acquire",
            "NONE",
            "COPY/TRANSFER_READ",
            image=image,
            old=COLOR,
            new=SOURCE,
            families=(VK_QUEUE_FAMILY_EXTERNAL, queue.family),
            weaker={
                "with the access of the document": {"dst": "COPY"},
                "with the layouts of the document": {"old": SOURCE},
            },
        )
        commands.barrier(
            "destination before the copy",
            "ALL_COMMANDS",
            "COPY/TRANSFER_WRITE",
            image=target,
            old=COLOR if frame else "UNDEFINED",
            new=TARGET,
            weaker={"with the access of the document": {"dst": "COPY/TRANSFER_READ"}},
        )
        commands.copy_image(image, target, layouts=(SOURCE, TARGET))
        commands.barrier(
            "destination after the copy",
            "COPY/TRANSFER_WRITE",
            "NONE",
            image=target,
            old=TARGET,
            new=COLOR,
            weaker={"with the access of the document": {"src": "COPY"}},
        )
    rig.submit(commands, waits=waits, signals=[done], sync2=True)


@scenario(
    without={"the wait": [race("READ_RACING_WRITE", "vkCmdCopyBuffer", "vkCmdFillBuffer")]},
    weakened={"the wait / compute": [read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")]},
    needs=SHARES,
    queues=["GRAPHICS"],
    rule="a-wait-for-a-signal-from-outside",
)
def scenario_semaphore_that_was_given_away(rig: Rig) -> None:
    """A wait for a semaphore that somebody outside may signal comes after what was signaled to them."""
    a, b = rig.buffer(), rig.buffer()
    first, second = rig.queues
    given = rig.given_semaphore()
    with rig.commands(queue=first) as filling:
        filling.fill(a, 0x11111111)
    rig.submit(filling, signals=[SemaphoreUse(given)], sync2=True)
    with rig.commands(queue=second) as copying:
        copying.copy(a, b)
    waits = rig.operation("the wait", given, "COPY", weaker={"compute": {"stages": "COMPUTE_SHADER"}})
    rig.submit(copying, waits=waits, sync2=True)
