"""Transitions of a render pass instance where nothing is loaded or drawn: unused attachments, other subpasses, outside
the render area, and other command buffers."""

from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, read_after_write, scenario, write_after_write

BEGIN, NEXT, END = "vkCmdBeginRenderPass", "vkCmdNextSubpass", "vkCmdEndRenderPass"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
WRITTEN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
USED = f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
TO_COPY = RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, WRITTEN, "COPY/TRANSFER_READ")
RAMP = bytes(range(256)) * 4


@scenario(
    weakened={"resolved before moved / execution only": [write_after_write(NEXT, NEXT)]},
    rule="resolves-at-the-end-of-rendering-are-colour-accesses,a-subpass-dependency-orders-two-subpasses",
)
def scenario_transition_of_a_resolve_attachment_between_subpasses(rig: Rig) -> None:
    """A resolve at the end of a subpass is a write, before which the next one's transition may not come."""
    many, one, out = rig.target(samples=4), rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [
            RigAttachment(samples=4, store="DONT_CARE", final="COLOR_ATTACHMENT_OPTIMAL"),  # no implicit dependency
            RigAttachment(load="DONT_CARE"),
        ],
        [RigSubpass([0], resolves=[1]), RigSubpass([(1, "GENERAL")])],
        [
            RigSubpassDependency(
                "resolved before moved", 0, 1, WRITTEN, USED, weaker={"execution only": {"before": OUTPUT}}
            ),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, "COPY/TRANSFER_READ"),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(many), rig.view(one)])
    with rig.submission() as commands:
        commands.begin_pass(made, frame, clear=[0x0A0B0C0D])
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(one, out)


@scenario(
    without={"upload before all": [write_after_write(END, UPLOAD)]},
    weakened={"upload before all / before attachments": [write_after_write(END, UPLOAD)]},
    rule="unused-attachments-change-their-layout-too",
)
def scenario_transition_of_an_attachment_that_no_subpass_uses(rig: Rig) -> None:
    """An unused attachment is moved to its final layout, and no subpass dependency is about that."""
    used, unused, data, out = rig.target(), rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(), RigAttachment(load="LOAD", initial="TRANSFER_DST_OPTIMAL", final="TRANSFER_SRC_OPTIMAL")],
        [RigSubpass([0])],
    )
    frame = rig.framebuffer(made, [rig.view(used), rig.view(unused)])
    with rig.submission() as commands:
        commands.transition(unused, new="TRANSFER_DST_OPTIMAL")
        commands.buffer_to_image(data, unused, at="TRANSFER_DST_OPTIMAL")
        commands.barrier(
            "upload before all",
            "COPY/TRANSFER_WRITE",
            "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE",
            weaker={"before attachments": {"dst": USED}},
        )
        commands.begin_pass(made, frame)
        commands.end_pass()
        commands.barrier("", "ALL_COMMANDS/MEMORY_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(unused, out, at="TRANSFER_SRC_OPTIMAL")


@scenario(expects=[read_after_write(DOWNLOAD, END)], rule="implicit-external-dependencies-order-little")
def scenario_implicit_dependency_orders_no_copy(rig: Rig) -> None:
    """The implicit dependency to EXTERNAL makes the store available to the final transition and nothing visible."""
    image, out = rig.target(), rig.buffer(1024)
    made = rig.render_pass([RigAttachment(final="TRANSFER_SRC_OPTIMAL")], [RigSubpass([0])])
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.begin_pass(made, frame, clear=[7])
        commands.end_pass()
        commands.image_to_buffer(image, out, at="TRANSFER_SRC_OPTIMAL")


@scenario(
    weakened={"kept layout / moved": [write_after_write(BEGIN, UPLOAD)]},
    rule="rendering-stays-in-its-area,automatic-transitions-cover-whole-subresources",
)
def scenario_transitions_do_not_stop_at_the_render_area(rig: Rig) -> None:
    """Texels outside the render area of an attachment that is only read are free, unless its layout changes."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    initial = rig.choose("kept layout", "GENERAL", {"moved": "TRANSFER_DST_OPTIMAL"})
    made = rig.render_pass(
        [RigAttachment(load="LOAD", store="NONE", initial=initial)], [RigSubpass([(0, "GENERAL")])], [TO_COPY]
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    lower = {"offset": (0, 8, 0), "extent": (16, 8, 1)}
    with rig.submission() as commands:
        commands.transition(image, new=initial)
        commands.buffer_to_image(data, image, lower, at=initial)
        commands.begin_pass(made, frame, area=(0, 0, 16, 8))
        commands.end_pass()
        commands.barrier("", "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={
        "upload before pass": [write_after_write(BEGIN, UPLOAD)],
        "pass before download": [read_after_write(DOWNLOAD, END)],
    },
    rule="external-dependencies-order-what-is-outside,initial-transitions-wait-for-earlier-accesses",
)
def scenario_transitions_across_command_buffers(rig: Rig) -> None:
    """A subpass dependency with EXTERNAL reaches what earlier and later submits of the queue do."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial="TRANSFER_DST_OPTIMAL", final="TRANSFER_SRC_OPTIMAL")],
        [RigSubpass([0])],
        [
            RigSubpassDependency("upload before pass", VK_SUBPASS_EXTERNAL, 0, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency("pass before download", 0, VK_SUBPASS_EXTERNAL, WRITTEN, "COPY/TRANSFER_READ"),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.commands() as before:
        before.transition(image, new="TRANSFER_DST_OPTIMAL")
        before.buffer_to_image(data, image, at="TRANSFER_DST_OPTIMAL")
    with rig.commands() as commands:
        commands.begin_pass(made, frame)
        commands.end_pass()
    with rig.commands() as after:
        after.image_to_buffer(image, out, at="TRANSFER_SRC_OPTIMAL")
    rig.submit(before)
    rig.submit(commands, after)


@scenario(
    without={"uploaded before pass": [write_after_write(END, UPLOAD)]},
    needs=["VK_EXT_load_store_op_none"],
    rule="implicit-external-dependencies-order-little,final-transitions-wait-for-the-store",
)
def scenario_final_transition_of_an_attachment_that_is_not_accessed(rig: Rig) -> None:
    """NONE and NONE access nothing, but the final transition does: the implicit dependency covers no copy before."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    kept = RigAttachment(load="NONE", store="NONE", initial="GENERAL", final="TRANSFER_SRC_OPTIMAL")
    made = rig.render_pass([kept], [RigSubpass([(0, "GENERAL")])])
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image)
        commands.barrier("uploaded before pass", "COPY/TRANSFER_WRITE", USED)
        commands.begin_pass(made, frame)
        commands.end_pass()
        commands.barrier("", "ALL_COMMANDS/MEMORY_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out, at="TRANSFER_SRC_OPTIMAL")
