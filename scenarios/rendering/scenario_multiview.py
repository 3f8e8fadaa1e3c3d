"""Multiview: each view is a layer of its own, loaded by the first subpass that uses it and stored by the last."""

from vkharness.rig.core import RigImage
from vkharness.rig.render_passes import RigAttachment, RigRenderPass, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkDependency
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_write

BEGIN, CLEAR, NEXT, END = "vkCmdBeginRenderPass", "vkCmdClearAttachments", "vkCmdNextSubpass", "vkCmdEndRenderPass"
DRAW, FRAGMENT = "vkCmdDraw", "FRAGMENT_SHADER"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
OUTPUT, AT = "COLOR_ATTACHMENT_OUTPUT", "GENERAL"
WRITTEN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
USED = f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
COPIED = "COPY/TRANSFER_READ"
RAMP = bytes(range(256)) * 8
WHITE = b"\0\0\x80\x3f" * 256
"""Floats of one: what the shaders write into their place is next to zero."""


def _clear_in_both_subpasses(rig: Rig, made: RigRenderPass, image: RigImage) -> None:
    """Clears the same box in the first and in the second subpass, and copies both layers."""
    out, frame = rig.buffer(2048), rig.framebuffer(made, [rig.view(image, layers=(0, 2))])
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_pass(made, frame)
        commands.clear_attachments((1, 0, 1))
        commands.next_subpass()
        commands.clear_attachments((1, 0, 2))
        commands.end_pass()
        commands.barrier("", WRITTEN, COPIED)
        commands.image_to_buffer(image, out, {"layers": 2})


@scenario(
    without={"uploaded before the second": [read_after_write(NEXT, UPLOAD)]}, rule="each-view-is-a-layer-of-its-own"
)
def scenario_views_are_loaded_by_the_subpass_that_uses_them_first(rig: Rig) -> None:
    """The second view is loaded in the second subpass: a dependency into the first one is not about it."""
    image, data, out = rig.target(layers=2), rig.buffer(2048, data=RAMP), rig.buffer(2048)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial=AT)],
        [RigSubpass([(0, AT)], views=0b01), RigSubpass([(0, AT)], views=0b10)],
        [
            RigSubpassDependency("", VK_SUBPASS_EXTERNAL, 0, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency("uploaded before the second", VK_SUBPASS_EXTERNAL, 1, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image, layers=(0, 2))])
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image, {"layers": 2})
        commands.begin_pass(made, frame)
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(image, out, {"layers": 2})


@scenario(
    without={"first before second": [race("WRITE_RACING_WRITE", CLEAR, CLEAR)]},
    weakened={"first before second / none, of other views": []},
    rule="subpasses-meet-in-shared-views",
)
def scenario_subpasses_of_one_view(rig: Rig) -> None:
    """Subpasses without a dependency race where they share a view, and only there."""
    image = rig.target(layers=2)
    views = rig.choose("first before second", (0b01, True), {"none, of other views": (0b10, False)})
    second, joined = views if views is not None else (0b01, False)
    depends = [RigSubpassDependency("", 0, 1, WRITTEN, USED)] if joined else []
    made = rig.render_pass(
        [RigAttachment(load="LOAD", store="NONE", initial=AT)],
        [RigSubpass([(0, AT)], views=0b01), RigSubpass([(0, AT)], views=second)],
        depends,
    )
    _clear_in_both_subpasses(rig, made, image)


@scenario(weakened={"views / both": [read_after_write(DOWNLOAD, END)]}, rule="each-view-is-a-layer-of-its-own")
def scenario_layers_that_are_no_views_are_left_alone(rig: Rig) -> None:
    """Load and store operations access the layers of the views that are rendered: another layer may be read."""
    image, out = rig.target(layers=2), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(load="CLEAR", initial=AT)],
        [RigSubpass([(0, AT)], views=rig.choose("views", 0b01, {"both": 0b11}))],
    )
    frame = rig.framebuffer(made, [rig.view(image, layers=(0, 2))])
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{USED}|TRANSFER_READ")
        commands.begin_pass(made, frame, clear=[7])
        commands.end_pass()
        commands.image_to_buffer(image, out, {"layer": 1})


@scenario(
    without={"stored before downloaded": [read_after_write(DOWNLOAD, "vkCmdEndRendering")]},
    rule="each-view-is-a-layer-of-its-own",
)
def scenario_views_of_dynamic_rendering(rig: Rig) -> None:
    """A view mask of dynamic rendering chooses layers, and a clear inside clears all of them."""
    image, out = rig.target(layers=2), rig.buffer(2048)
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_rendering(RenderingAttachment(rig.view(image, layers=(0, 2)), clear=3), views=0b11)
        commands.clear_attachments((1, 0, 9))
        commands.end_rendering()
        commands.barrier("stored before downloaded", WRITTEN, COPIED)
        commands.image_to_buffer(image, out, {"layers": 2})


@scenario(
    without={"uploaded before moved": [write_after_write(BEGIN, UPLOAD)]},
    rule="automatic-transitions-cover-whole-subresources",
)
def scenario_transitions_of_views(rig: Rig) -> None:
    """The initial transition of a multiview attachment moves the layers of all views, the first subpass' or not."""
    image, data, out = rig.target(layers=2), rig.buffer(2048, data=RAMP), rig.buffer(2048)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial="TRANSFER_DST_OPTIMAL")],
        [RigSubpass([(0, AT)], views=0b01), RigSubpass([(0, AT)], views=0b10)],
        [
            RigSubpassDependency("uploaded before moved", VK_SUBPASS_EXTERNAL, 0, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency("", 0, 1, WRITTEN, USED),
            RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image, layers=(0, 2))])
    with rig.submission() as commands:
        commands.transition(image, new="TRANSFER_DST_OPTIMAL")
        commands.buffer_to_image(data, image, {"layers": 2}, at="TRANSFER_DST_OPTIMAL")
        commands.begin_pass(made, frame)
        commands.next_subpass()
        commands.end_pass()
        commands.image_to_buffer(image, out, {"layers": 2})


@scenario(weakened={"flags / view-local": [read_after_write(DRAW, DRAW)]}, rule="view-local-dependencies-order-views")
def scenario_storage_buffer_beside_a_view_local_dependency(rig: Rig) -> None:
    """A view-local dependency orders what one view does: not the writes of all views to one buffer."""
    image, held, out = rig.target(layers=2), rig.buffer(1024, data=WHITE), rig.buffer(2048)
    flags = rig.choose("flags", 0, {"view-local": VkDependency.VIEW_LOCAL})
    made = rig.render_pass(
        [RigAttachment(initial=AT)],
        [RigSubpass([(0, AT)], views=0b11), RigSubpass([(0, AT)], views=0b11)],
        [
            RigSubpassDependency("", 0, 1, f"{FRAGMENT}/SHADER_WRITE", f"{FRAGMENT}/UNIFORM_READ", flags),
            RigSubpassDependency("", 0, 1, WRITTEN, USED, VkDependency.VIEW_LOCAL),
            RigSubpassDependency("", 1, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image, layers=(0, 2))])
    shaders = ("store_columns", "uniform_color")
    writes, reads = (rig.graphics(shader, render_pass=made, subpass=at) for at, shader in enumerate(shaders))
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_pass(made, frame)
        commands.bind(writes, rig.descriptors(writes, b0=held))
        commands.draw()
        commands.next_subpass()
        commands.bind(reads, rig.descriptors(reads, b0=held))
        commands.draw()
        commands.end_pass()
        commands.image_to_buffer(image, out, {"layers": 2})


@scenario(
    without={"first before second": [race("WRITE_RACING_WRITE", CLEAR, CLEAR)]},
    weakened={"first before second / of the next view": [race("WRITE_RACING_WRITE", CLEAR, CLEAR)]},
    rule="view-local-dependencies-order-views",
)
def scenario_view_local_dependency_of_one_view(rig: Rig) -> None:
    """Between two subpasses of one view a view-local dependency is like any other, as long as it is about that view."""
    image = rig.target(layers=2)
    other = {"of the next view": {"view_offset": 1}}
    made = rig.render_pass(
        [RigAttachment(load="LOAD", store="NONE", initial=AT)],
        [RigSubpass([(0, AT)], views=0b01), RigSubpass([(0, AT)], views=0b01)],
        [RigSubpassDependency("first before second", 0, 1, WRITTEN, USED, VkDependency.VIEW_LOCAL, weaker=other)],
    )
    _clear_in_both_subpasses(rig, made, image)
