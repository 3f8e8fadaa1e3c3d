"""Copies and transitions that the host makes itself: what the device did must be known to be complete."""

from vkharness.rig.host_copies import copy_to_image, copy_to_memory, host_image, host_transition
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

CLEAR, DOWNLOAD = "vkCmdClearColorImage", "vkCmdCopyImageToBuffer"
TO_IMAGE, TO_MEMORY, MOVE = "vkCopyMemoryToImageEXT", "vkCopyImageToMemoryEXT", "vkTransitionImageLayoutEXT"
NEEDS = ["VK_EXT_host_image_copy"]
TEXELS = bytes(range(256)) * 4


@scenario(
    without={"cleared before read": [read_after_write(TO_MEMORY, CLEAR)]},
    needs=NEEDS,
    rule="host-copies-access-images-on-the-host",
)
def scenario_host_copies_from_an_image(rig: Rig) -> None:
    """The host may read an image when it knows that what wrote it is complete."""
    image = host_image(rig)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "HOST/HOST_READ")
    rig.host_wait("cleared before read", "queue")
    copy_to_memory(rig, image)


@scenario(
    without={"read before overwritten": [write_after_read(TO_IMAGE, DOWNLOAD)]},
    needs=NEEDS,
    rule="host-copies-access-images-on-the-host",
)
def scenario_host_copies_over_what_the_device_reads(rig: Rig) -> None:
    """A copy by the host must wait for the device to have read what it overwrites."""
    image, out = host_image(rig), rig.buffer(1024)
    host_transition(rig, image)
    copy_to_image(rig, TEXELS, image)
    with rig.submission() as commands:
        commands.image_to_buffer(image, out)
    rig.host_wait("read before overwritten", "queue")
    copy_to_image(rig, bytes(1024), image)


@scenario(
    without={"read before moved": [write_after_read(MOVE, DOWNLOAD)]},
    needs=NEEDS,
    rule="host-copies-access-images-on-the-host",
)
def scenario_host_moves_what_the_device_reads(rig: Rig) -> None:
    """A transition by the host writes the image."""
    image, out = host_image(rig), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x05060708)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)
    rig.host_wait("read before moved", "queue")
    host_transition(rig, image, "GENERAL", "SHADER_READ_ONLY_OPTIMAL")


@scenario(
    without={"cleared before moved": [write_after_write(MOVE, CLEAR)]},
    needs=NEEDS,
    rule="host-copies-access-images-on-the-host",
)
def scenario_host_moves_what_the_device_writes(rig: Rig) -> None:
    """The same after a write."""
    image = host_image(rig)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x05060708)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "HOST/HOST_WRITE")
    rig.host_wait("cleared before moved", "queue")
    host_transition(rig, image, "GENERAL", "SHADER_READ_ONLY_OPTIMAL")


@scenario(
    expects=[], needs=NEEDS, rule="a-submit-shows-host-writes-to-the-device,host-copies-access-images-on-the-host"
)
def scenario_device_reads_what_the_host_copied(rig: Rig) -> None:
    """Host writes before a submit are visible to it, with no barrier."""
    image, out = host_image(rig), rig.buffer(1024)
    host_transition(rig, image)
    copy_to_image(rig, TEXELS, image)
    with rig.submission() as commands:
        commands.image_to_buffer(image, out)
    rig.wait()
    copy_to_memory(rig, image, extent=(4, 4, 1))
