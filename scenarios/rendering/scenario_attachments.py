"""Dependencies before and after rendering: load and store operations are accesses like others."""

from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.suite import Rig, read_after_write, scenario, write_after_write

STORED = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"


@scenario(
    without={"rendered before copied": [read_after_write("vkCmdCopyImageToBuffer", "vkCmdEndRendering")]},
    weakened={
        "rendered before copied / execution only": [read_after_write("vkCmdCopyImageToBuffer", "vkCmdEndRendering")],
        "rendered before copied / fragment shader": [read_after_write("vkCmdCopyImageToBuffer", "vkCmdEndRendering")],
    },
    rule="storing-writes-the-attachment,draws-write-colour-at-attachment-output",
)
def scenario_copy_reads_a_rendered_image(rig: Rig) -> None:
    """A copy that reads what was rendered needs a memory dependency on the store operation."""
    image, out = rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_rendering(RenderingAttachment(rig.view(image)))
        commands.bind(rig.graphics())
        commands.draw()
        commands.end_rendering()
        commands.barrier(
            "rendered before copied",
            STORED,
            "COPY/TRANSFER_READ",
            weaker={
                "execution only": {"src": "COLOR_ATTACHMENT_OUTPUT", "dst": "COPY"},
                "fragment shader": {"src": "FRAGMENT_SHADER/SHADER_STORAGE_WRITE"},
            },
        )
        commands.image_to_buffer(image, out)


@scenario(
    without={"first instance before second": [write_after_write("vkCmdBeginRendering", "vkCmdEndRendering")]},
    weakened={
        "first instance before second / execution only": [write_after_write("vkCmdBeginRendering", "vkCmdEndRendering")]
    },
    rule="attachment-accesses-are-in-rasterization-order",
)
def scenario_two_instances_on_one_attachment(rig: Rig) -> None:
    """Rasterization order ends with the render pass instance: the next one on the same attachment needs a barrier."""
    image, out = rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        for colour in (3, 5):
            commands.begin_rendering(RenderingAttachment(rig.view(image), clear=colour))
            commands.end_rendering()
            if colour == 3:
                commands.barrier(
                    "first instance before second",
                    STORED,
                    STORED,
                    weaker={"execution only": {"src": "COLOR_ATTACHMENT_OUTPUT", "dst": "COLOR_ATTACHMENT_OUTPUT"}},
                )
        commands.barrier("", STORED, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"uploaded before cleared": [write_after_write("vkCmdBeginRendering", "vkCmdCopyBufferToImage")]},
    weakened={
        "uploaded before cleared / for reads only": [write_after_write("vkCmdBeginRendering", "vkCmdCopyBufferToImage")]
    },
    rule="clearing-and-not-caring-on-load-write",
)
def scenario_load_operation_clears_an_uploaded_image(rig: Rig) -> None:
    """A load operation that clears writes the attachment: it needs a memory dependency on an earlier copy to it."""
    image, data = rig.target(), rig.buffer(1024, data=bytes(range(256)) * 4)
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image)
        commands.barrier(
            "uploaded before cleared",
            "COPY/TRANSFER_WRITE",
            STORED,
            weaker={"for reads only": {"dst": "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ"}},
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="CLEAR", clear=2))
        commands.end_rendering()
