"""Subpasses that only read one attachment need nothing between them: its transition comes before each of them, and a
store comes last."""

from vkharness.rig.core import RigImage
from vkharness.rig.render_passes import RigAttachment, RigFramebuffer, RigRenderPass, RigSubpass, RigSubpassDependency
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, race, scenario

NEXT, DRAW, END, CLEAR = "vkCmdNextSubpass", "vkCmdDraw", "vkCmdEndRenderPass", "vkCmdClearAttachments"
AT = "GENERAL"
WRITTEN = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
READ_OR_USED = (
    "COLOR_ATTACHMENT_OUTPUT|FRAGMENT_SHADER/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE|INPUT_ATTACHMENT_READ"
)
COPIED = "COPY/TRANSFER_READ"


def _pass(rig: Rig, base: RigAttachment, at: str, read: str) -> tuple[RigRenderPass, RigFramebuffer, list[RigImage]]:
    """A subpass that draws to attachment 0 in one layout, and two that read it as input in another."""
    images = [rig.target() for _ in range(3)]
    shown = RigAttachment(initial=AT)
    made = rig.render_pass(
        [base, shown, shown],
        [RigSubpass([(0, at)]), RigSubpass([(1, AT)], inputs=[(0, read)]), RigSubpass([(2, AT)], inputs=[(0, read)])],
        [
            RigSubpassDependency("", 0, 1, WRITTEN, READ_OR_USED),
            RigSubpassDependency("colour before second reader", 0, 2, WRITTEN, READ_OR_USED),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
            RigSubpassDependency("", 2, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    return made, rig.framebuffer(made, [rig.view(each) for each in images]), images


@scenario(
    without={"colour before second reader": [race("READ_RACING_WRITE", DRAW, NEXT)]},
    rule="dependencies-meet-at-a-transition,subpasses-without-a-path-race",
)
def scenario_readers_of_an_attachment_that_one_of_them_moves(rig: Rig) -> None:
    """The attachment is moved once to the layout of both readers. Each needs its own dependency on what was drawn."""
    base = RigAttachment(
        load="LOAD", store="NONE", initial="COLOR_ATTACHMENT_OPTIMAL", final="SHADER_READ_ONLY_OPTIMAL"
    )
    made, frame, (source, first, second) = _pass(rig, base, "COLOR_ATTACHMENT_OPTIMAL", "SHADER_READ_ONLY_OPTIMAL")
    out = rig.buffer(1024)
    read_only = rig.vk.VK_IMAGE_LAYOUT_SHADER_READ_ONLY_OPTIMAL
    invert = rig.graphics("invert_input", render_pass=made, subpass=2)
    held = rig.descriptors(invert, b0=(frame.views[0], None, read_only))
    with rig.submission() as commands:
        commands.transition(source, new="COLOR_ATTACHMENT_OPTIMAL")
        for image in (first, second):
            commands.transition(image)
        commands.begin_pass(made, frame)
        commands.bind(rig.graphics(render_pass=made))
        commands.draw()
        commands.next_subpass()
        commands.next_subpass()
        commands.bind(invert, held)
        commands.draw()
        commands.end_pass()
        commands.image_to_buffer(second, out)


@scenario(rule="loads-come-first-and-stores-last,an-attachment-belongs-to-its-first-and-last-subpass")
def scenario_readers_of_an_attachment_that_is_stored(rig: Rig) -> None:
    """The store belongs to the last subpass that uses an attachment, and comes after readers in all subpasses."""
    made, frame, images = _pass(rig, RigAttachment(initial=AT), AT, AT)
    out = rig.buffer(1024)
    invert = rig.graphics("invert_input", render_pass=made, subpass=1)
    held = rig.descriptors(invert, b0=(frame.views[0], None, rig.vk.VK_IMAGE_LAYOUT_GENERAL))
    with rig.submission() as commands:
        for image in images:
            commands.transition(image)
        commands.begin_pass(made, frame, clear=[0x10203040])
        commands.next_subpass()
        commands.bind(invert, held)
        commands.draw()
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(images[1], out)


@scenario(
    without={"first before third": [race("READ_RACING_WRITE", DRAW, CLEAR)]}, rule="subpasses-without-a-path-race"
)
def scenario_subpasses_that_both_depend_on_one(rig: Rig) -> None:
    """Two subpasses may race with each other when each depends on the first and they share nothing that is written."""
    base, left, right, out = rig.target(), rig.target(), rig.target(), rig.buffer(1024)
    at = "GENERAL"
    kept = RigAttachment(initial=at)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", store="NONE", initial=at), kept, kept],
        [RigSubpass([(0, at)]), RigSubpass([(1, at)], inputs=[(0, at)]), RigSubpass([(2, at)], inputs=[(0, at)])],
        [
            RigSubpassDependency("", 0, 1, WRITTEN, READ_OR_USED),
            RigSubpassDependency("first before third", 0, 2, WRITTEN, READ_OR_USED),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
            RigSubpassDependency("", 2, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    views = [rig.view(each) for each in (base, left, right)]
    frame = rig.framebuffer(made, views)
    pipelines = [rig.graphics("invert_input", render_pass=made, subpass=each) for each in (1, 2)]
    with rig.submission() as commands:
        for image in (base, left, right):
            commands.transition(image)
        commands.begin_pass(made, frame)
        commands.clear_attachments((1, 0, 0x10203040))
        for each in pipelines:
            commands.next_subpass()
            commands.bind(each, rig.descriptors(each, b0=(views[0], None, rig.vk.VK_IMAGE_LAYOUT_GENERAL)))
            commands.draw()
        commands.end_pass()
        commands.image_to_buffer(right, out)
