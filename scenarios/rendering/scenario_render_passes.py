"""Subpass dependencies with what is outside the render pass instance."""

from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, read_after_write, scenario

WRITTEN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
OVERTAKEN = read_after_write("vkCmdCopyBuffer", "vkCmdFillBuffer")


@scenario(
    without={
        "upload before load": [read_after_write("vkCmdBeginRenderPass2", "vkCmdCopyBufferToImage")],
        "store before download": [read_after_write("vkCmdCopyImageToBuffer", "vkCmdEndRenderPass2")],
    },
    rule="external-dependencies-order-what-is-outside,implicit-external-dependencies-order-little",
)
def scenario_external_dependencies_order_a_pass_among_copies(rig: Rig) -> None:
    """Dependencies from and to EXTERNAL do for a render pass what barriers do; the implicit ones order no copy."""
    image, data, out = rig.target(), rig.buffer(1024, data=bytes(range(256)) * 4), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial="GENERAL", final="GENERAL")],
        [RigSubpass([(0, "GENERAL")])],
        [
            RigSubpassDependency(
                "upload before load", VK_SUBPASS_EXTERNAL, 0, "COPY/TRANSFER_WRITE", f"{WRITTEN}|COLOR_ATTACHMENT_READ"
            ),
            RigSubpassDependency("store before download", 0, VK_SUBPASS_EXTERNAL, WRITTEN, "COPY/TRANSFER_READ"),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image)
        commands.begin_pass(made, frame, v2=True)
        commands.clear_attachments((1, 0, 3), rects=[((0, 0, 4, 4), 0, 1)])
        commands.end_pass(v2=True)
        commands.image_to_buffer(image, out)


@scenario(
    without={"fill before pass": [OVERTAKEN], "pass before copy": [OVERTAKEN]},
    weakened={"fill before pass / nothing available": [OVERTAKEN]},
    rule="external-dependencies-order-what-is-outside",
)
def scenario_pass_orders_what_is_before_and_after_it(rig: Rig) -> None:
    """A dependency into a render pass and one out of it, which meet at a stage, are a chain for what is outside."""
    image, source, target = rig.target(), rig.buffer(1024), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment()],
        [RigSubpass([0])],
        [
            RigSubpassDependency(
                "fill before pass",
                VK_SUBPASS_EXTERNAL,
                0,
                "CLEAR/TRANSFER_WRITE",
                WRITTEN,
                weaker={"nothing available": {"before": "CLEAR"}},
            ),
            RigSubpassDependency("pass before copy", 0, VK_SUBPASS_EXTERNAL, WRITTEN, "COPY/TRANSFER_READ"),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.fill(source, 0x0BADF00D)
        commands.begin_pass(made, frame, clear=[7])
        commands.end_pass()
        commands.copy(source, target)
