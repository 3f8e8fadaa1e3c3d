"""Copies that the host makes from images: what the device wrote must have been made visible to the host."""

from vkharness.rig.host_copies import copy_to_memory, host_image
from vkharness.suite import Rig, read_after_write, scenario

CLEAR, BARRIER, TO_MEMORY = "vkCmdClearColorImage", "vkCmdPipelineBarrier2", "vkCopyImageToMemoryEXT"
NEEDS = ["VK_EXT_host_image_copy"]
UNSEEN = [read_after_write(TO_MEMORY, CLEAR)]


@scenario(
    without={"to the host": UNSEEN, "the wait": UNSEEN},
    weakened={"to the host / execution only": UNSEEN, "to the host / every access of the host": []},
    needs=NEEDS,
    rule="a-host-read-needs-a-dependency-and-a-wait,host-copies-access-images-on-the-host",
)
def scenario_host_copies_what_is_visible_to_it(rig: Rig) -> None:
    """A copy by the host reads: a memory dependency to HOST_READ is due, and a wait."""
    image = host_image(rig)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x0A0B0C0D)
        commands.barrier(
            "to the host",
            "CLEAR/TRANSFER_WRITE",
            "HOST/HOST_READ",
            weaker={
                "execution only": {"src": "CLEAR", "dst": "HOST"},
                "every access of the host": {"dst": "HOST/MEMORY_READ"},
            },
        )
    rig.host_wait("the wait", "queue")
    copy_to_memory(rig, image)


@scenario(
    weakened={"moved for the host / for copies": [read_after_write(TO_MEMORY, BARRIER)]},
    needs=NEEDS,
    rule="host-copies-access-images-on-the-host",
)
def scenario_host_copies_what_was_moved_for_it(rig: Rig) -> None:
    """A layout transition is a write like others; its second scope says who sees it."""
    image = host_image(rig)
    with rig.submission() as commands:
        commands.transition(image, new="TRANSFER_DST_OPTIMAL")
        commands.clear_color(image, 0x01010101, at="TRANSFER_DST_OPTIMAL")
        commands.barrier(
            "moved for the host",
            "CLEAR/TRANSFER_WRITE",
            "HOST/HOST_READ",
            image=image,
            old="TRANSFER_DST_OPTIMAL",
            new="GENERAL",
            weaker={"for copies": {"dst": "COPY/TRANSFER_READ"}},
        )
    rig.wait()
    copy_to_memory(rig, image)
