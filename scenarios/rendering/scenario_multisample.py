"""Resolves at the end of rendering: colour accesses at COLOR_ATTACHMENT_OUTPUT, for depth too."""

from vkharness.rig.render_passes import RigAttachment, RigSubpass, RigSubpassDependency
from vkharness.rig.rendering_attachments import RenderingAttachment
from vkharness.spec.enums import VK_ATTACHMENT_UNUSED, VK_SUBPASS_EXTERNAL
from vkharness.suite import Rig, race, read_after_write, scenario, write_after_read, write_after_write

BEGIN, END, NEXT, PASS_END = "vkCmdBeginRendering", "vkCmdEndRendering", "vkCmdNextSubpass2", "vkCmdEndRenderPass2"
DOWNLOAD, CLEAR = "vkCmdCopyImageToBuffer", "vkCmdClearColorImage"
OUTPUT = "COLOR_ATTACHMENT_OUTPUT"
WRITTEN = f"{OUTPUT}/COLOR_ATTACHMENT_WRITE"
USED = f"{OUTPUT}/COLOR_ATTACHMENT_READ|COLOR_ATTACHMENT_WRITE"
LATE = "LATE_FRAGMENT_TESTS/DEPTH_STENCIL_ATTACHMENT_WRITE"
DEPTH = "VK_FORMAT_D32_SFLOAT"
COPIED = "COPY/TRANSFER_READ"


@scenario(
    without={"resolved before downloaded": [read_after_write(DOWNLOAD, END)]},
    weakened={
        "resolved before downloaded / after transfer resolves": [read_after_write(DOWNLOAD, END)],
        "resolved before downloaded / execution only": [read_after_write(DOWNLOAD, END)],
    },
    rule="resolves-at-the-end-of-rendering-are-colour-accesses",
)
def scenario_download_of_a_resolved_attachment(rig: Rig) -> None:
    """A resolve of rendering writes at COLOR_ATTACHMENT_OUTPUT: the stage RESOLVE is another command's."""
    many, one, out = rig.target(samples=4), rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(many, one)
        commands.begin_rendering(RenderingAttachment(rig.view(many), store="DONT_CARE", clear=5, resolve=rig.view(one)))
        commands.end_rendering()
        commands.barrier(
            "resolved before downloaded",
            WRITTEN,
            COPIED,
            weaker={
                "after transfer resolves": {"src": "RESOLVE/TRANSFER_WRITE"},
                "execution only": {"src": OUTPUT, "dst": "COPY"},
            },
        )
        commands.image_to_buffer(one, out)


@scenario(
    without={"cleared before resolved": [write_after_write(END, CLEAR)]},
    weakened={"cleared before resolved / before reads": [write_after_write(END, CLEAR)]},
    rule="clearing-and-not-caring-on-load-write,resolves-at-the-end-of-rendering-are-colour-accesses",
)
def scenario_resolve_over_a_cleared_image(rig: Rig) -> None:
    """The target of a resolve is not loaded, but written: an earlier clear must be available to that write."""
    many, one, out = rig.target(samples=4), rig.target(), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(many, one)
        commands.clear_color(one, 0x01020304)
        commands.barrier(
            "cleared before resolved",
            "CLEAR/TRANSFER_WRITE",
            WRITTEN,
            weaker={"before reads": {"dst": f"{OUTPUT}/COLOR_ATTACHMENT_READ"}},
        )
        commands.begin_rendering(RenderingAttachment(rig.view(many), store="DONT_CARE", clear=5, resolve=rig.view(one)))
        commands.end_rendering()
        commands.barrier("", WRITTEN, COPIED)
        commands.image_to_buffer(one, out)


@scenario(
    without={"downloaded before resolved": [write_after_read(END, DOWNLOAD)]},
    weakened={"downloaded before resolved / before dispatches": [write_after_read(END, DOWNLOAD)]},
    rule="resolves-at-the-end-of-rendering-are-colour-accesses",
)
def scenario_depth_is_resolved_with_colour_accesses(rig: Rig) -> None:
    """A depth resolve happens at COLOR_ATTACHMENT_OUTPUT too: it is a colour access."""
    many, one, out = rig.target(DEPTH, samples=4), rig.target(DEPTH), rig.buffer(1024)
    with rig.submission() as commands:
        commands.transition(many, one)
        commands.clear_depth_stencil(one, 0.75)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", COPIED)
        commands.image_to_buffer(one, out)
        commands.barrier(
            "downloaded before resolved", "COPY", OUTPUT, weaker={"before dispatches": {"dst": "COMPUTE_SHADER"}}
        )
        commands.begin_rendering(
            depth=RenderingAttachment(
                rig.view(many, aspect=2),
                store="DONT_CARE",
                clear=(0.25, 0),
                resolve=rig.view(one, aspect=2),
                mode="SAMPLE_ZERO",
            )
        )
        commands.end_rendering()


@scenario(
    without={"stored before downloaded": [read_after_write(DOWNLOAD, PASS_END)]},
    weakened={"stored before downloaded / after colour output": [read_after_write(DOWNLOAD, PASS_END)]},
    rule="resolves-at-the-end-of-rendering-are-colour-accesses,loads-come-first-and-stores-last",
)
def scenario_depth_resolve_of_a_subpass(rig: Rig) -> None:
    """The depth resolve of a subpass is stored by the late tests, after it was written as colour is."""
    many, one, out = rig.target(DEPTH, samples=4), rig.target(DEPTH), rig.buffer(1024)
    made = rig.render_pass(
        [
            RigAttachment(DEPTH, samples=4, store="DONT_CARE", final="DEPTH_STENCIL_ATTACHMENT_OPTIMAL"),
            RigAttachment(DEPTH, load="LOAD", initial="GENERAL"),
        ],
        [RigSubpass(depth=0, depth_resolve=((1, "GENERAL"), "SAMPLE_ZERO", "NONE"))],
        [
            RigSubpassDependency(
                "stored before downloaded",
                0,
                VK_SUBPASS_EXTERNAL,
                LATE,
                COPIED,
                weaker={"after colour output": {"before": WRITTEN}},
            )
        ],
    )
    frame = rig.framebuffer(made, [rig.view(many, aspect=2), rig.view(one, aspect=2)])
    with rig.submission() as commands:
        commands.transition(one)
        commands.begin_pass(made, frame, clear=[(0.25, 0), (0.0, 0)], v2=True)
        commands.end_pass(v2=True)
        commands.image_to_buffer(one, out)


@scenario(
    without={"drawn before resolved": [race("READ_RACING_WRITE", NEXT, "vkCmdClearAttachments")]},
    rule="a-resolve-waits-for-draws-of-another-subpass,a-subpass-dependency-orders-two-subpasses",
)
def scenario_resolve_of_what_another_subpass_drew(rig: Rig) -> None:
    """The samples that one subpass wrote are resolved at the end of the next: that needs their dependency."""
    many, one, out = rig.target(samples=4), rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [
            RigAttachment(samples=4, load="LOAD", store="NONE", initial="GENERAL", final="GENERAL"),
            RigAttachment(load="DONT_CARE"),
        ],
        [RigSubpass([(0, "GENERAL")]), RigSubpass([(0, "GENERAL")], resolves=[1]), RigSubpass([(1, "GENERAL")])],
        [
            RigSubpassDependency("drawn before resolved", 0, 1, WRITTEN, USED),
            RigSubpassDependency("", 1, 2, WRITTEN, USED),
            RigSubpassDependency("", 2, VK_SUBPASS_EXTERNAL, WRITTEN, COPIED),
        ],
    )
    frame = rig.framebuffer(made, [rig.view(many), rig.view(one)])
    with rig.submission() as commands:
        commands.transition(many)
        commands.begin_pass(made, frame, v2=True)
        commands.clear_attachments((1, 0, 0x01020304))
        commands.next_subpass(v2=True)
        commands.next_subpass(v2=True)
        commands.end_pass(v2=True)
        commands.image_to_buffer(one, out)


@scenario(rule="resolves-at-the-end-of-rendering-are-colour-accesses")
def scenario_unused_resolve_attachments(rig: Rig) -> None:
    """A resolve attachment that is unused, or whose colour attachment is, accesses nothing."""
    many, one, out = rig.target(samples=4), rig.target(), rig.buffer(1024)
    made = rig.render_pass(
        [RigAttachment(samples=4, store="DONT_CARE"), RigAttachment(load="LOAD", store="NONE", initial="GENERAL")],
        [RigSubpass([0, VK_ATTACHMENT_UNUSED], resolves=[VK_ATTACHMENT_UNUSED, VK_ATTACHMENT_UNUSED])],
    )
    frame = rig.framebuffer(made, [rig.view(many), rig.view(one)])
    with rig.submission() as commands:
        commands.transition(one)
        commands.clear_color(one, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", COPIED)
        commands.begin_pass(made, frame, v2=True)
        commands.end_pass(v2=True)
        commands.image_to_buffer(one, out)


@scenario(
    weakened={"resolved layer / the one downloaded": [read_after_write(DOWNLOAD, END)]},
    rule="resolves-at-the-end-of-rendering-are-colour-accesses",
)
def scenario_resolve_into_another_layer(rig: Rig) -> None:
    """A resolve writes the layers of its view: another layer may be read with nothing between."""
    many, array, out = rig.target(samples=4), rig.target(layers=2), rig.buffer(1024)
    layer = rig.choose("resolved layer", 1, {"the one downloaded": 0})
    with rig.submission() as commands:
        commands.transition(many, array)
        commands.clear_color(array, 0x01020304)
        commands.barrier("", "CLEAR/TRANSFER_WRITE", f"COPY|{USED}|TRANSFER_READ")
        resolved = rig.view(array, layers=(layer, 1))
        commands.begin_rendering(RenderingAttachment(rig.view(many), store="DONT_CARE", clear=5, resolve=resolved))
        commands.end_rendering()
        commands.image_to_buffer(array, out)
