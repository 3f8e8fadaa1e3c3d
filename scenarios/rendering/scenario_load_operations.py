"""Load operations: reads or writes at the beginning of rendering, in the stages of their aspect."""

from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, read_after_write, scenario, write_after_read, write_after_write

BEGIN, PASS, DRAW = "vkCmdBeginRendering", "vkCmdBeginRenderPass", "vkCmdDraw"
UPLOAD, DOWNLOAD = "vkCmdCopyBufferToImage", "vkCmdCopyImageToBuffer"
CLEAR = "vkCmdClearDepthStencilImage"
COLOR_READ, COLOR_WRITE = (f"COLOR_ATTACHMENT_OUTPUT/COLOR_ATTACHMENT_{how}" for how in ("READ", "WRITE"))
EARLY_READ, EARLY_WRITE = (f"EARLY_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_{how}" for how in ("READ", "WRITE"))
LATE_WRITE = "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"
DEPTH, BOTH = "VK_FORMAT_D32_SFLOAT", "VK_FORMAT_D32_SFLOAT_S8_UINT"
RAMP = bytes(range(256)) * 4
ALL = "ALL_COMMANDS/MEMORY_WRITE", "ALL_COMMANDS/MEMORY_READ|MEMORY_WRITE"


@scenario(
    without={"uploaded before loaded": [read_after_write(BEGIN, UPLOAD)]},
    weakened={
        "uploaded before loaded / before writes": [read_after_write(BEGIN, UPLOAD)],
        "uploaded before loaded / before shaders": [read_after_write(BEGIN, UPLOAD)],
    },
    rule="loading-reads-the-attachment",
)
def scenario_load_reads_a_colour_attachment(rig: Rig) -> None:
    """LOAD is COLOR_ATTACHMENT_READ at COLOR_ATTACHMENT_OUTPUT: nothing else makes an upload visible to it."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image)
        commands.barrier(
            "uploaded before loaded",
            "COPY/TRANSFER_WRITE",
            f"{COLOR_READ}|COLOR_ATTACHMENT_WRITE",
            weaker={"before writes": {"dst": COLOR_WRITE}, "before shaders": {"dst": "FRAGMENT_SHADER/SHADER_READ"}},
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="LOAD"))
        commands.end_rendering()
        commands.barrier("", COLOR_WRITE, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)


@scenario(
    without={"downloaded before discarded": [write_after_read(BEGIN, DOWNLOAD)]},
    weakened={
        "downloaded before discarded / before dispatches": [write_after_read(BEGIN, DOWNLOAD)],
        "downloaded before discarded / before all tests": [],
    },
    rule="clearing-and-not-caring-on-load-write",
)
def scenario_dont_care_writes_a_colour_attachment(rig: Rig) -> None:
    """DONT_CARE may write anything: an execution dependency keeps it away from an earlier read."""
    image, out = rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_color(image, 0x0C0B0A09)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)
        commands.barrier(
            "downloaded before discarded",
            "COPY",
            "COLOR_ATTACHMENT_OUTPUT",
            weaker={
                "before dispatches": {"dst": "COMPUTE_SHADER"},
                "before all tests": {"dst": "EARLY_FRAGMENT_TESTS"},
            },
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="DONT_CARE"))
        commands.clear_attachments((1, 0, 1))
        commands.end_rendering()


@scenario(
    without={"cleared before loaded": [read_after_write(PASS, CLEAR)]},
    weakened={
        "cleared before loaded / before late tests": [read_after_write(PASS, CLEAR)],
        "cleared before loaded / before colour": [read_after_write(PASS, CLEAR)],
    },
    rule="loading-reads-the-attachment",
)
def scenario_load_reads_a_depth_attachment_in_the_early_tests(rig: Rig) -> None:
    """LOAD of depth happens in the early tests, its store in the late ones: a dependency must reach both."""
    image, out = rig.target(DEPTH), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(DEPTH, "LOAD", initial="GENERAL", final="GENERAL")],
        [RigSubpass(depth=(0, "GENERAL"))],
        [RigSubpassDependency("", 0, VK_SUBPASS_EXTERNAL, LATE_WRITE, "COPY/TRANSFER_READ")],
    )
    frame = rig.framebuffer(made, [rig.view(image, aspect=2)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_depth_stencil(image, 0.5)
        commands.barrier(
            "cleared before loaded",
            "CLEAR/TRANSFER_WRITE",
            f"EARLY_FRAGMENT_TESTS|{LATE_WRITE}|DEPTH_STENCIL_ATTACHMENT_READ",
            weaker={"before late tests": {"dst": LATE_WRITE}, "before colour": {"dst": COLOR_READ}},
        )
        commands.begin_pass(made, frame)
        commands.end_pass()
        commands.image_to_buffer(image, out)


@scenario(
    without={
        "depth cleared before": [write_after_write(BEGIN, CLEAR)],
        "stencil cleared before": [read_after_write(BEGIN, CLEAR), write_after_write(BEGIN, CLEAR)],
    },
    needs=["no VK_KHR_maintenance7"],
    rule="loading-reads-the-attachment,clearing-and-not-caring-on-load-write",
)
def scenario_depth_and_stencil_have_their_own_load_operations(rig: Rig) -> None:
    """Depth is cleared while stencil is loaded: two accesses of two aspects, each with its dependency.

    The clear of depth may rewrite stencil, too.
    """
    image, out = rig.target(BOTH), rig.buffer(2048)
    view = rig.view(image, aspect=6)
    with rig.submission() as commands:
        commands.transition(image)
        commands.clear_depth_stencil(image, 0.5, 7)
        aimed = {
            "depth": (2, f"{EARLY_WRITE}"),
            "stencil": (4, f"EARLY_FRAGMENT_TESTS|{LATE_WRITE}|DEPTH_STENCIL_ATTACHMENT_READ"),
        }
        for name, (aspects, target) in aimed.items():
            commands.barrier(f"{name} cleared before", "CLEAR/TRANSFER_WRITE", target, image=image, aspects=aspects)
        commands.begin_rendering(
            depth=RenderingAttachment(view, load="CLEAR", clear=(0.25, 0)),
            stencil=RenderingAttachment(view, load="LOAD"),
        )
        commands.end_rendering()
        commands.barrier("", LATE_WRITE, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out, {"aspect": 2})
        commands.image_to_buffer(image, out, {"aspect": 4, "buffer_offset": 1024})


@scenario(
    weakened={"operation / clear": [write_after_write(PASS, UPLOAD)]},
    needs=["VK_EXT_load_store_op_none"],
    rule="operation-none-accesses-nothing",
)
def scenario_load_operation_none_accesses_nothing(rig: Rig) -> None:
    """NONE and NONE leave the image alone: no dependency with an upload before is needed, unlike with CLEAR."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    load = rig.choose("operation", "NONE", {"clear": "CLEAR"})
    made = rig.render_pass(
        [RigAttachment(load=load, store="NONE" if load == "NONE" else "STORE", initial="GENERAL")],
        [RigSubpass([(0, "GENERAL")])],
    )
    frame = rig.framebuffer(made, [rig.view(image)])
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image)
        commands.begin_pass(made, frame, clear=[1])
        commands.end_pass()
        commands.barrier("", *ALL)
        commands.image_to_buffer(image, out)


@scenario(
    without={"uploaded before drawn": [read_after_write(DRAW, UPLOAD), write_after_write(DRAW, UPLOAD)]},
    weakened={"uploaded before drawn / for writes only": [read_after_write(DRAW, UPLOAD)]},
    needs=["VK_EXT_load_store_op_none"],
    rule="draws-write-colour-at-attachment-output",
)
def scenario_blending_reads_what_is_not_loaded(rig: Rig) -> None:
    """A draw that blends reads the attachment, also where nothing is loaded."""
    image, data, out = rig.target(), rig.buffer(1024, data=RAMP), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(image)
        commands.buffer_to_image(data, image)
        commands.barrier(
            "uploaded before drawn",
            "COPY/TRANSFER_WRITE",
            f"{COLOR_READ}|COLOR_ATTACHMENT_WRITE",
            weaker={"for writes only": {"dst": COLOR_WRITE}},
        )
        commands.begin_rendering(RenderingAttachment(rig.view(image), load="NONE"))
        commands.bind(rig.graphics(blend=True))
        commands.draw()
        commands.end_rendering()
        commands.barrier("", COLOR_WRITE, "COPY/TRANSFER_READ")
        commands.image_to_buffer(image, out)
