"""Attachments of one render pass on the same memory (VK_ATTACHMENT_DESCRIPTION_MAY_ALIAS_BIT): what one of them is used
for counts for the layout transitions of the others."""

from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, race, scenario, write_after_read, write_after_write

BEGIN, NEXT, UPLOAD = "vkCmdBeginRenderPass", "vkCmdNextSubpass", "vkCmdCopyBufferToImage"
USED_LAYOUT = "COLOR_ATTACHMENT_OPTIMAL"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
WRITTEN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
USED = f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
TO_COPY = RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, "COPY/TRANSFER_READ")


@scenario(
    without={"first before second": [race("WRITE_RACING_READ", NEXT, BEGIN)]},
    weakened={"first before second / after vertices": [write_after_read(NEXT, BEGIN)]},
    rule="aliased-attachments-share-their-users",
)
def scenario_initial_transition_after_a_use_of_an_aliased_attachment(rig: Rig) -> None:
    """A dependency between the subpasses of two attachments on one image orders the transition of the second one."""
    image, out = rig.target(), rig.buffer(1024)
    read = RigAttachment(load="LOAD", store="NONE", initial=USED_LAYOUT, final=USED_LAYOUT, may_alias=True)
    made = rig.render_pass(
        [read, RigAttachment(may_alias=True)],
        [RigSubpass([0]), RigSubpass([1])],
        [
            RigSubpassDependency(
                "first before second", 0, 1, OUTPUT, USED, weaker={"after vertices": {"before": "VERTEX_SHADER"}}
            ),
            TO_COPY,
        ],
    )
    view = rig.view(image)
    with rig.submission() as commands:
        commands.transition(image, new=USED_LAYOUT)
        commands.begin_pass(made, rig.framebuffer(made, [view, view]), clear=[0, 5])
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    without={"upload before the first": [write_after_write(NEXT, UPLOAD)]},
    weakened={"upload before the first / execution only": [write_after_write(NEXT, UPLOAD)]},
    rule="aliased-attachments-share-their-users",
)
def scenario_initial_transition_after_a_dependency_into_a_user_of_an_aliased_attachment(rig: Rig) -> None:
    """A dependency from outside into a subpass orders the first transitions of all that aliases what it uses."""
    image, data, out = rig.target(), rig.buffer(1024, data=bytes(range(256)) * 4), rig.buffer(1024)
    untouched = RigAttachment(load="NONE", store="NONE", initial=USED_LAYOUT, final=USED_LAYOUT, may_alias=True)
    made = rig.render_pass(
        [untouched, RigAttachment(may_alias=True)],
        [RigSubpass([0]), RigSubpass([1])],
        [
            RigSubpassDependency(
                "upload before the first",
                VK_SUBPASS_EXTERNAL,
                0,
                "COPY/TRANSFER_WRITE",
                USED,
                weaker={"execution only": {"before": "COPY"}},
            ),
            TO_COPY,
        ],
    )
    view = rig.view(image)
    with rig.submission() as commands:
        commands.transition(image, new="GENERAL")
        commands.buffer_to_image(data, image)
        commands.begin_pass(made, rig.framebuffer(made, [view, view]), clear=[0, 5])
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(image, out)
