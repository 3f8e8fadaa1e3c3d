"""Framebuffers: imageless ones, layers, mip levels and render areas say what load and store operations access."""

from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, read_after_write, scenario, write_after_write

BEGIN, END, RENDER_END = "vkCmdBeginRenderPass", "vkCmdEndRenderPass", "vkCmdEndRendering"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
OUTPUT, AT = "COLOR_ATTACHMENT_OUTPUT", "GENERAL"
WRITTEN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
USED = f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
COPIED = "COPY/TRANSFER_READ"
RENDER_BEGIN = "vkCmdBeginRendering"
LEFT, RIGHT = (0, 0, 8, 16), {"offset": (8, 0, 0), "extent": (8, 16, 1)}
RAMP = bytes(range(256)) * 4


@scenario(
    without={
        "uploaded before loaded": [read_after_write(BEGIN, UPLOAD)],
        "stored before downloaded": [read_after_write(DOWNLOAD, END)],
    },
    rule="rendering-stays-in-its-area",
)
def scenario_imageless_framebuffer(rig: Rig) -> None:
    """An imageless framebuffer accesses the image views that it was begun with."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(load="LOAD", initial=AT)],
        [RigSubpass([(0, AT)])],
        [
            RigSubpassDependency("uploaded before loaded", VK_SUBPASS_EXTERNAL, 0, "COPY/TRANSFER_WRITE", USED),
            RigSubpassDependency("stored before downloaded", 0, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(image)], imageless=[image])
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image)
        commands.begin_pass(made, frame)
        commands.clear_attachments((1, 0, 4), rects=[((0, 0, 4, 4), 0, 1)])
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(weakened={"second begin / same image": [read_after_write(DOWNLOAD, END)]}, rule="rendering-stays-in-its-area")
def scenario_imageless_framebuffer_with_other_views(rig: Rig) -> None:
    """One imageless framebuffer, begun twice with different views, accesses different images."""
    first, second, out = rig.target(), rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(initial=AT)],
        [RigSubpass([(0, AT)])],
        [RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, WRITTEN, "COLOR_ATTACHMENT_OUTPUT")],
    )
    frame = rig.framebuffer(made, [rig.view(first)], imageless=[first])
    views = {"other": rig.view(second), "same": frame.views[0]}
    with rig.submission() as commands:
        for image in (first, second):
            commands.transition(image)
        commands.begin_pass(made, frame, clear=[1])
        commands.end_pass()
        commands.barrier("", WRITTEN, f"COPY|{WRITTEN}|TRANSFER_READ")
        frame.views = (views[rig.choose("second begin", "other", {"same image": "same"})],)
        commands.begin_pass(made, frame, clear=[2])
        commands.end_pass()
        commands.image_to_buffer(first, out)


@scenario(weakened={"layers / both": [read_after_write(DOWNLOAD, RENDER_END)]}, rule="rendering-stays-in-its-area")
def scenario_layers_beyond_those_rendered_are_left_alone(rig: Rig) -> None:
    """Rendering of one layer leaves the second layer of its view alone."""
    image, out = rig.target(layers=2), rig.buffer(1024)
    layers = rig.choose("layers", 1, {"both": 2})
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{USED}|TRANSFER_READ")
        commands.begin_rendering(RenderingAttachment(rig.view(image, layers=(0, 2)), clear=8), layers=layers)
        commands.end_rendering()
        commands.image_to_buffer(image, out, {"layer": 1})


@scenario(
    weakened={"level / downloaded too": [read_after_write(DOWNLOAD, RENDER_END)]}, rule="rendering-stays-in-its-area"
)
def scenario_mip_levels_outside_the_view_are_left_alone(rig: Rig) -> None:
    """Rendering to one mip level needs no dependency with a copy of another."""
    image, out = rig.target(mips=2), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{USED}|TRANSFER_READ")
        commands.begin_rendering(RenderingAttachment(rig.view(image, mips=(1, 1)), clear=8), area=(0, 0, 8, 8))
        commands.end_rendering()
        commands.image_to_buffer(image, out, {"mip": rig.choose("level", 0, {"downloaded too": 1})})


@scenario(
    without={"upload before rendering": [write_after_write(BEGIN, UPLOAD)]}, rule="operations-write-whole-subresources"
)
def scenario_clear_of_a_part_after_an_upload_beside_it(rig: Rig) -> None:
    """The clear of the left half may write back the right half, to which an upload wrote."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    made = rig.render_pass([RigAttachment(initial=AT, final=AT)], [RigSubpass([(0, AT)])], [])
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image, RIGHT)
        commands.barrier("upload before rendering", "COPY/TRANSFER_WRITE", USED)
        commands.begin_pass(made, frame, area=LEFT, clear=[8])
        commands.end_pass()
        commands.barrier("", WRITTEN, COPIED)
        commands.image_to_buffer(image, out)


@scenario(
    without={"store before download": [read_after_write(DOWNLOAD, RENDER_END)]},
    rule="operations-write-whole-subresources",
)
def scenario_download_beside_a_stored_part(rig: Rig) -> None:
    """The store of the left half may write back the right half, from which a copy reads."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image)
        commands.barrier("", "COPY/TRANSFER_WRITE", USED)
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="LOAD"), area=LEFT)
        commands.clear_attachments((1, 0, 7), rects=[((0, 0, 4, 4), 0, 1)])
        commands.end_rendering()
        commands.barrier("store before download", WRITTEN, COPIED)
        commands.image_to_buffer(image, out, RIGHT)


@scenario(
    without={"resolve before upload": [write_after_write(UPLOAD, RENDER_END)]},
    rule="operations-write-whole-subresources",
)
def scenario_upload_beside_a_resolved_part(rig: Rig) -> None:
    """The resolve into the left half may write back the right half, to which an upload writes."""
    many, one = rig.target(samples=4), rig.target()
    data, out = rig.buffer(1024, data=RAMP), rig.buffer(1024)
    attached = RenderingAttachment(rig.view(many), clear=8, resolve=rig.view(one))
    with rig.submission() as commands:
        for image in (many, one):
            commands.transition(image)
        commands.begin_rendering(attached, area=LEFT)
        commands.end_rendering()
        commands.barrier("resolve before upload", WRITTEN, "COPY/TRANSFER_WRITE")
        commands.buffer_to_image(data, one, RIGHT)
        commands.barrier("", "ALL_COMMANDS/MEMORY_WRITE", COPIED)
        commands.image_to_buffer(one, out)


@scenario(weakened={"area / all": [read_after_write(RENDER_BEGIN, UPLOAD)]}, rule="rendering-stays-in-its-area")
def scenario_load_of_a_part_leaves_the_rest_alone(rig: Rig) -> None:
    """A load operation LOAD reads the render area: what was uploaded beside it needs no dependency."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    area = rig.choose("area", LEFT, {"all": (0, 0, 16, 16)})
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image, RIGHT)
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="LOAD", store="NONE"), area=area)
        commands.end_rendering()
        commands.barrier("", "COPY/TRANSFER_WRITE", COPIED)
        commands.image_to_buffer(image, out)
