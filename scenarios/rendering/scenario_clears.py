"""vkCmdClearAttachments: ordered writes, in the stages in which draws write, of aspects, rectangles and layers."""

from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

CLEAR, END, DOWNLOAD, UPLOAD = (
    "vkCmdClearAttachments",
    "vkCmdEndRendering",
    "vkCmdCopyImageToBuffer",
    "vkCmdCopyBufferToImage",
)
COLOR_WRITE = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_WRITE"
COLOR_USED = "COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
TESTS_USED = "EARLY_FRAGMENT_TESTS|LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_READ|DEPTH_STENCIL_ATTACHMENT_WRITE"
LATE_WRITE = "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"
DEPTH, BOTH = "VK_FORMAT_D32_SFLOAT", "VK_FORMAT_D32_SFLOAT_S8_UINT"
RAMP = bytes(range(256)) * 4


@scenario(
    without={"downloaded before cleared": [write_after_read(CLEAR, DOWNLOAD)]},
    weakened={
        "downloaded before cleared / before dispatches": [write_after_read(CLEAR, DOWNLOAD)],
        "downloaded before cleared / before early tests": [],
    },
    rule="clears-of-attachments-are-draws",
)
def scenario_clear_of_a_colour_attachment_after_a_read(rig: Rig) -> None:
    """A clear inside rendering writes like a draw: an earlier download must come before its stage."""
    image, out = rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{COLOR_USED}|TRANSFER_READ")
        commands.image_to_buffer(image, out)
        commands.barrier(
            "downloaded before cleared",
            "COPY",
            "COLOR_ATTACHMENT_OUTPUT",
            weaker={
                "before dispatches": {"dst": "COMPUTE_SHADER"},
                "before early tests": {"dst": "EARLY_FRAGMENT_TESTS"},
            },
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="LOAD", store="NONE"))
        commands.clear_attachments((1, 0, 7))
        commands.end_rendering()


@scenario(
    without={"downloaded before cleared": [write_after_read(CLEAR, DOWNLOAD)]},
    weakened={"downloaded before cleared / before late tests": [write_after_read(CLEAR, DOWNLOAD)]},
    needs=["VK_EXT_load_store_op_none"],
    rule="clears-of-attachments-are-draws",
)
def scenario_clear_of_a_depth_attachment_after_a_read(rig: Rig) -> None:
    """Depth is cleared in the early and in the late tests: an earlier download must come before both."""
    image, out = rig.target(DEPTH), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_depth_stencil(image, 0.5)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{TESTS_USED}|TRANSFER_READ")
        commands.image_to_buffer(image, out, {"aspect": 2})
        commands.barrier(
            "downloaded before cleared",
            "COPY",
            "EARLY_FRAGMENT_TESTS",
            weaker={"before late tests": {"dst": "LATE_FRAGMENT_TESTS"}},
        )
        commands.begin_rendering(depth=RenderingAttachment(rig.view(image, aspect=2), load="NONE", store="NONE"))
        commands.clear_attachments((2, 0, (0.25, 0)))
        commands.end_rendering()


@scenario(
    expects=[read_after_write(DOWNLOAD, END)],
    weakened={
        "aspect / stencil": [read_after_write(DOWNLOAD, END)],
        "aspect / both": [read_after_write(DOWNLOAD, END)],
    },
    needs=["no VK_KHR_maintenance7"],
    rule="clears-of-attachments-are-draws,writes-to-one-aspect-may-rewrite-the-other",
)
def scenario_clear_of_one_aspect(rig: Rig) -> None:
    """A clear of one aspect leaves the other alone. The store of what it wrote may rewrite both."""
    image, out = rig.target(BOTH), rig.buffer(2048)
    view = rig.view(image, aspect=6)
    kept = RenderingAttachment(view, load="LOAD", store="NONE")
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_depth_stencil(image, 0.5, 3)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{TESTS_USED}|TRANSFER_READ")
        commands.begin_rendering(depth=kept, stencil=kept)
        commands.clear_attachments((rig.choose("aspect", 2, {"stencil": 4, "both": 6}), 0, (0.25, 9)))
        commands.end_rendering()
        commands.barrier("", LATE_WRITE, "COPY/TRANSFER_READ", image=image, aspects=2)
        commands.image_to_buffer(image, out, {"aspect": 2})
        commands.image_to_buffer(image, out, {"aspect": 4, "buffer_offset": 1024})


@scenario(
    expects=[write_after_write(END, UPLOAD)],
    weakened={"layers / both": [write_after_write(CLEAR, UPLOAD)]},
    needs=["VK_EXT_load_store_op_none"],
    rule="clears-of-attachments-are-draws,store-operation-none-after-a-write",
)
def scenario_clear_of_one_layer(rig: Rig) -> None:
    """A clear of layer 0 leaves layer 1 alone. The store operation NONE then writes all of the attachment."""
    image, data, out = rig.target(layers=2), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    view = rig.view(image, layers=(0, 2))
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image, {"layer": 1})
        commands.begin_rendering(RenderingAttachment(view, load="NONE", store="NONE"), layers=2)
        commands.clear_attachments((1, 0, 7), rects=[((0, 0, 16, 16), 0, rig.choose("layers", 1, {"both": 2}))])
        commands.end_rendering()
        commands.barrier("", "ALL_COMMANDS/MEMORY_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    expects=[write_after_write(END, UPLOAD)],
    weakened={"rectangle / all": [write_after_write(CLEAR, UPLOAD)]},
    needs=["VK_EXT_load_store_op_none"],
    rule="clears-of-attachments-are-draws,operations-write-whole-subresources",
)
def scenario_clear_of_a_rectangle(rig: Rig) -> None:
    """A clear writes its rectangle. What was uploaded beside it meets the store operation alone."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    rows = rig.choose("rectangle", 8, {"all": 16})
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image, {"offset": (0, 8, 0), "extent": (16, 8, 1)})
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="NONE"))
        commands.clear_attachments((1, 0, 7), rects=[((0, 0, 16, rows), 0, 1)])
        commands.end_rendering()
        commands.barrier("", "ALL_COMMANDS/MEMORY_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(rule="attachment-accesses-are-in-rasterization-order,clears-of-attachments-are-draws")
def scenario_clears_and_draws_are_ordered(rig: Rig) -> None:
    """Load operation, draw, clear, draw and store operation of one attachment need nothing between them."""
    image, out = rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment()],
        [RigSubpass([0])],
        [RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, COLOR_WRITE, "COPY/TRANSFER_READ")],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.begin_pass(made, frame)
        commands.bind(rig.graphics(render_pass=made))
        commands.draw()
        commands.clear_attachments((1, 0, 5), rects=[((2, 2, 9, 9), 0, 1), ((4, 4, 9, 9), 0, 1)])
        commands.draw()
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    without={"cleared before downloaded": [read_after_write(DOWNLOAD, END)]}, rule="clears-of-attachments-are-draws"
)
def scenario_clear_of_an_unused_attachment_does_nothing(rig: Rig) -> None:
    """Only the colour attachment that the subpass has is cleared; the other index means none."""
    image, out = rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", COLOR_USED)
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="LOAD"), None)
        commands.clear_attachments((1, 0, 7), (1, 1, 8))
        commands.end_rendering()
        commands.barrier("cleared before downloaded", COLOR_WRITE, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)
