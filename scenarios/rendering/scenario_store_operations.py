"""Store operations: writes at the end of rendering, also where nothing was drawn."""

from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL, VkRendering
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

BEGIN, END, PASS_END = "vkCmdBeginRendering", "vkCmdEndRendering", "vkCmdEndRenderPass"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
COLOR_WRITE = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
COLOR_USED = f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
LATE_WRITE = "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"
DEPTH, BOTH = "VK_FORMAT_D32_SFLOAT", "VK_FORMAT_D32_SFLOAT_S8_UINT"
RAMP = bytes(range(256)) * 4


@scenario(
    without={"stored before uploaded": [write_after_write(UPLOAD, END)]},
    weakened={
        "stored before uploaded / execution only": [write_after_write(UPLOAD, END)],
        "stored before uploaded / before reads": [write_after_write(UPLOAD, END)],
    },
    rule="storing-writes-the-attachment",
)
def scenario_upload_over_a_stored_attachment(rig: Rig) -> None:
    """A copy over what rendering stored needs a memory dependency: execution alone leaves two writes unordered."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_rendering(RenderingAttachment(rig.view(image), clear=3))
        commands.end_rendering()
        commands.barrier(
            "stored before uploaded",
            COLOR_WRITE,
            "COPY/TRANSFER_WRITE",
            weaker={"execution only": {"src": OUTPUT, "dst": "COPY"}, "before reads": {"dst": "COPY/TRANSFER_READ"}},
        )
        commands.buffer_to_image(data, image)
        commands.barrier("", "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"downloaded before stored": [write_after_read(END, DOWNLOAD)]},
    weakened={
        "downloaded before stored / before dispatches": [write_after_read(END, DOWNLOAD)],
        "downloaded before stored / before early tests": [],
    },
    rule="storing-writes-the-attachment",
)
def scenario_store_of_what_was_loaded_is_a_write(rig: Rig) -> None:
    """Rendering that loads and stores writes its attachment, even when it changes nothing there."""
    image, out = rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x04030201)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{COLOR_USED}|TRANSFER_READ")
        commands.image_to_buffer(image, out)
        commands.barrier(
            "downloaded before stored",
            "COPY",
            OUTPUT,
            weaker={
                "before dispatches": {"dst": "COMPUTE_SHADER"},
                "before early tests": {"dst": "EARLY_FRAGMENT_TESTS"},
            },
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="LOAD"))
        commands.end_rendering()


@scenario(
    without={"discarded before uploaded": [write_after_write(UPLOAD, PASS_END)]}, rule="storing-writes-the-attachment"
)
def scenario_store_operation_dont_care_is_a_write(rig: Rig) -> None:
    """DONT_CARE leaves undefined contents behind, which may land on a later upload."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    into = RigSubpassDependency("discarded before uploaded", 0, VK_SUBPASS_EXTERNAL, COLOR_WRITE, "COPY/TRANSFER_WRITE")
    made = rig.render_pass([RigAttachment(store="DONT_CARE")], [RigSubpass([0])], [into])
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.begin_pass(made, frame, clear=[8])
        commands.end_pass()
        commands.buffer_to_image(data, image)
        commands.barrier("", "COPY/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"downloaded before stored": [write_after_read(END, DOWNLOAD)]},
    needs=["VK_EXT_load_store_op_none"],
    rule="store-operation-none-after-a-write",
)
def scenario_store_operation_none_after_a_draw(rig: Rig) -> None:
    """NONE after a draw that wrote is DONT_CARE: a write of the whole image, beside the render area, too."""
    image, out = rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{COLOR_USED}|TRANSFER_READ")
        commands.image_to_buffer(image, out, {"offset": (8, 0, 0), "extent": (8, 16, 1)})
        commands.barrier("downloaded before stored", "COPY", OUTPUT)
        attached = RenderingAttachment(rig.view(image), load="NONE", store="NONE")
        commands.begin_rendering(attached, area=(0, 0, 8, 16))
        commands.bind(rig.graphics(colors=["VK_FORMAT_R8G8B8A8_UNORM"]))
        commands.draw()
        commands.end_rendering()


@scenario(weakened={"operation / store": [write_after_read(END, DOWNLOAD)]}, rule="operation-none-accesses-nothing")
def scenario_store_operation_none_leaves_a_read_alone(rig: Rig) -> None:
    """Loaded and not stored: rendering only reads, as the download before it did, and nothing has to wait."""
    image, out = rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x04030201)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{COLOR_USED}|TRANSFER_READ")
        commands.image_to_buffer(image, out)
        store = rig.choose("operation", "NONE", {"store": "STORE"})
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="LOAD", store=store))
        commands.end_rendering()


@scenario(
    without={
        "depth before download": [read_after_write(DOWNLOAD, END)],
        "stencil before download": [read_after_write(DOWNLOAD, END)],
    },
    weakened={"depth before download / after early tests": [read_after_write(DOWNLOAD, END)]},
    rule="storing-writes-the-attachment",
)
def scenario_depth_and_stencil_are_stored_by_the_late_tests(rig: Rig) -> None:
    """Both aspects are stored at LATE_FRAGMENT_TESTS, each in its own range."""
    image, out = rig.target(BOTH), rig.buffer(2048)
    view = rig.view(image, aspect=6)
    with rig.submission() as commands:
        commands.transition(image)
        commands.begin_rendering(
            depth=RenderingAttachment(view, clear=(0.25, 0)), stencil=RenderingAttachment(view, clear=(0.0, 9))
        )
        commands.end_rendering()
        for name, aspect in (("depth", 2), ("stencil", 4)):
            commands.barrier(
                f"{name} before download",
                LATE_WRITE,
                "COPY/TRANSFER_READ",
                image=image,
                aspects=aspect,
                weaker={"after early tests": {"src": "EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"}},
            )
        commands.image_to_buffer(image, out, {"aspect": 2})
        commands.image_to_buffer(image, out, {"aspect": 4, "buffer_offset": 1024})


@scenario(
    without={"stored before downloaded": [read_after_write(DOWNLOAD, END)]},
    rule="suspended-rendering-loads-and-stores-once",
)
def scenario_suspended_rendering_stores_once(rig: Rig) -> None:
    """Rendering that is suspended and resumed loads once and stores once; what is between needs nothing."""
    image, out = rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        color = RenderingAttachment(rig.view(image), clear=1)
        commands.begin_rendering(color, flags=VkRendering.SUSPENDING)
        commands.end_rendering()
        commands.begin_rendering(color, flags=VkRendering.RESUMING)
        commands.clear_attachments((1, 0, 2), rects=[((4, 4, 8, 8), 0, 1)])
        commands.end_rendering()
        commands.barrier("stored before downloaded", COLOR_WRITE, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"uploaded before loaded": [write_after_write(BEGIN, UPLOAD)]},
    rule="suspended-rendering-loads-and-stores-once",
)
def scenario_suspended_rendering_in_two_command_buffers(rig: Rig) -> None:
    """The load belongs to the command buffer that suspends, the store to the one that resumes."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    color = RenderingAttachment(rig.view(image), clear=1)
    with rig.commands() as first:
        first.transition(image)
        first.buffer_to_image(data, image)
        first.barrier("uploaded before loaded", "COPY/TRANSFER_WRITE", COLOR_WRITE)
        first.begin_rendering(color, flags=VkRendering.SUSPENDING)
        first.end_rendering()
    with rig.commands() as second:
        second.begin_rendering(color, flags=VkRendering.RESUMING)
        second.clear_attachments((1, 0, 2), rects=[((4, 4, 8, 8), 0, 1)])
        second.end_rendering()
        second.barrier("", COLOR_WRITE, "COPY/TRANSFER_READ")
        second.image_to_buffer(image, out)
    rig.submit(first, second)
