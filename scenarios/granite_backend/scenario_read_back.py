"""Sixteen images rendered on one queue, read back over another, and taken by threads of the host."""

from collections.abc import Iterator
from typing import Any

from vkharness.rig.core import RigBuffer
from vkharness.rig.frame_contexts import FrameContexts
from vkharness.rig.memory_allocator import MemoryAllocator, MemoryDomain
from vkharness.rig.queues import SemaphoreUse
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.rig.turns import in_turns
from vkharness.suite import Rig, race, read_after_write, scenario

BARRIER, DOWNLOAD, END, READ = "vkCmdPipelineBarrier2", "vkCmdCopyImageToBuffer", "vkCmdEndRendering", "host read"
WRITTEN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
COUNT, SIDE = 16, 4
TO_BE_COPIED: dict[str, Any] = {"old": "COLOR_ATTACHMENT_OPTIMAL", "new": "TRANSFER_SRC_OPTIMAL"}


@scenario(
    without={
        "rendered": [race("READ_RACING_WRITE", DOWNLOAD, BARRIER)],
        "to the host": [read_after_write(READ, DOWNLOAD)],
        "the fence": [read_after_write(READ, DOWNLOAD)],
    },
    weakened={"the fence / of another image": [read_after_write(READ, DOWNLOAD)]},
    queues=["TRANSFER"],
    rule="a-semaphore-is-a-memory-dependency,a-host-read-needs-a-dependency-and-a-wait,a-fence-covers-everything-before-it",
)
def scenario_sixteen_images_read_by_threads(rig: Rig) -> None:
    """Each image is rendered, copied to host memory by the transfer queue after a semaphore, and read by a thread of
    its own after a fence."""
    _, transfer = rig.queues
    allocator, frames = MemoryAllocator(rig), FrameContexts(rig, 1)
    frames.begin()
    taken: list[tuple[RigBuffer, object, str]] = []
    for number in range(COUNT):
        named = number == COUNT - 1
        image, result, done = (
            rig.target(extent=(SIDE, SIDE, 1)),
            allocator.buffer(64, MemoryDomain.CACHED_HOST),
            rig.semaphore(),
        )
        with rig.commands() as render:
            render.transition(image, dst=WRITTEN, new="COLOR_ATTACHMENT_OPTIMAL")
            attachment = RenderingAttachment(
                rig.view(image), layout="COLOR_ATTACHMENT_OPTIMAL", clear=0x01010101 * number
            )
            render.begin_rendering(attachment, area=(0, 0, SIDE, SIDE))
            render.end_rendering()
            render.barrier("", WRITTEN, "NONE", image=image, **TO_BE_COPIED)
        frames.submit(render, signals=[SemaphoreUse(done)], sync2=True)
        with rig.commands(queue=transfer) as copy:
            copy.image_to_buffer(image, result, at="TRANSFER_SRC_OPTIMAL")
            copy.barrier("to the host" if named else "", "COPY/TRANSFER_WRITE", "HOST/HOST_READ")
        waits = rig.operation("rendered" if named else "", done, "COPY")
        fence = frames.submit(copy, waits=waits, sync2=True)
        taken.append((result, fence, "the fence" if named else ""))

    def read(result: RigBuffer, fence: object, name: str) -> Iterator[None]:
        """Waits, then reads: a turn each."""
        rig.host_wait(name, "all", fence, weaker={"of another image": {"fences": (taken[0][1],)}})
        yield
        rig.host_read(result)

    in_turns([read(*each) for each in taken])
