"""Several resources in one memory object (specification: "Memory Aliasing"): uses of what overlaps need an order."""

from vkharness.rig.core import RigBuffer, RigImage
from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkImageCreate
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

FILL, COPY = "vkCmdFillBuffer", "vkCmdCopyBuffer"
CLEAR, DOWNLOAD = "vkCmdClearColorImage", "vkCmdCopyImageToBuffer"
BARRIER = "vkCmdPipelineBarrier2"
ALIAS_BIT = VkImageCreate.ALIAS
"""VK_IMAGE_CREATE_ALIAS_BIT."""


def image_and_buffer(rig: Rig) -> tuple[RigImage, RigBuffer]:
    """An image, and a buffer on its first bytes."""
    image = rig.image()
    return image, rig.buffer(256, image.memory)


@scenario(
    without={"image before buffer": [write_after_read(FILL, DOWNLOAD)]},
    weakened={"image before buffer / copies alone": [write_after_read(FILL, DOWNLOAD)]},
    rule="an-image-overlaps-all-of-its-memory",
)
def scenario_memory_of_an_image_becomes_a_buffer(rig: Rig) -> None:
    """A buffer that is written where an image was read waits for that read; an execution dependency is enough."""
    (image, buffer), out, more = image_and_buffer(rig), rig.buffer(1024), rig.buffer()
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)
        commands.barrier("image before buffer", "COPY", "CLEAR", weaker={"copies alone": {"dst": "COPY"}})
        commands.fill(buffer, 0x11223344)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.copy(buffer, more)


@scenario(
    without={"image before buffers": [write_after_write(COPY, CLEAR)]},
    weakened={"image before buffers / before the first alone": [write_after_write(FILL, CLEAR)]},
    rule="an-image-overlaps-all-of-its-memory",
)
def scenario_buffers_side_by_side_where_an_image_was(rig: Rig) -> None:
    """Two buffers on different bytes of an image's memory wait for the image, each of them, and not for each other."""
    image, source, out = rig.image(), rig.buffer(), rig.buffer(512)
    first, second = rig.buffer(256, image.memory), rig.buffer(256, image.memory, 256)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image)
        commands.barrier(
            "image before buffers",
            "CLEAR/TRANSFER_WRITE",
            "ALL_TRANSFER/TRANSFER_WRITE",
            weaker={"before the first alone": {"dst": "COPY/TRANSFER_WRITE"}},
        )
        commands.copy(source, first)
        commands.fill(second, 0x11223344)
        commands.barrier("", "ALL_TRANSFER/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.copy(first, out, (0, 0, 256))
        commands.copy(second, out, (0, 256, 256))


@scenario(
    weakened={
        "buffer before image / from nothing": [write_after_read(BARRIER, COPY)],
        "buffer before image / from clears": [write_after_read(BARRIER, COPY)],
    },
    rule="an-image-overlaps-all-of-its-memory",
)
def scenario_memory_of_a_buffer_becomes_an_image(rig: Rig) -> None:
    """The first transition of an image waits for what a buffer in its memory was read for."""
    (image, buffer), out, more = image_and_buffer(rig), rig.buffer(1024), rig.buffer()
    with rig.submission() as commands:
        commands.fill(buffer, 0x11223344)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.copy(buffer, more)
        commands.barrier(
            "buffer before image",
            "COPY",
            "CLEAR/TRANSFER_WRITE",
            image=image,
            old="UNDEFINED",
            new="GENERAL",
            weaker={"from nothing": {"src": "NONE"}, "from clears": {"src": "CLEAR"}},
        )
        commands.clear_color(image)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"fill before clear": [write_after_write(CLEAR, FILL)]},
    weakened={
        "fill before clear / execution only": [write_after_write(CLEAR, FILL)],
        "fill before clear / half of the buffer": [write_after_write(CLEAR, FILL)],
    },
    rule="a-barrier-for-one-alias-contains-the-overlap",
)
def scenario_writes_through_two_aliases(rig: Rig) -> None:
    """A write through one alias needs a memory dependency after a write through another; a barrier for one of them does
    when it contains the whole overlap."""
    (image, buffer), out = image_and_buffer(rig), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.barrier("", "ALL_COMMANDS/MEMORY_WRITE", "CLEAR/TRANSFER_WRITE")
        commands.fill(buffer, 0x11223344)
        commands.barrier(
            "fill before clear",
            "CLEAR/TRANSFER_WRITE",
            "CLEAR/TRANSFER_WRITE",
            buffer=buffer,
            weaker={"execution only": {"src": "CLEAR", "dst": "CLEAR"}, "half of the buffer": {"size": 128}},
        )
        commands.clear_color(image)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"one image before the other": [write_after_read(BARRIER, DOWNLOAD)]},
    weakened={"one image before the other / after clears": [write_after_read(BARRIER, DOWNLOAD)]},
    rule="an-image-overlaps-all-of-its-memory",
)
def scenario_memory_of_an_image_becomes_another(rig: Rig) -> None:
    """Two images of different kinds take turns in one memory."""
    one = rig.image(extent=(32, 16, 1))
    other = rig.image(extent=(16, 16, 1), memory=one.memory)
    out, more = rig.buffer(2048), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(one)
        commands.clear_color(one)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(one, out)
        commands.barrier(
            "one image before the other", "COPY", "ALL_COMMANDS", weaker={"after clears": {"src": "CLEAR"}}
        )
        commands.transition(other)
        commands.clear_color(other, 0x55667788)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(other, more)


@scenario(
    without={"clear before download": [read_after_write(DOWNLOAD, CLEAR)]},
    weakened={
        "clear before download / execution only": [read_after_write(DOWNLOAD, CLEAR)],
        "clear before download / to copies that write": [read_after_write(DOWNLOAD, CLEAR)],
    },
    rule="identical-images-interpret-memory-alike",
)
def scenario_two_names_of_one_image(rig: Rig) -> None:
    """A write through one of two identical images is read through the other, after a memory dependency."""
    one = rig.image(flags=ALIAS_BIT)
    other = rig.image(flags=ALIAS_BIT, memory=one.memory)
    out = rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(one)
        commands.transition(other, src="ALL_COMMANDS/MEMORY_WRITE")
        commands.clear_color(one)
        commands.barrier(
            "clear before download",
            "CLEAR/TRANSFER_WRITE",
            "COPY/TRANSFER_READ",
            weaker={
                "execution only": {"src": "CLEAR", "dst": "COPY"},
                "to copies that write": {"dst": "COPY/TRANSFER_WRITE"},
            },
        )
        commands.image_to_buffer(other, out)


@scenario(
    without={"buffer before attachment": [write_after_read("vkCmdBeginRenderPass", COPY)]},
    weakened={"buffer before attachment / from clears": [write_after_read("vkCmdBeginRenderPass", COPY)]},
    rule="an-image-overlaps-all-of-its-memory",
)
def scenario_memory_of_a_buffer_becomes_an_attachment(rig: Rig) -> None:
    """The initial transition of an attachment waits for what a buffer in its memory was read for."""
    image, out = rig.target(), rig.buffer()
    buffer = rig.buffer(256, image.memory)
    before = RigSubpassDependency(
        "buffer before attachment",
        VK_SUBPASS_EXTERNAL,
        0,
        "COPY",
        "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE",
        weaker={"from clears": {"before": "CLEAR"}},
    )
    made = rig.render_pass([RigAttachment()], [RigSubpass([0])], [before])
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.fill(buffer, 0x11223344)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.copy(buffer, out)
        commands.begin_pass(made, frame, clear=[9])
        commands.end_pass()
